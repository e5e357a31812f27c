# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the manual page of the command out of its parser."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from mlhost_limits.command_line import (
    ABOUT,
    NAME,
    STATUSES,
    describe,
    list_commands,
    list_options,
    make_parser,
    name_value,
)
from mlhost_limits.version import VERSION

PAGE = Path(__file__).parents[2] / "docs" / f"{NAME}.1"
TAG = "SPDX-License-" + "Identifier"  # In two parts, or tools take what follows for a license.
_ENVIRONMENT = {
    "NO_COLOR": "If it is not empty, no output has colors.",
    "FORCE_COLOR": "If it is not empty, a report has colors in a pipe as well.",
}


def format_manual() -> str:
    """Return the page, in the macros of man(7)."""
    return "\n".join([*_write(), ""])


def _write() -> Iterator[str]:
    yield f'.\\" {TAG}: BSD-2-Clause'
    yield '.\\" Made by python -m tests.reference'
    yield f'.TH {NAME.upper()} 1 "" "mlhost.limits {VERSION}" "User Commands"'
    yield ".SH NAME"
    yield f"{escape(NAME)} \\- {escape(ABOUT[0].lower() + ABOUT[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {escape(NAME)}"
    yield ".I COMMAND"
    yield "[\\fIOPTION\\fR ...]"
    yield ".SH DESCRIPTION"
    yield from _wrap(ABOUT)
    yield ".SH COMMANDS"
    for name, _text, parser in list_commands(make_parser()):
        yield from _write_command(name, parser)
    yield ".SH EXIT STATUS"
    yield from _wrap(STATUSES.partition(": ")[2].capitalize())
    yield ".SH ENVIRONMENT"
    for name, text in _ENVIRONMENT.items():
        yield from (".TP", f".B {name}", *_wrap(text))


def _write_command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    options = list_options(parser)
    values = "".join(f" \\fI{escape(name_value(one))}\\fR" for one in options if is_positional(one))
    yield f".SS {escape(name)}{values}"
    yield from _wrap(str(parser.description))
    for one in options:
        yield ".TP"
        yield f"{spell(one, bold=True)}"
        yield from _wrap(f"{describe(one)}.")


def is_positional(action: argparse.Action) -> bool:
    return not action.option_strings


def spell(action: argparse.Action, bold: bool = False) -> str:
    """Return an option with what follows it, as roff or as plain text."""
    strong, slant, end = ("\\fB", "\\fI", "\\fR") if bold else ("", "", "")
    mask = escape if bold else str
    value = name_value(action)
    told = f"{slant}{mask(value)}{end}" if value else ""
    flags = ", ".join(f"{strong}{mask(flag)}{end}" for flag in action.option_strings)
    return " ".join(filter(None, (flags, told)))


def _wrap(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, 98, break_long_words=False, break_on_hyphens=False):
        yield escape(line)


def escape(text: str) -> str:
    """Return a text without what roff takes for something else."""
    masked = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{masked}" if masked.startswith((".", "'")) else masked
