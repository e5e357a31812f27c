# SPDX-License-Identifier: BSD-2-Clause
"""Split the text of a shell into commands, and those into words; quotes are minded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_SEPARATORS = ";&|"
_JOINED = re.compile(r"[0-9]?>&[0-9]|&>{1,2}")
_KEYWORDS = ("if", "then", "else", "elif", "do", "while", "until", "!", "{", "(", "time", "set")
_SUBSTITUTED = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")
_UNKNOWN, _ALL_GPUS = "$(...)", "auto"
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
        return _ALL_GPUS if re.search("nvidia-smi|device_count", match[0]) else _UNKNOWN

    return _SUBSTITUTED.sub(replace, text)


def split_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a text.

    :raises ValueError: If a quotation does not end.
    """
    plain = text.replace("\\\n", " ")
    lexer = shlex.shlex(_JOINED.sub(" ", plain), posix=True, punctuation_chars=_SEPARATORS + "\n")
    lexer.whitespace_split, lexer.commenters, lexer.whitespace = True, "", " \t\r"
    words: list[str] = []
    for word in lexer:
        if not word or word.strip(_SEPARATORS + "\n"):
            words.append(word)
            continue
        yield _skip_keywords(words)
        words = []
    yield _skip_keywords(words)


def _skip_keywords(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at] in _KEYWORDS:
        at += 1
    return words[at:]
