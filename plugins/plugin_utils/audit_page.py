# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one page of a fleet that opens from disk: styles, script and data are in it."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..module_utils.core.quote import clean_all
from ..module_utils.fleet_fixes import plan_fixes
from ..module_utils.fleet_formats import ALONE
from .audit_data import gather
from .audit_words import (
    describe_bar,
    describe_causes,
    describe_changes,
    describe_fixes,
    format_time,
    name_plan,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..module_utils.fleet_formats import Beside
    from ..module_utils.fleet_view import Fleet

_PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
_SCRIPTS = ("audit.js", "audit_views.js")


class PageText:
    """The page; all of it is written at the end, because its causes are counted over all hosts."""

    def __init__(self, title: str, written: str, beside: Beside = ALONE) -> None:
        self._title, self._written, self._beside = title, written, beside

    def start(self) -> str:
        return ""

    def add(self, host: object) -> str:
        del host
        return ""

    def finish(self, fleet: Fleet) -> str:
        """Return the page."""
        loader = FileSystemLoader(str(_PLAYBOOKS / "templates"))
        room = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        parts = [(_PLAYBOOKS / "files" / name).read_text() for name in _SCRIPTS]
        script = f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n'
        style = (_PLAYBOOKS / "files" / "audit.css").read_text()
        groups, plan = fleet.rank_causes(), plan_fixes(fleet)
        told = {
            "title": self._title,
            "written": format_time(self._written),
            "counts": fleet.count_hosts(),
            "plan": name_plan(fleet, plan),
            "bar": describe_bar(fleet),
            "fixes": describe_fixes(fleet, plan, self._beside),
            "causes": describe_causes(fleet, groups, plan),
            "changes": describe_changes(self._beside.compare(fleet)),
        }
        return room.get_template("audit.html.j2").render(
            {key: clean_all(value) for key, value in told.items()},
            script=script,
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            data=_embed(clean_all(gather(fleet, groups, plan))),
        )


def _hash(text: str) -> str:
    """Return what a content security policy names an element by."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _embed(data: object) -> str:
    """Return data as JSON that no text of a host can break out of."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
