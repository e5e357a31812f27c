# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a line has sysctl(8) read: the files of every boot, or what its script makes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from .boot_calls import CALL, LOADS, list_loaded
from .boot_changes import find_change
from .boot_units import is_doubtful
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES

FILES, GIVEN, OTHERS = "files", "given", "others"
"""The files that a boot reads; a text of the script itself; what only its source tells."""

_STDIN = r"\s(?:-[a-eg-oq-z]*[pf]|--load[= ])\s*[\"']?(?:-(?![\w-])|/dev/stdin|<\()"
_SAYS = r"\b(?:echo|printf)\b|<<"
_MADE = r"(?:>|\btee\b(?:[ \t]+-a)?)[ \t]*[\"']?(/(?!dev/|proc/)[\w./+@-]+)"
_NAMED = r"/[\w./+@-]+"
_MOST_MADE = 50
_APPLIES = r"/systemd-sysctl(?:[\"']|\s+--strict)?\s*(?:$|[;&|#)]|\d?>)"


def find_made(text: str) -> list[str]:
    """Return the files that a script writes to."""
    return list(dict.fromkeys(re.findall(_MADE, text)))[:_MOST_MADE]


def judge_loads(line: str, text: str, texts: Mapping[str, str]) -> str:
    """Return what a line of a script has read that is not among these texts, or nothing."""
    if not (re.search(LOADS, line) or "systemd-sysctl" in line or "procps" in line):
        return ""
    calls = (call for call in re.findall(CALL, line) if re.search(LOADS, call))
    found = next(filter(None, (_judge_call(call, line, text, texts) for call in calls)), "")
    verbs = _find_verbs(line)
    if not found and (re.search(_APPLIES, line) or "restart" in verbs):
        found = FILES
    return OTHERS if (found == FILES or verbs) and find_change(text) else found


def _find_verbs(line: str) -> set[str]:
    """Return what a line has systemctl(1) or service(8) do with what applies the files."""
    words = [re.findall(r"[\w.-]+", part) for part in re.split("[;&|]", line)]
    return {
        "restart" if one.endswith("restart") else "start"
        for part in words
        if any(name.split(".")[0] in ("systemd-sysctl", "procps") for name in part)
        for one in part
        if one.endswith("start") and not {"systemctl", "service", "procps"}.isdisjoint(part)
    }


def _judge_call(call: str, line: str, text: str, texts: Mapping[str, str]) -> str:
    if re.search(_STDIN, call):
        if re.search(r"(?<!<)<\s*[^<(\s]", call):
            return OTHERS
        return GIVEN if "|" not in line or re.search(_SAYS, text) else OTHERS
    named = list_loaded(call)
    others = [name for name in named if name not in texts]
    if any(is_doubtful(texts[name]) for name in named if name in texts):
        return OTHERS
    mentions = _find_mentions(text) if others else {}
    unread = [name for name in others if not _is_read_at_boot(name)]
    made = [name for name in unread if len(mentions.get(name, ())) > 1]
    if made:
        return GIVEN if all(_is_said(name, text) for name in made) else OTHERS
    return FILES if others or not named else ""


def _is_read_at_boot(path: str) -> bool:
    return path == SYSCTL_CONF or path.rpartition("/")[0] in SYSCTL_DIRECTORIES


@lru_cache(maxsize=2)
def _find_mentions(text: str) -> dict[str, list[str]]:
    """Return the lines that name a path, once for each time, by path."""
    found = defaultdict(list)
    for line in text.split("\n"):
        for name in re.findall(_NAMED, line):
            found[name].append(line)
    return dict(found)


@lru_cache(maxsize=64)
def _is_said(name: str, text: str) -> bool:
    """Tell whether a script itself has all that it writes to a file."""
    lines = _find_mentions(text)[name]
    writes = [line for line in lines if not re.search(rf"{LOADS}[^;&|]*{re.escape(name)}", line)]
    return all(re.search(_SAYS, line) for line in writes or lines)
