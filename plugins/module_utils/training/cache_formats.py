# SPDX-License-Identifier: BSD-2-Clause
"""Tell from a few bytes whether files of data are whole: numpy, Parquet, Arrow, lines of JSON.

Sources: numpy.lib.format, the specifications of Apache Parquet and of Arrow's IPC formats.
"""

from __future__ import annotations

import json
import re

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

_NUMPY = b"\x93NUMPY"
_PICKLE = b"\x80"
_HEADER = re.compile(r"'descr': *'[<>|=]?([a-zA-Z])([0-9]*)(?:\[[^]]*\])?'")
_SHAPE = re.compile(r"'shape': *\(([0-9, ]*)\)")
_LARGEST_HEADER = 2**20
_WIDE = {"U": 4}  # Bytes of a character; of all else the type states bytes.


def check_npy(read: Read, size: int) -> Verdict:
    """Return whether a file holds as many numbers as its header states."""
    if size == 0:
        return EMPTY
    head = read(0, 12)
    if not head.startswith(_NUMPY):
        if _NUMPY.startswith(head):
            return Verdict(CORRUPT, "ends within its header")
        if head[:1] == _PICKLE:
            return Verdict(UNSEEN, "has the name of an array and is a pickle")
        return Verdict(CORRUPT, "does not begin like a numpy array")
    start, width = (10, 2) if head[6:7] == b"\1" else (12, 4)
    length = read_number(head, 8, width)
    header = read(start, min(length, _LARGEST_HEADER)).decode("latin-1")
    if size < start + length:
        return Verdict(CORRUPT, "ends within its header")
    kind, shape = _HEADER.search(header), _SHAPE.search(header)
    if not kind or not shape or kind[1] == "O":
        return Verdict(UNSEEN, "holds values whose size its header does not state")
    return _compare(size, start + length + _count_bytes(kind[1], kind[2], shape[1]))


_DIGITS = 20  # No file is as large, and long numbers take long to read.


def _count_bytes(kind: str, width: str, shape: str) -> int:
    number = int(width or 1) * _WIDE.get(kind, 1)
    for part in shape.replace(" ", "").split(","):
        number *= int(part or 1) if len(part) < _DIGITS else 10**_DIGITS
    return number


def _compare(size: int, stated: int) -> Verdict:
    if size < stated:
        return Verdict(CORRUPT, f"has {size} bytes, and its header states {stated}")
    return Verdict(SOUND)


_PARQUET = (b"PAR1", b"PARE")
_ENDS_EARLY = "does not end as its format requires: it is cut short"


def check_parquet(read: Read, size: int) -> Verdict:
    """Return whether a file has its footer, which is written last."""
    if size == 0:
        return EMPTY
    tail = read(size - 8, 8) if size >= 12 else b""
    if read(0, 4) not in _PARQUET or tail[4:] not in _PARQUET:
        return Verdict(CORRUPT, _ENDS_EARLY)
    if read_number(tail, 0, 4) + 12 > size:
        return Verdict(CORRUPT, "states a footer that is longer than the file")
    return Verdict(SOUND)


_ARROW_FILE = b"ARROW1"
_MORE = b"\xff\xff\xff\xff"  # Before the length of a message, since Arrow 0.15.
_MOST_MESSAGES = 20_000
_NO_MARK = "has no end mark; more may be missing"


def check_arrow(read: Read, size: int) -> Verdict:
    """Return whether a file, or a stream as datasets writes it, is there to its end."""
    if size == 0:
        return EMPTY
    if read(0, 6) != _ARROW_FILE:
        return _check_stream(read, size)
    tail = read(size - 10, 10) if size >= 18 else b""
    if tail[4:] != _ARROW_FILE:
        return Verdict(CORRUPT, _ENDS_EARLY)
    if read_number(tail, 0, 4) + 18 > size:
        return Verdict(CORRUPT, "states a footer that is longer than the file")
    return Verdict(SOUND)


def _check_stream(read: Read, size: int) -> Verdict:
    """Step from message to message: each states how long it and its body are."""
    at = 0
    for _message in range(_MOST_MESSAGES):
        if at == size:
            return Verdict(UNSEEN, _NO_MARK)
        head = read(at, 8)
        if head[:4] != _MORE:
            return Verdict(CORRUPT, f"holds no message at byte {at}") if at else _tell_start(head)
        length = read_number(head, 4, 4)
        if len(head) < 8:
            return Verdict(CORRUPT, "ends within a message")
        if not length:
            return Verdict(SOUND)
        at += 8 + length + _find_body(read(at + 8, min(length, _LARGEST_HEADER)))
        if at > size:
            return Verdict(CORRUPT, "ends within a message")
    return Verdict(UNSEEN, f"has more than {_MOST_MESSAGES} messages")


def _tell_start(head: bytes) -> Verdict:
    if not head.strip(b"\0") or _MORE.startswith(head) or _ARROW_FILE.startswith(head):
        return Verdict(CORRUPT, "holds no message")
    return Verdict(UNSEEN, "is not of a known Arrow format")


_BODY = 4 + 2 * 3  # Where the table of a Message has the place of bodyLength (Message.fbs).


def _find_body(message: bytes) -> int:
    """Return the length of a message's body, out of its flatbuffer."""
    root = read_number(message, 0, 4)
    table = root - int.from_bytes(message[root : root + 4], "little", signed=True)
    if table < 0 or read_number(message, table, 2) <= _BODY:
        return 0
    at = read_number(message, table + _BODY, 2)
    return read_number(message, root + at, 8) if at else 0


_MARK = b"\xef\xbb\xbf"  # Of UTF-8, where a file of one line begins with it.
_LONGEST_LINE = 2**20


def check_jsonl(read: Read, size: int) -> Verdict:
    """Return whether the last line is JSON: what cuts a file short leaves part of one."""
    if size == 0:
        return Verdict(SOUND)  # It holds no line.
    start = max(0, size - _LONGEST_LINE)
    tail = read(start, size - start).rstrip(b"\r\n \t")
    line = tail[tail.rfind(b"\n") + 1 :]
    if not tail.strip(b"\0"):
        return Verdict(CORRUPT, "ends in zeros") if tail else Verdict(SOUND)
    if start and len(line) == len(tail):
        return Verdict(UNSEEN, "has a last line of more than 1 MiB")
    try:
        json.loads((line[len(_MARK) :] if line.startswith(_MARK) else line).decode("utf-8"))
    except (ValueError, RecursionError):
        return Verdict(CORRUPT, "has a last line that is not JSON: it is cut short")
    return Verdict(SOUND)
