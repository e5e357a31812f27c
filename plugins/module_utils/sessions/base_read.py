# SPDX-License-Identifier: BSD-2-Clause
"""Find what a fresh session inherits before PAM runs: the limits of the process that starts it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping

from ..core.cgroup import Home, find_home
from ..core.values import RLIMITS, Declaration, NamedTuple, Rlimit, format_pair
from ..host.daemons import is_daemon, is_roots, read_comm
from ..host.door import find_paths, list_pids, open_file, read_handle, read_kernel_file
from ..host.files import list_folder, read_change, read_text, under
from ..host.look import read_limits, read_parent, read_process, read_start_time, read_unit_pids
from .sshd_config import MAIN_FILE, VENDOR_FILE, find_includes, find_use_pam

_PID_FILES = {
    "sshd": "/run/sshd.pid",
    "cron": "/run/crond.pid",
    "crond": "/run/crond.pid",
    "atd": "/run/atd.pid",
}
_UNITS = {"sshd": ("ssh.service", "sshd.service"), "cron": ("cron.service", "crond.service")}
_UNITS["crond"] = _UNITS["cron"]
_UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system")
_MANAGER = ("/etc/systemd/system.conf", "/run/systemd/system.conf")
_SETS = r"^[ \t]*(?:Default)?Limit"
_CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")
_FOLDERS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")
_LARGEST = 64 * 2**20
_GETTY_SLICES = ("system-getty.slice", "system-serial\\x2dgetty.slice")
_CLUSTER = "[46DGQRTdeiqrtV]*"
"""Options of sshd(8) without an argument, which may stand before another behind one dash."""


class Base(NamedTuple):
    """The limits a session starts from. ``how`` says where they come from, or why none are known.

    ``pid`` is the process they were read from, 0 if there is no such process.
    """

    limits: Mapping[str, Rlimit] | None
    how: str
    pid: int = 0


def read_base_limits(service: str, proc: str = "/proc") -> Base:
    """Return what a session of a service inherits from its daemon, as that daemon runs now.

    su and sudo inherit from whoever calls them, so nothing is found for them here.
    """
    pid = find_login_daemon(service, proc)
    if pid is not None:
        try:
            name = read_comm(pid, proc)
            if name.startswith("("):  # systemd still prepares it, and sets limits last.
                return Base(
                    None, f"{name} (pid {pid}) is not yet what starts sessions of {service}"
                )
            return Base(read_limits(pid, proc), f"inherited from {name} (pid {pid})", pid)
        except OSError:
            pass  # It ended between the search and the look.
    return Base(None, f"no process that starts sessions of {service} is running")


def find_login_daemon(service: str, proc: str = "/proc") -> int | None:
    """Return the process that sessions of a service descend from: sshd, cron, a getty."""
    if service == "login":
        return next(_find_gettys(proc), None)
    for unit in _UNITS.get(service, (f"{service}.service",)):
        # Without logind, sessions live on in their daemon's unit, of whichever user.
        pids = [pid for pid in read_unit_pids(unit) if is_roots(pid, proc)]
        if pids:
            return next((pid for pid in pids if _is_first(pid, proc)), pids[0])
    return _read_pid_file(_PID_FILES.get(service), proc)


def find_newer_file(service: str) -> str:
    """Return a file of a daemon's unit, or of systemd, that is newer than the daemon, or nothing.

    It may give the daemon, and so its sessions, other limits once it is started again.
    """
    pid = find_login_daemon(service)
    units = _UNITS.get(service, ())
    if pid is None or not units:
        return ""
    started = read_start_time(read_process(pid))
    for path in _list_unit_files(units):
        if read_change(path) > started:
            return path
    return ""


def find_fleeting_file(service: str) -> str:
    """Return a file that sets limits of a daemon and that a boot takes away, or nothing."""
    for path in _list_unit_files(_UNITS.get(service, ())):
        if path.startswith("/run/") and re.search(_SETS, read_text(path) or "", re.MULTILINE):
            return path
    return ""


def find_change_by_hand(service: str, item: str) -> str:
    """Return that a daemon has more than systemd gives its unit, or nothing.

    ``prlimit`` changed it, or it was started in another way: its next start does not have it.
    """
    from ..host.manager_read import show_unit  # Where limits files state all, nobody asks.

    pid = find_login_daemon(service)
    home = find_home(read_process(pid).cgroup) if pid else Home()
    shown = show_unit(home.unit) if home.unit else None
    if pid is None or shown is None or shown.main_pid != pid or item not in RLIMITS:
        return ""
    has, given = read_limits(pid)[item], shown.limits[item]
    if has.soft <= given.soft and has.hard <= given.hard:
        return ""
    pairs = format_pair(item, has), format_pair(item, given)
    return f"{read_comm(pid)} (pid {pid}) has {item} {pairs[0]}, and {home.unit} gives {pairs[1]}"


def _list_unit_files(units: tuple[str, ...]) -> Iterator[str]:
    """Yield what a daemon's limits may come from, the files about it alone before all others."""
    own = [f"{top}/{unit}" for top in _UNIT_FOLDERS for unit in units]
    for path in (*own, *(f"{top}/service" for top in _UNIT_FOLDERS), *_MANAGER):
        names = [name for name in list_folder(f"{path}.d") if name.endswith(".conf")]
        yield from (f"{path}.d/{name}" for name in names)
        yield path


def is_installed(service: str) -> bool:
    """Tell whether a host has the program that opens sessions of a service."""
    program = service.partition("-")[0]
    return find_login_daemon(service) is not None or _is_there(program)


def _is_there(program: str) -> bool:
    return any(os.access(f"{folder}/{program}", os.X_OK) for folder in _FOLDERS)


def sets_limits(program: str) -> bool:
    """Tell whether a program of the system can set resource limits of its own accord.

    Looks for the name of the library call among those the program asks the linker for.
    """
    for folder in _FOLDERS:
        try:
            return b"setrlimit" in read_handle(open_file(f"{folder}/{program}"), _LARGEST, program)
        except OSError:
            continue
    return False


def has_locked_password(user: str, path: str = "/etc/shadow") -> bool:
    """Tell whether shadow(5) marks a password as locked, as sshd asks where PAM is off."""
    try:
        lines = (read_text(path) or "").encode("latin-1").decode("utf-8", "replace").split("\n")
        return any(line.startswith(f"{user}:!") for line in lines)
    except OSError:
        return False


def _find_gettys(proc: str) -> Iterator[int]:
    for slice_ in _GETTY_SLICES:
        for folder in _CGROUPS:
            here = f"{folder}/system.slice/{glob.escape(slice_)}/*.service"
            for path in find_paths(here):
                yield from read_unit_pids(os.path.basename(path), f"system.slice/{slice_}")
    for name in sorted(list_pids(proc)):
        comm = read_comm(name, proc)
        if comm in ("agetty", "getty", "mingetty") and is_daemon(name, comm, (), proc):
            yield name


def _read_pid_file(path: str | None, proc: str) -> int | None:
    """Return the process a pid file names, if it still is the daemon that the file is about."""
    if path is None:
        return None
    try:
        pid = int(read_text(path) or "")
    except (OSError, ValueError):
        return None
    stem = os.path.basename(path)[:-4].rstrip("d")
    comm = read_comm(pid, proc)
    return pid if comm.startswith(stem) and is_daemon(pid, comm, (), proc) else None


def _is_first(pid: int, proc: str) -> bool:
    """Tell whether the service manager started a process itself."""
    try:
        return read_parent(pid, proc) == 1
    except OSError:
        return False  # It ended between the listing and the look.


def read_use_pam(pid: int, proc: str = "/proc") -> Declaration:
    """Return whether sshd puts its sessions through PAM: its command line, then its files.

    :param pid: The running sshd, 0 where there is none.
    :returns: The built-in ``no`` with line 0 where nothing states it.
    :raises ValueError: If sshd would refuse its configuration.
    """
    command = _read_command(pid, proc) if pid else ""
    option = find_pam_option(command, f"command line of pid {pid}")
    if option:
        return option
    path = choose_sshd_file(command)
    return find_use_pam(read_sshd_files(path), path) or Declaration(
        path, 0, "UsePAM is not set", "no"
    )


def find_pam_option(command: str, path: str, line: int = 0) -> Declaration | None:
    """Return what a command line of sshd says of UsePAM, if it does.

    :param path: Where it stands, and in which line.
    """
    option = re.search(rf"-{_CLUSTER}o *['\"]?(usepam[ =]+([a-z]+))", command, re.IGNORECASE)
    return Declaration(path, line, f"-o {option[1]}", option[2].lower()) if option else None


def read_sshd_config(pid: int, proc: str = "/proc") -> tuple[str, dict[str, str]]:
    """Return the file that a running sshd reads, and the texts of it and of all that it includes.

    :param pid: The running sshd, 0 where there is none.
    """
    command = _read_command(pid, proc) if pid else ""
    path = choose_sshd_file(command)
    at = Declaration(f"command line of pid {pid}", 0, command, "")
    return put_options_first(at, path, read_sshd_files(path))


def put_options_first(
    at: Declaration, path: str, files: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """Return a configuration that begins with what a command line states by ``-o``, if it does.

    :param at: The command line and its place, which stands for a file that includes the other.
    """
    words = at.text.partition(" [listener]")[0]
    parts = re.split(rf"[\s\"'=]-{_CLUSTER}o *", words)[1:]
    if not parts:
        return path, files
    text = "\n" * max(at.line - 1, 0) + "\n".join([*map(_write_option, parts), f"Include {path}"])
    return at.path, {**files, at.path: text}


def _write_option(text: str) -> str:
    """Return an option as a line; only a command has more than one word, and options after it."""
    key, _sign, value = text.strip(" \"'").replace("=", " ", 1).partition(" ")
    first = value.strip(" \"'").partition(" ")[0]
    return f"{key} {value if key.lower() == 'forcecommand' else first}"


def choose_sshd_file(command: str, root: str = "/") -> str:
    """Return the file that sshd reads, by its command line; SUSE's comes with the package."""
    chosen = re.search(rf"[\s\"'=]-{_CLUSTER}f *(/[^\s\"']+)", command)
    if chosen:
        return chosen[1]
    files = (MAIN_FILE, VENDOR_FILE)
    return next((path for path in files if os.path.isfile(under(path, root))), MAIN_FILE)


def _read_command(pid: int, proc: str) -> str:
    """Return the title of the process; sshd keeps its arguments in it."""
    try:
        content = read_kernel_file(f"{proc}/{pid}/cmdline")
        return content.decode("utf-8", "replace").replace("\0", " ")
    except OSError:
        return ""


def read_sshd_files(path: str, root: str = "/") -> dict[str, str]:
    """Return a configuration of sshd and the files that it includes, by path."""
    files: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop()
        if path not in files and os.path.isfile(under(path, root)):
            text = (read_text(path, root) or "").encode("latin-1")
            files[path] = text.decode("utf-8", "replace")
            waiting += [
                "/" + os.path.relpath(name, root)
                for pattern in find_includes(files[path], path)
                for name in find_paths(root.rstrip("/") + pattern)
            ]
    return files
