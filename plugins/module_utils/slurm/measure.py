# SPDX-License-Identifier: BSD-2-Clause
"""Submit one tiny job as a person would, read the limits inside, and leave nothing behind."""

from __future__ import annotations

import os
import pwd
import select
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from subprocess import Popen

from ..core.quote import one_line
from ..core.values import NamedTuple, Rlimit, parse_proc_limits
from ..host.cgroup_cage import Cage
from ..host.door import read_kernel_text
from ..host.leave_root import leave_root
from .confines import CONFINES, Confines, Size, parse_confines
from .read import ask, find_program

WAIT = 10
"""Seconds for which a job waits for room."""

_SLACK = 20.0  # For the rest: to reach the controller, to start the step, to end.
_PATIENCE = 3.0
_MOST_OUTPUT = 65536
_AT_ONCE = 65536
_SMALL = 64 * 2**20
_MARK = "mlhost-limits:"
_END = "mlhost-limits-end"
_FIRST = f'echo "{_MARK} $SLURM_JOB_ID $SLURMD_NODENAME"; cat /proc/self/limits'
_WAITS = f"echo {_END}; read -r answer"
# The bounds of its cgroup and of those above it, in version 1 and 2, and the CPUs it may run on.
_CONFINES = f"""echo "{CONFINES}"
grep -h -e Cpus_allowed_list -e MemTotal /proc/self/status /proc/meminfo
while IFS=: read -r number names path; do
  case $names in
    "") top=/sys/fs/cgroup ;; memory | cpuset) top=/sys/fs/cgroup/$names ;; *) continue ;;
  esac
  level=$top$path
  while [ ${{#level}} -gt ${{#top}} ]; do
    for file in memory.max memory.limit_in_bytes cpuset.cpus.effective cpuset.effective_cpus; do
      [ -r "$level/$file" ] && read -r value < "$level/$file" && echo "$file $value $level"
    done
    level=${{level%/*}}
  done
done < /proc/self/cgroup"""
_UNFIT = ("drain", "down", "fail", "maint", "unk", "no_respond", "not_respond", "power", "reboot")
_OPTIONS = ("--quiet", "--nodes=1", "--ntasks=1", "--time=1", "--mpi=none", "--chdir=/")


class Node(NamedTuple):
    """This host as Slurm knows it: its name, and by partition its state and why.

    ``default`` is the partition that a job gets which names none.
    """

    name: str
    partitions: Mapping[str, tuple[str, str]]
    default: str = ""


class Job(NamedTuple):
    """What a job had; ``limits`` is ``None`` where it did not run, for this reason.

    ``confines`` is what confines it to memory and CPUs, where that was asked for.
    """

    limits: dict[str, Rlimit] | None
    reason: str
    id: str = ""
    node: str = ""
    confines: Confines | None = None


def find_node(slurmd: int | None) -> Node | str:
    """Return this host as a node, with a name only where slurmd runs here; or what is wrong.

    :param slurmd: The process id of slurmd, if it runs.
    """
    name = _find_node_name(slurmd) if slurmd else ""
    which = ["-n", name] if name else []
    shown = ask("sinfo", "-h", "-N", *which, "-o", "%P|%T|%E")
    if shown.status != 0:
        return _describe_error(shown.errors) or "sinfo printed nothing"
    partitions: dict[str, tuple[str, str]] = {}
    default = ""
    for line in shown.text.splitlines():
        partition, state, why = [*line.strip().split("|", 2), "", ""][:3]
        default = partition[:-1] if partition.endswith("*") else default
        if name or partition.rstrip("*") not in partitions:
            partitions[partition.rstrip("*")] = (state, why) if name else ("", "")
    return Node(name, partitions, default)


def _find_node_name(pid: int) -> str:
    """Return the name that slurmd was given, or that of the host."""
    try:
        words = read_kernel_text(f"/proc/{pid}/cmdline").split("\0")
    except OSError:
        words = []
    for word, following in zip(words, [*words[1:], ""]):
        if word == "-N":
            return following
        if word.startswith("-N"):
            return word[2:]
    return os.uname().nodename.partition(".")[0]


def find_hindrance(node: Node, partition: str) -> str:
    """Return why no job can be tried in a partition on this host; empty if one can."""
    if partition not in node.partitions:
        where = f"node {node.name} is not in it" if node.name else "it is unknown"
        return f"no job was tried in partition {partition}: {where}"
    state, why = node.partitions[partition]
    if any(word in state.lower() for word in _UNFIT):
        because = f" ({one_line(why)})" if why not in ("", "none") else ""
        return f"no job was tried: node {node.name} is {one_line(state)}{because}"
    return ""


def try_job(
    user: str,
    limits: Mapping[str, Rlimit],
    partition: str,
    node: str,
    size: Size | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Job:
    """Run a job as a user whose login has these limits, and return what it had.

    It is given up after some seconds, and nothing of it is left in the queue.

    :param node: The node on which it must run; empty for any.
    :param size: What the job asks for, and is then asked about.
    :param meanwhile: Is called while the job runs.
    """
    srun = find_program("srun")
    if srun is None:
        return Job(None, "there is no srun on this host, so no job was tried")
    name = f"mlhost-limits-{os.getpid()}-{os.urandom(4).hex()}"
    where = [f"--partition={partition}"] if partition else []
    where += [f"--nodelist={node}"] if node else []
    asked = [*_write_size(size), f"--input={'all' if meanwhile else 'none'}"]
    words = [srun, *_OPTIONS, *asked, f"--immediate={WAIT}", f"--job-name={name}", *where]
    script = "; ".join((_FIRST, *[_CONFINES] * bool(size), *[_WAITS] * bool(meanwhile)))
    done = False
    try:
        job = _run(user, limits, [*words, "/bin/sh", "-c", script], meanwhile)
        done = job.limits is not None
    finally:
        if not done:
            ask("scancel", "--quiet", f"--name={name}", f"--user={user}")
    return job


def _write_size(size: Size | None) -> list[str]:
    """Return the options that ask for so much. Slurm counts memory in MiB."""
    memory = (size.memory if size else None) or _SMALL
    cpus = [f"--cpus-per-task={size.cpus}"] if size and size.cpus else []
    return [f"--mem={-(-memory // 2**20)}M", *cpus]


def _run(
    user: str, limits: Mapping[str, Rlimit], words: list[str], meanwhile: Callable[[], None] | None
) -> Job:
    import subprocess  # Needed only where Slurm is; it is slow to import.

    entry = pwd.getpwnam(user)
    names = {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user}
    path = f"{os.path.dirname(words[0])}:/usr/bin:/bin"
    try:
        cage = Cage(entry.pw_uid)
    except OSError as exc:
        return Job(None, f"no job could be submitted as {user}: {exc}")
    try:
        process = subprocess.Popen(  # noqa: S603 - no shell, and the program is named by its path
            words,
            stdin=subprocess.PIPE if meanwhile else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**names, "SHELL": "/bin/sh", "PATH": path, "LC_ALL": "C"},
            start_new_session=True,
            preexec_fn=partial(_become, entry, limits, cage),
        )
    except (OSError, subprocess.SubprocessError) as exc:
        cage.end()
        return Job(None, f"no job could be submitted as {user}: {exc}")
    with process:
        try:
            first = _watch(process, meanwhile) if meanwhile else b""
            out, errors = _hear(process)
        except (subprocess.TimeoutExpired, TimeoutError):
            return Job(None, f"the job printed nothing within {WAIT + _SLACK:.0f} s")
        finally:
            _end(process)
            cage.end()
    return _read(*(bytes(one).decode("utf-8", "replace") for one in (first + out, errors)))


def _become(entry: pwd.struct_passwd, limits: Mapping[str, Rlimit], cage: Cage) -> None:
    cage.enter()
    leave_root(entry, limits)


def _watch(process: Popen[bytes], meanwhile: Callable[[], None]) -> bytes:
    """Read what a job prints until it waits, and do something in the meantime.

    It ends when its input does, which is what comes next.
    """
    shown, until = b"", time.monotonic() + WAIT + _SLACK
    descriptor = process.stdout.fileno() if process.stdout else -1
    while _END.encode() not in shown:
        left = until - time.monotonic()
        ready = select.select([descriptor], [], [], left)[0] if left > 0 else []
        received = os.read(descriptor, _AT_ONCE) if ready else b""
        shown += received
        if not received or len(shown) > _MOST_OUTPUT:
            return shown
    meanwhile()
    return shown


def _hear(process: Popen[bytes]) -> tuple[bytes, bytes]:
    """Return the beginning of what a program prints until it ends; it may print without end.

    :raises TimeoutError, subprocess.TimeoutExpired: If it does not end in time.
    """
    if process.stdin:
        process.stdin.close()
    until = time.monotonic() + WAIT + _SLACK
    streams = [one for one in (process.stdout, process.stderr) if one]
    kept = {one.fileno(): bytearray() for one in streams}
    waiting = list(kept)
    while waiting:
        left = until - time.monotonic()
        ready = select.select(waiting, [], [], left)[0] if left > 0 else []
        if not ready:
            raise TimeoutError
        for handle in ready:
            part = os.read(handle, _AT_ONCE)
            kept[handle] += part[: _MOST_OUTPUT - len(kept[handle])]
            if not part:
                waiting.remove(handle)
    process.wait(max(until - time.monotonic(), 0.0))
    out, errors = kept.values()
    return bytes(out), bytes(errors)


def _end(process: Popen[bytes]) -> None:
    """End srun, which takes its job with it, and all that it has started."""
    import subprocess

    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue


def _read(out: str, errors: str) -> Job:
    """Read what the job printed. srun may end well where its task was never started."""
    number, node, table = _split(out)
    told, mark, confines = table.partition(_END)[0].partition(CONFINES)
    try:
        if not number:
            raise ValueError("it printed nothing")
        confined = parse_confines(confines) if mark else None
        return Job(parse_proc_limits(told), "", number, node, confined)
    except ValueError as exc:
        why = _describe_error(errors) or str(exc)
        return Job(None, f"the job did not run within {WAIT} s: {why}", number, node)


def _split(out: str) -> tuple[str, str, str]:
    """Return the id of a job, its node, and the rest of what it printed."""
    first, rest = out.partition(_MARK)[2].partition("\n")[::2]
    number, node = [*first.split(), "", ""][:2]
    return number, node, rest


def _describe_error(errors: str) -> str:
    """Return what srun complains of last, which says most."""
    lines = [line.strip() for line in errors.splitlines() if "error:" in line]
    return one_line(lines[-1].partition("error:")[2].strip()) if lines else ""
