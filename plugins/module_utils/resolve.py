# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a host, or of a tree that will be one, will give: no process is asked."""

from __future__ import annotations

import json
import os

from .policy.docker_config import decode_daemon_json, read_defaults
from .policy.docker_flags import read_flag_defaults
from .policy.dockerd_flags import find_config_path
from .policy.logind_conf import KEY as REMOVE_IPC
from .policy.logind_conf import LOGIND, read_remove_ipc
from .policy.pam_limits import (
    LIMITS_CONF,
    Bound,
    User,
    find_dialect,
    find_obstacle,
    read_lines,
    resolve_limits,
)
from .policy.pam_settings import resolve_settings
from .policy.pam_stack import find_pam_limits, flatten, read_limits_options
from .policy.plan_services import USER_CONF
from .policy.rlimit import ITEMS, UNLIMITED, format_quantity
from .policy.services_policy import TASKS
from .policy.sysctl_conf import SYSCTL_CONF, spell_key
from .policy.sysctl_writes import SYSTEMD, find_procps, resolve_key
from .policy.systemd_limits import (
    MANAGER,
    Ignored,
    Reading,
    read_manager_limits,
    read_unit_limits,
    resolve_unit_limits,
)
from .policy.tasks_max import read_default_tasks, read_unit_tasks
from .policy.unit_file import Source
from .policy.unit_model import Files
from .probe.files import (
    find_hanging_limits_files,
    read_bytes,
    read_limits_files,
    read_os_release,
    read_sysctl_files,
    read_text,
    under,
)
from .probe.tree import read_tree_pam_files, read_tree_user
from .probe.unit import read_dockerd_flags, read_manager_files, read_unit_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .policy.declaration import Declaration


def resolve_tree(
    root: str, user: str | None, service: str | None, unit: str = MANAGER
) -> Iterator[dict[str, object]]:
    """Yield every value that the files state, each with its place and what it shadows.

    :param root: The tree; ``/`` for this host.
    :param user: Whose limits; by default root's and the ordinary user's, for whom ``*`` stands.
    :param service: The PAM service whose stack must hold pam_limits; by default none is asked.
    :param unit: The systemd unit whose limits; by default those of system.conf and user.conf, for
        all units.
    :raises ValueError: If a user or service is not in the tree, or a file cannot be parsed.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is no folder")
    for name in [user] if user else ["root", "*"]:
        yield from _resolve_user(root, name, service)
    yield from _resolve_kernel(root)
    for one in dict.fromkeys([unit, USER_CONF] if unit == MANAGER else [unit]):
        yield from _resolve_unit(root, one)
    yield from _resolve_logind(root)
    yield from _resolve_docker(root)


def _resolve_user(root: str, name: str, service: str | None) -> Iterator[dict[str, object]]:
    place = f"session:{name}@{service or 'any'}"
    user = User("", 2**31, 2**31) if name == "*" else read_tree_user(root, name)
    reason = _find_hindrance(root, service) if service else ""
    if reason:
        yield {"place": place, "reason": reason}
        return
    dialect = find_dialect(read_os_release(root))
    files = read_limits_files(root)
    missing = find_obstacle(files, find_hanging_limits_files(root), user, dialect)
    if missing and os.path.isdir(under(os.path.dirname(LIMITS_CONF), root)):
        yield {"place": place, "reason": f"{missing} is missing, and PAM refuses every login"}
        return
    read = read_lines(files, dialect)
    resolution = resolve_limits(read, user, dialect)
    if resolution.stopped_by:
        line = resolution.stopped_by
        yield {"place": place, "reason": f'{line.place} "{line.text.strip()}" cancels every limit'}
    for (item, kind), bound in resolution.bounds.items():
        entry = _describe(place, item, kind, bound, ITEMS[item].unit)
        if (item, bound.winner.value) == ("nofile", UNLIMITED) and not dialect.reads_nr_open:
            entry["value"] = "unlimited, which the kernel refuses"
        yield entry
    for item, bound in resolve_settings(read, user, dialect).items():
        yield _describe(place, item, "value", bound, "")


def _resolve_kernel(root: str) -> Iterator[dict[str, object]]:
    """Yield each sysctl at boot, and what ``sysctl --system`` makes of it where that differs."""
    conf = read_text(SYSCTL_CONF, root)
    files = {**read_sysctl_files(root), **({} if conf is None else {SYSCTL_CONF: conf})}
    readers = (SYSTEMD, find_procps(read_os_release(root)))
    indexes = [(one.arrange(files), one) for one in readers]
    alike = indexes[0][0].is_read_like(indexes[1][0])
    named = {line.name for index, _reader in indexes for line in index.lines if not line.glob}
    keys = {spell_key(name) for name in named}
    for key in sorted(key for key in keys if key.strip() == key):
        bounds = [resolve_key(index, key, one) for index, one in indexes[: 1 if alike else 2]]
        at_boot, by_procps = bounds[0], bounds[-1]
        found = {"at_boot": at_boot, "by_procps": by_procps}
        values = {bound.winner.value if bound else "" for bound in found.values()}
        if len(values) == 1:
            found = {"value": found["at_boot"]}
        for kind, bound in found.items():
            if bound and bound.winner.value != "":  # "-key" alone assigns nothing.
                yield _describe("kernel", key, kind, bound, "")


def _find_hindrance(root: str, service: str) -> str:
    """Return why a service's sessions do not read the limits files; or nothing."""
    found = find_pam_limits(flatten(service, "session", read_tree_pam_files(root)))
    if not found:
        return f"the PAM stack of {service} has no pam_limits, so no limits file counts"
    conf = read_limits_options(found[-1]).conf
    if conf and conf != LIMITS_CONF:
        return f"{found[-1].path}:{found[-1].line} reads {conf} and nothing else"
    return ""


def _resolve_unit(root: str, unit: str) -> Iterator[dict[str, object]]:
    """Yield the limits that systemd gives a unit, and the lines that it ignores.

    :param unit: A unit of the system, or the file of a manager, the users' user.conf too.
    """
    place, is_manager = f"unit:{unit}", unit in (MANAGER, USER_CONF)
    conf, conf_dropins = read_manager_files(root, unit if is_manager else MANAGER)
    manager = read_manager_limits(conf, conf_dropins)
    reading, files = Reading([], manager.ignored), Files(None, (), conf, tuple(conf_dropins))
    if not is_manager:
        main, dropins = read_unit_files(unit, root)
        if main is None and dropins and unit.endswith(".slice"):
            main = Source(unit, "[Slice]")  # systemd makes slices by itself.
        if main is None or not main.text:
            reason = f"{main.path} masks it" if main else "has no file in this tree"
            yield {"place": place, "reason": reason}
            return
        reading = read_unit_limits(unit.rpartition(".")[2], main, dropins)
        files = files._replace(main=main, dropins=tuple(dropins))
    for line in reading.ignored:
        yield {"place": place, "reason": f"ignored is {_quote(line)}"}
    if reading.refused:
        yield {"place": place, "reason": f"is not loaded: {_quote(reading.refused)}"}
        return
    for item, kind, bound in resolve_unit_limits(manager, reading):
        yield _describe(place, item, kind, bound, ITEMS[item].unit)
    kind = unit.rpartition(".")[2]
    ranked = [] if kind == "slice" else read_default_tasks(files)
    ranked += [] if is_manager else read_unit_tasks(kind, files)
    if ranked:
        yield _describe(place, TASKS, "value", Bound(ranked[-1], tuple(ranked[:-1])), "")


def _resolve_logind(root: str) -> Iterator[dict[str, object]]:
    """Yield whether logind removes a user's shared memory after the last login."""
    conf, dropins = read_manager_files(root, LOGIND)
    ranked = [
        one._replace(value=one.text.partition("=")[2])
        for one in read_remove_ipc(Files(None, (), conf, tuple(dropins)))
    ]
    if ranked:
        yield _describe("logind", REMOVE_IPC, "value", Bound(ranked[-1], tuple(ranked[:-1])), "")


def _quote(line: Ignored) -> str:
    return f'{line.path}:{line.line} "{line.text}": {line.reason}'


def _resolve_docker(root: str) -> Iterator[dict[str, object]]:
    flags = read_dockerd_flags(root.rstrip("/"))
    path = find_config_path(flags)
    content = read_bytes(path, root)
    stated = read_defaults(decode_daemon_json(content or b"", path), path)
    for default in [*stated, *read_flag_defaults(flags)]:
        unit = "bytes" if default.name == "shm_size" else ITEMS[default.name].unit
        pairs = [("value", default.limit.hard)]
        if default.name != "shm_size":
            pairs = list(default.limit._asdict().items())
        for kind, value in pairs:
            bound = Bound(default.declaration._replace(value=value))
            yield _describe("new-container:docker", default.name, kind, bound, unit)


def _describe(place: str, item: str, kind: str, bound: Bound, unit: str) -> dict[str, object]:
    return {
        "place": place,
        "item": item,
        "bound": kind,
        "value": _format(bound.winner, unit, item),
        "declared": _locate(bound.winner),
        "shadows": [_locate(one) for one in bound.shadowed],
    }


def _format(declaration: Declaration, unit: str, item: str) -> str:
    value = declaration.value
    if item == "nofile" and value == UNLIMITED:
        return "the value of fs.nr_open"
    return value if isinstance(value, str) else format_quantity(value, unit)


def _locate(declaration: Declaration) -> dict[str, object]:
    return {
        "file": declaration.path,
        "line": declaration.line,
        "text": declaration.text.strip(),
    }


def format_resolved(stated: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield what was resolved as lines for people."""
    entry: dict[str, object] = {}
    for entry in stated:
        if "reason" in entry:
            yield f"{entry['place']}: {entry['reason']}"
            continue
        kind = "" if entry["bound"] == "value" else f" {entry['bound']}"
        yield f"{entry['place']} {entry['item']}{kind} = {entry['value']}"
        for mark, text in _places(entry):
            yield f"     {mark} {text}"
    if not entry:
        yield "no file in this tree states a limit"


def format_entries(stated: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield what was resolved as JSON, piece by piece: its texts are longer than what they say."""
    last = ""
    for entry in stated:
        yield f"{last}," if last else "["
        last = "  " + json.dumps(entry, indent=2).replace("\n", "\n  ")
    yield f"{last}\n]" if last else "[]"


def _places(entry: dict[str, object]) -> Iterator[tuple[str, str]]:
    for mark, places in (("by     ", [entry["declared"]]), ("shadows", entry["shadows"])):
        for place in places:  # type: ignore[attr-defined]
            yield mark, f'{place["file"]}:{place["line"]} "{place["text"]}"'
