# SPDX-License-Identifier: GPL-3.0-or-later
"""What a script writes to a key is known with what stands around the value in its line."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_scripts import (
    _LONGEST,
    find_loader_words,
    find_script_writes,
    is_about_sysctls,
)

KEY, FILE = "vm.max_map_count", "/proc/sys/vm/max_map_count"
RC = "/etc/rc.local"


@pytest.mark.parametrize(
    ("text", "is_about"),
    [
        (f"echo 1 > {FILE}", True),
        ("cd /proc\necho 1 > sys/vm/max_map_count", True),
        ("sysctl --system", True),
        ('RUN+="x", SYSCTL{vm/x}="1"', True),
        ("cat /proc/cpuinfo", False),
        ("ls /sys/class", False),
        ("echo sys/x", False),
        ("cat /proc/cpuinfo /sys/class/x", False),
    ],
)
def test_the_scripts_that_are_looked_at(text: str, is_about: bool) -> None:
    assert is_about_sysctls(text) is is_about


def test_the_words_of_a_boot_loader() -> None:
    text = f"# sysctl.{KEY}=1\nlinux sysctl.{KEY}=2 'sysctl.vm/max_map_count=3' xsysctl.{KEY}=4\n"
    found = [(at.line, at.text, at.value) for at in find_loader_words(KEY, {"/g": text})]
    assert found == [(2, f"sysctl.{KEY}=2", "2"), (2, "sysctl.vm/max_map_count=3", "3")]


@pytest.mark.parametrize(
    ("path", "line", "value", "before", "after"),
    [
        (RC, f"sysctl -w {KEY}=5", "5", f"sysctl -w {KEY}=", ""),
        (RC, f"true; sysctl -w a.b=1 {KEY}=5 c.d=2", "5", f"sysctl -w a.b=1 {KEY}=", ""),
        (RC, f"x && echo 5 > {FILE}; y", "5", "echo ", f" > {FILE}"),
        ("/etc/tmpfiles.d/a.conf", f"w {FILE} - - - - 5", "5", f"w {FILE} - - - - ", ""),
        ("/etc/tmpfiles.d/a.conf", f"w {FILE} - - - - a b", "", "", ""),
        ("/etc/tmpfiles.d/a.conf", f"f {FILE} - - - - 5", "", "", ""),
    ],
)
def test_what_stands_around_a_value(
    path: str, line: str, value: str, before: str, after: str
) -> None:
    (found,) = find_script_writes(KEY, {path: f"#!/bin/sh\n{line}\n"})
    assert (found.at.line, found.at.value) == (2, value)
    assert (found.before, found.after) == (before, after)


@pytest.mark.parametrize(
    ("start", "values"),
    [(f"sysctl -w {KEY}=5; ", ["5", ""]), ("sysctl -w vm.$k=5; ", [""]), ("echo $k; ", [])],
)
def test_of_a_very_long_line_nothing_is_known_for_sure(start: str, values: list[str]) -> None:
    for length, told in ((_LONGEST, values[:1]), (_LONGEST + 1, values[-1:])):
        line = start.ljust(length, "x")
        found = find_script_writes(KEY, {RC: f"#!/bin/sh\n{line}\n"})
        assert [one.at.value for one in found] == told
