# SPDX-License-Identifier: GPL-3.0-or-later
"""The first report of a stock host is short, and what it prints mends the host for everybody."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.host import guest
from tests.host.library import carry

from .paste import read_script
from .shell import opened
from .typical import MOST, read

STOCK = "a stock Debian 12"
REPORT = """\
3 of 9 requirements fall short, for one reason
1    root, at su: nofile 1024, required 65536
     why  no limits file states nofile
     fix  mlhost-limits provision --only sessions
     or   echo 'root - nofile 65536' >> /etc/x # then log in again
"""


@pytest.mark.host
def test_what_a_stock_host_is_told_makes_it_true_for_who_was_not_asked() -> None:
    with guest.running(new=True) as host, opened(host) as shell:
        carry(host)
        shell.do("useradd -m -s /bin/bash bob")
        told = read(STOCK, shell.say({}))
        assert not told.wrong, "\n".join([*told.wrong, *told.lines])
        assert "for 5 reasons" in told.lines[0]
        assert not any("bob" in line or "95-site.conf:" in line for line in told.lines)
        done = shell.run(["bash", "-ec", read_script(told.lines)])
        assert done.status == 0, done.text
        seen = shell.check({"kernel": {"vm.max_map_count": 262144}})
        short = {one["place"] for one in seen.findings if one["status"] == "fail"}
        assert short == {"new-container:docker", "connection"}, short
        assert host.ssh("su - bob -c 'ulimit -Sn; ulimit -l'").stdout.split() == [
            "65536",
            "unlimited",
        ]


@pytest.mark.host
def test_the_first_fix_of_each_cause_makes_a_stock_host_green() -> None:
    with guest.running(new=True) as host, opened(host) as shell:
        carry(host)
        shell.do("useradd -m -s /bin/bash bob")
        fixes = find_fixes(shell.say({}).splitlines())
        sections = [fix.split()[3] for fix in fixes]
        assert "docker # then restart docker" in fixes[1]
        assert sections == ["sessions", "docker", "kernel"], fixes
        command = 'mlhost-limits() { PYTHONPATH=/opt python3 -m mlhost_limits.cli "$@"; }'
        done = shell.run(["bash", "-ec", "\n".join((command, *fixes))])
        assert done.status == 0, done.text
        shell.do("systemctl restart docker")  # As is said behind the command.
        after = "PYTHONPATH=/opt python3 -m mlhost_limits.cli check"
        told = host.ssh(after, check=False)  # In a connection of its own, as a person would.
        assert told.returncode == 0, told.stdout
        assert host.ssh("su - bob -c 'ulimit -Sn; ulimit -l'").stdout.split() == [
            "65536",
            "unlimited",
        ]


def find_fixes(lines: Sequence[str]) -> list[str]:
    """Return the commands of the first fix of each cause, each once."""
    found = (re.match(r"     fix  (mlhost-limits .*)", line) for line in lines)
    return list(dict.fromkeys(one[1] for one in found if one))


def test_a_report_that_is_told_badly_is_seen() -> None:
    assert read(STOCK, REPORT).wrong == []
    assert (
        read_script(REPORT.splitlines())
        == "echo 'root - nofile 65536' >> /etc/x # then log in again\n"
    )
    twice = REPORT + "     run  echo 'root - nofile 65536' >> /etc/x # then log in again\n"
    assert read(STOCK, twice).wrong == [
        "twice: echo 'root - nofile 65536' >> /etc/x # then log in again"
    ]
    assert read(STOCK, f"{REPORT}{'x' * 81}\n").wrong[0].startswith("81 columns")
    assert read(STOCK, REPORT * MOST[STOCK]).wrong[0].endswith("lines, of 25 at most")
