# SPDX-License-Identifier: BSD-2-Clause
"""Change text without touching what is not ours: a marked block, and lines made ineffective."""

from __future__ import annotations

from .values import NamedTuple

HEADER = "# Managed by mlhost.limits: changes made here are overwritten."
OURS = "mlhost.limits writes that file: provision again rather than edit it"
"""What is said of such a file where a line of it is at fault."""
_BEGIN = "# BEGIN mlhost.limits"
_BEGIN_GLUED = "# BEGIN mlhost.limits (the line before had no line end)"
_BEGIN_CREATED = "# BEGIN mlhost.limits (there was no such file)"
_BEGINS = (_BEGIN, _BEGIN_GLUED, _BEGIN_CREATED)
_END = "# END mlhost.limits"
_NEUTRAL = "#mlhost.limits# "


class Edit(NamedTuple):
    """The change of one file, as bytes; ``None`` for a file that is not there.

    ``kind`` is ``json`` or ``lines`` where the content may hold credentials, so that a diff must
    be redacted;
    ``hidden``, that a diff shows nothing of it; ``with_folder``, that its folder goes with it where
    nothing else is left there.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644
    kind: str = ""
    hidden: bool = False
    with_folder: bool = False

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def of_others(self) -> bool:
        """Tell whether the file holds what somebody else wrote."""
        return self.before is not None and not self.before.startswith(HEADER.encode("ascii"))


def set_block(text: str | None, lines: list[str], path: str) -> str | None:
    """Return *text* with our block holding *lines*, where it stood or at the end.

    :param text: ``None`` for a file that is not there.
    :raises ValueError: If a marker stands alone, so that the block's extent is unknown.
    """
    plain = None if text is None else remove_block(text, path)
    if not lines:
        return plain
    block = "\n".join([_begin(plain), *lines, _END]) + "\n"
    return (plain or "") + block if plain == text else _replace_in_place(text or "", block)


def _begin(plain: str | None) -> str:
    """Return the block's first line, which tells what stood before it."""
    if plain is None:
        return _BEGIN_CREATED
    return _BEGIN if plain.endswith("\n") or not plain else f"\n{_BEGIN_GLUED}"


def _replace_in_place(text: str, block: str) -> str:
    """Put a new block where the old one stands, so that lines after it keep their order."""
    start, end = _find_block(text.split("\n"))
    rows = text.split("\n")
    own = block.lstrip("\n").rstrip("\n").split("\n")
    own[0] = rows[start]
    return "\n".join(rows[:start] + own + rows[end + 1 :])


def remove_block(text: str, path: str) -> str | None:
    """Return *text* as it was before :func:`set_block`, byte for byte.

    :returns: ``None`` where there was no such file and nobody added to it since.
    :raises ValueError: If a marker stands alone.
    """
    rows = text.split("\n")
    markers = [row for row in rows if row.rstrip("\r") in (*_BEGINS, _END)]
    if not markers:
        return text
    if len(markers) != 2 or markers[1].rstrip("\r") != _END:
        raise ValueError(f"{path}: {_BEGIN!r} and {_END!r} must stand there once each, in order")
    start, end = _find_block(rows)
    glued = rows[start].rstrip("\r") == _BEGIN_GLUED
    before, after = "\n".join(rows[:start]), "\n".join(rows[end + 1 :])
    if not glued and start:
        before += "\n"
    left = before + ("\n" + after if glued and after else after)
    return None if not left and rows[start].rstrip("\r") == _BEGIN_CREATED else left


def find_block_lines(text: str) -> range:
    """Return the numbers of our block's lines, counted from 1; empty where there is none."""
    rows = text.split("\n")
    if not any(row.rstrip("\r") in _BEGINS for row in rows):
        return range(0)
    start, end = _find_block(rows)
    return range(start + 1, end + 2)


def _find_block(rows: list[str]) -> tuple[int, int]:
    plain = [row.rstrip("\r") for row in rows]
    start = next(i for i, row in enumerate(plain) if row in _BEGINS)
    return start, plain.index(_END)


def neutralize(text: str, numbers: set[int]) -> str:
    """Return *text* with these lines (counted from 1) made comments that remember themselves."""
    return "\n".join(
        _NEUTRAL + row if number in numbers else row
        for number, row in enumerate(text.split("\n"), start=1)
    )


def restore(text: str) -> str:
    """Return *text* with every neutralized line effective again."""
    return "\n".join(
        row[len(_NEUTRAL) :] if row.startswith(_NEUTRAL) else row for row in text.split("\n")
    )


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
