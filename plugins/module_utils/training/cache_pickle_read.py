# SPDX-License-Identifier: BSD-2-Clause
"""Read a pickle, or what torch.save wrote before 1.6, to its end, and make nothing of it.

Every class, and every function, that a pickle names is one that keeps nothing: no code of a file's
is run. Sources: the module pickletools, and ``_legacy_load()`` of torch/serialization.py.
"""

from __future__ import annotations

import io
import pickle

from .file_verdict import CORRUPT, EMPTY, SOUND, UNSEEN, Verdict, read_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .file_verdict import Read

_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LARGEST = 64 * 2**20
"""Bytes of one pickle that are read; the tensors of torch lie behind it, and are stepped over."""

_CUT = Verdict(CORRUPT, "ends within a pickle: it is cut short")
_ENDS_EARLY = ("truncated", "Ran out of input", "no newline")
_NO_PICKLE = "invalid load key"
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


class _Reader(pickle.Unpickler):
    """Reads one pickle; ``widths`` are the bytes of a number in each storage, by its key."""

    def __init__(self, file: io.BufferedIOBase, widths: dict[str, int]) -> None:
        super().__init__(file)
        self._widths = widths

    def find_class(self, module: str, name: str) -> type:
        if module.startswith("joblib"):  # It puts bytes between, which are no part of the pickle.
            raise ValueError(module)
        return type(name, (_Nothing,), {}) if name.endswith("Storage") else _Nothing

    def persistent_load(self, known: object) -> object:
        if isinstance(known, tuple) and len(known) > 2 and isinstance(known[1], type):
            self._widths[str(known[2])] = _WIDTHS.get(known[1].__name__[: -len("Storage")], 0)
        return _Nothing()


class _File(io.RawIOBase):
    """A file that is read by offsets, as one that has a position; it ends after so many bytes."""

    def __init__(self, read: Read, most: int) -> None:
        self._read, self._at, self._most = read, 0, most

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        found = self._read(self._at, min(len(target), max(self._most - self._at, 0)))
        target[: len(found)] = found
        self._at += len(found)
        return len(found)


def check_pickle(read: Read, size: int) -> Verdict:
    """Return whether a file holds a pickle to its end.

    :raises MemoryError: If there is too little for what it holds.
    """
    if size == 0:
        return EMPTY
    is_torch = read(0, len(_TORCH)) == _TORCH
    file = io.BufferedReader(_File(read, _LARGEST))
    widths: dict[str, int] = {}
    try:
        keys = _load_all(file, widths) if is_torch else _Reader(file, {}).load()
    except (EOFError, pickle.UnpicklingError) as error:
        return _judge(error, size, read(0, 1))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError):
        return Verdict(UNSEEN, "is a pickle that cannot be read without its classes")
    if not is_torch:
        return Verdict(SOUND)
    return _step_over(read, size, file.tell(), keys, widths)


def _judge(error: Exception, size: int, first: bytes) -> Verdict:
    ends = isinstance(error, EOFError) or any(one in str(error) for one in _ENDS_EARLY)
    if ends and size > _LARGEST:
        return Verdict(UNSEEN, "is a pickle of more than 64 MiB, and was not read to its end")
    if _NO_PICKLE in str(error) and first == b"\x80":
        return Verdict(CORRUPT, "begins as a pickle and goes on as something else")
    if _NO_PICKLE in str(error) and first == b"\0":
        return Verdict(CORRUPT, "begins with zeros")
    return _CUT if ends else Verdict(UNSEEN, f"is not a pickle that can be read: {error}")


def _load_all(file: io.BufferedIOBase, widths: dict[str, int]) -> object:
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
