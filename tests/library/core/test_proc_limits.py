# SPDX-License-Identifier: GPL-3.0-or-later
"""``/proc/PID/limits`` is read to the row, and an unreadable row is never skipped in silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit, parse_proc_limits

DEBIAN_12 = """\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             11697                11697                processes 
Max open files            1024                 1048576              files     
Max locked memory         391057408            391057408            bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       11697                11697                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
"""  # noqa: W291 - a login on Debian 12, Linux 6.1, with the blanks that the kernel prints


def test_every_limit_is_read() -> None:
    limits = parse_proc_limits(DEBIAN_12)
    assert tuple(limits) == RLIMITS
    assert {name: limits[name] for name in ("nofile", "memlock", "stack", "nice")} == {
        "nofile": Rlimit(1024, 1048576),
        "memlock": Rlimit(391057408, 391057408),
        "stack": Rlimit(8388608, UNLIMITED),
        "nice": Rlimit(0, 0),
    }


def test_the_limits_of_this_process_are_read() -> None:
    assert tuple(parse_proc_limits(Path("/proc/self/limits").read_text("ascii"))) == RLIMITS


def test_a_row_of_a_later_kernel_is_skipped() -> None:
    grown = (
        DEBIAN_12
        + "Max quantum entanglement  5                    9                    qubits    \n"
    )
    assert parse_proc_limits(grown) == parse_proc_limits(DEBIAN_12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1024 ", "many ", "Max open files: 'many' is not a number or 'unlimited'"),
        (
            "1024 ",
            "\u0661\u0662\u0663\u0664 ",
            "Max open files: '\u0661\u0662\u0663\u0664' is not a number or 'unlimited'",
        ),
        ("Max open files", "Max open doors", "no row 'Max open files' in /proc/PID/limits"),
        ("1048576 ", "        ", "Max open files: 'files' is not a number or 'unlimited'"),
    ],
    ids=["a word", "digits of others", "a missing row", "a missing value"],
)
def test_what_cannot_be_read_is_refused(old: str, new: str, message: str) -> None:
    assert old in DEBIAN_12
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_proc_limits(DEBIAN_12.replace(old, new))


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^no row 'Max cpu time' in /proc/PID/limits$"):
        parse_proc_limits("")
