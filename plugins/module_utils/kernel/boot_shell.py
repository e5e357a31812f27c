# SPDX-License-Identifier: BSD-2-Clause
"""Read a line as a shell does: where a comment starts, which words are a command, what folder."""

from __future__ import annotations

import re

_SELF = r"(?:\$\{?0\}?|\$\{?BASH_SOURCE(?:\[0\])?\}?)"
_REAL = rf"\$\([ \t]*(?:readlink|realpath)[ \t]+(?:-\w+[ \t]+)*[\"']?{_SELF}[\"']?[ \t]*\)"
_DIRNAME = rf"dirname[ \t]+(?:--[ \t]+)?[\"']?(?:{_REAL}|{_SELF})[\"']?[ \t]*"
_OWN_FOLDER = rf"\$\([ \t]*{_DIRNAME}\)|`[ \t]*{_DIRNAME}`|\$\{{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}}"
_ENTERED = (
    r"\$\([ \t]*cd[ \t]+(?:-P[ \t]+|--[ \t]+)?[\"']?(/[\w./+@-]*)[\"']?[^()\n]*?"
    r"\bpwd(?:[ \t]+-\w)?[ \t]*\)"
)
_STATED = (
    r"(?m)(?:^|[;&])[ \t]*(?:(?:export|readonly|local|declare)[ \t]+(?:-\w+[ \t]+)?)?"
    r"(\w+)=[\"']?(/[\w./+@-]*)[\"']?[ \t\r]*(?=$|[;&#])"
)
_QUOTED_FOLDER = r"[\"'](/[\w./+@-]*)[\"'](?=/)"
_MOST_NAMES = 100
_NESTED = 3  # Variables that stand on others.
_BEFORE_COMMAND = (
    r"\S*=\S*|[-@:+!|]+|-\S+|@\w+|[\d*][\d*,/-]*|root|sudo|exec|nohup|nice|ionice|setsid|time"
    r"|timeout|env|command|eval|\.|source|if|then|else|elif|while|until|do|up|post-up|pre-up"
    r"|install|run-parts|(?:\S*/)?(?:(?:ba|da|k|z)?sh|python[\d.]*|perl|ruby)"
)
_PREFIX = r"^\s*Exec\w+\s*=\s*[-@:+!|]*|^.*\bRUN(?:\{\w+\})?\s*\+?=+"


def find_comment(line: str) -> int:
    """Return where the comment behind a command starts, or the end of the line."""
    quote = ""
    skips = False
    for at, char in enumerate(line if "#" in line else ""):
        if skips or (char == "\\" and quote != "'"):
            skips = not skips
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and (at == 0 or line[at - 1] in " \t;&|()"):
            # Of a text that is quoted over lines, the end is not known.
            return len(line) if line.count('"', at) % 2 else at
    return len(line)


def put_folders(path: str, text: str) -> str:
    """Return a script with plain folders in the place of its own and of variables that hold one."""
    if "$" not in text and "`" not in text:
        return text
    folder = path.rpartition("/")[0]
    text = re.sub(_OWN_FOLDER, lambda _found: folder, text)
    for _round in range(_NESTED):
        before = text
        text = re.sub(_ENTERED, lambda found: found[1], text)
        for name, value in list(dict(re.findall(_STATED, text)).items())[:_MOST_NAMES]:
            text = re.sub(rf"\$(?:{name}(?!\w)|\{{{name}\}})", value.rstrip("/"), text)
        text = re.sub(_QUOTED_FOLDER, r"\1", text)
        if text == before:
            break
    return text


def is_command(before: str) -> bool:
    """Tell whether what follows the start of a line is run by it as root, and not an argument."""
    words = re.sub(_PREFIX, " ", before.replace('"', " ").replace("'", " "))
    words = re.split(r"[;&|(){}`]", words)[-1]
    return all(re.fullmatch(_BEFORE_COMMAND, word) for word in words.split())
