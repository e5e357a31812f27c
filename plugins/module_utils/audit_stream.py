# SPDX-License-Identifier: BSD-2-Clause
"""Split a stream of JSON documents, one behind the other, into each of them; garbage ends none."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, NoReturn, Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

Document = Tuple[Any, str]
"""What was read, and what is wrong with it; one of the two."""

NO_MEMORY = "needs more memory than there is"
_CHUNK = 2**20
_SPACE = " \t\r\n"
_NEXT = "\n{"
"""Where a document begins behind one that is garbled: no string of JSON holds a bare newline."""


def split_documents(stream: BinaryIO, most: int) -> Iterator[Document]:
    """Yield every document of a stream, or the sentence why it is not one.

    They may stand on a line each, over many lines, or directly behind each other. What is garbled
    ends where the next line begins with a brace. No more than three times ``most`` is held.

    :param most: Characters that one document may have.
    """
    splitter = _Splitter(most)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        chunk = stream.read(_CHUNK)
        yield from splitter.take(decoder.decode(chunk, not chunk), is_end=not chunk)
        if not chunk:
            return


def _refuse_constant(name: str) -> NoReturn:
    raise _NumberError(f"{name} is not a number of JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _NumberError("a number is too large")
    return value


class _NumberError(ValueError):
    """A number that is not one, or that another reader of JSON would not take."""


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_read_float)
"""Reads JSON, and no number that a report could not hold."""


def say_trouble(exc: Exception) -> str:
    """Return what keeps a text from being read by the decoder."""
    if isinstance(exc, RecursionError):
        return "it is too deep"
    # What int() says of many digits is for nobody.
    is_ours = isinstance(exc, (_NumberError, json.JSONDecodeError))
    return str(exc) if is_ours else "a number has too many digits"


class _Splitter:
    """What was read and is not yet told."""

    def __init__(self, most: int) -> None:
        self._most, self._text, self._tried = most, "", 0
        self._is_lost = False  # All is skipped up to the next document.
        self._decode = DECODER.raw_decode

    def take(self, text: str, is_end: bool) -> Iterator[Document]:
        """Take in what comes next, and yield what is whole by now."""
        self._text += text
        if len(self._text) < 2 * self._tried and not is_end and _NEXT not in text:
            return  # Each try costs as much as all that there is.
        at, self._tried = 0, 0
        while True:
            if self._is_lost:
                at = self._find_next(at)
            while at < len(self._text) and self._text[at] in _SPACE:
                at += 1
            if self._is_lost or at == len(self._text):
                break
            value, problem, end = self._read(at)
            if problem and not is_end and self._may_go_on(at):
                self._tried = len(self._text) - at
                break
            at, self._is_lost = end, bool(problem)
            yield value, problem
        self._text = self._text[at:]

    def _may_go_on(self, at: int) -> bool:
        """Tell whether a document that cannot be read may be the first half of one that can."""
        return len(self._text) - at <= self._most and self._text.find(_NEXT, at) < 0

    def _read(self, at: int) -> tuple[Any, str, int]:
        """Return a document that is no longer than it may be, what is wrong, and its end."""
        try:
            value, end = self._decode(self._text, at)
        except MemoryError:
            return None, NO_MEMORY, at + 1
        except (RecursionError, ValueError) as exc:
            if len(self._text) - at <= self._most or isinstance(exc, RecursionError):
                return None, f"is not JSON: {getattr(exc, 'msg', say_trouble(exc))}", at + 1
            end = at + self._most + 1
        if end - at > self._most:
            return None, f"is larger than {self._most // 2**20} MiB", at + 1
        return value, "", end

    def _find_next(self, at: int) -> int:
        """Return where the next document begins, and if there is none yet, where to look on."""
        found = self._text.find(_NEXT, at - 1 if at else 0)
        self._is_lost = found < 0
        return found + 1 if found >= 0 else max(at, len(self._text) - 1)
