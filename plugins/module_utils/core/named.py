# SPDX-License-Identifier: BSD-2-Clause
"""``NamedTuple`` and ``Generic`` of typing without their price: those compile each annotation.

A check makes a hundred such classes each time it starts, and nobody asks for their types then.
"""

from __future__ import annotations

__all__ = ("Generic", "NamedTuple")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Generic, NamedTuple
else:
    from collections import namedtuple

    _OF_ALL = ("__annotations__", "__module__", "__qualname__", "__dict__", "__weakref__")

    class _Maker(type):
        """Makes a named tuple of a class: its annotations are the fields, their values defaults."""

        def __new__(mcs, name, bases, space):
            if not bases:
                return super().__new__(mcs, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = [space[field] for field in fields if field in space]
            made = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
            for key, value in space.items():
                if key not in fields and key not in _OF_ALL:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """A tuple whose fields have names."""

    class Generic:
        """A class with a parameter, which is one and the same for all of them."""

        def __class_getitem__(cls, _parameter):
            return cls
