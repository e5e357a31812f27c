# SPDX-License-Identifier: BSD-2-Clause
"""Read a pickle, or what torch.save wrote before 1.6, to its end, and make nothing of it.

Every class, and every function, that a pickle names is one that keeps nothing: no code of a file's
is run. Sources: the module pickletools, and ``_legacy_load()`` of torch/serialization.py.
"""

from __future__ import annotations

import pickle
import struct

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LARGEST = 16 * 2**20
"""Bytes of one pickle that are read; the tensors of torch lie behind it, and are stepped over."""

_CUT = Verdict(CORRUPT, "ends within a pickle: it is cut short")
_AT_ONCE = 2**16
_ENDS_EARLY = "exhausted before end of frame"
_NO_PICKLE = "holds no operation of a pickle:"
_WIDTHS = {
    **dict.fromkeys(("Byte", "Char", "Bool", "QUInt8", "QInt8", "Untyped"), 1),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Float", "Int", "QInt32"), 4),
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}
"""Bytes of a number in a storage, by the name of its class."""


class _Nothing:
    """Stands for whatever a pickle names; takes everything, and keeps nothing."""

    def __new__(cls, *_given: object, **_named: object) -> _Nothing:
        return object.__new__(cls)

    def __init__(self, *_given: object, **_named: object) -> None:
        """Take whatever comes."""

    def __call__(self, *_given: object, **_named: object) -> _Nothing:
        return self

    def __setstate__(self, _state: object) -> None:
        """Forget it."""

    def __setitem__(self, _key: object, _value: object) -> None:
        """Forget it."""

    def append(self, _one: object) -> None:
        """Forget it."""

    def extend(self, _some: object) -> None:
        """Forget it."""

    def add(self, _one: object) -> None:
        """Forget it."""


class _Operations(dict):  # type: ignore[type-arg]
    """The operations of a pickle, by their number."""

    def __missing__(self, key: int) -> object:
        raise pickle.UnpicklingError(f"{_NO_PICKLE} {key:#04x}")


def _load_bytes(reader: pickle._Unpickler) -> None:
    """Read bytes that may be changed. Python's own reader makes room for as many as a number says,
    before it looks whether they are there."""
    (size,) = struct.unpack("<Q", reader.read(8))  # type: ignore[attr-defined]
    reader.append(bytearray(reader.read(size)))  # type: ignore[attr-defined]


class _Reader(pickle._Unpickler):
    """Reads one pickle; ``widths`` are the bytes of a number in each storage, by its key.

    The reader that is written in Python takes no memory that a damaged number asks for.
    """

    dispatch = _Operations({**pickle._Unpickler.dispatch, pickle.BYTEARRAY8[0]: _load_bytes})

    def __init__(self, file: _File, widths: dict[str, int]) -> None:
        super().__init__(file)
        self._widths = widths

    def find_class(self, module: str, name: str) -> type:
        if module.startswith("joblib"):  # It puts bytes between, which are no part of the pickle.
            raise ValueError(module)
        return type(name, (_Nothing,), {}) if name.endswith("Storage") else _Nothing

    def persistent_load(self, pid: object) -> object:
        if isinstance(pid, tuple) and len(pid) > 2 and isinstance(pid[1], type):
            self._widths[str(pid[2])] = _WIDTHS.get(pid[1].__name__[: -len("Storage")], 0)
        return _Nothing()


class _File:
    """A file that is read by offsets, as one that has a position; it ends after so many bytes."""

    def __init__(self, read: Read, most: int) -> None:
        self._read, self._most = read, most
        self._start, self._held, self.at = 0, b"", 0

    def read(self, size: int) -> bytes:
        """Return so many bytes.

        :raises EOFError: If there are fewer.
        """
        end = self.at + size
        if end > self._most:
            raise EOFError
        if end > self._start + len(self._held):
            self._start, self._held = self.at, self._read(self.at, max(size, _AT_ONCE))
            if len(self._held) < size:
                raise EOFError
        part = self._held[self.at - self._start : end - self._start]
        self.at = end
        return part

    def readline(self) -> bytes:
        line = [self.read(1)]
        while line[-1] != b"\n":
            line.append(self.read(1))
        return b"".join(line)


def check_pickle(read: Read, size: int) -> Verdict:
    """Return whether a file holds a pickle to its end.

    :raises MemoryError: If there is too little for what it holds.
    """
    if size == 0:
        return EMPTY
    is_torch = read(0, len(_TORCH)) == _TORCH
    file = _File(read, _LARGEST)
    widths: dict[str, int] = {}
    try:
        keys = _load_all(file, widths) if is_torch else _Reader(file, {}).load()
    except (EOFError, pickle.UnpicklingError) as error:
        return _judge(error, size, read(0, 1))
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, struct.error):
        return Verdict(UNSEEN, "is a pickle that cannot be read without its classes")
    if not is_torch:
        return Verdict(SOUND)
    return _step_over(read, size, file.at, keys, widths)


def _judge(error: Exception, size: int, first: bytes) -> Verdict:
    ends = isinstance(error, EOFError) or _ENDS_EARLY in str(error)
    if ends and size > _LARGEST:
        return Verdict(UNSEEN, "is a pickle of more than 16 MiB, and was not read to its end")
    if _NO_PICKLE in str(error) and first == b"\x80":
        return Verdict(CORRUPT, "begins as a pickle and goes on as something else")
    if _NO_PICKLE in str(error) and first == b"\0":
        return Verdict(CORRUPT, "begins with zeros")
    return _CUT if ends else Verdict(UNSEEN, f"is not a pickle that can be read: {error}")


def _load_all(file: _File, widths: dict[str, int]) -> object:
    """Read the five pickles that torch wrote; the last names the storages behind it."""
    keys: object = None
    for _number in range(5):
        keys = _Reader(file, widths).load()
    return keys


def _step_over(read: Read, size: int, at: int, keys: object, widths: dict[str, int]) -> Verdict:
    """See that each storage is there: how many numbers it has, and they."""
    for key in keys if isinstance(keys, list) else ():
        width = widths.get(str(key), 0)
        raw = read(at, 8)
        if len(raw) < 8:
            return Verdict(CORRUPT, "ends before its last tensor")
        if not width:
            return Verdict(UNSEEN, "holds tensors of a type that is not known")
        at += 8 + read_number(raw, 0, 8) * width
        if at > size:
            return Verdict(CORRUPT, "ends within a tensor")
    return Verdict(SOUND)
