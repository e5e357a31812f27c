# SPDX-License-Identifier: BSD-2-Clause
"""The options of commands about runs that live or have died, and about many hosts."""

from __future__ import annotations

import argparse
import math

from .core.profiles import DEFAULT_PROFILE, PROFILES

MAX_AGE = 24.0
"""Hours after which a result says nothing of its host any more."""

FORMATS = ("html", "json", "junit", "csv")
REPORT = "mlhost-limits-report.html"
_MOST_HOURS = 87600
_PROFILES = ", ".join(sorted(PROFILES))


def add_profile(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--profile",
        default=default,
        choices=sorted(PROFILES),
        metavar="PROFILE",
        help=f"the policy to start from: {_PROFILES}; default: %(default)s",
    )


def add_why(why: argparse.ArgumentParser) -> None:
    why.usage = "%(prog)s [OPTION ...] [FILE ... | MESSAGE]"
    why.add_argument(
        "words",
        nargs="*",
        metavar="FILE",
        help="logs of the run, of which the end is read, or one message in quotes; - or nothing"
        " for standard input",
    )
    why.add_argument("--pid", type=int, metavar="N", help="a process of the run that still lives")
    why.add_argument("--unit", metavar="U", help="the systemd unit that it was")
    why.add_argument("--job", metavar="J", help="the job of Slurm that it was")
    why.add_argument("--container", metavar="C", help="the container of Docker that it was")
    why.add_argument("--user", metavar="U", help="whose run it was, in a login session")
    why.add_argument("--json", action="store_true", help="print as JSON")


def add_heal(heal: argparse.ArgumentParser) -> None:
    add_profile(heal, DEFAULT_PROFILE)
    heal.add_argument(
        "--policy", metavar="FILE", help="a policy, merged over the profile; - for standard input"
    )
    heal.add_argument("--pid", type=int, metavar="N", help="a process, and what it started")
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
    watch.usage = "%(prog)s [--report FILE] -- COMMAND ..."
    watch.add_argument(
        "--report",
        metavar="FILE",
        help="write what was seen as JSON when it has ended; why reads it",
    )


def add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument(
        "files", nargs="+", metavar="FILE", help="as for report, of which it needs no more"
    )
    plan.add_argument(
        "--green",
        metavar="N",
        default="100%",
        help="how many of the hosts that fall short shall become green, a number or a share;"
        " default: all that can",
    )
    plan.add_argument(
        "--at-once",
        type=int,
        metavar="K",
        default=5,
        help="how many hosts of a group may be worked on at once; default: %(default)s",
    )
    plan.add_argument(
        "--groups", metavar="FILE", help="a host and its group, as a partition, in each line"
    )
    _add_max_age(plan)
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")


def add_report(report: argparse.ArgumentParser) -> None:
    report.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="results, a directory with a HOST.json or HOST.json.gz each, or - for standard input",
    )
    report.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=REPORT,
        help="the page; other formats lie beside it; default: %(default)s",
    )
    report.add_argument(
        "--format",
        action="append",
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)}, with commas or repeated; default: as the output's name ends",
    )
    report.add_argument(
        "--previous", metavar="FILE", help="the JSON of an earlier report, to show what is new"
    )
    _add_max_age(report)
    report.add_argument(
        "--title", default="Limits of training hosts", help="of the page; default: %(default)s"
    )


def _add_max_age(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-age",
        type=_read_hours,
        default=MAX_AGE,
        metavar="HOURS",
        help="a host whose result is older counts as not checked; default: %(default)g",
    )


def _read_hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours <= _MOST_HOURS:
        accepted = f"a number of hours above 0, up to {_MOST_HOURS}, is accepted"
        raise argparse.ArgumentTypeError(f"{text!r} was given; {accepted}")
    return hours
