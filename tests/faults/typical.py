# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what a check says of twelve typical hosts, as a person reads it first.

``python -m tests.faults.typical`` writes ``build/typical.txt``; the status is 0 where each report
fits a screen of 80 columns and says each command once.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.host import guest
from tests.host.library import carry

from .base import POLICY, saved_host
from .every import FAULTS
from .fault import merge_policies
from .paste import read_script
from .shell import Shell, opened

FILE = Path(__file__).parents[2] / "build" / "typical.txt"
COLUMNS = 80
MOST = {"a stock Debian 12": 25}
"""How many lines are read before anything was provisioned; where one thing is wrong, fewer."""
EACH = 12
"""Lines of one reason, and of what is said once."""

STOCK = {
    "a stock Debian 11": "bullseye",
    "a stock Debian 12": "bookworm",
    "a stock Debian 13": "trixie",
}
HOSTS = {
    "a user has a line of their own": ("limits: a user's line beats the wildcard",),
    "a file of another tool is read later": (
        "limits: a later file of the same class",
        "kernel: a later file in /etc",
    ),
    "sshd passes PAM by": ("sshd: UsePAM no in sshd_config",),
    "cron gives less than a login": ("pam: pam_limits is commented out (cron)",),
    "a start file lowers it for everybody": ("shell: /etc/profile.d lowers it",),
    "a user's own start file lowers it": ("shell: ~/.bashrc lowers it",),
    "a service was not restarted": ("unit: not restarted since it was put right",),
    "Docker has a configuration that it has not read": (
        "docker: daemon.json is newer than the daemon",
    ),
    "sysctls were set by hand": ("kernel: fs.nr_open lowered by hand", "kernel: lowered by hand"),
}


class Told(NamedTuple):
    """What a person reads, and what is wrong with it."""

    name: str
    lines: list[str]
    wrong: list[str]


def main() -> int:
    """Print what is told of each host; the status is 1 where one is told badly."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.typical", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX")
    wanted = re.compile(parser.parse_args().only)
    told = []
    for name, release in STOCK.items():
        if wanted.search(name):
            with guest.running(release, new=True) as host, opened(host) as shell:
                carry(host)
                told.append(read(name, shell.say({})))
    if any(wanted.search(name) for name in HOSTS):
        with saved_host() as saved:
            for name, faults in HOSTS.items():
                if wanted.search(name):
                    with guest.running(saved=saved) as host, opened(host) as shell:
                        told.append(read(name, _spoil(shell, faults)))
    text = "\n".join(f"## {one.name}\n" + "\n".join(one.lines) + "\n" for one in told)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text)
    print(text)
    wrong = [f"{one.name}: {problem}" for one in told for problem in one.wrong]
    print(*wrong, f"{len(told)} hosts, {len(wrong)} told badly", sep="\n")
    return 1 if wrong or not told else 0


def _spoil(shell: Shell, names: Sequence[str]) -> str:
    faults = [next(one for one in FAULTS if one.name == name) for name in names]
    for fault in faults:
        shell.do(fault.make)
    policy = merge_policies(POLICY, *(fault.policy for fault in faults))
    return shell.say(policy)


def read(name: str, text: str) -> Told:
    """Return what is printed, and what a person would stumble over."""
    lines = text.splitlines()
    wrong = [f"{len(line)} columns: {line}" for line in lines if len(line) > COLUMNS]
    reasons = sum(bool(re.match(r"[0-9]+ ", line)) for line in lines[1:])
    most = MOST.get(name, 3 + EACH * max(reasons, 1))
    if len(lines) > most:
        wrong.append(f"{len(lines)} lines, of {most} at most")
    script = re.sub(r"\\\n *", "", read_script(lines))
    commands = Counter(row for row in script.splitlines() if not row.startswith("#"))
    twice = [row for row, count in commands.items() if count > 1]
    return Told(name, lines, [*wrong, *(f"twice: {row}" for row in twice)])


if __name__ == "__main__":
    sys.exit(main())
