# SPDX-License-Identifier: GPL-3.0-or-later
"""Count what the tests hold; docs/proof.md says how much there is in these words alone."""

from __future__ import annotations

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
from tests.hostile.__main__ import read_shown
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
    parsers = len(TARGETS)
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
            f"{len(ATTACKS)} attacks, each shown to work where a guard is missing;"
            f" {len(list_strains())} strains",
        ),
        (
            "[lock-outs](lockouts.md)",
            f"{len(LOCKOUTS)}, of which `make test` shows all but {without}; {upstream} with"
            " upstream's pam_limits",
        ),
        ("`make fuzz`", f"{parsers} parsers, {len(list(FRAGMENTS))} hostile fragments"),
    ]
    return format_table(("", "there are"), rows)


DID = {
    "became_root": "had a program or a file of root's become the user's",
    "read_secrets": "had root read, print or leave where the user can read it what only root may",
    "wrote_or_deleted": "had a file of others changed, made, moved or removed",
    "ran_as_root": "ran with root's login id or slice, or left a process there",
    "hung": "kept the command from ending",
    "crashed": "ended it with a traceback or a signal",
    "drained": "drained the node",
    "wrong_finding_of_others": "changed what was said of others, or had terminal codes printed",
}
"""What an attack does where the guard that stops it is missing, by the judge's totals."""


def count_harms() -> list[str]:
    """Return the table of what attacks did where nothing stopped them; one may do several."""
    did = Counter(name for row in read_shown().values() for name in row["did"])
    return format_table(("without its guard", "attacks"), [(DID[n], str(did[n])) for n in DID])


def format_counts(page: str) -> str:
    """Return the page with its tables as they are now."""
    tables = {"counted": count_all(), "faults": count_faults(), "attacks": count_harms()}
    for name, lines in tables.items():
        before, _old, after = split_page(page, name)
        page = before + "\n".join(lines).strip("\n") + "\n" + after
    return page
