# SPDX-License-Identifier: BSD-2-Clause
"""Find Slurm on a host: its daemon, its slurm.conf, its programs, and what it says of itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.values import NamedTuple
from ..host.daemons import is_daemon
from ..host.door import read_kernel_file
from ..host.files import read_text
from ..host.look import Process, find_processes
from .slurm_conf import SLURM_CONF, SlurmConf, parse_slurm_conf

_FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/slurm/bin")
_CONFS = (SLURM_CONF, "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf")
_SERVED = "/run/slurm/conf/slurm.conf"
_DEFAULTS = ("/etc/default/slurmd", "/etc/sysconfig/slurmd")
_FILE_OPTION = re.compile(r"(?:^|[\s\"'])-f[ =]?(/[^\s\"']+)")
_SHOWN = re.compile(r"^(\w+) *= (.*)$", re.MULTILINE)
_STEP = re.compile(r"^slurmstepd: \[([0-9]+\.\w+)\]")
_TIME_LIMIT = 15.0
_MOST_FILES = 64


class SlurmFiles(NamedTuple):
    """slurm.conf and what it includes, by path.

    ``served`` tells that the controller hands it out (configless), so that no file here counts.
    """

    path: str
    texts: dict[str, str]
    conf: SlurmConf
    served: bool = False


class Output(NamedTuple):
    """How a program ended, and what it wrote. It did not start where ``status`` is ``None``."""

    status: int | None
    text: str
    errors: str


def find_program(name: str) -> str | None:
    """Return the path of one of Slurm's programs, or ``None`` where it is not installed."""
    paths = (f"{folder}/{name}" for folder in _FOLDERS)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def find_slurmd() -> Process | None:
    """Return the daemon that starts jobs here: of several that bear the name, the oldest."""
    named = (one for one in find_processes() if one.comm == "slurmd" and one.uid == 0)
    found = [one for one in named if is_daemon(one.pid, "slurmd", ("slurmd.service",))]
    return min(found, key=lambda one: (one.start, one.pid), default=None)


def find_steps(processes: Iterable[Process]) -> Iterator[tuple[str, int]]:
    """Yield each step of a job that runs here, as ``JOB.STEP``, with its slurmstepd."""
    for process in processes:
        if process.comm == "slurmstepd" and is_daemon(process.pid, "slurmstepd"):
            step = _STEP.search(_read_command(process.pid)[0])
            if step:  # Another one, which holds a cgroup, belongs to no job.
                yield step[1], process.pid


def read_slurm_files(slurmd: Process | None) -> SlurmFiles:
    """Return slurm.conf as the daemon was told to find it, with all that it includes.

    :raises OSError: If a file cannot be read.
    """
    words, told = _read_command(slurmd.pid) if slurmd else ("", "")
    options = words or " ".join(read_text(path) or "" for path in _DEFAULTS)
    named = _FILE_OPTION.search(options)
    served = "--conf-server" in options
    path = named[1] if named else told
    if served or (not path and os.path.exists(_SERVED) and not os.path.exists(SLURM_CONF)):
        return SlurmFiles(_SERVED, *_read_conf(_SERVED), served=True)
    path = path or next((one for one in _CONFS if os.path.exists(one)), SLURM_CONF)
    return SlurmFiles(path, *_read_conf(path))


def _read_command(pid: int) -> tuple[str, str]:
    """Return the command line of a process, and the slurm.conf that its environment names."""
    try:
        words = _read(pid, "cmdline").replace("\0", " ")
        settings = dict(
            one.split("=", 1) for one in _read(pid, "environ").split("\0") if "=" in one
        )
    except OSError:
        return "", ""
    return words, settings.get("SLURM_CONF", "")


def _read(pid: int, name: str) -> str:
    return read_kernel_file(f"/proc/{pid}/{name}").decode("utf-8", "replace")


def _read_conf(path: str) -> tuple[dict[str, str], SlurmConf]:
    text = read_text(path)
    texts = {} if text is None else {path: text}
    while True:
        conf = parse_slurm_conf(texts, path)
        found = {one: read_text(one) for one in conf.missing if one not in texts}
        new = {one: text for one, text in found.items() if text is not None}
        if not new or len(texts) > _MOST_FILES:
            return texts, conf
        texts.update(new)


def show_config() -> dict[str, str]:
    """Return what the controller runs with, by keys in small letters; nothing if it is silent."""
    shown = ask("scontrol", "show", "config")
    return {key.lower(): value.strip() for key, value in _SHOWN.findall(shown.text)}


def ask(
    name: str, *words: str, seconds: float = _TIME_LIMIT, extra: Mapping[str, str] | None = None
) -> Output:
    """Run one of Slurm's programs as root and return what it wrote.

    :param extra: Variables added to an environment that is otherwise empty.
    """
    program = find_program(name)
    if program is None:
        return Output(None, "", f"there is no {name} on this host")
    return run([program, *words], seconds, extra or {})


def run(words: Sequence[str], seconds: float, extra: Mapping[str, str]) -> Output:
    """Run a program and return what it wrote."""
    import subprocess  # Needed only where Slurm is; it is slow to import.

    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the program is named by its path
            list(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            env={"PATH": ":".join((*_FOLDERS, "/bin")), "LC_ALL": "C", **extra},
        )
    except subprocess.TimeoutExpired:
        return Output(None, "", f"{words[0]} did not end within {seconds:.0f} s")
    except OSError as exc:
        return Output(None, "", f"{words[0]}: {exc.strerror}")
    text, errors = (one.decode("utf-8", "replace") for one in (done.stdout, done.stderr))
    return Output(done.returncode, text, errors)
