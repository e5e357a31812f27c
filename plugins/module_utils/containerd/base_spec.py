# SPDX-License-Identifier: BSD-2-Clause
"""The specification that containerd starts pods with, and the edits that make it state enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..containers.spec import TYPES
from ..core.json_text import Member, find_items, find_member, find_members, line_of
from ..core.line_edit import edit_value
from ..core.toml_text import read_toml
from ..core.values import Declaration, NamedTuple, Rlimit, format_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.line_edit import Commands

CONFIG = "/etc/containerd/config.toml"
_RUNTIME = "runc"


class BaseSpec(NamedTuple):
    """The limits and tasks of a base specification, and the line of config.toml that names it.

    ``text`` is the specification itself.
    """

    path: str
    limits: Mapping[str, Rlimit]
    at: Declaration
    tasks: int | None = None
    text: str = ""


def find_base_spec(text: str, path: str = CONFIG) -> Declaration | None:
    """Return the line that names the base specification of the default runtime, if one does.

    Without one the limits are taken out, and a pod inherits those of containerd; with one, its
    ``process.rlimits`` are used as they are. Source: ``docs/cri/config.md`` and
    ``internal/cri/opts/spec_opts.go`` of containerd.

    :param text: config.toml, read as latin-1. The value is the path.
    :raises ValueError: If it is not TOML.
    """
    entries = read_toml(text.encode("latin-1").decode("utf-8"))
    names = [one.node.value for one in entries if one.keys[-1] == "default_runtime_name"]
    runtime = names[-1] if names else _RUNTIME
    rows = text.split("\n")
    for one in entries:
        if one.keys[-3:] == ("runtimes", runtime, "base_runtime_spec") and one.node.value:
            line = one.node.line
            return Declaration(path, line, rows[line - 1].rstrip("\r"), str(one.node.value))
    return None


def find_rlimit(text: str, item: str) -> dict[str, Member]:
    """Return the members ``soft`` and ``hard`` of a limit that counts, the last of its type."""
    try:
        return _find_rlimit(text, item)
    except ValueError:
        return {}


def _find_rlimit(text: str, item: str) -> dict[str, Member]:
    found: dict[str, Member] = {}
    for entry in find_items(text, _find(text, ("process", "rlimits"))):
        members = find_members(text, start=entry)
        kind = find_member(members, "type")
        if kind and TYPES.get(str(kind.value)) == item:
            found = {one.key: one for one in members if one.key in ("soft", "hard")}
    return found


def _find(text: str, keys: Sequence[str]) -> int:
    """Return where the value of a nested key stands; -1 where there is none."""
    start: int | None = None
    for key in keys:
        member = find_member(find_members(text, start=start), key)
        if member is None or not member.value:
            return -1
        start = member.value_start
    return -1 if start is None else start


def write_rlimit(text: str, item: str, target: Rlimit) -> str | None:
    """Return the text with both bounds of a limit; nothing unless they are plain numbers."""
    members, wanted = find_rlimit(text, item), target._asdict()
    if members.keys() != wanted.keys():
        return None
    return _fill(text, [(member, wanted[kind]) for kind, member in members.items()])


def write_tasks(text: str, least: int) -> str | None:
    """Return the text with a bound on tasks; nothing unless it is a plain number."""
    try:
        at = _find(text, ("linux", "resources", "pids"))
        limit = find_member(find_members(text, start=at), "limit") if at >= 0 else None
    except ValueError:
        return None
    return _fill(text, [(limit, least)]) if limit else None


def _fill(text: str, members: Iterable[tuple[Member, int]]) -> str | None:
    for one, value in sorted(members, reverse=True, key=lambda pair: pair[0].start):
        if text[one.value_start : one.end] != str(one.value):
            return None
        text = f"{text[: one.value_start]}{value}{text[one.end :]}"
    return text


def edit_base(base: BaseSpec, text: str | None) -> Commands:
    """Return the commands that make a base specification a text; none where a person must."""
    rows = enumerate(zip(base.text.split("\n"), (text or "").split("\n")), 1)
    edits = [
        edit_value(Declaration(base.path, number, old, ""), old.strip(), new.strip())
        for number, (old, new) in rows
        if text is not None and old != new
    ]
    return tuple(command for edit in edits for command in edit) if all(edits) else ()


class Kept(NamedTuple):
    """A limit of a base specification that we have changed, and what it was."""

    item: str
    before: Rlimit
    after: Rlimit
    path: str

    @property
    def old(self) -> str:
        return f"{self.before.soft}:{self.before.hard}"

    def __str__(self) -> str:
        return f"{_KEPT} {self.item} {self.old} {self.after.soft}:{self.after.hard} {self.path}"


_KEPT = "# It was, it is, in which file:"


def read_kept(drop_in: str) -> list[Kept]:
    """Return what our drop-in says of limits that we have changed."""
    found = []
    for row in drop_in.split("\n"):
        words = row[len(_KEPT) :].split(None, 3) if row.startswith(_KEPT) else []
        if len(words) == len(Kept._fields):
            before, after = (Rlimit(*map(int, word.split(":"))) for word in words[1:3])
            found.append(Kept(words[0], before, after, words[3]))
    return found


def put_back(base: BaseSpec, kept: Iterable[Kept]) -> BaseSpec:
    """Return a base specification as it was before us; what somebody changed since stays."""
    limits, text = dict(base.limits), base.text
    for one in kept:
        if one.path == base.path and limits.get(one.item) == one.after:
            limits[one.item] = one.before
            text = write_rlimit(text, one.item, one.before) or text
    return base._replace(limits=limits, text=text)


def declare_rlimit(base: BaseSpec, item: str) -> Declaration:
    """Return the first line of a limit as what it states and where."""
    members = find_rlimit(base.text, item)
    line = min((line_of(base.text, one.start) for one in members.values()), default=0)
    return Declaration(base.path, line, f"{item} {format_pair(item, base.limits[item])}", "")
