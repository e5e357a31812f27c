# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of units are read into the kernel's unit as systemd reads them, and refused likewise."""

from __future__ import annotations

import re

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.systemd.values import _LONGEST, parse_limit_setting

LIMITS = {
    "LimitNOFILE": [
        ("1024", 1024, 1024),
        ("1024:4096", 1024, 4096),
        ("1024: 4096", 1024, 4096),
        ("infinity", UNLIMITED, UNLIMITED),
        ("1:infinity", 1, UNLIMITED),
        ("0x1000", 4096, 4096),
        ("010", 8, 8),
        ("0b11:0o17", 3, 15),
        ("+5", 5, 5),
        ("0", 0, 0),
        ("-0", 0, 0),
        ("-000", 0, 0),
        ("+010", 8, 8),
        ("0B1:0O7", 1, 7),
        ("1:2:", 1, 2),
        ("1\\2", 12, 12),
        (str(2**64 - 2), 2**64 - 2, 2**64 - 2),
        ("0" * _LONGEST, 0, 0),
    ],
    "DefaultLimitNPROC": [("5", 5, 5)],
    "LimitMEMLOCK": [
        ("64", 64, 64),
        ("64K:1.5M", 65536, 3 * 2**19),
        ("1 G", 2**30, 2**30),
        ("8B", 8, 8),
        ("1E", 2**60, 2**60),
        ("15E", 15 * 2**60, 15 * 2**60),
        ("0.18446744073709551615", 0, 0),
        ("14.5E", 29 * 2**59, 29 * 2**59),
        ("+5K", 5120, 5120),
        ("1.K", 1024, 1024),
        ("1K5", 1029, 1029),
        ("0.3K", 307, 307),
        ("1G 500M", 2**30 + 500 * 2**20, 2**30 + 500 * 2**20),
        ("infinity", UNLIMITED, UNLIMITED),
    ],
    "LimitCPU": [
        ("infinity ", UNLIMITED, UNLIMITED),
        (".5h", 1800, 1800),
        ("1h30", 3630, 3630),
        ("100 .5h", 1900, 1900),
        ("+100", 100, 100),
        ("10.0000009s", 10, 10),
        ("1y", 31557600, 31557600),
        ("3weeks", 3 * 7 * 86400, 3 * 7 * 86400),
        ("2500000\xc2\xb5s", 3, 3),
        ("10", 10, 10),
        ("1min 30s", 90, 90),
        ("2m", 120, 120),
        ("1month", 2629800, 2629800),
        ("2M", 2 * 2629800, 2 * 2629800),
        ("1500ms", 2, 2),
        ("2h:1d", 7200, 86400),
    ],
    "LimitRTTIME": [
        ("10", 10, 10),
        ("0.5ms:1s", 500, 10**6),
        (str(2**63 - 1), 2**63 - 1, 2**63 - 1),
    ],
    "LimitNICE": [
        ("5", 5, 5),
        ("+5", 15, 15),
        ("-20", 40, 40),
        ("+19", 1, 1),
        ("+0x5", 15, 15),
        ("++5", 15, 15),
        ("-0", 20, 20),
        ("40:40", 40, 40),
    ],
    "LimitRTPRIO": [("99", 99, 99)],
}


@pytest.mark.parametrize(
    ("unit", "microseconds"),
    [
        ("us", 1),
        ("ms", 1000),
        ("s", 10**6),
        ("min", 60 * 10**6),
        ("m", 60 * 10**6),
        ("h", 3600 * 10**6),
        ("d", 24 * 3600 * 10**6),
        ("w", 7 * 24 * 3600 * 10**6),
        ("M", 365.25 / 12 * 24 * 3600 * 10**6),
        ("y", 365.25 * 24 * 3600 * 10**6),
    ],
)
def test_the_units_of_time(unit: str, microseconds: float) -> None:
    limit = parse_limit_setting("LimitRTTIME", f"3{unit}")
    assert limit == Rlimit(int(3 * microseconds), int(3 * microseconds))


@pytest.mark.parametrize(
    ("key", "value", "soft", "hard"),
    [(key, *case) for key, cases in LIMITS.items() for case in cases],
)
def test_limits(key: str, value: str, soft: int, hard: int) -> None:
    """A limit of systemd is read into the kernel's unit."""
    assert parse_limit_setting(key, value) == Rlimit(soft, hard)


COUNT = "a whole number, 'infinity'"
SIZE = "a number of bytes, with K, M, G, T, P or E, 'infinity'"
TIME, NICE = "a time span such as 10min, 'infinity'", "a nice level with its sign, 0 to 40"
IGNORED = {
    ("LimitNOFILE", COUNT): [
        *(
            "unlimited",
            "-1",
            "64k",
            "64K",
            "1e5",
            "",
            "1024 4096",
            "1024 # x",
            ":5",
            "5:",
            "1024 : 4096",
        ),
        *(
            "1:2:3",
            "09",
            str(2**64 - 1),
            "\u0661",
            "1\\:2",
            "1\\",
            "0b",
            "0b2",
            "-01",
            "-08",
            "+-0",
            "0x",
            "50%",
            "0" * (_LONGEST + 1),
        ),
    ],
    ("LimitMEMLOCK", SIZE): [
        "unlimited",
        "64k",
        "64KB",
        "64KiB",
        "0x1000",
        "-1",
        "16E",
        "",
        "1M 1G",
        "1 2",
        "1K ",
        "1.5.5K",
        "16384P",
        "15.99E16B1",
        "9" * 30,
        "0." + "9" * 30,
        "15.5E",
        "15E1023P1024T",
    ],
    ("LimitCPU", TIME): [
        "",
        "x",
        "10 parsecs",
        "-1",
        "1min!",
        "5.",
        "1.2.3s",
        "5. h",
        "600000y",
        "infinityx",
        str(2**63),
        "580000y 9000y",
        "18446744073709551ms",
        "9223372036854775807us 9223372036854775807us 1us",
    ],
    ("LimitRTTIME", TIME): [str(2**63)],
    ("LimitNICE", NICE): ["41", "+20", "+21", "-21", "x", "infinity"],
}


@pytest.mark.parametrize(
    ("key", "accepted", "value"),
    [(*key, value) for key, values in IGNORED.items() for value in values],
)
def test_ignored_limits(key: str, accepted: str, value: str) -> None:
    """What systemd ignores with a warning is an error, with what it would take."""
    message = (
        f"{key}={value} is ignored by systemd: accepted is {accepted}, or two of them as soft:hard"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_limit_setting(key, value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("LimitNOFILE", "2:1", "LimitNOFILE=2:1 is ignored by systemd: soft is above hard"),
        ("LimitMAXLOGINS", "1", "'LimitMAXLOGINS' is not a limit of systemd"),
        ("limitNOFILE", "1", "'limitNOFILE' is not a limit of systemd"),
        ("TasksMax", "1", "'TasksMax' is not a limit of systemd"),
    ],
)
def test_other_limit_errors(key: str, value: str, message: str) -> None:
    """Soft above hard is ignored by systemd; other keys are no limits, case counts."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_limit_setting(key, value)
