# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a new container of Podman would get: start one, look at it, take it away again.

Nothing is fetched, and nothing of it goes to Podman's own store: it has a folder of its own, which
is removed. Its one program sleeps and ends by itself, even where a run is killed half way.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..containers.findings import Canary, ContainerLimits, build_program, refuse_machine
from ..containers.limits_read import read_container_limits
from ..containers.read import read_words
from ..core.values import NamedTuple, Rlimit
from ..host.as_user import Errand, ask_user
from ..host.door import list_pids, read_kernel_file
from ..host.scratch import CANARY, PROGRAMS
from .read import find_podman

_TIME_LIMIT = 90.0
_WHOLE_LIMIT = 150.0
_CLEANING_LIMIT = 30.0
_LONGEST = 500
_FOLDER = PROGRAMS
_NAME = "mlhost-limits-canary"
_UNKNOWN = "unknown flag"  # Before 4.0 Podman lacks some of the options.


class Caller(NamedTuple):
    """Who starts the container: ``limits`` are those of the session, which bound a rootless one."""

    user: str = ""
    limits: Mapping[str, Rlimit] = {}


def run_podman_canary(
    caller: Caller = Caller(),  # noqa: B008
    conf: str = "",
    seconds: float = _WHOLE_LIMIT,
) -> Canary:
    """Start a container as the caller would get it, read its limits, remove it.

    A user's is started, looked at and removed by a child that is that user, so that nothing of
    root's is ever in a folder of theirs; what it tells is that user's word.

    :param conf: The text of a configuration in the place of every file's.
    :param seconds: How long a user's child may take for all of it.
    """
    program, machine = find_podman(), os.uname().machine
    if program is None:
        return Canary(None, reason="podman is not installed on this host")
    if refuse_machine(machine):
        return Canary(None, reason=refuse_machine(machine))
    try:
        person = pwd.getpwnam(caller.user or "root")
    except KeyError:
        return Canary(None, reason=f"there is no user {caller.user}")
    if not caller.user:
        return _try(program, person, conf)
    import subprocess  # noqa: F401 - a child that became a user may not reach Python's own files

    task = partial(_try_as_user, program, person, conf)
    report = ask_user(
        Errand(person, task, limits=caller.limits, seconds=seconds, gains_rights=True)
    )
    if report.problem:
        reason = f"no container of {caller.user} could be tried: {report.problem}"
        return Canary(None, reason=reason)
    return _read(report.value)


def _try_as_user(program: str, person: pwd.struct_passwd, conf: str) -> list[object]:
    """Return a canary as JSON carries it. Runs as the user."""
    seen = _try(program, person, conf)
    found = [seen.found.limits, seen.found.shm_size] if seen.found else None
    return [found, seen.reason, seen.refusal]


def _read(told: Any) -> Canary:
    """Read what a user's child tells.

    :returns: A canary that says why, where that has another form.
    """
    try:
        found, reason, refusal = told
        if found is None:
            return Canary(None, str(reason)[:_LONGEST], str(refusal or "")[:_LONGEST])
        limits = {str(name): Rlimit(*map(int, pair)) for name, pair in found[0].items()}
        size = None if found[1] is None else int(found[1])
    except (TypeError, ValueError, AttributeError, IndexError):
        return Canary(None, reason="the answer about a new container cannot be read")
    return Canary(ContainerLimits(limits, size))


def _try(program: str, person: pwd.struct_passwd, conf: str) -> Canary:
    try:
        folder = tempfile.mkdtemp(prefix=CANARY, dir=_FOLDER)  # Podman bears no longer name.
    except OSError as error:
        return Canary(None, reason=str(error))
    run = _Run(program, folder, person)
    try:
        run.prepare(os.uname().machine, conf)
        return run.measure()
    except OSError as error:
        return Canary(None, reason=str(error))
    finally:
        run.clean()


class _Run:
    """One container, with all that belongs to it in one folder."""

    def __init__(self, program: str, folder: str, person: pwd.struct_passwd) -> None:
        self.folder = folder
        self.program = program
        self.is_old = False
        self.is_users = os.geteuid() != 0
        self.environment = {
            "HOME": person.pw_dir,
            "USER": person.pw_name,
            "LOGNAME": person.pw_name,
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "PODMAN_IGNORE_CGROUPSV1_WARNING": "1",
        }
        if self.is_users:
            self.environment["XDG_RUNTIME_DIR"] = f"{folder}/xdg"

    def prepare(self, machine: str, conf: str) -> None:
        """Make the file system of the container, and all that Podman keeps of it."""
        inner = [f"fs/{name}" for name in ("dev", "etc", "proc", "run", "sys", "tmp", "var")]
        for name in ("root", "run", "libpod", "net", "xdg", "fs", *inner):
            os.mkdir(f"{self.folder}/{name}", 0o700)
        with open(f"{self.folder}/fs/pause", "wb") as file:
            file.write(build_program(machine))
        os.chmod(f"{self.folder}/fs/pause", 0o755)  # noqa: S103 - a program is run by everyone
        if conf:
            with open(f"{self.folder}/containers.conf", "w", encoding="latin-1") as text:
                text.write(conf)
            self.environment["CONTAINERS_CONF"] = f"{self.folder}/containers.conf"

    def measure(self) -> Canary:
        code, text = self._start()
        if code and _UNKNOWN in text:
            self.is_old = True
            code, text = self._start()
        if code:
            said = _find_error(text)
            return Canary(None, reason=said) if _UNKNOWN in text else Canary(None, refusal=said)
        try:
            return Canary(read_container_limits(self._find_pid()))
        except (FileNotFoundError, ProcessLookupError):
            return Canary(None, refusal="the container ended at once")

    def _start(self) -> tuple[int, str]:
        tell_pid = () if self.is_old else ("--pidfile", f"{self.folder}/pid")
        return self._podman(
            *("run", "--detach", "--name", _NAME, "--network", "none", *tell_pid),
            *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
            *("--security-opt", "label=disable", "--log-driver", "none"),
            *("--rootfs", f"{self.folder}/fs", "/pause"),
        )

    def _find_pid(self) -> int:
        """Return the process of the container.

        :raises ProcessLookupError: If it has ended.
        """
        if self.is_old:
            _code, text = self._podman("inspect", "--format", "{{.State.Pid}}", _NAME)
        else:
            with open(f"{self.folder}/pid", encoding="ascii") as file:
                text = file.read()
        pids = [int(line) for line in text.splitlines() if line.strip().isdigit()]
        if not pids or pids[-1] == 0:
            raise ProcessLookupError(text)
        return pids[-1]

    def clean(self) -> None:
        """Remove the container and the folder, whatever became of it."""
        if os.path.exists(f"{self.folder}/root/libpod"):
            if self.is_old:  # What has no option for it waits ten seconds for an end.
                self._podman("kill", "--signal", "KILL", _NAME)
            now = () if self.is_old else ("--time", "0")
            self._podman("rm", "--force", *now, _NAME)
        for path in ("xdg/libpod/tmp/pause.pid", "libpod/pause.pid"):
            _end(f"{self.folder}/{path}")
        self._wait()
        for point in reversed([one for one in _list_mounts() if one.startswith(self.folder)]):
            _execute(["/usr/bin/umount", "-l", point], {})
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.is_users and os.path.isdir(self.folder):  # Some of it is of the user's other ids.
            _execute([self.program, "unshare", "rm", "-rf", self.folder], self.environment)

    def _wait(self) -> None:
        """Wait for what the container's monitor runs after its end, which writes to the folder."""
        deadline = time.monotonic() + _CLEANING_LIMIT
        while time.monotonic() < deadline:
            own = [pid for pid in list_pids() if self.is_users or _is_roots(pid)]
            if not any(self.folder in word for pid in own for word in read_words(pid)):
                return
            time.sleep(0.05)

    def _podman(self, *words: str) -> tuple[int, str]:
        folder, net = self.folder, "--cni-config-dir" if self.is_old else "--network-config-dir"
        own = [
            *(self.program, "--root", f"{folder}/root", "--runroot", f"{folder}/run"),
            *("--tmpdir", f"{folder}/libpod", net, f"{folder}/net"),
            *("--storage-driver", "vfs", "--events-backend", "none"),
        ]
        return _execute([*own, *words], self.environment)


def _is_roots(pid: int) -> bool:
    """Tell whose a process is: anybody may write our folder on a command line."""
    try:
        return os.stat(f"/proc/{pid}").st_uid == 0
    except OSError:
        return False


def _list_mounts() -> list[str]:
    text = os.fsdecode(read_kernel_file("/proc/self/mounts"))
    return [line.split(" ")[1] for line in text.splitlines()]


def _execute(words: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
    import subprocess  # Slow to import.

    # The monitor keeps what it inherits open, so that a pipe would never end.
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(  # noqa: S603 - no shell, a program by its path, no thread
                words,
                env=dict(environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                timeout=_TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 1, f"{words[0]} did not end within {_TIME_LIMIT:.0f} s"
        except (OSError, subprocess.SubprocessError) as error:
            return 1, f"{words[0]}: {error}"
        said.seek(0)
        return done.returncode, said.read().decode("utf-8", "replace")


def _find_error(text: str) -> str:
    """Return what Podman says of a failure, without what it only warns of."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("Error") or "level=error" in line]
    return (errors or lines or ["podman says nothing"])[-1].replace('\\"', '"')


def _end(path: str) -> None:
    """End the process that holds namespaces for Podman; as a user, only what is that user's."""
    try:
        with open(path, encoding="ascii") as file:
            pid = int(file.read(_LONGEST))
        if os.stat(f"/proc/{pid}").st_uid == os.geteuid() and pid > 1:
            os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError):
        return
