# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a unit are those that systemd reads, and each ignored line is told with a reason.

The expectations were measured with systemd 247, 252 and 257.
"""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.systemd.limits import (
    Ignored,
    Reading,
    read_manager_limits,
    read_unit_limits,
    resolve_unit_limits,
)
from mlhost_limits.systemd.unit_file import Source

MAIN, DROPIN, CONF = "/usr/lib/u.service", "/etc/u.service.d/a.conf", "/etc/system.conf"
NOTHING = Reading([], [])


def resolve(unit: str, dropin: str = "", conf: str = "") -> dict[str, object]:
    """Return value, place and number of shadowed lines by item and bound."""
    manager = read_manager_limits(Source(CONF, conf), [])
    reading = read_unit_limits("service", Source(MAIN, unit), [Source(DROPIN, dropin)])
    return {
        f"{item} {kind}": (bound.winner.value, bound.winner.place, len(bound.shadowed))
        for item, kind, bound in resolve_unit_limits(manager, reading)
    }


def test_the_last_line_of_the_unit_wins_and_shadows_the_manager() -> None:
    found = resolve(
        "[Service]\nLimitNOFILE=1:2\nLimitNOFILE=3\n",
        "[Service]\nLimitNOFILE=4:infinity\n",
        "[Manager]\nDefaultLimitNOFILE=5\nDefaultLimitMEMLOCK=64K\n",
    )
    assert found == {
        "memlock soft": (65536, f"{CONF}:3", 0),
        "memlock hard": (65536, f"{CONF}:3", 0),
        "nofile soft": (4, f"{DROPIN}:2", 3),
        "nofile hard": (UNLIMITED, f"{DROPIN}:2", 3),
    }


def test_an_ignored_line_leaves_the_one_before_it() -> None:
    assert resolve("[Service]\nLimitNOFILE=5\nLimitNOFILE=\nLimitNOFILE=6:5\n") == {
        "nofile soft": (5, f"{MAIN}:2", 0),
        "nofile hard": (5, f"{MAIN}:2", 0),
    }


COUNT = "accepted is a whole number, 'infinity', or two of them as soft:hard"


@pytest.mark.parametrize(
    ("text", "line", "shown", "reason"),
    [
        ("[Service]\nLimitNOFILE = 64K\n", 2, "LimitNOFILE=64K", COUNT),
        ("[Service]\nLimitNOFILE=2:1\n", 2, "LimitNOFILE=2:1", "soft is above hard"),
        ("LimitCPU=1\n", 1, "LimitCPU=1", "stands before any section; it belongs in [Service]"),
        ("[Unit]\nLimitCPU=1\n", 2, "LimitCPU=1", "stands in [Unit]; it belongs in [Service]"),
        ("[Service]\nlimitCPU=1\n", 2, "limitCPU=1", "is unknown here; known is LimitCPU"),
        (
            "[Service]\nDefaultLimitAS=1\n",
            2,
            "DefaultLimitAS=1",
            "is unknown here; known is LimitAS",
        ),
    ],
)
def test_an_ignored_line_is_told_with_its_reason(
    text: str, line: int, shown: str, reason: str
) -> None:
    reading = read_unit_limits("service", Source(MAIN, text), [])
    assert reading == Reading([], [Ignored(MAIN, line, shown, reason)])


def test_other_lines_are_no_limits() -> None:
    text = "[Service]\nTasksMax=5\nLimitX=1\n# LimitAS=1\nLimitRATE=1\n"
    assert read_unit_limits("service", Source(MAIN, text), []) == NOTHING


@pytest.mark.parametrize(
    ("kind", "section"), [("service", "Service"), ("socket", "Socket"), ("mount", "Mount")]
)
def test_each_kind_of_unit_has_its_section(kind: str, section: str) -> None:
    source = Source(MAIN, f"[{section}]\nLimitNOFILE=5\n")
    assert len(read_unit_limits(kind, source, []).statements) == 1


def test_a_slice_runs_no_process() -> None:
    reading = read_unit_limits("slice", Source(MAIN, "[Slice]\nLimitNOFILE=5\n"), [])
    assert [line.reason for line in reading.ignored] == ["units of this kind run no process"]


FAULT = "[Service]\nLimitNOFILE=1\n[Service\n[Service]\nLimitNOFILE=2\n"
REASON = "is not a section header, so that systemd reads no further"


def test_a_bad_line_in_the_unit_itself_keeps_it_from_being_loaded() -> None:
    refused = Ignored(MAIN, 3, "[Service", REASON)
    assert read_unit_limits("service", Source(MAIN, FAULT), []) == Reading([], [], refused)


def test_a_bad_line_ends_a_dropin_and_no_other() -> None:
    later = Source("/etc/u.service.d/b.conf", "[Service]\nLimitCPU=3\n")
    dropins = [later, Source(DROPIN, FAULT)]
    reading = read_unit_limits("service", Source(MAIN, "[Service]\n"), dropins)
    assert [(one.item, one.limit.soft) for one in reading.statements] == [("nofile", 1), ("cpu", 3)]
    assert reading.ignored == [Ignored(DROPIN, 3, "[Service", REASON)]
    assert reading.refused is None


def test_a_bad_line_ends_all_that_the_manager_reads() -> None:
    bad = Source("/etc/system.conf.d/a.conf", "[Manager]\nDefaultLimitCPU=2\n[\n")
    later = Source("/etc/system.conf.d/b.conf", "[Manager]\nDefaultLimitCPU=3\n")
    reading = read_manager_limits(None, [later, bad])
    assert [one.limit.soft for one in reading.statements] == [2]
    assert reading.ignored == [Ignored(bad.path, 3, "[", REASON)]
