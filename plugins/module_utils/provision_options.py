# SPDX-License-Identifier: BSD-2-Clause
"""The options of ``mlhost-limits provision``: those of its module, and each place's switches."""

from __future__ import annotations

from typing import Any

from .command_options import add_policy
from .core.policy import ProvisionOptions
from .core.reader import PolicyError, join_names
from .places import PLACES, PROVISIONED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_SWITCHES = {name: one for place in PLACES for name, one in place.switches.items()}


def add_provision_options(parser: argparse.ArgumentParser) -> None:
    """Add what the module takes, under names of a command line."""
    add_policy(parser)
    parser.add_argument(
        "--only",
        action="append",
        metavar="SECTION",
        help=f"these sections alone, with commas or repeated: {', '.join(PROVISIONED)}",
    )
    parser.add_argument(
        "--check", action="store_true", help="say what would change, change nothing"
    )
    parser.add_argument("--diff", action="store_true", help="show each change line by line")
    parser.add_argument(
        "--absent", action="store_true", help="take back what an earlier run has set"
    )
    parser.add_argument(
        "--override",
        action="store_true",
        help="make lines ineffective that beat ours with less; they become comments",
    )
    parser.add_argument(
        "--heal", action="store_true", help="raise what runs already as well, without a restart"
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="do not check afterwards what is in effect"
    )
    parser.add_argument("--json", action="store_true", help="print what is done as JSON")
    _add_switches(parser)


def _add_switches(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what one place may do")
    for name, one in _SWITCHES.items():
        flag = f"--{name.replace('_', '-')}"
        if one.type == "bool":
            group.add_argument(flag, dest=name, action="store_true", help=one.text)
        elif one.type == "list":
            group.add_argument(
                flag, dest=name, nargs="+", action="append", metavar="NAME", help=one.text
            )
        else:
            text = f"{one.text}; default: {one.default}"
            group.add_argument(flag, dest=name, default=one.default, metavar="FILE", help=text)


def read_provision(arguments: argparse.Namespace) -> ProvisionOptions:
    """Return what was asked for.

    :raises PolicyError: With every section that is unknown.
    """
    names = [name for told in arguments.only or () for name in told.split(",")]
    accepted = f"accepted are {join_names(PROVISIONED)}"
    unknown = [f"--only: {name!r} is not a section; {accepted}" for name in names]
    unknown = [told for told, name in zip(unknown, names) if name not in PROVISIONED]
    if unknown:
        raise PolicyError(list(dict.fromkeys(unknown)))
    return ProvisionOptions(
        sections=tuple(names) or None,
        absent=arguments.absent,
        override=arguments.override,
        heal=arguments.heal,
        check_mode=arguments.check,
        switches={name: _read_switch(name, getattr(arguments, name)) for name in _SWITCHES},
    )


def _read_switch(name: str, value: Any) -> object:
    if _SWITCHES[name].type != "list":
        return value
    return [word for words in value or () for word in words]
