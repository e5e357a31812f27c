# SPDX-License-Identifier: BSD-2-Clause
"""Change the files of a unit: in thought, and as the commands that do the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from ..core.cause import Cause, Remedy, comment_out, replace_line
from ..core.line_edit import find_row
from ..core.values import Declaration, NamedTuple
from .limits import SECTIONS
from .unit_file import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Files, UnitFacts

_OURS = ("/etc/", "/run/systemd/system/")
"""Where root writes. What packages own, and what programs generate, is left as it is; and root must
not edit in a home, whose owner may put a link in the way."""

_NAMES = ("95-site.conf", "99-site.conf", "zz-site.conf", "zzzz-site.conf")


class Repair(NamedTuple):
    """One thing put right: its cause, with the commands, and the facts after them."""

    cause: Cause
    facts: UnitFacts


def is_ours(path: str) -> bool:
    """Tell whether a file may be edited; one of a package gets a drop-in instead."""
    return path.startswith(_OURS)


def silence(at: Declaration, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """Comment a line out."""
    return comment_out(_find_whole(at, facts)), _edit(facts, at.path, {at.line: ""})


def rewrite(at: Declaration, text: str, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """Put another text in the place of a line."""
    remedy = replace_line(_find_whole(at, facts), text)
    return remedy, _edit(facts, at.path, {at.line: text})


def _find_whole(at: Declaration, facts: UnitFacts) -> Declaration:
    """Return a statement with the whole line for its text; systemd reads one without its blanks."""
    source = find_source(at.path, facts)
    return find_row(at, source.text if source else "")


def find_source(path: str, facts: UnitFacts) -> Source | None:
    """Return a file of a unit or of its manager."""
    files = facts.files
    mains = [one for one in (files.main, files.manager) if one]
    sources = (*mains, *files.dropins, *files.manager_dropins)
    return next((one for one in sources if one.path == path), None)


def state(text: str, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """State a limit in a drop-in of the unit, or of its manager, that sorts after all others."""
    if facts.defaults_of:
        return _state_default(f"Default{text}", facts)
    path = find_site_file(facts)
    section = SECTIONS.get(facts.name.rpartition(".")[2], "Service")
    old = next((one.text for one in facts.files.dropins if one.path == path), "")
    added = f"{old}\n[{section}]\n{text}\n"
    kept = tuple(one for one in facts.files.dropins if one.path != path)
    files = facts.files._replace(dropins=(Source(path, added), *kept))
    return add_lines(path, section, text), facts._replace(files=files)


def _state_default(text: str, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """State what services get that state nothing, in a drop-in of their manager."""
    known = facts.files.manager_dropins
    path = pick_site_file(f"/etc/systemd/{facts.defaults_of}.d", known)
    old = next((one.text for one in known if one.path == path), "")
    added = Source(path, f"{old}\n[Manager]\n{text}\n")
    kept = tuple(one for one in known if one.path != path)
    files = facts.files._replace(manager_dropins=(added, *kept))
    return add_lines(path, "Manager", text), facts._replace(files=files)


def add_lines(path: str, section: str, text: str) -> Remedy:
    """Return the remedy that adds a line to a file, with the header of its section."""
    folder = path.rpartition("/")[0]
    printed = shlex.quote(f"\\n[{section}]\\n{text}\\n")
    commands = (("mkdir", "-p", folder), ("sh", "-c", f"printf {printed} >> {shlex.quote(path)}"))
    return Remedy(f'state "{text}" in {path}', commands if folder.isprintable() else ())


def find_site_file(facts: UnitFacts) -> str:
    """Return the drop-in of ours: no other of the unit may sort after it, or hide it."""
    return pick_site_file(f"{facts.folder}/{facts.name}.d", facts.files.dropins)


def pick_site_file(folder: str, dropins: Sequence[Source]) -> str:
    """Return a file of this folder that sorts after all drop-ins and that none hides."""
    others = [
        source.path.rpartition("/")[2]
        for source in dropins
        if source.path.rpartition("/")[0] != folder
    ]
    last = max((one.path.rpartition("/")[2] for one in dropins), default="")
    free = (name for name in _NAMES if name >= last and name not in others)
    return f"{folder}/{next(free, f'{last[:-5]}z-site.conf')}"


def remove(path: str, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """Remove a file that hides another."""
    files = facts.files
    facts = facts._replace(
        files=files._replace(
            dropins=_without(path, files.dropins),
            manager_dropins=_without(path, files.manager_dropins),
        )
    )
    commands = (("rm", path),) if path.isprintable() else ()
    return Remedy(f"remove {path}", commands), facts


def move(source: Source, path: str, facts: UnitFacts) -> tuple[Remedy, UnitFacts]:
    """Give a file the name under which systemd reads it."""
    moved, files = Source(path, source.text), facts.files
    strays = tuple(one for one in files.strays if one.source.path != source.path)
    if ".conf.d/" in path:
        dropins = (moved, *files.manager_dropins)
        files = files._replace(manager_dropins=dropins, strays=strays)
    else:
        files = files._replace(dropins=(moved, *files.dropins), strays=strays)
    folder = path.rpartition("/")[0]
    commands = (("mkdir", "-p", folder), ("mv", "-nT", source.path, path))
    same = source.path.rpartition("/")[0] == folder
    remedy = Remedy(f"move it to {path}", commands[same:] if source.path.isprintable() else ())
    return remedy, facts._replace(files=files)


def _without(path: str, sources: Iterable[Source]) -> tuple[Source, ...]:
    return tuple(source for source in sources if source.path != path)


def _edit(facts: UnitFacts, path: str, lines: dict[int, str]) -> UnitFacts:
    """Return the facts with other texts in the place of some lines of a file."""
    files: Files = facts.files
    return facts._replace(
        files=files._replace(
            main=files.main and _edit_source(files.main, path, lines),
            manager=files.manager and _edit_source(files.manager, path, lines),
            dropins=tuple(_edit_source(one, path, lines) for one in files.dropins),
            manager_dropins=tuple(_edit_source(one, path, lines) for one in files.manager_dropins),
        )
    )


def _edit_source(source: Source, path: str, lines: dict[int, str]) -> Source:
    if source.path != path:
        return source
    rows = source.text.split("\n")
    for number, line in lines.items():
        rows[number - 1] = line
    return Source(path, "\n".join(rows))
