# SPDX-License-Identifier: BSD-2-Clause
"""Write the command that changes one line of a file, and nothing where that is another line now.

A line is addressed by its number and by every byte of it, as ``sed -n l`` shows them (sed(1)): in
printable ASCII, whatever the line holds. So a shell never meets a byte that somebody else wrote.
"""

from __future__ import annotations

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Declaration

    Commands = tuple[tuple[str, ...], ...]

ROOTS = ("/etc/", "/run/systemd/", "/usr/local/")
"""Where every folder is root's, and nobody else can put a link in the way."""

_LONGEST = 500
_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_AS = ("env", "-i", "/sbin/runuser", "-P", "-u")
_TOLD = "has changed since the check, or cannot be written: nothing was done. Check again."


def edit_line(at: Declaration, script: str, user: str = "") -> Commands:
    """Return the command that applies a script of sed to one line; none where a person must.

    The file is left alone, with a sentence and another status than 0, unless the line is still what
    it was. A link to another file counts only where both are in one of root's folders.

    :param at: The statement, whose text is the whole line.
    :param script: What comes behind the number: ``s/^/# /``.
    :param user: Whose file it is; empty for one in a folder of root's.
    """
    row = show_row(at.text)
    if not at.line or not row or not at.path.isprintable() or not is_typed(script):
        return ()
    if user:
        return (_edit_as(user, at, row, f"{at.line}{script}"),) if at.path.isascii() else ()
    top = find_top(at.path)
    if not top:
        return ()
    same = f'[ "$(sed -n \'{at.line}l 0\' "$f")" = {shlex.quote(row)} ]'
    steps = (find_file(at.path, top), same, f'sed -i {shlex.quote(f"{at.line}{script}")} "$f"')
    return (("sh", "-c", " && ".join(steps) + refuse(at.place, _TOLD)),)


def edit_value(at: Declaration, old: str, new: str) -> Commands:
    """Return the command that replaces a part of a line; none in a file of a package.

    :param old: What stands there, once.
    """
    pattern = re.sub(r"([\\.*\[\]^$|])", r"\\\1", old)
    filling = re.sub(r"([\\&|])", r"\\\1", new)
    is_ours = at.path.startswith(("/etc/", "/usr/local/"))
    return edit_line(at, f"s|{pattern}|{filling}|") if is_ours else ()


def prepend(path: str, text: str) -> Commands:
    """Return the command that adds a line before all others of a file in a folder of root's."""
    top = find_top(path)
    if not top or not path.isprintable():
        return ()
    edit = f'{find_file(path, top)} && sed -i {shlex.quote(f"1i{chr(92)}{text}")} "$f"'
    return (("sh", "-c", edit + refuse(path, "is not a file there: nothing was done.")),)


def find_top(path: str) -> str:
    """Return which of root's folders a path is in; nothing where root must not edit it."""
    return next((folder for folder in ROOTS if path.startswith(folder)), "")


def find_file(path: str, top: str) -> str:
    """Return the shell's words that set ``f`` to a plain file below a folder, links followed."""
    return f'f=$(readlink -f {_quote(path)} | grep ^{top}) && [ -f "$f" ]'


def _quote(name: str) -> str:
    """Return a name for a shell in ASCII, whatever letters it has: so it is typed anywhere."""
    plain = name.replace("\\", r"\\").replace("%", "%%").encode("utf-8", "surrogateescape")
    shown = "".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in plain)
    return shlex.quote(name) if name.isascii() else f'"$(printf {shlex.quote(shown)})"'


def refuse(place: str, told: str) -> str:
    """Return the shell's words that say why nothing was done, with a status that is not 0.

    :param told: Plain words, without quotes, so that a report may break them.
    """
    return f" || ! echo {_quote(place)} {told} >&2"


def _edit_as(user: str, at: Declaration, row: str, script: str) -> tuple[str, ...]:
    """Return the command for a user's file, in which no link is followed."""
    same = f'[ "$(sed -n "{at.line}l 0" "$0")" = "$1" ]'
    steps = ('[ -f "$0" ]', '[ ! -L "$0" ]', same, 'sed -i "$2" "$0"')
    lines = " && ".join(steps) + f' || ! echo "$0:{at.line}" is a link, or {_TOLD} >&2'
    return as_user(user, ("sh", "-c", lines, at.path, row, script))


def as_user(user: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs as a user, with nothing of root's in its hands.

    Who it runs as may attach to it with ptrace(2), and so type into root's terminal, read what
    root types there, root's variables and root's keyring. So it has a terminal of its own
    (``-P``), no variables, and the session keyring that PAM makes for runuser.
    """
    if words[:2] == ("sh", "-c") and words[2].startswith(shlex.join(_AS)):
        return words
    return ("sh", "-c", f"{shlex.join((*_AS, user, '--', *words))} >&2")


def is_typed(text: str) -> bool:
    """Tell whether a text can be typed at any terminal."""
    return bool(text) and text.isascii() and text.isprintable()


def show_row(text: str) -> str:
    """Return a line as sed's ``l 0`` shows it; nothing where no command shall hold it.

    One that goes on in the next is not a whole statement; a very long one fits no terminal.

    :param text: The line, read as latin-1.
    """
    try:
        content = text.encode("latin-1")
    except UnicodeEncodeError:
        content = text.encode("utf-8", "surrogateescape")
    bare = content.rstrip(b" \t\r")
    goes_on = (len(bare) - len(bare.rstrip(b"\\"))) % 2
    if goes_on or b"\n" in content or not bare:
        return ""
    shown = "".join(_show_byte(byte) for byte in content) + "$"
    return shown if len(shown) <= _LONGEST else ""


def _show_byte(byte: int) -> str:
    if byte in _NAMED:
        return _NAMED[byte]
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def find_row(at: Declaration, text: str) -> Declaration:
    """Return a statement with the whole line for its text; without a line where that is not sure.

    :param text: The file, as latin-1. systemd ends lines where sed does not.
    """
    rows = text.split("\n")
    if not 0 < at.line <= len(rows) or re.search("\0|\n\r|\r(?!\n)", f"{text}\n"):
        return at._replace(line=0)
    return at._replace(text=rows[at.line - 1])


def write_row(text: str) -> str:
    """Return the script of sed that puts another text in the place of a line, backslashes too."""
    return "c\\" + text.replace("\\", "\\\\")
