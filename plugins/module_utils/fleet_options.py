# SPDX-License-Identifier: BSD-2-Clause
"""The options of ``mlhost-limits report`` and ``plan``, which read the results of many hosts."""

from __future__ import annotations

import argparse

from .command_options import read_amount, read_whole

FORMATS = ("html", "json", "junit", "csv")
REPORT = "mlhost-limits-report.html"
MAX_AGE = 24.0
"""Hours after which a result says nothing of its host any more."""

_MOST_HOURS = 87600


def add_report_options(report: argparse.ArgumentParser) -> None:
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


def add_plan_options(plan: argparse.ArgumentParser) -> None:
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
        type=read_whole("a number of hosts"),
        metavar="K",
        default=5,
        help="how many hosts of a group may be worked on at once; default: %(default)s",
    )
    plan.add_argument(
        "--groups", metavar="FILE", help="a host and its group, as a partition, in each line"
    )
    _add_max_age(plan)
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")


def _add_max_age(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-age",
        type=read_amount("hours", _MOST_HOURS),
        default=MAX_AGE,
        metavar="HOURS",
        help="a host whose result is older counts as not checked; default: %(default)g",
    )
