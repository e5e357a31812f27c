# SPDX-License-Identifier: BSD-2-Clause
"""Show what a run changes, as a task's diff has it; what may be a secret is not shown."""

from __future__ import annotations

from .edit import Edit

_SECRET_FILES = ("/systemd/", "containers.conf", ".toml")  # They may hold an environment.


def show_edit(edit: Edit) -> dict[str, str]:
    """Return the change of a file."""
    before, after = (_show(content, edit) for content in (edit.before, edit.after))
    old, new = (
        edit.path if one is not None else f"{edit.path} (absent)"
        for one in (edit.before, edit.after)
    )
    return {"before": before, "after": after, "before_header": old, "after_header": new}


def show_change(what: str, before: str, after: str) -> dict[str, str]:
    """Return the change of something that runs, each state in a line."""
    lines = {"before": f"{before}\n", "after": f"{after}\n"}
    return {**lines, "before_header": what, "after_header": what}


def _show(content: bytes | None, edit: Edit) -> str:
    from .redaction import redact  # Only a change has something to show.
    from .redaction_json import redact_json

    if edit.hidden:
        return f"({len(content)} bytes, not shown)\n" if content else ""
    text = (content or b"").decode("utf-8", "backslashreplace")
    if edit.kind == "json":
        return redact_json(text)
    is_line_file = edit.kind or any(part in edit.path for part in _SECRET_FILES)
    return redact(text) if is_line_file else text
