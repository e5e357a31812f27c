# SPDX-License-Identifier: BSD-2-Clause
"""Read the .container file of a service that Quadlet makes, and say what of it gives too little.

Source: podman-systemd.unit(5). A container is made anew at each start of its service, so a restart
of that is enough; of two entries for one limit the last counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from ..containers.policy import SHM, TASKS, ContainerPolicy
from ..core.cause import Cause, Remedy, cite, replace_line
from ..core.cgroup import split_rows
from ..core.finding import Requirement
from ..core.line_edit import find_row
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit
from ..systemd.unit_file import Setting, Source, scan_unit
from .containers_conf import format_entry, format_tasks, parse_entry, parse_size

CODES = {
    "quadlet-line": "a line of the .container file gives the container something else",
    "quadlet-not-restarted": "the files give enough, and the service has run since before",
}
_MANAGER = re.compile(r"user@([0-9]+)\.service")
_OPTIONS = {"ShmSize": "--shm-size", "Ulimit": "--ulimit", "PidsLimit": "--pids-limit"}
_THOUSAND = 1024  # At the command line sizes count by 1024, other than in containers.conf.


class Stated(NamedTuple):
    """What a line says of a limit, /dev/shm or tasks; ``entry`` is the word that says it."""

    value: Rlimit | int
    entry: str
    at: Declaration


class Quadlet(NamedTuple):
    """A service that Quadlet makes: its unit, its user (``None`` for root), what it states."""

    unit: str
    uid: int | None
    stated: Mapping[str, Stated]

    @property
    def restart(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that make the container anew; a user's are left to that user."""
        if self.uid is not None:
            return ()
        return (("systemctl", "daemon-reload"), ("systemctl", "restart", self.unit))


_LONGEST_NUMBER = 40  # Before Python 3.11 int() takes the square of that.


def find_service(cgroup: str) -> tuple[str, int | None]:
    """Return the service that a container lives in, and of which user's manager, if of one.

    :param cgroup: /proc/PID/cgroup.
    """
    rows = split_rows(cgroup)
    for path in [path for dummy, names, path in rows if names in ("", "name=systemd")]:
        unit, uid = "", None
        for part in path.split("/"):
            manager = _MANAGER.fullmatch(part)
            uid = int(manager[1]) if manager else uid
            unit = part if part.endswith(".service") and not manager else unit
        if unit:
            return unit, uid
    return "", None


def find_source(text: str) -> str:
    """Return the file that a generated unit was made of; nothing where it is not Quadlet's."""
    for setting in scan_unit(text, "").settings:
        if (setting.section, setting.key) == ("Unit", "SourcePath"):
            return setting.value if setting.value.endswith(".container") else ""
    return ""


def read_quadlet(sources: Sequence[Source]) -> dict[str, Stated]:
    """Return what a .container file and its drop-ins state, by limit.

    :param sources: In the order in which they count.
    """
    settings = [
        (setting, source.text)
        for source in sources
        for setting in scan_unit(source.text, source.path).settings
        if setting.section == "Container"
    ]
    found: dict[str, tuple[Stated, str]] = {}
    for keys in (tuple(_OPTIONS), ("PodmanArgs",)):
        for setting, text in settings:
            for option, value in _read_options(setting) if setting.key in keys else ():
                for item, stated in _read_option(option, value, setting):
                    found[item] = stated, text
    return {item: _place(stated, text) for item, (stated, text) in found.items()}


def _place(stated: Stated, text: str) -> Stated:
    """Return what counts with its line as it stands in the file, if it stands in one line."""
    whole = find_row(stated.at, text)
    return stated._replace(at=whole) if whole.line else stated


def _read_options(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield the options of podman-run(1) that a line stands for, with their values."""
    if setting.key != "PodmanArgs":
        yield _OPTIONS[setting.key], setting.value
        return
    try:
        words = shlex.split(setting.value)
    except ValueError:
        return
    for word, following in zip(words, [*words[1:], ""]):
        option, equals, value = word.partition("=")
        yield option, value if equals else following


def _read_option(option: str, value: str, setting: Setting) -> Iterator[tuple[str, Stated]]:
    """Yield what an option of a line states."""
    at = Declaration(setting.path, setting.line, f"{setting.key}={setting.value}", value)
    try:
        if option == "--ulimit":
            item, limit = parse_entry(value)
            yield item, Stated(limit, value, at)
        elif option == "--shm-size":
            yield SHM, Stated(parse_size(value, _THOUSAND), value, at)
        elif option == "--pids-limit":
            most = int(value if len(value) <= _LONGEST_NUMBER else "")
            yield TASKS, Stated(most if most > 0 else UNLIMITED, value, at)
    except ValueError:
        return  # Podman would not start the container.


def explain_quadlet(
    wanted: Requirement, quadlet: Quadlet, causes: Sequence[Cause], policy: ContainerPolicy
) -> tuple[Cause, ...]:
    """Return why a container of Quadlet has too little.

    :param causes: What containers.conf is at fault for, where the .container file is silent.
    """
    stated = quadlet.stated.get(wanted.item)
    if stated is None:
        return (*causes, _blame_age(quadlet, f"{quadlet.unit} has run since before that"))
    value = stated.value
    if isinstance(value, Rlimit):
        value = wanted.pick(value)
    if wanted.is_met_by(value):
        text = f"{cite(stated.at)} gives enough, and {quadlet.unit} has run since before that"
        return (_blame_age(quadlet, text, stated.at),)
    text = f"{cite(stated.at)} gives the container {stated.entry}"
    remedy = _rewrite(wanted, stated, quadlet, policy)
    return (Cause("quadlet-line", text, remedy, stated.at),)


def _blame_age(quadlet: Quadlet, text: str, at: Declaration | None = None) -> Cause:
    remedy = Remedy(f"{_name_restart(quadlet)}, which makes the container anew", quadlet.restart)
    return Cause("quadlet-not-restarted", text, remedy, at)


def _name_restart(quadlet: Quadlet) -> str:
    user = "" if quadlet.uid is None else " --user"
    return f"run systemctl{user} daemon-reload and restart {quadlet.unit}"


def _rewrite(
    wanted: Requirement, stated: Stated, quadlet: Quadlet, policy: ContainerPolicy
) -> Remedy:
    """Put the entry right where it stands; a file in a home is left to its owner."""
    if isinstance(stated.value, Rlimit):
        entry = format_entry(wanted.item, policy.choose(wanted.item, stated.value))
    else:
        entry = format_tasks(wanted.minimum or 0)  # Of no size there is more than that.
    text = stated.at.text.strip().replace(stated.entry, entry)
    remedy = replace_line(stated.at, text)
    commands = (*remedy.commands, *quadlet.restart) if quadlet.restart else ()
    then = _name_restart(quadlet) if not commands else ""
    return remedy._replace(commands=commands, then=then)
