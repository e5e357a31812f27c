# SPDX-License-Identifier: BSD-2-Clause
"""Read what runs at boot, or later of its own accord, and may change what files have set."""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ..host.files import follow_links, list_folder, read_each, read_text, under
from .boot_scripts import find_called, find_loaded, is_about_sysctls, is_interpreted
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES

UNITS = "/etc/systemd/system"

_MASK = "/dev/null"
_LOCAL_UNITS = "/usr/local/lib/systemd/system"
_UNITS_OF_PACKAGES = "/usr/lib/systemd/system"
_OF_PACKAGES = ("/usr/lib/", "/lib/")
_FILES = (
    *("/etc/crontab", "/etc/anacrontab", "/var/spool/cron/crontabs/root", "/var/spool/cron/root"),
    *("/etc/network/interfaces", "/etc/cloud/cloud.cfg", "/etc/profile", "/etc/bash.bashrc"),
    *(f"/root/{name}" for name in (".profile", ".bash_profile", ".bash_login", ".bashrc")),
)
_FOLDERS = (
    *(("/etc/cron.d", ""), ("/etc/udev/rules.d", ".rules"), ("/etc/tmpfiles.d", ".conf")),
    *(("/etc/modprobe.d", ".conf"), ("/etc/network/interfaces.d", "")),
    *(("/etc/cloud/cloud.cfg.d", ".cfg"), ("/etc/dhcp/dhclient-enter-hooks.d", "")),
    *(("/etc/dhcp/dhclient-exit-hooks.d", ""), ("/etc/pam.d", ""), ("/etc/profile.d", ".sh")),
)
"""Where each file with that ending is read: crontab(5), udev(7), tmpfiles.d(5), modprobe.d(5),
interfaces(5), cloud-init, dhclient-script(8); of logins of root, pam_exec(8) and bash(1)."""
_FOLDERS_OF_PACKAGES = (
    *(("/usr/lib/udev/rules.d", ".rules"), ("/usr/lib/tmpfiles.d", ".conf")),
    ("/usr/lib/modprobe.d", ".conf"),
)
_PROGRAMS = ("/etc/rc.local", "/etc/rc.d/rc.local")
_PROGRAM_FOLDERS = (
    *(f"/etc/cron.{often}" for often in ("hourly", "daily", "weekly", "monthly")),
    *(f"/etc/network/if-{when}.d" for when in ("pre-up", "up")),
    *(
        f"/etc/networkd-dispatcher/{state}.d"
        for state in ("carrier", "configured", "configuring", "degraded", "routable")
    ),
    *(f"/etc/NetworkManager/dispatcher.d{sort}" for sort in ("", "/pre-up.d", "/no-wait.d")),
    *("/etc/ppp/ip-up.d", "/var/lib/cloud/scripts/per-boot"),
    *("/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators"),
)
"""Where each program is run: by cron, when a network comes up, and with each daemon-reload."""
_INIT, _RUNLEVELS = "/etc/init.d", ("/etc/rcS.d", *(f"/etc/rc{level}.d" for level in range(2, 6)))
_INITRAMFS = "/etc/initramfs-tools/scripts"
_STARTS = re.compile(
    r"^[ \t]*(?:Wants|Requires|Requisite|BindsTo|Upholds|OnSuccess|Unit)[ \t]*=(.*)", re.MULTILINE
)
_NOT_AT_BOOT = re.compile(
    r"(?:rescue|emergency|shutdown|reboot|soft-reboot|poweroff|halt|kexec|exit|umount|final|sleep"
    r"|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|system-update|factory-reset)\.target\."
)
"""Targets of systemd.special(7) that no boot reaches."""
_IGNORED = re.compile(r".*(?:\.(?:dpkg-\w+|ucf-\w+|rpm(?:save|orig|new)|bak|old|orig|disabled)|~)")
"""Names that cron(8) and run-parts(8) of every distribution leave out."""
_STARTERS = (".timer", ".path", ".socket")
_LARGEST = 2**16
_DEEPEST = 2  # Scripts that scripts call.


def read_boot_scripts(
    root: str = "/",
    of_packages: bool = False,
    is_wanted: Callable[[str], bool] = is_about_sysctls,
) -> dict[str, str]:
    """Return the text of what runs at boot and is about sysctls, or about something else, by path.

    :param of_packages: Whether the units that packages bring are read as well.
    """
    found: dict[str, str] = {}
    called = _Called(root)
    for path, text in read_each(_list_scripts(root, of_packages), root, read_script):
        texts = {**called.read_all(path, text), path: text}
        for name, one in texts.items():
            if is_wanted(one):
                found.update({**_read_loaded(name, one, root), name: one})
    return found


def read_early_scripts(root: str = "/") -> dict[str, str]:
    """Return what the initramfs runs that is about sysctls: the files are read after it."""
    folders = [f"{_INITRAMFS}/{name}" for name in list_folder(_INITRAMFS, root)]
    paths = [f"{folder}/{name}" for folder in folders for name in list_folder(folder, root)]
    texts = {path: read_script(path, root) for path in paths}
    return {path: text for path, text in texts.items() if is_about_sysctls(text)}


def read_script(path: str, root: str) -> str:
    """Return a script; one that only root may read says nothing to others."""
    try:
        return read_text(path, root) or ""
    except PermissionError:
        return ""


def list_wanted(root: str) -> frozenset[str]:
    """Return the units that something wants at boot, as links say."""
    return frozenset(
        unit
        for folder in (UNITS, _UNITS_OF_PACKAGES)
        for name in list_folder(folder, root)
        if name.endswith((".wants", ".requires")) and not _NOT_AT_BOOT.match(name)
        for unit in list_folder(f"{folder}/{name}", root)
    )


class _Called:
    """What scripts call, each read once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._texts: dict[str, tuple[str, bool]] = {}
        self._names: dict[str, list[str]] = {}

    def read_all(self, path: str, text: str) -> dict[str, str]:
        """Return the scripts that one calls, and those that they call, by path."""
        found: dict[str, str] = {}
        waiting = deque((name, text, 1) for name in find_called(path, text))
        while waiting:
            name, caller, depth = waiting.popleft()
            if name in found:
                continue
            found[name] = self._read(name, caller)
            deeper = self._find_names(name) if found[name] and depth < _DEEPEST else ()
            waiting.extend((one, found[name], depth + 1) for one in deeper)
        return found

    def _read(self, path: str, caller: str) -> str:
        """Return a script; nothing where it is not one by itself, or to its caller.

        A shell runs a text that may be executed and names no interpreter, execve(2) does not.
        """
        if path not in self._texts:
            self._texts[path] = _read_short(path, self._root)
        text, runs = self._texts[path]
        is_script = text.startswith("#!") or (text and (runs or is_interpreted(path, caller)))
        return text if is_script else ""

    def _find_names(self, path: str) -> list[str]:
        if path not in self._names:
            self._names[path] = find_called(path, self._texts[path][0])
        return self._names[path]


def _read_short(path: str, root: str) -> tuple[str, bool]:
    """Return a file that another names, and whether it may be executed.

    It is empty where it holds no text, or too much.
    """
    try:
        found = os.stat(under(path, root))
    except OSError:
        return "", False
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        return "", False
    text = read_script(path, root)
    return "" if "\0" in text else text, bool(found.st_mode & 0o111)


def _read_loaded(path: str, text: str, root: str) -> dict[str, str]:
    """Return the files of sysctl.conf(5) that a script has sysctl(8) read, and no boot reads."""
    names = [
        name
        for name in find_loaded(path, text)
        if name != SYSCTL_CONF and name.rpartition("/")[0] not in SYSCTL_DIRECTORIES
    ]
    return {name: read_script(name, root) for name in names if os.path.isfile(under(name, root))}


def _list_scripts(root: str, of_packages: bool) -> Iterator[str]:
    yield from _list_units(root, of_packages)
    for folder, end in (*_FOLDERS, *(_FOLDERS_OF_PACKAGES if of_packages else ())):
        names = list_folder(folder, root)
        names = [name for name in names if not _IGNORED.fullmatch(name)]
        yield from (f"{folder}/{name}" for name in names if name.endswith(end))
    yield from _FILES
    scripts = [
        f"{folder}/{one}"
        for folder in _PROGRAM_FOLDERS
        for one in list_folder(folder, root)
        if not _IGNORED.fullmatch(one)
    ]
    programs = (*_PROGRAMS, *scripts, *_list_init_scripts(root))
    yield from (one for one in programs if os.access(under(one, root), os.X_OK))


def _list_units(root: str, of_packages: bool) -> Iterator[str]:
    started = _find_started(root)
    for folder in (*((_UNITS_OF_PACKAGES,) if of_packages else ()), _LOCAL_UNITS, UNITS):
        for name in list_folder(folder, root):
            path = f"{folder}/{name}"
            if name.endswith(".service.d"):
                drop_ins = list_folder(path, root)
                yield from (f"{path}/{one}" for one in drop_ins if one.endswith(".conf"))
            elif (
                _is_started(name, started)
                and _is_own(path, folder, root)
                and not _is_replaced(name, folder, root)
            ):
                yield path


def _find_started(root: str) -> set[str]:
    """Return the units that a boot starts: links say so, or the administrator's units that do."""
    own = frozenset(list_folder(UNITS, root))
    started = set(list_wanted(root)) | _list_wanted_by_drop_ins(own, root)
    started -= {one for one in started & own if follow_links(f"{UNITS}/{one}", root) == _MASK}
    waiting = [name for name in started if name in own]
    while waiting:
        text = read_script(f"{UNITS}/{waiting.pop()}", root)
        named = _find_named(text) - started
        started |= named
        waiting += [name for name in named if name in own]
    return started


def _list_wanted_by_drop_ins(own: Iterable[str], root: str) -> set[str]:
    """Return the units that drop-ins of targets and services start."""
    ends = (".target.d", ".service.d")
    folders = [one for one in own if one.endswith(ends) and not _NOT_AT_BOOT.match(one)]
    paths = [
        f"{UNITS}/{one}/{name}" for one in folders for name in list_folder(f"{UNITS}/{one}", root)
    ]
    texts = [text for path, text in read_each(paths, root, read_script) if path.endswith(".conf")]
    return set().union(*map(_find_named, texts))


def _find_named(text: str) -> set[str]:
    lines = text.replace("\\\n", " ")
    return {name for words in _STARTS.findall(lines) for name in words.split()}


def _is_started(name: str, started: set[str]) -> bool:
    """Tell whether a service is started at boot, or by a unit that is; or an instance of it."""
    stem, _dot, kind = name.rpartition(".")
    if kind != "service":
        return False
    if stem.endswith("@"):
        return any(
            one.startswith(stem) and one.endswith((".service", *_STARTERS)) for one in started
        )
    return name in started or any(stem + kind in started for kind in _STARTERS)


def _is_replaced(name: str, folder: str, root: str) -> bool:
    """Tell whether a unit of the administrator, or a mask, stands in the place of a weaker one."""
    path = f"{UNITS}/{name}"
    there = folder != UNITS and os.path.lexists(f"{root.rstrip('/')}{path}")
    return there and _is_own(path, UNITS, root)


def _is_own(path: str, folder: str, root: str) -> bool:
    """Tell whether a unit lies where it is listed, and is not a link to that of a package."""
    return folder == _UNITS_OF_PACKAGES or not follow_links(path, root).startswith(_OF_PACKAGES)


def _list_init_scripts(root: str) -> Iterator[str]:
    """Yield the scripts of init.d that a runlevel starts and no unit stands for."""
    starts = {
        name[3:] for folder in _RUNLEVELS for name in list_folder(folder, root) if name[:1] == "S"
    }
    for name in sorted(starts):
        units = (f"{folder}/{name}.service" for folder in (UNITS, _UNITS_OF_PACKAGES))
        if not any(os.path.lexists(under(path, root)) for path in units):
            yield f"{_INIT}/{name}"
