# SPDX-License-Identifier: BSD-2-Clause
"""Split the text of a shell into commands, and those into words; quotes are minded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_SEPARATORS = ";&|"
_JOINED = re.compile(r"[0-9]?>&[0-9]|&>{1,2}|>&(?=\s*[\w./~$\"'-])")
_KEYWORDS = ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "(", "time", "set")
_SUBSTITUTED = re.compile(r"\$\((?!\()(?:[^()]|\([^()]*\))*\)|`[^`]*`")
_UNKNOWN, _ALL_GPUS = "$(...)", "auto"
_SEQ = re.compile(r"[$`]\(?seq\s+(?:(\d{1,6})\s+)?(\d{1,6})[)`]")
_COUNTED = re.compile(
    r"\bfor\s*\(\(\s*(\w+)\s*=\s*(\d{1,6})\s*;\s*\w+\s*(<=?)\s*(\d{1,6})\s*;\s*\w+\+\+\s*\)\)"
)
_MOST_COUNTED = 256
"""What stands where only the shell that runs it will know, and where it counts the GPUs."""


def strip_comments(text: str) -> str:
    """Return a text without what follows a ``#`` that begins a word outside of quotes."""
    kept, quote, at = [], "", 0
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            kept.append(text[at : at + 2])
            at += 2
            continue
        if char == "#" and not quote and (at == 0 or text[at - 1].isspace()):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        if char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        kept.append(char)
        at += 1
    return "".join(kept)


def replace_substituted(text: str) -> str:
    """Return a text with a mark in place of each command whose output stands there."""

    def replace(match: re.Match[str]) -> str:
        counted = _SEQ.fullmatch(match[0])
        if counted:
            return _count_up(counted[1] or "1", counted[2])
        if re.match(r"\$\(\s*jobs\b", match[0]):
            return "$(jobs)"
        if re.fullmatch(r"[$`]\(?\s*ulimit -H[a-z]\s*[)`]", match[0]):
            return "hard"
        return _ALL_GPUS if re.search("nvidia-smi|device_count", match[0]) else _UNKNOWN

    counted = _COUNTED.sub(_count_loop, text)
    return _SUBSTITUTED.sub(replace, counted)


def _count_loop(match: re.Match[str]) -> str:
    last = int(match[4]) - (match[3] == "<")
    return f"for {match[1]} in {_count_up(match[2], str(last))};"


def _count_up(first: str, last: str) -> str:
    """Return the numbers that ``seq`` prints; of very many a mark."""
    numbers = range(int(first), int(last) + 1)
    return " ".join(map(str, numbers)) if len(numbers) <= _MOST_COUNTED else _UNKNOWN


def split_ended(text: str) -> list[tuple[list[str], str]]:
    """Return the words of each command of a text with what ends it, such as ``&``, or its pipe.

    :raises ValueError: If a quotation does not end.
    """
    commands, end = [], ""
    for words, ended in reversed(list(_split(text))):
        end = end if ended in ("|", "|&") else ended
        commands.append((words, end))
    return commands[::-1]


def _split(text: str) -> Iterator[tuple[list[str], str]]:
    plain = text.replace("\\\n", " ")
    lexer = shlex.shlex(_JOINED.sub(" ", plain), posix=True, punctuation_chars=_SEPARATORS + "\n")
    lexer.whitespace_split, lexer.commenters, lexer.whitespace = True, "", " \t\r"
    words: list[str] = []
    for word in lexer:
        if not word or word.strip(_SEPARATORS + "\n"):
            words.append(word)
            continue
        yield words, word.strip("\n")
        words = []
    yield words, ""


def _leave_group(words: list[str]) -> list[str]:
    """Return a command without the brackets around it: ``(cd a; python b.py)``."""
    words = list(words)
    while words and words[0].startswith("(") and not words[0].startswith("(("):
        words[:1] = [words[0][1:]] if words[0] != "(" else []
    if words and words[-1].count(")") > words[-1].count("("):
        words[-1] = words[-1][:-1] if words[-1].endswith(")") else words[-1]
    return words


def skip_keywords(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at] in _KEYWORDS:
        at += 1
    return _leave_group(words[at:])
