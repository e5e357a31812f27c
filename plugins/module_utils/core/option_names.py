# SPDX-License-Identifier: BSD-2-Clause
"""The names of options in messages: as whoever asked has to write them."""

from __future__ import annotations

FLAG = "--"
"""Before the options of the command. Those of a module are bare, those of a role have a prefix."""
_prefixes = [""]


class NamedWith:
    """Name options with a prefix, within a ``with`` block.

    A process answers one question at a time, and its children and threads work for the same one.

    :param prefix: :data:`FLAG`, what the variables of a role begin with, or nothing for a module.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        _prefixes.append(self._prefix)

    def __exit__(self, *_error: object) -> None:
        _prefixes.pop()


def name_option(name: str) -> str:
    """Return an option of a module as its reader writes it."""
    prefix = _prefixes[-1]
    return prefix + (name.replace("_", "-") if prefix == FLAG else name)


def switch_on(name: str) -> str:
    """Return what a reader writes to have an option of a module that is off."""
    is_flag = _prefixes[-1] == FLAG
    return name_option(name) if is_flag else f"{name_option(name)}: true"
