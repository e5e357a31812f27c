# SPDX-License-Identifier: BSD-2-Clause
"""What all places share: a statement of a file, a user, and how named tuples are made.

``NamedTuple`` and ``Generic`` of typing have a price: they compile each annotation. A check makes a
hundred such classes each time it starts, and nobody asks for their types then.
"""

from __future__ import annotations

__all__ = ("Bound", "Declaration", "Generic", "NamedTuple", "User")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, NamedTuple
else:
    from collections import namedtuple
    from types import FunctionType

    _OF_ALL = ("__annotations__", "__module__", "__qualname__", "__dict__", "__weakref__")
    _LIKE = {}  # By the number of fields, what was compiled for it.

    class _Maker(type):
        """Makes a named tuple of a class: its annotations are the fields, their values defaults."""

        def __new__(mcs, name, bases, space):
            if not bases:
                return super().__new__(mcs, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = {field: space[field] for field in fields if field in space}
            more = {key: value for key, value in space.items() if key not in (*fields, *_OF_ALL)}
            return _make(name, fields, defaults, {"__module__": space["__module__"], **more})

    def _make(name, fields, defaults, more):
        """Make a class as namedtuple does, from one of as many fields, whose names it replaces."""
        like = _LIKE.get(len(fields))
        if like is None:
            like = namedtuple("_Like", [f"field_{number}" for number in range(len(fields))])
            _LIKE[len(fields)] = like
        space = dict(vars(like))
        code = like.__new__.__code__.replace(co_varnames=("_cls", *fields))
        new = FunctionType(code, like.__new__.__globals__, "__new__", tuple(defaults.values()))
        new.__qualname__ = f"{name}.__new__"
        space.update({field: space.pop(own) for field, own in zip(fields, like._fields)})
        space.update(__new__=new, __repr__=_tell, _replace=_replace, __match_args__=fields)
        space.update(_fields=fields, _field_defaults=defaults, **more)
        return type(name, (tuple,), space)

    def _tell(self):
        stated = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"{type(self).__name__}({stated})"

    def _replace(self, /, **given):
        made = self._make(map(given.pop, self._fields, self))
        if given:
            raise ValueError(f"Got unexpected field names: {list(given)!r}")
        return made

    class NamedTuple(metaclass=_Maker):
        """A tuple whose fields have names."""

    class Generic:
        """A class with a parameter, which is one and the same for all of them."""

        def __class_getitem__(cls, _parameter):
            return cls


class Declaration(NamedTuple):
    """One statement of one value.

    ``line`` counts from 1; 0 means that the statement is no line of a file (a command line,
    the kernel's default). ``text`` is the statement as written, without its line end; where a
    remedy edits the line, it is the whole line, blanks and comments too.
    ``value`` is in the kernel's unit, or the text where the value is no number.
    """

    path: str
    line: int
    text: str
    value: int | str

    @property
    def place(self) -> str:
        """Return ``file:line``, the way compilers name a place."""
        return f"{self.path}:{self.line}" if self.line else self.path


class Bound(NamedTuple):
    """The line that wins one bound of one item, and those it shadows, strongest last."""

    winner: Declaration
    shadowed: tuple[Declaration, ...] = ()


class User(NamedTuple):
    """What pam_limits asks of a user.

    ``groups`` and ``gids`` hold every group that the system knows by name, the primary one too.
    """

    name: str
    uid: int
    gid: int
    groups: frozenset[str] = frozenset()
    gids: frozenset[int] = frozenset()
