# SPDX-License-Identifier: GPL-3.0-or-later
"""Count what the tests hold; docs/proof.md says how much there is in these words alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from mlhost_limits.cause_codes import CODES

from tests.faults.__main__ import BY_LINE
from tests.faults.changes import CHANGES
from tests.faults.codes import read_sections
from tests.faults.every import FAULTS, PAIRS
from tests.faults.examples import read_examples
from tests.faults.quiet import CHANGED, QUIET_HOSTS
from tests.fuzz.targets import FRAGMENTS, TARGETS
from tests.host.upstream_pam import INSTALL
from tests.hostile.__main__ import SHOWN
from tests.hostile.every import ATTACKS
from tests.hostile.strains import list_strains
from tests.places.sessions.lockouts import LOCKOUTS
from tests.releases.table import split_page

from .policy_page import format_table

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
KINDS = {
    "limits files, PAM, sshd, sudo, cron, shells, connections": (
        "limits pam sshd sudo cron shell connection"
    ),
    "sysctls, tuned, /dev/shm": "kernel tuned shm",
    "units, the service manager, new services, processes and terminals left over": (
        "unit manager service leftover terminal"
    ),
    "Docker, containers, containerd, a rootless dockerd": "docker container containerd rootless",
    "Podman, Quadlet": "podman quadlet",
    "slurm.conf, slurmd, jobs": "slurm",
}
"""The kinds by which the names of faults begin; any other is among the rest."""
REST = "all else"


def count_faults() -> list[str]:
    """Return the table of faults: how many of each kind, and by what each is judged."""
    names = {kind: text for text, kinds in KINDS.items() for kind in kinds.split()}
    kinds = {fault.name: names.get(fault.name.partition(":")[0], REST) for fault in FAULTS}
    made, by_line = Counter(kinds.values()), Counter(kinds[name] for name in BY_LINE)
    counted = [(text, made[text], by_line[text]) for text in [*KINDS, REST] if made[text]]
    counted.append(("**all**", len(FAULTS), len(BY_LINE)))
    rows = [(text, str(all_), str(line), str(all_ - line)) for text, all_, line in counted]
    return format_table(("", "faults", "judged by file and line", "by words"), rows)


def count_all() -> list[str]:
    """Return the table of what each command tries."""
    shown = json.loads(SHOWN.read_text())
    attacks, parsers = len(ATTACKS), len(TARGETS)
    sections = read_sections()
    quiet = len(QUIET_HOSTS) - (CHANGED in QUIET_HOSTS) + len(CHANGES)
    without = sum(not one.share for one in LOCKOUTS)
    upstream = sum(INSTALL in one.make for one in LOCKOUTS)
    rows = [
        ("`make faults`", f"{len(FAULTS)} faults, {PAIRS} pairs, {quiet} hosts without a fault"),
        (
            "[causes](causes.md)",
            f"{len(CODES)} codes, {len(read_examples())} with what a check printed on a host; of the"
            f" {len(sections)} of hosts {sum(bool(one.faults) for one in sections)} name a fault",
        ),
        (
            "`make hostile`",
            f"{attacks} attacks, of which {sum(one.name in shown for one in ATTACKS)} were shown to"
            f" work where a guard is missing; {len(list_strains())} strains",
        ),
        (
            "[lock-outs](lockouts.md)",
            f"{len(LOCKOUTS)}, of which `make test` shows all but {without}; {upstream} with"
            " upstream's pam_limits",
        ),
        ("`make fuzz`", f"{parsers} parsers, {len(list(FRAGMENTS))} hostile fragments"),
    ]
    return format_table(("", "there are"), rows)


def format_counts(page: str) -> str:
    """Return the page with both tables as they are now."""
    for name, lines in (("counted", count_all()), ("faults", count_faults())):
        before, _old, after = split_page(page, name)
        page = before + "\n".join(lines).strip("\n") + "\n" + after
    return page
