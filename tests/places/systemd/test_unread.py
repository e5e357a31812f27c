# SPDX-License-Identifier: GPL-3.0-or-later
"""What people write for systemd and it ignores is found, with what they meant; nothing else is."""

from __future__ import annotations

import time

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.systemd.unread import find_item, find_slips, format_limit, read_meant

PATH = "/etc/systemd/system/x.service"


def slips(text: str, section: str = "Service", prefix: str = "") -> list[tuple[int, str, str]]:
    found = find_slips(Source(PATH, text), section, prefix)
    return [(one.at.line, one.code.replace("unit-line-", ""), one.instead) for one in found]


@pytest.mark.parametrize(
    ("line", "code", "instead"),
    [
        ("LimitNOFILE=64k", "ignored", "LimitNOFILE=65536"),
        ("LimitNOFILE=64K:128K", "ignored", "LimitNOFILE=65536:131072"),
        ("LimitNOFILE=unlimited", "ignored", "LimitNOFILE=infinity"),
        ("LimitNOFILE=-1", "ignored", "LimitNOFILE=infinity"),
        ("LimitNOFILE=1024 4096", "ignored", "LimitNOFILE=1024:4096"),
        ("LimitNOFILE=65536 # enough", "ignored", "LimitNOFILE=65536"),
        ("LimitNOFILE=65536;", "ignored", "LimitNOFILE=65536"),
        ('LimitNOFILE="65536"', "ignored", "LimitNOFILE=65536"),
        ("LimitNOFILE=65,536", "ignored", "LimitNOFILE=65536"),
        ("LimitNOFILE=1e6", "ignored", "LimitNOFILE=1000000"),
        ("LimitNOFILE=131072:65536", "ignored", "LimitNOFILE=65536:131072"),
        ("LimitMEMLOCK=8GiB", "ignored", "LimitMEMLOCK=8G"),
        ("LimitMEMLOCK=64kb", "ignored", "LimitMEMLOCK=64K"),
        ("LimitNOFILE=", "ignored", ""),
        ("LimitNOFILE=many", "ignored", ""),
        ("LimitNOFILE=1:2:3", "ignored", ""),
        ("LimitNoFile = 65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFILES=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFIL=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFFILE=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFIEL=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimtNOFILE=65536", "misspelled", "LimitNOFILE=65536"),
        ("Limit_NOFILE=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitOpenFiles=65536", "misspelled", "LimitNOFILE=65536"),
        ("DefaultLimitNOFILE=65536", "misspelled", "LimitNOFILE=65536"),
        ("nofile=65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFILE 65536", "misspelled", "LimitNOFILE=65536"),
        ("LimitNOFILE: 65536", "misspelled", "LimitNOFILE=65536"),
        ("#LimitNOFILE=65536", "commented-out", "LimitNOFILE=65536"),
        ("; LimitNOFILE=65536", "commented-out", "LimitNOFILE=65536"),
    ],
)
def test_a_line_is_told_as_it_was_meant(line: str, code: str, instead: str) -> None:
    assert slips(f"[Service]\n{line}\n") == [(2, code, instead)]


@pytest.mark.parametrize(
    "line",
    [
        "LimitNOFILE=65536",
        "LimitNOFILE=infinity",
        "LimitMEMLOCK=8G",
        "LimitCPU=10min",
        "LimitNICE=+5",
        "LimitCPU=10m",
        "LimitXYZ=5",
        "Nice=5",
        "limitnofile=many",
        "#LimitNOFILE=many",
        "TasksMax=5",
        "Environment=nofile=5",
        "# LimitNOFILE: 65536",
        "# The nofile 65536 is a lot",
        "# limitnofile=65536",
        "",
    ],
)
def test_other_lines_are_no_slips(line: str) -> None:
    assert slips(f"[Service]\n{line}\n") == []


def test_other_lines_hide_none_after_them() -> None:
    text = "[Service]\nExecStart=/bin/x\nx\nLimitNOFILE=64k\n"
    assert [number for number, _code, _instead in slips(text)] == [4]


def test_a_comment_in_another_section_is_no_slip() -> None:
    assert slips("[Unit]\n#LimitNOFILE=65536\n") == []


@pytest.mark.parametrize(
    ("text", "line", "reason", "header"),
    [
        ("LimitNOFILE=5\n", 1, "it stands before any section, and belongs in [Service]", 0),
        ("[Unit]\nLimitNOFILE=5\n", 2, "it stands in section [Unit], and belongs in [Service]", 0),
        (
            "\n[services]\nLimitNOFILE=5\n",
            3,
            "it stands in section [services], and belongs in [Service]",
            2,
        ),
    ],
)
def test_a_line_in_the_wrong_section(text: str, line: int, reason: str, header: int) -> None:
    (slip,) = find_slips(Source(PATH, text), "Service")
    assert (slip.at.line, slip.reason, slip.header) == (line, reason, header)
    assert (slip.code, slip.belongs) == ("unit-line-misplaced", "Service")


def test_the_manager_has_its_own_section_and_keys() -> None:
    text = "[Manager]\nDefaultLimitNOFILE=5\nLimitNOFILE=6\n#DefaultLimitNOFILE=7:8\n"
    assert slips(text, "Manager", "Default") == [
        (3, "misspelled", "DefaultLimitNOFILE=6"),
        (4, "commented-out", "DefaultLimitNOFILE=7:8"),
    ]


def test_a_reason_quotes_what_systemd_accepts() -> None:
    (slip,) = find_slips(Source(PATH, "[Service]\nLimitNOFILE=64k\n"), "Service")
    accepted = "accepted is a whole number, 'infinity', or two of them as soft:hard"
    assert slip.reason == f"systemd ignores it: {accepted}"
    (slip,) = find_slips(Source(PATH, "[Service]\nlimitNOFILE=5\n"), "Service")
    assert slip.reason == "systemd does not know it: the key is LimitNOFILE"
    (slip,) = find_slips(Source(PATH, "[Service]\nLimitNOFILE 5\n"), "Service")
    assert slip.reason == "systemd does not know it: a line is LimitNOFILE=VALUE"


@pytest.mark.parametrize("key", ["Nice", "CPU", "Core", "LimitX", "Limits", "Restart", "LimitASX"])
def test_other_keys_are_no_limits(key: str) -> None:
    assert find_item(key) == ""


@pytest.mark.parametrize(
    ("item", "text", "limit"),
    [
        ("nofile", "max", Rlimit(UNLIMITED, UNLIMITED)),
        ("nofile", "1024, 4096", Rlimit(1024, 4096)),
        ("memlock", "99999999T", Rlimit(UNLIMITED, UNLIMITED)),
        ("memlock", "64M, 1t", Rlimit(2**26, 2**40)),
        ("memlock", "1 k 2gib", None),
        ("memlock", "1k 2gib", Rlimit(2**10, 2**31)),
        ("nofile", "", None),
        ("cpu", "5", Rlimit(5, 5)),
    ],
)
def test_values_as_people_mean_them(item: str, text: str, limit: Rlimit | None) -> None:
    assert read_meant(item, text) == limit


@pytest.mark.parametrize(
    ("item", "limit", "text"),
    [
        ("nofile", Rlimit(5, 5), "5"),
        ("nofile", Rlimit(5, UNLIMITED), "5:infinity"),
        ("memlock", Rlimit(65536, 8 * 2**30), "64K:8G"),
        ("memlock", Rlimit(0, 1000), "0:1000"),
        ("cpu", Rlimit(60, 120), "60:120"),
    ],
)
def test_a_limit_is_written_as_systemd_reads_it(item: str, limit: Rlimit, text: str) -> None:
    assert format_limit(item, limit) == text


@pytest.mark.parametrize("blank", [" ", "\t", "\r", " \t"])
def test_a_line_of_a_user_is_read_in_the_time_of_its_length(blank: str) -> None:
    gap = blank * (200_000 // len(blank))
    begun = time.process_time()
    list(find_slips(Source("/u", f"[Service]\nLimitNOFILE=5{gap}x\nA=x{gap}x\n"), "Service"))
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("key", "item"),
    [
        ("fsize", "fsize"),
        ("NPROC", "nproc"),
        ("stack", "stack"),
        ("core", ""),
        ("data", ""),
        ("rss", ""),
        ("nice", ""),
        ("LimitCore", "core"),
        ("limits_core", "core"),
        ("LimitCores", "core"),
        ("LimitRSS", "rss"),
        ("LimitRS", ""),
        ("LimitCor", "core"),
        ("LimitNOFLIE", "nofile"),
        ("LimitNOIFLE", "nofile"),
        ("LimitNOXXLE", ""),
        ("XimitNOFILE", "nofile"),
        ("XimitNOFIL", ""),
        ("LXmitNOFIL", ""),
        ("LimitNOFILEXX", ""),
    ],
)
def test_a_short_word_alone_is_no_limit(key: str, item: str) -> None:
    """``Core`` and ``Data`` mean much else, ``FSIZE`` does not."""
    assert find_item(key) == item
