# SPDX-License-Identifier: BSD-2-Clause
"""Read what sets sysctls at boot besides the files of sysctl.d, and when that last happened."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from ..core.distribution import find_distribution
from ..core.values import Declaration
from ..host.files import follow_links, list_folder, read_os_release, read_text, under
from .boot_conditions_read import judge_conditions
from .boot_quiet_read import Looked
from .boot_scripts import is_about_sysctls
from .boot_scripts_read import read_boot_scripts, read_early_scripts
from .boot_units import Setting, merge, parse_unit
from .boot_units_read import APPLIER, UNITS, find_started, read_script, read_unit
from .model import foresee_start
from .read import sysctl_path
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES
from .tuned_profile import (
    MAIN_CONF,
    PROFILE_FOLDERS,
    Tuned,
    find_includes,
    merge_profiles,
    read_exclude,
    read_reapply,
)

_RAISES_FILE_MAX = 240  # The first version of systemd.
_LIBRARY = re.compile(r"libsystemd-shared-(\d+)")
_LOADER_FILES = (
    *("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/etc/default/grub"),
    *("/etc/kernel/cmdline", "/boot/firmware/cmdline.txt"),
)
_LOADER_FOLDERS = (
    *(("/etc/default/grub.d", ".cfg"), ("/boot/loader/entries", ".conf")),
    *(("/efi/loader/entries", ".conf"), ("/boot/efi/loader/entries", ".conf")),
)
_EARLY = "systemd-tmpfiles-setup.service"  # Starts after the files of sysctl.d were applied.
_BOOTING = 30  # Seconds that this takes at most, where no trace is left of it.


class BootRead:
    """What decides sysctls at boot. Every property is read when it is first asked for, and kept."""

    def __init__(self, sysctl_files: Mapping[str, str], root: str = "/") -> None:
        """Take the files of sysctl.d(5) that were read.

        :param root: The tree that they were read from.
        """
        conf = read_text(SYSCTL_CONF, root)
        self.root = root
        self.files = {**sysctl_files, **({} if conf is None else {SYSCTL_CONF: conf})}

    @cached_property
    def others(self) -> dict[str, str]:
        """Return the files in the folders of sysctl.d(5) that are not named ``*.conf``."""
        paths = (
            f"{folder}/{name}"
            for folder in SYSCTL_DIRECTORIES
            for name in list_folder(folder, self.root)
        )
        return {
            path: read_text(path, self.root) or ""
            for path in paths
            if path not in self.files and os.path.isfile(under(path, self.root))
        }

    @cached_property
    def real(self) -> dict[str, str]:
        """Return where those files lie that are links, or in a folder that is one."""
        paths = {path: follow_links(path, self.root) for path in (*self.files, *self.others)}
        return {path: real for path, real in paths.items() if real != path}

    @cached_property
    def passing(self) -> frozenset[str]:
        """Return the files in /run that no boot makes."""
        made = [path for path in self.files if path.startswith("/run/")]
        return find_changed(made, read_early_time(self.root), self.root)

    @cached_property
    def fresh(self) -> frozenset[str]:
        """Return the files that changed since systemd last applied them."""
        return find_changed(self.files, read_apply_time(self.root), self.root)

    @cached_property
    def command_line(self) -> str:
        return read_text("/proc/cmdline", self.root) or ""

    @cached_property
    def loader(self) -> dict[str, str]:
        """Return the boot loader's files that set a sysctl on the next kernel's command line."""
        more = [
            f"{folder}/{name}"
            for folder, end in _LOADER_FOLDERS
            for name in list_folder(folder, self.root)
            if name.endswith(end)
        ]
        texts = {path: read_script(path, self.root) for path in (*_LOADER_FILES, *more)}
        return {path: text for path, text in texts.items() if "sysctl." in text}

    @cached_property
    def stop(self) -> Declaration | None:
        return find_stop(self.command_line, self.root)

    @cached_property
    def tuned(self) -> Tuned | None:
        return read_tuned(self.root)

    @cached_property
    def scripts(self) -> dict[str, str]:
        return {**_read_tuned_scripts(self.root), **read_boot_scripts(self.root)}

    @cached_property
    def all_scripts(self) -> dict[str, str]:
        scripts = read_boot_scripts(self.root, of_packages=True)
        return {**_read_tuned_scripts(self.root), **scripts}

    @cached_property
    def weighed_scripts(self) -> dict[str, str]:
        """Return the scripts, and those of packages where this boot does not show what they do.

        What has run since the files were applied shows in the running value; not so where a file
        is newer, or a unit was enabled since.
        """
        wants = (f"{UNITS}/{name}" for name in list_folder(UNITS, self.root))
        wants = (path for path in wants if path.endswith((".wants", ".requires")))
        since = read_apply_time(self.root)
        is_tried = not (self.fresh or find_changed(wants, since, self.root))
        return self.scripts if is_tried else self.all_scripts

    @cached_property
    def early(self) -> dict[str, str]:
        return read_early_scripts(self.root)

    @cached_property
    def modules(self) -> frozenset[str]:
        return read_module_loads(self.root)

    @cached_property
    def os_release(self) -> dict[str, str]:
        return read_os_release(self.root)

    @cached_property
    def raises_nr_open(self) -> bool | None:
        """Tell whether systemd raises fs.nr_open here; ``None`` where that is not known."""
        return find_distribution(self.os_release).raises_nr_open

    @cached_property
    def raises_file_max(self) -> bool:
        return (read_systemd_version(self.root) or 0) >= _RAISES_FILE_MAX

    def find_start(self, key: str) -> str:
        """Return what a key is before any file is read, or 0."""
        return foresee_start(key, self.raises_nr_open, self.raises_file_max)

    @cached_property
    def applies_files(self) -> bool:
        """Tell whether this system has systemd's reader of sysctl.d."""
        readers = ("/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl")
        return any(os.path.exists(under(path, self.root)) for path in readers)

    def is_read_only(self, key: str) -> bool:
        """Tell whether a key cannot be written from here, as in a container."""
        try:
            return bool(os.statvfs(sysctl_path(key)).f_flag & os.ST_RDONLY)
        except OSError:
            return False


def read_boot_time(root: str = "/") -> float:
    """Return when the kernel started, by its clock of today; 0 where that is hidden."""
    text = read_text("/proc/stat", root) or ""
    found = re.search(r"^btime (\d+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def read_apply_time(root: str = "/") -> float:
    """Return when the files of sysctl.d were last applied by systemd, or the time of the boot."""
    return max(read_boot_time(root), _read_start_time(APPLIER, root) or 0)


def read_early_time(root: str = "/") -> float:
    """Return when the boot had applied the files of sysctl.d: what was there then, it made."""
    return _read_start_time(_EARLY, root) or read_boot_time(root) + _BOOTING


def _read_start_time(unit: str, root: str) -> float | None:
    """Return when a unit that is active was started: systemd then makes a link of its name."""
    try:
        return os.lstat(f"{under('/run/systemd/units', root)}/invocation:{unit}").st_mtime
    except OSError:
        return None


def find_changed(paths: Iterable[str], since: float, root: str = "/") -> frozenset[str]:
    """Return the files of which the content or the name changed after a time."""
    return frozenset(path for path in paths if _read_change_time(path, root) > since)


def _read_change_time(path: str, root: str) -> float:
    try:
        return os.stat(under(path, root)).st_ctime
    except OSError:
        return 0.0  # Gone, or a link that hangs.


def find_stop(command_line: str, root: str = "/") -> Declaration | None:
    """Return what keeps systemd-sysctl from running at boot."""
    for word in command_line.split():
        name, value = word.partition("=")[::2]
        if name == "systemd.mask" and value in (APPLIER, APPLIER[: -len(".service")]):
            return Declaration("/proc/cmdline", 0, word, value)
    return _find_mask(root) or _find_replacement(root)


def _find_mask(root: str) -> Declaration | None:
    """Return the link or the empty file that masks systemd-sysctl, where the first one is that."""
    for folder in (UNITS, "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"):
        here = f"{under(folder, root)}/{APPLIER}"
        if os.path.lexists(here):
            path = f"{folder}/{APPLIER}"
            if (read_text(path, root) or "").strip():
                return None
            target = f"a link to {os.readlink(here)}" if os.path.islink(here) else "an empty file"
            return Declaration(path, 0, target, "")
    return None


def _find_replacement(root: str) -> Declaration | None:
    """Return the line by which the unit of systemd-sysctl runs something else, or never runs."""
    texts = read_unit(APPLIER, root)
    settings = [one for path, text in texts.items() for one in parse_unit(path, text)]
    starts = merge(settings, "ExecStart")
    if starts and not any("systemd-sysctl" in one.value for one in starts):
        return _declare(starts[-1])
    if judge_conditions(texts, root, Looked()) is False:
        conditions = [one for one in settings if one.name.startswith(("Condition", "Assert"))]
        false = (one for one in conditions if not _may_hold(one, root))
        return _declare(next(false, conditions[-1]))
    return None


def _may_hold(one: Setting, root: str) -> bool:
    alone = {one.path: f"[Unit]\n{one.name}={one.value}\n"}
    return judge_conditions(alone, root, Looked()) is not False


def _declare(at: Setting) -> Declaration:
    return Declaration(at.path, at.first, f"{at.name}={at.value}", at.value)


def read_systemd_version(root: str = "/") -> int | None:
    """Return the version of systemd, by the name of its library."""
    folders = ("/usr/lib/systemd", f"/usr/lib/{os.uname().machine}-linux-gnu/systemd")
    for folder in (*folders, "/lib/systemd"):
        for name in list_folder(folder, root):
            found = _LIBRARY.match(name)
            if found:
                return int(found[1])
    return None


def read_module_loads(root: str = "/") -> frozenset[str]:
    """Return the modules that are loaded before the files are read (modules-load.d(5))."""
    folders = ("/etc/modules-load.d", "/run/modules-load.d", "/usr/lib/modules-load.d")
    texts = [
        read_text(f"{folder}/{name}", root) or ""
        for folder in folders
        for name in list_folder(folder, root)
        if name.endswith(".conf")
    ]
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return frozenset(line.replace("-", "_") for line in lines)


def read_tuned(root: str = "/") -> Tuned | None:
    """Return what tuned sets, where it starts at boot or runs now."""
    profiles = _read_profiles(root)
    enabled = bool(profiles) and "tuned.service" in find_started(root)
    if not profiles or not (enabled or os.path.exists(under("/run/tuned/tuned.pid", root))):
        return None
    main = read_text(MAIN_CONF, root) or ""
    switch, lines = read_reapply(main), merge_profiles(list(profiles.items()))
    return Tuned(lines, switch is None, switch, enabled, read_exclude(main))


def _read_tuned_scripts(root: str) -> dict[str, str]:
    """Return what lies beside the active profile that it may run, as its plugin ``script`` does."""
    profiles = _read_profiles(root)
    if not profiles or "tuned.service" not in find_started(root):
        return {}
    folders = [path.rpartition("/")[0] for path, text in profiles.items() if "script=" in text]
    paths = [f"{one}/{name}" for one in folders for name in list_folder(one, root)]
    texts = {path: read_script(path, root) for path in paths if path not in profiles}
    return {path: text for path, text in texts.items() if is_about_sysctls(text)}


def _read_profiles(root: str) -> dict[str, str]:
    """Return the active profiles of tuned, by path, each after those that it stands on."""
    files = (f"/etc/tuned/{file}" for file in ("active_profile", "post_loaded_profile"))
    names = [name for file in files for name in (read_text(file, root) or "").split()]
    folders = {one: frozenset(list_folder(one, root)) for one in PROFILE_FOLDERS if names}
    profiles: dict[str, str] = {}
    for name in names:
        _read_profile(os.path.basename(name), profiles, folders, root)
    return profiles


def _read_profile(
    name: str, profiles: dict[str, str], folders: Mapping[str, Collection[str]], root: str
) -> None:
    """Add a profile after those that it stands on.

    :param folders: The names in each of the folders that may have it.
    """
    for folder in (one for one in folders if name in folders[one]):
        path = f"{folder}/{name}/tuned.conf"
        text = read_text(path, root)
        if text is not None:
            if path not in profiles:
                profiles[path] = text
                for other in find_includes(text):
                    _read_profile(os.path.basename(other), profiles, folders, root)
                profiles[path] = profiles.pop(path)
            return
