# SPDX-License-Identifier: BSD-2-Clause
"""The options that several commands share, and of those about runs that live or have died."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Callable
from typing import Any

from .core.profiles import DEFAULT_PROFILE, PROFILE_NAMES, Asked
from .host.policy_file import STDIN

_MOST_DIGITS = 10


def add_profile(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--profile",
        action=_AskedProfile,
        default=default,
        choices=PROFILE_NAMES,
        metavar="PROFILE",
        help=f"the policy to start from: {', '.join(PROFILE_NAMES)}, each with @1 for its first"
        " version; a policy that names its own has that, and no other beside it;"
        " default: %(default)s",
    )


class _AskedProfile(argparse.Action):
    """Keeps that a profile was asked for: a default gives way to a policy's own."""

    def __call__(self, _parser: Any, namespace: Any, value: Any, _option: Any = None) -> None:
        setattr(namespace, self.dest, Asked(value))


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy", metavar="FILE", help="a policy, merged over the profile; - for standard input"
    )


def name_other(verb: str, arguments: argparse.Namespace) -> str:
    """Return the command of another verb for the policy that was checked; none of an image."""
    if arguments.root:
        return ""
    words = ["mlhost-limits", verb]
    if arguments.profile != DEFAULT_PROFILE:
        words += ["--profile", arguments.profile]
    if arguments.policy is not None:
        words += ["--policy", "FILE" if arguments.policy == STDIN else arguments.policy]
    return shlex.join(words)


def read_amount(unit: str, most: float) -> Callable[[str], float]:
    """Return what reads a number of a unit, such as seconds, above 0 and up to *most*."""

    def read(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 < amount <= most:
            accepted = f"a number of {unit} above 0, up to {most}, is accepted"
            raise argparse.ArgumentTypeError(f"{text!r} was given; {accepted}")
        return amount

    return read


def read_whole(what: str) -> Callable[[str], int]:
    """Return what reads a whole number of something."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS):
            raise argparse.ArgumentTypeError(f"{text!r} was given; {what} is accepted")
        return int(text)

    return read


_read_pid = read_whole("the number of a process")


def add_why(why: argparse.ArgumentParser) -> None:
    why.usage = "%(prog)s [OPTION ...] [FILE ... | MESSAGE]"
    why.add_argument(
        "words",
        nargs="*",
        metavar="FILE",
        help="logs of the run, of which the end is read, or one message in quotes; - or nothing"
        " for standard input",
    )
    why.add_argument(
        "--pid", type=_read_pid, metavar="N", help="a process of the run that still lives"
    )
    why.add_argument("--unit", metavar="U", help="the systemd unit that it was")
    why.add_argument("--job", metavar="J", help="the job of Slurm that it was")
    why.add_argument("--container", metavar="C", help="the container of Docker that it was")
    why.add_argument("--user", metavar="U", help="whose run it was, in a login session")
    why.add_argument(
        "--last", action="store_true", help="the last run that the black box of this host saw die"
    )
    why.add_argument("--json", action="store_true", help="print as JSON")


def add_heal(heal: argparse.ArgumentParser) -> None:
    add_profile(heal, DEFAULT_PROFILE)
    add_policy(heal)
    heal.add_argument("--pid", type=_read_pid, metavar="N", help="a process, and what it started")
    heal.add_argument("--user", metavar="U", help="what a user runs")
    heal.add_argument("--unit", metavar="U", help="what runs in a systemd unit")
    heal.add_argument("--container", metavar="C", help="what runs in a container")
    heal.add_argument("--job", metavar="J", help="what runs here of a job of Slurm")
    heal.add_argument("--all", action="store_true", help="all that runs in a known place")
    heal.add_argument("--check", action="store_true", help="say what would change, change nothing")
    heal.add_argument("--diff", action="store_true", help="show each process on a line of its own")
    heal.add_argument("--undo", action="store_true", help="put back what was raised since the boot")
    heal.add_argument("--json", action="store_true", help="print as JSON")


def add_watch(watch: argparse.ArgumentParser) -> None:
    watch.usage = "%(prog)s [--report FILE] -- COMMAND ... | --host [--metrics FILE]"
    watch.add_argument(
        "--report",
        metavar="FILE",
        help="write what was seen as JSON when it has ended; why reads it",
    )
    watch.add_argument(
        "--host", action="store_true", help="watch all that runs on this host, as root, for ever"
    )
    watch.add_argument("--metrics", metavar="FILE", help="with --host, write metrics to this file")
