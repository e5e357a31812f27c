# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one page of a fleet that opens from disk: styles, script and data are in it."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from shlex import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..module_utils.core.quote import clean, clean_all
from ..module_utils.fleet import HOST_STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..module_utils.fleet_view import CauseGroup, Fleet

_PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
_NAMED = 50
"""Hosts named below a cause; the heat map shows them all."""


class PageText:
    """The page; all of it is written at the end, because its causes are counted over all hosts."""

    def __init__(self, title: str, written: str) -> None:
        self._title, self._written = title, written

    def start(self) -> str:
        return ""

    def add(self, host: object) -> str:
        del host
        return ""

    def finish(self, fleet: Fleet) -> str:
        """Return the page."""
        folder = _PLAYBOOKS / "templates"
        loader = FileSystemLoader(str(folder))
        room = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        script = (_PLAYBOOKS / "files" / "audit.js").read_text()
        style = (_PLAYBOOKS / "files" / "audit.css").read_text()
        groups = fleet.rank_causes()
        return room.get_template("audit.html.j2").render(
            title=clean(self._title),
            written=clean(self._written),
            counts=fleet.count_hosts(),
            total=len(fleet.rows),
            causes=clean_all([_describe(group, fleet) for group in groups]),
            script=script,
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            data=_embed(clean_all(_gather(fleet, groups))),
        )


def _hash(text: str) -> str:
    """Return what a content security policy names an element by."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _embed(data: object) -> str:
    """Return data as JSON that no text of a host can break out of."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _describe(group: CauseGroup, fleet: Fleet) -> dict[str, object]:
    """Return a cause as the template shows it."""
    remedy = group.sample.get("remedy")
    shadows = group.sample.get("shadows")
    names = [fleet.rows[index].host.name for index in group.hosts]
    return {
        "code": group.code,
        "text": group.sample["text"],
        "at": _locate(group.sample.get("at")),
        "shadows": list(map(_locate, shadows if isinstance(shadows, list) else [])),
        "writer": group.sample.get("writer") or "",
        "remedy": _pick(remedy, "text", "then"),
        "commands": list(_list_commands(remedy)),
        "statuses": dict(group.statuses),
        "count": len(names),
        "names": names[:_NAMED],
    }


def _locate(line: object) -> dict[str, str]:
    """Return a declaration as the template shows it, nothing where there is none."""
    return _pick(line, "file", "line", "text") if isinstance(line, dict) else {}


def _pick(data: object, *keys: str) -> dict[str, str]:
    given = data if isinstance(data, dict) else {}
    return {key: str(given.get(key) or "") for key in keys}


def _list_commands(remedy: object) -> Iterator[str]:
    """Yield the commands of a remedy as they are typed into a shell."""
    commands = remedy.get("commands") if isinstance(remedy, dict) else None
    for command in commands if isinstance(commands, list) else []:
        words = list(map(str, command if isinstance(command, list) else [command]))
        is_script = words[:2] == ["sh", "-c"] and len(words) == 3
        yield words[2] if is_script else " ".join(map(quote, words))


def _gather(fleet: Fleet, ranked: list[CauseGroup]) -> dict[str, object]:
    """Return the data of the script: texts once each, and numbers that point to them."""
    texts: dict[str, int] = {}

    def number(text: object) -> int:
        return texts.setdefault(str(text), len(texts))

    order = fleet.order_columns()
    rank = {id(group): place for place, group in enumerate(ranked)}
    groups = sorted({name for row in fleet.rows for name in row.host.groups})
    findings = [
        [*(number(value) if value is not None else -1 for value in finding.values()), list(causes)]
        for finding, causes in zip(fleet.findings, fleet.causes_of)
    ]
    causes = [
        [rank[id(fleet.groups[group])], number(json.dumps(clean_all(cause)))]
        for cause, group in zip(fleet.causes, fleet.group_of)
    ]
    return {
        "statuses": list(HOST_STATUSES),
        "columns": [list(fleet.columns[column]) for column in order],
        "groups": groups,
        "findings": findings,
        "causes": causes,
        "cause_hosts": [list(group.hosts) for group in ranked],
        "hosts": list(_list_hosts(fleet, order, groups, number)),
        "drift": _describe_drift(fleet, order),
        "texts": list(texts),
    }


def _list_hosts(
    fleet: Fleet, order: list[int], groups: list[str], number: Callable[[object], int]
) -> Iterator[list[object]]:
    """Yield each host with its status, groups, texts and cells."""
    places = {name: place for place, name in enumerate(groups)}
    for row in fleet.rows:
        host = row.host
        yield [
            host.name,
            HOST_STATUSES.index(row.status),
            [places[name] for name in host.groups],
            *(number(text) for text in (host.reason, host.measured, host.note)),
            [_cell(row.cells, column) for column in order],
        ]


def _cell(cells: Any, column: int) -> object:
    """Return a finding's number, a list of several, or 0 for none; numbers begin at 1."""
    found = cells[column] if column < len(cells) else ()
    return [number + 1 for number in found] if len(found) > 1 else found[0] + 1 if found else 0


def _describe_drift(fleet: Fleet, order: list[int]) -> list[object]:
    return [
        [order.index(one.column), one.usual, one.hosts, sorted(one.others.items())]
        for one in fleet.find_drift()
    ]
