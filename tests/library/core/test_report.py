# SPDX-License-Identifier: GPL-3.0-or-later
"""A report fits a terminal, tells every failure, and passes on nothing a terminal would obey."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.cause import Cause, Link, Outlook, Remedy
from mlhost_limits.core.finding import (
    FAIL,
    FORETOLD,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    judge,
    judge_limits,
)
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.report import format_failures, format_links, format_report, format_verdict
from mlhost_limits.core.values import UNLIMITED, Rlimit

from tests.worlds.pasted import edit, move

WANTED = {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}
GOOD = {"nofile": Rlimit(65536, 1048576), "memlock": Rlimit(UNLIMITED, UNLIMITED)}
BAD = {"nofile": Rlimit(1024, 1048576), "memlock": Rlimit(65536, 65536)}


def look(place: str, limits: dict[str, Rlimit] | None, reason: str = "") -> list[Finding]:
    return list(judge_limits(place, WANTED, limits, "how", reason))


def sysctl(value: int | str | None, reason: str = "", **wanted: object) -> Finding:
    return judge(
        Requirement("kernel", "vm.x", "value", **wanted), Observation(value, "/proc/sys", reason)
    )


@pytest.mark.parametrize(
    ("findings", "lines"),
    [
        ([], ["0 pass, 0 fail, 0 unknown; nothing was judged"]),
        (
            look("session:a@su", GOOD),
            ["ok   session:a@su: nofile 65536:1048576, memlock unlimited", "4 pass, 0 fail, 0 unknown"],
        ),
        (
            look("session:a@su", BAD),
            [
                "FAIL session:a@su: nofile soft 1024, required 65536; memlock 64KiB, required",
                "     unlimited",
                "1 pass, 3 fail, 0 unknown",
            ],
        ),
        (
            look("session:a@su", None, "no such user"),
            ["???  session:a@su: no such user", "0 pass, 0 fail, 4 unknown"],
        ),
        (
            look("session:a@su", GOOD) + look("session:a@b@su", GOOD) + look("session:a@cron", GOOD)
            + look("session:a@b@cron", GOOD) + look("container:x", GOOD),
            [
                "ok   session:a@su,cron, session:a@b@su,cron, container:x: nofile 65536:1048576,",
                "     memlock unlimited",
                "20 pass, 0 fail, 0 unknown",
            ],
        ),
        (
            [sysctl(5, minimum=6, maximum=9), sysctl("a b", exact="a c"), sysctl(None, "gone", minimum=1)],
            [
                "FAIL kernel: vm.x 5, required 6 to 9; vm.x a b, required a c",
                "???  kernel: gone",
                "0 pass, 2 fail, 1 unknown",
            ],
        ),
        (
            [
                sysctl(5, minimum=6),
                sysctl(4, minimum=6)._replace(owner="bob"),
                sysctl(None, "gone", minimum=1)._replace(owner="bob"),
                sysctl(7, minimum=6)._replace(owner="bob"),
            ],
            [
                "FAIL kernel: vm.x 5, required 6",
                "FAIL kernel: vm.x 4, required 6",
                "     who  bob: own file or process; the node is not at fault",
                "???  kernel: gone",
                "     who  bob: own file or process; the node is not at fault",
                "1 pass, 2 fail (1 by users' own files or processes), 1 unknown",
            ],
        ),
    ],
    ids=["nothing", "met", "short", "unseen", "alike", "sysctls", "owned"],
)  # fmt: skip
def test_the_report(findings: list[Finding], lines: list[str]) -> None:
    assert format_report(findings) == lines


CAUSE = Cause(
    "pam-x",
    '/etc/security/limits.d/95-vendor.conf:3 "alice soft nofile 1024" (user) beats'
    ' /etc/security/limits.d/90-mlhost.conf:2 "* soft nofile 65536" (wildcard)',
    Remedy(
        "comment out 95.conf:3, or provision with override",
        (
            edit("/etc/security/limits.d/95-vendor.conf", 3, "alice soft nofile 1024", "s/^/# /"),
            ("sh", "-c", "echo 'a b' >> /etc/x"),
        ),
        "log in again",
    ),
)


def test_what_falls_short_is_told_with_cause_and_remedy() -> None:
    findings = [
        finding._replace(causes=(CAUSE,), outlook=Outlook("fail", "", "fail"))
        for finding in look("session:alice@sshd", BAD)
        if finding.requirement.bound == "soft" and finding.requirement.item == "nofile"
    ]
    assert format_report(findings) == [
        "FAIL session:alice@sshd: nofile soft 1024, required 65536",
        '     why  /etc/security/limits.d/95-vendor.conf:3 "alice soft nofile 1024"',
        '          (user) beats /etc/security/limits.d/90-mlhost.conf:2 "* soft nofile',
        '          65536" (wildcard)',
        "     fix  comment out 95.conf:3, or provision with override; then log in again",
        "     run  f=$(readlink -f /etc/security/limits.d/95-vendor.conf | grep ^/etc/) \\",
        '            && [ -f "$f" ] && [ "$(sed -n \'3l 0\' "$f")" = \\',
        "            'alice soft nofile 1024$' ] && sed -i '3s/^/# /' \"$f\" || ! echo \\",
        "            /etc/security/limits.d/95-vendor.conf:3 has changed since the \\",
        "            check, or cannot be written: nothing was done. Check again. >&2",
        "          echo 'a b' >> /etc/x",
        "     next session: fail   after boot: fail",
        "0 pass, 1 fail, 0 unknown",
    ]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_what_is_broken_at_blanks_works_as_it_is_printed(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "etc/security/limits.d/95-vendor.conf"
    path.parent.mkdir(parents=True)
    path.write_text("a\nb\nalice soft nofile 1024\nc\n")
    findings = [finding._replace(causes=(CAUSE,)) for finding in look("session:alice@sshd", BAD)]
    report = "\n".join(format_report(findings[:1]))
    printed = report.partition("     run  ")[2].partition("          echo")[0]
    for status, said in ((0, 0), (1, 1)):
        (line,) = move([f"true; {printed}"], tmp_path)
        done = subprocess.run([shell, "-c", line], capture_output=True, text=True)
        assert (done.returncode, len(done.stderr.splitlines())) == (status, said)
    assert path.read_text() == "a\nb\n# alice soft nofile 1024\nc\n"


def test_what_will_not_last_is_told_although_it_passes() -> None:
    found = sysctl(7, minimum=6)
    cause = Cause("sysctl-x", "no file states it", Remedy("state it"))
    late = found._replace(causes=(cause,), outlook=Outlook(after_boot="fail"))
    assert format_report([late, found]) == [
        "late kernel: vm.x 7 now, not enough after the next boot",
        "     why  no file states it",
        "     fix  state it",
        "     after boot: fail",
        "2 pass (1 not after a boot), 0 fail, 0 unknown",
    ]
    assert format_failures([late]) == []


def test_what_is_unknown_is_told_with_its_cause_where_there_is_one() -> None:
    cause = Cause("pam-x", "no file", Remedy("make one"))
    findings = [one._replace(causes=(cause,)) for one in look("session:a@cron", None, "no service")]
    assert format_report(findings)[:3] == [
        "???  session:a@cron: no service",
        "     why  no file",
        "     fix  make one",
    ]


def test_a_connection_that_has_less_is_a_note() -> None:
    cause = Cause("connection-kept-open", "this connection is old", Remedy("connect again"))
    lines = [
        "note this connection is old",
        "     fix  connect again",
        "0 pass, 0 fail, 0 unknown; nothing was judged",
    ]
    assert format_report([], [cause]) == lines


def test_a_chain_is_told_link_by_link() -> None:
    links = [
        Link("kernel", "1048576", "fs.nr_open"),
        Link("PAM", "", "no file counts"),
        Link("soft counts", "1024", 'a file:3 "alice soft nofile 1024" ' + "x " * 20, "2026-11-21"),
    ]
    assert format_links("session:a@su", "nofile", links) == [
        "nofile of session:a@su, from the kernel to the process",
        "  kernel       1048576  fs.nr_open",
        "  PAM          no file counts",
        '  soft counts  1024  a file:3 "alice soft nofile 1024" x x x x x x x x x x x x x',
        "               x x x x x x x , since 2026-11-21",
    ]
    assert format_links("kernel", "x", []) == ["x of kernel, from the kernel to the process"]


def test_failures_alone() -> None:
    findings = look("a", BAD) + look("b", GOOD) + look("c", None, "gone")
    text = "a: nofile soft 1024, required 65536; memlock 64KiB, required unlimited"
    assert format_failures(findings) == [text]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("container:\x1b[2J\x07", "container:?[2J?"),
        ("container:a\nok   b", "container:a?ok b"),
        ("container:\u202eb\x9b", "container:?b?"),
        ("container:\xa0", "container:?"),
    ],
)
def test_what_a_terminal_would_obey_is_replaced(place: str, told: str) -> None:
    line = format_report(look(place, GOOD))[0]
    assert " ".join(line.split()).startswith(f"ok {told}: nofile")


TEXT = st.text(max_size=200)
FINDINGS = st.lists(
    st.builds(
        lambda status, wanted, seen: Finding(status, wanted, seen),
        st.sampled_from([PASS, FAIL, UNKNOWN]),
        st.builds(
            Requirement,
            TEXT,
            TEXT,
            st.sampled_from(["soft", "hard", "value"]),
            st.none() | st.integers(0),
            exact=st.none() | TEXT,
        ),
        st.builds(Observation, st.none() | st.integers(0) | TEXT, TEXT, TEXT),
    ),
    max_size=6,
)


@given(FINDINGS)
def test_no_line_is_wider_than_a_terminal(findings: list[Finding]) -> None:
    lines = format_report(findings)
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() and line == line.rstrip() for line in lines)
    assert lines[-1] == format_verdict(findings)


def test_a_word_that_fits_no_line_is_broken() -> None:
    name = "container:" + "x" * 150
    assert format_report(look(name, GOOD))[:-1] == [
        "ok",
        f"     {name[:75]}",
        f"     {name[75:150]}",
        f"     {name[150:]}: nofile 65536:1048576, memlock unlimited",
    ]


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=300))
def test_a_long_name_is_broken_and_nothing_of_it_is_lost(name: str) -> None:
    lines = format_report(look(name, GOOD))[:-1]
    assert name in "".join(line.strip() for line in lines)


def test_a_run_is_told_how_many_workers_fit() -> None:
    wanted = Requirement("process:self", "workers", "value", 8)
    fits = judge(wanted, Observation(20, "nofile 20 (soft limit 256)"))
    lines = format_report([fits])
    assert lines[1] == "note at most 20 workers fit: nofile 20 (soft limit 256)"
    assert len(format_report([judge(wanted, Observation(7, "x"))])) == 2
    alone = judge(Requirement("process:self", "workers", "value", 1), Observation(1, "nofile 1"))
    assert format_report([alone])[1] == "note at most 1 worker fits: nofile 1"


def test_what_root_decides_is_told_before_the_doing_of_users() -> None:
    own = sysctl(4, minimum=6)._replace(owner="bob")
    assert format_failures([own, sysctl(5, minimum=6)]) == [
        "kernel: vm.x 5, required 6",
        "kernel: vm.x 4, required 6 (bob: own file or process; the node is not at fault)",
    ]


def test_reasons_that_read_alike_are_each_told() -> None:
    def miss(key: str) -> Finding:
        cause = Cause("kernel-no-key", f"this kernel has no {key}", Remedy("take it out"))
        wanted = Requirement("kernel", key, "value", 1)
        return judge(wanted, Observation(None, "/proc/sys", "no such sysctl"))._replace(
            causes=(cause,)
        )

    lines = format_report([miss("vm.a"), miss("vm.b")])
    assert lines.count("???  kernel: no such sysctl") == 2
    assert [line for line in lines if "why" in line] == [
        "     why  this kernel has no vm.a",
        "     why  this kernel has no vm.b",
    ]


def test_a_tab_is_shown_as_people_write_it() -> None:
    (line, *_more) = format_report([sysctl("1\t2", exact="3")])
    assert line == "FAIL kernel: vm.x 1\\t2, required exactly 3"


def test_what_comes_next_is_told_of_what_fails_without_a_cause() -> None:
    later = sysctl(5, minimum=6)._replace(outlook=Outlook("", "fail", "pass"))
    assert format_report([later])[:2] == [
        "FAIL kernel: vm.x 5, required 6",
        "     next restart: fail   after boot: pass",
    ]


@pytest.mark.parametrize(
    ("found", "line"),
    [(sysctl(7, minimum=6), "ok   kernel: vm.x 7"), (sysctl(None, "x"), "???  kernel: x")],
)
def test_what_comes_next_is_not_told_where_nothing_falls_short(found: Finding, line: str) -> None:
    lines = format_report([found._replace(outlook=Outlook("", "", "pass"))])
    assert (lines[0], len(lines)) == (line, 2)


def test_what_passes_is_told_with_its_causes() -> None:
    good = sysctl(7, minimum=6)
    assert format_report([good])[0] == "ok   kernel: vm.x 7"
    told = format_report([good._replace(causes=(CAUSE,))])
    assert told[0] == "ok   kernel: vm.x 7"
    assert told[1].startswith("     why  /etc/security/limits.d/95-vendor.conf:3")


def test_of_several_commands_the_first_is_marked() -> None:
    cause = Cause("x", "why", Remedy("fix", (("true",), ("false",))))
    told = format_report([sysctl(5, minimum=6)._replace(causes=(cause,))])
    assert told[3:5] == ["     run  true", f"{' ' * 10}false"]


def test_an_image_says_how_much_of_what_is_unknown_will_be_well() -> None:
    """What fails for sure is not among it."""
    unknown = sysctl(None, "x", minimum=1)
    foretold = unknown._replace(observation=Observation(None, FORETOLD, "x"))
    well = foretold._replace(outlook=Outlook("", "", "pass"))
    fails = sysctl(5, minimum=6)
    fails = fails._replace(observation=Observation(5, FORETOLD), outlook=Outlook("", "", "pass"))
    told = format_verdict([foretold, well, fails])
    assert told == "0 pass, 1 fail, 2 unknown until the first boot (1 predicted to pass)"
    assert format_verdict([unknown]) == "0 pass, 0 fail, 1 unknown"
