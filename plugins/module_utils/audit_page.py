# SPDX-License-Identifier: BSD-2-Clause
"""Make one page of a fleet that opens from disk: styles, script and data are in it."""

from __future__ import annotations

import base64
import hashlib
import json
import pkgutil

from .audit_data import gather
from .audit_template import fill_template
from .audit_words import (
    describe_bar,
    describe_causes,
    describe_changes,
    describe_fixes,
    format_time,
    name_plan,
)
from .core.quote import clean_all
from .fleet_fixes import plan_fixes
from .fleet_formats import ALONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fleet_formats import Beside
    from .fleet_view import Fleet

_TEMPLATE = "audit.html.j2"
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
        script = f'"use strict";\n(() => {{\n{"".join(map(_read, _SCRIPTS))}}})();\n'
        style = _read("audit.css")
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
        values = {
            **{key: clean_all(value) for key, value in told.items()},
            "script": script,
            "style": style,
            "script_hash": _hash(script),
            "style_hash": _hash(style),
            "data": _embed(clean_all(gather(fleet, groups, plan))),
        }
        return fill_template(_read(_TEMPLATE), _TEMPLATE, values)


def _read(name: str) -> str:
    """Return a file of the page, which lies beside this one, or in the same archive."""
    content = pkgutil.get_data(__package__ or "", f"page/{name}")
    return (content or b"").decode("utf-8")


def _hash(text: str) -> str:
    """Return what a content security policy names an element by."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _embed(data: object) -> str:
    """Return data as JSON that no text of a host can break out of."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
