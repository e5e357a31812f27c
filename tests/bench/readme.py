# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of figures in README: written from what the last whole benchmark measured."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
MEASURED = Path(__file__).with_name("measured.json")
BEGIN, END = "<!-- Written by make bench. -->\n", "<!-- End of what make bench writes. -->\n"
_USUAL = "17 runs of stock modules"
_BEST = "stock modules at their best"
_ROWS = (
    ("`provision`, nothing to do", "ours_noop_s", _USUAL, "peers_noop_s"),
    ("`provision`, nothing to do", "ours_noop_s", _BEST, "best_noop_s"),
    ("`provision`, nothing to do", "ours_noop_s", "a bare ping", "ping_s"),
    ("`provision`, then `check`", "noop_and_check_s", _USUAL, "peers_noop_s"),
    ("first `provision`", "ours_first_s", _USUAL, "peers_first_s"),
    ("first `provision`", "ours_first_s", _BEST, "best_first_s"),
    ("`check` of everything", "check_s", "one shell task that reads as much", "best_read_s"),
    ("`check` of everything", "check_s", "a bare ping", "ping_s"),
    ("`check` where nothing is kept", "cold_check_s", "a bare ping", "ping_s"),
)
_TEXT = """\
Measured on {date}: medians of {runs} interleaved rounds of the whole `ansible-playbook`, on the emulated
Debian 12 guest and natively, two cores. The connection is open. The library lies on the target but in
a first `provision` and a `check` where nothing is kept; on the guest that check also starts a container
(natively there is no Docker). Stock modules as usual are a task for each entry, at their best one
`copy` for each file; neither proves that a session still opens.
"""


def keep(figures: Mapping[str, float]) -> None:
    """Keep the figures of a whole run, with their date, and write README's table anew."""
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    rows = {name: value for name, value in figures.items() if not name.startswith("audit_")}
    MEASURED.write_text(json.dumps({"date": date, **rows}, indent=1, sort_keys=True) + "\n")
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(before + BEGIN + format_section() + END + rest.partition(END)[2])


def format_section() -> str:
    """Return what README says of the figures that were kept."""
    measured = json.loads(MEASURED.read_text())
    lines = [_TEXT.format(date=measured["date"], runs=measured["runs"])]
    lines += ["| run | against | guest | native |", "|---|---|---|---|"]
    for run, ours, against, theirs in _ROWS:
        seconds = [_pair(measured, name) for name in (ours, theirs)]
        cells = [
            _compare(measured[f"{prefix}{theirs}"], measured[f"{prefix}{ours}"])
            for prefix in ("", "native_")
        ]
        lines.append(f"| {run} ({seconds[0]}) | {against} ({seconds[1]}) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _pair(measured: Mapping[str, float], name: str) -> str:
    return f"{measured[name]:.1f} s, {measured[f'native_{name}']:.1f} s"


def _compare(theirs: float, ours: float) -> str:
    if theirs >= ours:
        return f"{theirs / ours:.1f}x faster"
    return f"{ours / theirs:.2f}x the time"
