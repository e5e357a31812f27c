# SPDX-License-Identifier: BSD-2-Clause
"""Read what runs at boot, or later of its own accord, and may change what files have set."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping

from ..core.distribution import Distribution
from ..host.files import list_folder, read_distribution, read_each, read_text, under
from .boot_called_read import Called
from .boot_calls import find_asked, find_loaded, is_crowded
from .boot_cloud_read import FOLDERS, SCRIPT_FOLDERS, is_off, list_seeds, unpack
from .boot_folders_read import list_strongest
from .boot_quiet_read import Loud
from .boot_scripts import is_about_sysctls
from .boot_specifiers import put_specifiers
from .boot_units import is_doubtful, list_unread, mark
from .boot_units_read import (
    OWN_UNITS,
    find_started,
    has_unit,
    is_masked,
    list_units,
    read_script,
    settle_units,
)
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES

_FILES = (
    *("/etc/crontab", "/etc/anacrontab"),
    *(f"/var/spool/cron/{name}root" for name in ("crontabs/", "", "tabs/")),
    *("/etc/network/interfaces", "/etc/cloud/cloud.cfg", "/etc/profile", "/etc/bash.bashrc"),
    *(f"/root/{name}" for name in (".profile", ".bash_profile", ".bash_login", ".bashrc")),
)
_FOLDERS = (
    *(("/etc/cron.d", ""), ("/etc/network/interfaces.d", "")),
    *(("/etc/cloud/cloud.cfg.d", ".cfg"), ("/etc/dhcp/dhclient-enter-hooks.d", "")),
    *(("/etc/dhcp/dhclient-exit-hooks.d", ""), ("/etc/pam.d", ""), ("/etc/profile.d", ".sh")),
)
"""Where each file with that ending is read: crontab(5), interfaces(5), cloud-init,
dhclient-script(8); of logins of root, pam_exec(8) and bash(1)."""
_BY_NAME = (("udev/rules.d", ".rules"), ("tmpfiles.d", ".conf"), ("modprobe.d", ".conf"))
"""The folders of udev(7), tmpfiles.d(5) and modprobe.d(5), where a file replaces its namesakes."""
_PROGRAM_FOLDERS = (
    *(f"/etc/cron.{often}" for often in ("hourly", "daily", "weekly", "monthly")),
    *(f"/etc/network/if-{when}.d" for when in ("pre-up", "up")),
    *(
        f"/etc/networkd-dispatcher/{state}.d"
        for state in ("carrier", "configured", "configuring", "degraded", "routable")
    ),
    *(f"/etc/NetworkManager/dispatcher.d{sort}" for sort in ("", "/pre-up.d", "/no-wait.d")),
    *("/etc/ppp/ip-up.d", *SCRIPT_FOLDERS),
    *("/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators"),
)
"""Where each program is run: by cron, when a network comes up, and with each daemon-reload."""
_INIT, _RUNLEVELS = "/etc/init.d", ("/etc/rcS.d", *(f"/etc/rc{level}.d" for level in range(2, 6)))
_INITRAMFS = "/etc/initramfs-tools/scripts"
_CRON, _LOCAL_UNIT = ("cron.service", "crond.service"), "rc-local.service"
_OF_CRON = ("/etc/cron", "/etc/anacrontab", "/var/spool/cron/")
_READER = "/systemd-sysctl"
_OWN_CALL = rf"(?<=[=\"])(?:/usr)?/lib/systemd{_READER}(?: --prefix=/net/[^\s\"]+)*(?=\"?(?:\n|$))"
_UFW, _UFW_IS_ON = "/etc/default/ufw", r"(?mi)^\s*ENABLED=[\"']?yes"
_BY_RUN_PARTS = ("/etc/cron.", "/etc/network/if-", "/etc/ppp/")
_OF_RUN_PARTS = re.compile(r"[\w-]+", re.ASCII)
"""Names that cron(8) and run-parts(8) of Debian heed."""
_IGNORED = re.compile(r".*(?:\.(?:dpkg-\w+|ucf-\w+|rpm(?:save|orig|new)|bak|old|orig|disabled)|~)")
"""Names that cron(8) and run-parts(8) of every distribution leave out."""


def read_boot_scripts(
    root: str = "/",
    of_packages: bool = False,
    is_wanted: Callable[[str], bool] = is_about_sysctls,
) -> dict[str, str]:
    """Return the text of what runs at boot and is about sysctls, or about something else, by path.

    :param of_packages: Whether the units that packages bring are read as well.
    """
    started = find_started(root, of_packages)
    kept = f"{is_wanted.__name__}{'-of-packages' if of_packages else ''}"
    found, asked = _read_started(root, started, of_packages, is_wanted, kept)
    mine = (name for name in asked if name not in started and has_unit(name, root, OWN_UNITS))
    more = dict.fromkeys(mine, False)
    if more:
        wider, kept = {**started, **more}, f"{kept}-asked"
        found, _asked = _read_started(root, wider, of_packages, is_wanted, kept)
    return found


def _read_started(
    root: str,
    started: Mapping[str, bool],
    of_packages: bool,
    is_wanted: Callable[[str], bool],
    name: str,
) -> tuple[dict[str, str], set[str]]:
    """Return what those units and all else runs, by path, and the units that scripts start.

    :param name: What is kept of it goes by that; no other question may have it.
    """
    found: dict[str, str] = {}
    asked: set[str] = set()
    listed = read_each(_list_scripts(root, started, of_packages), root, read_script)
    scripts = {path: unpack(path, _leave_out_own(path, text), is_wanted) for path, text in listed}
    code = sys.modules[is_wanted.__module__].__file__ or ""
    kept = Loud(scripts, started, name, code) if root == "/" else None
    loud = kept.recall() if kept else None
    if loud == []:
        return found, asked
    called = Called(root)
    settled = settle_units(scripts, started, root, called.looked)
    texts = {path: put_specifiers(path, text, started) for path, text in settled.items()}
    if loud is None:
        loud = [
            path
            for path, text in texts.items()
            if list_unread(text) or called.may_matter(path, text, is_wanted)
        ]
        if kept:
            kept.keep(loud, called.looked)
    for path in loud:
        for name, one in called.read_all(path, texts[path]).items():
            asked |= find_asked(name, one)
            is_new = name not in found or is_doubtful(found[name])
            if is_new and (is_wanted(one) or one.unread):
                found.update({**_read_loaded(name, one, root), name: one})
    return found, asked


def _leave_out_own(path: str, text: str) -> str:
    """Return a text of a package without systemd's call of its own reader of sysctl.d.

    What that reads is known, whoever calls it.
    """
    if not path.startswith("/usr/lib/") or _READER not in text:
        return text
    return mark(re.sub(_OWN_CALL, "", text), text)


def read_early_scripts(root: str = "/") -> dict[str, str]:
    """Return what the initramfs runs that is about sysctls: the files are read after it."""
    folders = [f"{_INITRAMFS}/{name}" for name in list_folder(_INITRAMFS, root)]
    paths = [f"{folder}/{name}" for folder in folders for name in list_folder(folder, root)]
    texts = {path: read_script(path, root) for path in paths}
    return {path: text for path, text in texts.items() if is_about_sysctls(text)}


def _read_loaded(path: str, text: str, root: str) -> dict[str, str]:
    """Return the files of sysctl.conf(5) that a script has sysctl(8) read, and no boot reads."""
    if is_crowded(text):
        return {}
    names = [
        name
        for name in find_loaded(path, text)
        if name != SYSCTL_CONF and name.rpartition("/")[0] not in SYSCTL_DIRECTORIES
    ]
    found: dict[str, str] = {}
    for name in names:
        if os.path.isfile(under(name, root)):
            try:
                found[name] = read_text(name, root) or ""
            except OSError:  # What others than root decide is not known.
                found[name] = mark("", "", doubts={0})
    return found


def _list_scripts(root: str, started: Mapping[str, bool], of_packages: bool) -> Iterator[str]:
    yield from list_units(root, started, of_packages)
    no_cron = any(is_masked(one, root) for one in _CRON)
    left_out = (*(_OF_CRON if no_cron else ()), *(FOLDERS if is_off(root) else ()))
    distribution = read_distribution(root)
    heeds = _find_heeded(distribution)
    for folder, end in _FOLDERS:
        names = list_folder(folder, root) if not f"{folder}/".startswith(left_out) else []
        yield from (f"{folder}/{one}" for one in names if one.endswith(end) and heeds(folder, one))
    for name, end in _BY_NAME:
        yield from list_strongest(name, end, root, of_packages)
    files = (*_FILES, *list_seeds(root))
    yield from (one for one in files if not one.startswith(left_out))
    if re.search(_UFW_IS_ON, read_script("/etc/ufw/ufw.conf", root)):
        yield _UFW
    scripts = [
        f"{folder}/{one}"
        for folder in _PROGRAM_FOLDERS
        for one in (list_folder(folder, root) if not f"{folder}/".startswith(left_out) else ())
        if heeds(folder, one)
    ]
    programs = () if is_masked(_LOCAL_UNIT, root) else distribution.local_scripts
    programs = (*programs, *scripts, *_list_init_scripts(root))
    yield from (one for one in programs if os.access(under(one, root), os.X_OK))


def _find_heeded(distribution: Distribution) -> Callable[[str, str], object]:
    """Return what tells whether a name in a folder is heeded, as cron's of this distribution are.

    Debian's cron and run-parts leave out names with a dot; of others a few endings are left out.
    """
    is_debian = distribution.family in ("debian", "ubuntu")

    def heeds(folder: str, name: str) -> object:
        if is_debian and folder.startswith(_BY_RUN_PARTS):
            return _OF_RUN_PARTS.fullmatch(name)
        return not _IGNORED.fullmatch(name)

    return heeds


def _list_init_scripts(root: str) -> Iterator[str]:
    """Yield the scripts of init.d that a runlevel starts and no unit stands for."""
    starts = {
        name[3:] for folder in _RUNLEVELS for name in list_folder(folder, root) if name[:1] == "S"
    }
    for name in sorted(starts):
        if not has_unit(f"{name}.service", root):
            yield f"{_INIT}/{name}"
