# SPDX-License-Identifier: BSD-2-Clause
"""Read what sets sysctls at boot besides the files of sysctl.d, and when that last happened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from ..core.distribution import find_distribution
from ..core.values import Declaration
from ..host.files import follow_links, list_folder, read_os_release, read_text, under
from .boot_applier_read import find_applier_doubts
from .boot_conditions_read import judge_conditions
from .boot_credentials import Credentials
from .boot_credentials_read import read_credentials
from .boot_loader_read import read_loader
from .boot_modules_read import Modules, read_modules
from .boot_quiet_read import Looked
from .boot_scripts_read import read_boot_scripts, read_early_scripts
from .boot_units import Setting, merge, parse_unit
from .boot_units_read import APPLIER, UNITS, find_mask, read_unit
from .model import foresee_start
from .read import sysctl_path
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES
from .tuned_profile import Tuned
from .tuned_read import read_recommended, read_tuned, read_tuned_scripts

_RAISES_FILE_MAX = 240  # The first version of systemd.
_LIBRARY = re.compile(r"libsystemd-shared-(\d+)")
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
        """Return the boot loader's files that say something of sysctls to the next kernel."""
        return read_loader(self.root)

    @cached_property
    def stop(self) -> Declaration | None:
        return find_stop(self.command_line, self.root)

    @cached_property
    def applier_doubts(self) -> tuple[Declaration, ...]:
        """Return the lines on account of which systemd-sysctl may not apply each file."""
        return () if self.stop else tuple(find_applier_doubts(self.root))

    @cached_property
    def tuned(self) -> Tuned | None:
        return read_tuned(self.root)

    @cached_property
    def recommended(self) -> tuple[Tuned, ...]:
        return tuple(read_recommended(self.root))

    @cached_property
    def scripts(self) -> dict[str, str]:
        return {**read_tuned_scripts(self.root), **read_boot_scripts(self.root)}

    @cached_property
    def all_scripts(self) -> dict[str, str]:
        scripts = read_boot_scripts(self.root, of_packages=True)
        return {**read_tuned_scripts(self.root), **scripts}

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
    def modules(self) -> Modules:
        return read_modules(self.root, self.loader)

    @cached_property
    def credentials(self) -> Credentials:
        return read_credentials(self.root, self.stop is None)

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
    return find_mask(APPLIER, root) or _find_replacement(root)


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
