# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands of a unit a boot carries out as root, which it may, and which not."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_units import (
    Setting,
    has_ended,
    is_doubtful,
    is_settled,
    list_commands,
    mark,
    parse_unit,
    settle_unit,
)

UNIT = "/etc/systemd/system/x.service"
RUN = "ExecStart=/sbin/sysctl -w a.b=1"


@pytest.mark.parametrize(
    ("lines", "runs", "doubtful"),
    [
        ([RUN], True, False),
        (["User=bob", RUN], False, False),
        (["User=root", RUN], True, False),
        (["User=0", RUN], True, False),
        (["User=bob", RUN.replace("=/", "=+/")], True, False),
        (["User=bob", RUN.replace("=/", "=!/")], True, False),
        (["User=bob", RUN.replace("=/", "=-/")], False, False),
        (["User=bob", RUN.replace("=/", "=/bin/sudo /")], True, False),
        (["User=bob", "PermissionsStartOnly=yes", RUN], True, False),
        (["User=bob", "PermissionsStartOnly=no", RUN], False, False),
        (["User=bob", "AmbientCapabilities=CAP_SYS_ADMIN", RUN], True, True),
        (["DynamicUser=yes", RUN], False, False),
        (["DynamicUser=no", RUN], True, False),
        (["DynamicUser=yes", "User=root", RUN], True, False),
        (["ProtectKernelTunables=yes", RUN], False, False),
        (["ProtectKernelTunables=yes", RUN.replace("=/", "=-+/")], True, False),
        (["ProtectKernelTunables=yes", RUN.replace("=/", "=!/")], False, False),
        (["ProtectKernelTunables=no", RUN], True, False),
        (["ExecCondition=/bin/x", RUN], True, True),
        ([RUN.replace("Start", "Reload")], False, False),
        (["Type=oneshot", "ExecStart=/bin/x", RUN.replace("Start", "Stop")], True, False),
        (["ExecStart=/bin/x", RUN.replace("Start", "Stop")], False, False),
        (["ExecStart=/bin/sh -c x", RUN.replace("Start", "StopPost")], True, True),
        ([RUN, "ExecStart="], False, False),
    ],
)
def test_what_a_boot_runs_as_root(lines: list[str], runs: bool, doubtful: bool) -> None:
    text = "\n".join(("[Service]", *lines, ""))
    number = 2 + next(at for at, line in enumerate(lines) if "sysctl" in line)
    settled = settle_unit({UNIT: text})[UNIT]
    assert is_settled(settled)
    assert settled.split("\n")[number - 1].startswith("#") is not runs
    assert is_doubtful(settled, number) is doubtful
    assert [at for at, line in list_commands(UNIT, text) if "sysctl" in line] == [number] * runs


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        (["Type=oneshot", "ExecStart=/bin/x"], True),
        (["Type=oneshot", "RemainAfterExit=yes", "ExecStart=/bin/x"], False),
        (["Type=oneshot", "RemainAfterExit=no", "ExecStart=/bin/x"], True),
        (["Type=oneshot"], False),
        (["ExecStart=/bin/x"], False),
        (["ExecStart=-/bin/bash /x"], None),
        (["Type=oneshot", "Type=simple", "ExecStart=/bin/x"], False),
        (["[Install]", "Type=oneshot", "[Service]", "ExecStart=/bin/x"], False),
    ],
)
def test_whether_a_service_has_stopped_when_the_boot_has_ended(
    lines: list[str], ended: bool | None
) -> None:
    assert has_ended(parse_unit(UNIT, "\n".join(("[Service]", *lines)))) is ended


def test_a_unit_that_may_be_started_is_doubted_as_a_whole() -> None:
    text = f"[Service]\n{RUN}\n"
    assert is_doubtful(settle_unit({UNIT: text}, runs=None)[UNIT])
    assert not is_doubtful(settle_unit({UNIT: text})[UNIT])
    assert settle_unit({UNIT: text}, runs=False)[UNIT] == f"[Service]\n#{RUN}\n"


def test_each_file_of_a_unit_has_its_own_doubts_and_comments() -> None:
    dropin = f"{UNIT}.d/a.conf"
    texts = {
        UNIT: f"[Service]\nExecCondition=/bin/x\n{RUN} \\\n c.d=2\n",
        dropin: f"[Service]\nNice=5\n\nExecStart=\n{RUN}\n",
    }
    unit, after = settle_unit(texts).values()
    assert unit == f"[Service]\nExecCondition=/bin/x\n#{RUN} \\\n# c.d=2\n"
    assert [number for number in range(1, 7) if is_doubtful(after, number)] == [5]
    assert not any(is_doubtful(unit, number) for number in range(1, 6))
    texts[dropin] = "[Service]\nNice=5\n"
    unit = settle_unit(texts)[UNIT]
    assert [number for number in range(1, 7) if is_doubtful(unit, number)] == [3, 4]


def test_the_lines_of_a_unit() -> None:
    text = "# a\n; b\n[Service]\n A = 1 \n\nB=2 \\\n# no\n 3\n[x\ny]\nC=4\\"
    assert list(parse_unit(UNIT, text)) == [
        Setting(UNIT, 4, 4, "Service", "A", "1"),
        Setting(UNIT, 6, 8, "Service", "B", "2  3"),
        Setting(UNIT, 11, 12, "Service", "C", "4"),
    ]
    assert list(parse_unit(UNIT, "# a\nA=1")) == [Setting(UNIT, 2, 2, "", "A", "1")]


def test_a_comment_is_no_part_of_the_command_around_it() -> None:
    text = "[Service]\n# a\nExecStart=/b \\\n# c\n d\n"
    assert list(list_commands(UNIT, text)) == [(3, "ExecStart=/b \\"), (5, " d")]


def test_what_is_known_of_a_text_is_known_of_what_is_made_of_it() -> None:
    first = mark("a", "a", doubts={1}, unread={2})
    assert not is_settled(first)
    second = mark("b", first, doubts={3})
    assert (second.doubts, second.unread) == ({1, 3}, {2})
    assert not is_settled("a")
