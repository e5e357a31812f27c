# SPDX-License-Identifier: BSD-2-Clause
"""Gather all that decides the limits of a service: its files, its manager's, the kernel, PAM."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from functools import partial

from ..core.distribution import Dialect, Distribution
from ..core.finding import Finding
from ..core.packed import pack, unpack
from ..core.reader import Limit
from ..core.systemd_text import expand_name
from ..core.values import NamedTuple, Rlimit
from ..host.files import read_distribution
from ..host.look import Look, Process, find_user_managers, read_process
from ..host.manager_read import Shown, show_defaults, show_unit
from ..host.owned import ask_owner
from ..kernel.host_read import KernelRead, find_nr_open_at_boot, find_nr_open_line
from ..sessions.diagnose import gather_session
from ..sessions.host_read import SessionsRead
from ..sessions.measure import SessionResult, measure_sessions
from ..sessions.model import FD_SETSIZE
from .limits import MANAGER
from .model import (
    Files,
    Manager,
    Pam,
    Stray,
    UnitFacts,
    find_defaults,
    find_user_defaults,
    outlive_boot,
    predict_unit,
)
from .sources_read import read_sources
from .unit_file import (
    UNIT_DIRECTORIES,
    Setting,
    Source,
    list_user_directories,
    merge_units,
)

_MEMLOCK_OF_KERNEL, _MEMLOCK_BEFORE_5_16 = 8 * 2**20, 64 * 2**10
"""What the kernel gives the first process (``MLOCK_LIMIT``)."""
_RAISED_MEMLOCK = 8 * 2**20
"""``DEFAULT_RLIMIT_MEMLOCK`` of systemd."""

_SWITCH = re.compile(
    r"[-@:+!|]*(?:/\S*/)?(su|runuser)((?:\s+(?:-|-l|--login|-m|-p))*)"
    r"\s+(?:(?:-u|--user)[ =])?([a-z_][\w-]*)(?:\s|$)"
)

NEW_SERVICE = "mlhost-canary-0.service"
"""A service that nobody has: what counts for it counts for all that state nothing."""

USER_CONF = "user.conf"
USER_FOLDER = "/etc/systemd/user"


def gather_unit(unit: str, look: Look) -> UnitFacts:
    """Return all that decides a unit of the system.

    :raises OSError: If a file cannot be read.
    :raises ValueError: If it has no file, is masked, or PAM's part cannot be told.
    """
    files = read_sources(unit)
    if files.main is None or not files.main.text:
        raise ValueError(f"{unit} has no file, or is masked")
    return _gather(unit, files, look, _find_pam(unit, files, look))


def _gather(unit: str, files: Files, look: Look, pam: Pam | None) -> UnitFacts:
    own = look.at(KernelRead).limits_of_pid_1
    manager = Manager(_find_defaults(files, own), own, look.at(KernelRead).nr_open)
    line, at_boot = find_nr_open_line(look), find_nr_open_at_boot(look)
    return UnitFacts(unit, files, manager, pam, nr_open_line=line, nr_open_at_boot=at_boot)


def _find_defaults(files: Files, own: Mapping[str, Rlimit]) -> dict[str, Rlimit]:
    """Return what systemd gives where nothing states it; what is not known, it is asked for."""
    vendor = files.vendor
    memlock = _RAISED_MEMLOCK if vendor.raises_memlock else _read_kernel_memlock()
    if vendor.highest_nofile is None or vendor.raises_memlock is None:
        shown = show_defaults()
        nofile = shown.get("nofile", Rlimit(FD_SETSIZE, own["nofile"].hard))
        given = find_defaults(own, memlock, vendor.highest_nofile or nofile.hard)
        return {**given, "memlock": shown.get("memlock", given["memlock"])}
    return find_defaults(own, memlock, vendor.highest_nofile)


def foresee_boot(facts: UnitFacts, look: Look) -> UnitFacts | None:
    """Return the facts as they will be after a boot; nothing where the unit is gone then."""
    files = outlive_boot(facts.files)
    if files.main is None:
        return None
    manager = facts.manager._replace(nr_open=find_nr_open_at_boot(look), at_boot=True)
    return facts._replace(files=files, manager=manager)


def gather_user_unit(unit: str, uid: int, own: Mapping[str, Rlimit], look: Look) -> UnitFacts:
    """Return all that decides a service of a user's manager.

    :param own: The limits of that manager.
    :raises ValueError: If that cannot be told.
    """
    files = read_user_sources(unit, uid)
    if files.main is None or not files.main.text:
        raise ValueError(f"{unit} has no file")
    manager = Manager(find_user_defaults(own), own, look.at(KernelRead).nr_open, may_raise=False)
    return UnitFacts(unit, files, manager, folder=USER_FOLDER)


def gather_default(look: Look) -> UnitFacts:
    """Return all that decides a service of the system that states nothing.

    :raises OSError, ValueError: If that cannot be told.
    """
    files = read_sources(NEW_SERVICE)._replace(main=Source(NEW_SERVICE, ""))
    return _gather(NEW_SERVICE, files, look, None)._replace(defaults_of=MANAGER)


def gather_user_default(uid: int, own: Mapping[str, Rlimit], look: Look) -> UnitFacts:
    """Return all that decides a service of a user's manager that states nothing.

    :param own: The limits of that manager.
    :raises OSError, ValueError: If that cannot be told.
    """
    files = read_user_sources(NEW_SERVICE, uid)._replace(main=Source(NEW_SERVICE, ""))
    manager = Manager(find_user_defaults(own), own, look.at(KernelRead).nr_open, may_raise=False)
    return UnitFacts(NEW_SERVICE, files, manager, folder=USER_FOLDER, defaults_of=USER_CONF)


def predict_given(uid: int, manager: UnitFacts, look: Look) -> dict[str, Rlimit]:
    """Return what root's files alone give a service of a user that states nothing.

    What the user wrote, or set for what runs, has no say in it.

    :param manager: What decides user@UID.service.
    :raises OSError, ValueError: If that cannot be told.
    """
    own = predict_unit(manager)
    if own is None:
        raise ValueError(f"{manager.name} does not start")
    folders = list_user_directories(find_home_folder(uid), uid)
    private = (f"{find_home_folder(uid)}/", f"/run/user/{uid}/")
    roots = tuple(folder for folder in folders if not folder.startswith(private))
    files = read_sources(NEW_SERVICE, roots, USER_CONF)._replace(main=Source(NEW_SERVICE, ""))
    settings = Manager(find_user_defaults(own), own, look.at(KernelRead).nr_open, may_raise=False)
    given = predict_unit(UnitFacts(NEW_SERVICE, files, settings, defaults_of=USER_CONF))
    return given or {}


def read_user_sources(unit: str, uid: int) -> Files:
    """Return the files of a unit of a user's manager, as that user reads them.

    :raises OSError, ValueError: If they cannot be told: the user has a user.conf, which has a say.
    """
    find_home_folder(uid)
    told = ask_owner(uid, partial(_read_as_user, unit, uid))
    kinds = (Files, Source, Stray, Distribution, Dialect)
    files = unpack(told, {kind.__name__: kind for kind in kinds})
    if not isinstance(files, Files):
        raise ValueError(f"what uid {uid} tells of {unit} cannot be read")
    return files._replace(vendor=read_distribution())  # Of that no user has a say.


def _read_as_user(unit: str, uid: int) -> object:
    personal = f"{find_home_folder(uid)}/.config/systemd/{USER_CONF}"
    if os.path.exists(personal):
        raise ValueError(f"{personal} can set it too")
    return pack(read_sources(unit, list_unit_directories(uid), USER_CONF))


def list_unit_directories(uid: int | None) -> tuple[str, ...]:
    """Return where units lie: those of the system, or of a user's manager."""
    if uid is None:
        return UNIT_DIRECTORIES
    folders = list_user_directories(find_home_folder(uid), uid)
    # Debian links the one of XDG to that in /etc/systemd, whose name everybody knows.
    real = {folder: os.path.realpath(folder) for folder in folders}
    return tuple(folder for folder in folders if real[folder] not in {*folders} - {folder})


def find_home_folder(uid: int) -> str:
    """Return the home of a user.

    :raises ValueError: If there is none.
    """
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        raise ValueError(f"there is no user {uid}") from None


def _read_kernel_memlock() -> int:
    numbers = os.uname().release.split("-")[0].split(".")
    version = tuple(int(part) for part in numbers[:2] if part.isdigit())
    return _MEMLOCK_OF_KERNEL if version >= (5, 16) else _MEMLOCK_BEFORE_5_16


def _find_pam(unit: str, files: Files, look: Look) -> Pam | None:
    """Return PAM's part in a unit, if it has one: by PAMName= and User=, or by su and its like.

    :raises ValueError: If it has a part and that cannot be told.
    """
    settings = merge_units(files.main, files.dropins)
    said = {one.key: one for one in settings if one.section == "Service"}
    name, user, command = (said.get(key) for key in ("PAMName", "User", "ExecStart"))
    if name and name.value and user and user.value:
        at, way = name, (name.value, _find_user(unit, user))
    else:
        switch = _find_switch(command.value) if command else None
        if command is None or switch is None:
            return None
        at, way = command, switch
        if not look.at(SessionsRead).resets_limits(way[0]):
            raise ValueError(f"what {way[0]} makes of the limits of {unit} is not known")
    session = gather_session(SessionResult(*way, None, "", base={}), look)
    if session is None:
        raise ValueError(f"what PAM makes of {unit} is not known")
    return Pam(at.declare(way[0]), session)


def is_switch(command: str) -> bool:
    """Tell whether a command line runs su or its like."""
    words = command.lstrip("-@:+!|").split(None, 1)
    return bool(words) and os.path.basename(words[0]) in ("su", "runuser", "sudo")


def _find_switch(command: str) -> tuple[str, str] | None:
    """Return the service of PAM and the user of a command line that runs su or its like.

    :raises ValueError: If it does, and the user cannot be told.
    """
    if not is_switch(command):
        return None
    match = _SWITCH.match(command)
    if match is None:
        raise ValueError(f"{command!r} starts a session of an unknown user")
    login = "-l" if re.search(r"\s(-|-l|--login)\s", f" {match[2]} ") else ""
    return match[1] + login, match[3]


def _find_user(unit: str, setting: Setting) -> str:
    name = expand_name(setting.value, unit)
    try:
        return pwd.getpwuid(int(name)).pw_name if name.isdigit() else name
    except KeyError:
        raise ValueError(f"{unit}: there is no user {name}") from None


class Seen(NamedTuple):
    """A process that was judged.

    ``wanted`` is all that the policy asks of it, and ``unit`` the service whose main process it is
    where its cgroup does not say so: PAM may have moved it to a session. ``container`` names the
    one that it lives in, and ``owner`` is the user who may have set its limits.
    """

    process: Process
    limits: Mapping[str, Rlimit]
    wanted: Mapping[str, Limit]
    findings: Sequence[Finding]
    unit: str = ""
    container: str = ""
    owner: str = ""
    is_named_by_user: bool = False
    """Whether it was chosen by the name of a unit in a user's own manager."""


class World:
    """A host on which processes are explained; what several of them share is gathered once."""

    def __init__(self, look: Look, probe: str = "quiet") -> None:
        self.look = look
        self.probe = probe
        self._units: dict[str, tuple[UnitFacts, UnitFacts | None] | None] = {}
        self._shown: dict[str, Shown | None] = {}
        self._sessions: dict[tuple[str, str], SessionResult] = {}

    def find_unit(self, unit: str) -> tuple[UnitFacts, UnitFacts | None] | None:
        """Return what decides a unit of the system, now and after a boot; nothing if unknown."""
        if unit not in self._units:
            try:
                facts = gather_unit(unit, self.look)
                self._units[unit] = facts, foresee_boot(facts, self.look)
            except (OSError, ValueError):
                self._units[unit] = None
        return self._units[unit]

    def show_unit(self, unit: str) -> Shown | None:
        """Return what the system's manager says of a unit."""
        if unit not in self._shown:
            self._shown[unit] = show_unit(unit)
        return self._shown[unit]

    def find_moved(self, unit: str) -> list[Process]:
        """Return the main process of a unit that PAM has moved to the cgroup of a session."""
        shown = self.show_unit(unit)
        try:
            return [read_process(shown.main_pid)] if shown and shown.main_pid else []
        except OSError:
            return []

    def open_session(self, service: str, user: str) -> SessionResult:
        """Return what a session opened now gets."""
        key = (service, user)
        if key not in self._sessions:
            (self._sessions[key],) = measure_sessions([key], self.probe)
        return self._sessions[key]

    def find_user_manager(self, uid: int) -> Process | None:
        """Return the process of a user's service manager."""
        return find_user_managers(self.look.processes).get(uid)
