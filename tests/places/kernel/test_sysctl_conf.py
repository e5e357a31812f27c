# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of sysctl.d are read as systemd-sysctl and as procps read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.kernel.sysctl_conf import (
    SYSCTL_DIRECTORIES,
    SysctlLine,
    find_boot_default,
    find_number,
    order_files,
    parse_procps3_conf,
    parse_procps_conf,
    parse_sysctl_conf,
    parse_sysctl_number,
    spell_key,
)

ETC = "/etc/sysctl.d"


def test_files_are_ordered_by_name_over_all_folders() -> None:
    files = dict.fromkeys(
        [
            "/lib/sysctl.d/b.conf",
            "/usr/lib/sysctl.d/10-z.conf",
            "/etc/sysctl.d/B.conf",
            "/run/sysctl.d/a.conf",
        ],
        "",
    )
    assert [path.rpartition("/")[2] for path in order_files(files)] == [
        "10-z.conf",
        "B.conf",
        "a.conf",
        "b.conf",
    ]


@pytest.mark.parametrize("index", range(len(SYSCTL_DIRECTORIES)))
def test_a_file_hides_its_namesakes_in_the_folders_below(index: int) -> None:
    files = {f"{folder}/a.conf": "" for folder in reversed(SYSCTL_DIRECTORIES[index:])}
    assert order_files(files) == [f"{SYSCTL_DIRECTORIES[index]}/a.conf"]


@pytest.mark.parametrize("name", ["a.CONF", "a.conf.bak", "a", ".a.conf", "x/a.conf"])
def test_other_files_do_not_count(name: str) -> None:
    assert order_files({f"{ETC}/{name}": "", "/etc/sysctl.conf": ""}) == []


def test_procps_reads_hidden_files_too_and_sysctl_conf_last() -> None:
    files = [f"{ETC}/z.conf", f"{ETC}/.a.conf", "/etc/sysctl.conf"]
    order = [f"{ETC}/.a.conf", f"{ETC}/z.conf", "/etc/sysctl.conf"]
    assert order_files(dict.fromkeys(files, ""), procps=True) == order


def test_an_assignment_knows_its_place() -> None:
    text = "# note\n; note\n\nfs.file-max 5\n  -fs/file-max =  5 # five \r\n"
    lines = parse_sysctl_conf(text, "/x")
    assert [tuple(line) for line in lines] == [
        ("/x", 5, "  -fs/file-max =  5 # five \r", "fs/file-max", "5 # five", False)
    ]
    assert lines[0].key == "fs.file-max"
    assert lines[0].declaration.place == "/x:5"


def test_where_systemd_ends_a_line_and_nobody_else_it_has_the_text_that_systemd_reads() -> None:
    (line,) = parse_sysctl_conf("# a\rfs.file-max = 5\n", "/x")
    assert (line.line, line.text) == (2, "fs.file-max = 5")


@pytest.mark.parametrize(
    ("stated", "value", "number"),
    [
        ("5", 5, 5),
        ("0x10", 16, 16),
        ("0", 0, 0),
        ("07", 7, 7),
        ("0100", 64, 64),
        ("5 # five", "5 # five", 5),
        ("4096 87380 6291456", "4096 87380 6291456", 4096),
        ("5k", "5k", None),
        ("", "", None),
    ],
)
def test_a_value_is_a_number_only_if_it_is_nothing_else(
    stated: str, value: int | str, number: int | None
) -> None:
    declaration = parse_sysctl_conf(f"a.b = {stated}", "/x")[0].declaration
    assert declaration.value == value
    assert find_number(declaration) == number


@pytest.mark.parametrize(
    "text", ["", "# a = 1", "; a = 1", "fs.file-max", "= 5", "-= 5", "-", "- = 5"]
)
def test_other_lines_do_not_count(text: str) -> None:
    assert parse_sysctl_conf(text, "/x") == []


@pytest.mark.parametrize(
    ("parse", "line", "name", "value"),
    [
        (parse_sysctl_conf, "- a.b = 1", "a/b", "1"),
        (parse_sysctl_conf, "--a.b = 1", "-a/b", "1"),
        (parse_sysctl_conf, "-a.b", "a/b", None),
        (parse_sysctl_conf, "/a//./b/=", "a/b", ""),
        (parse_sysctl_conf, "\ta.b\t=\t1\t2\r", "a/b", "1\t2"),
        (parse_sysctl_conf, "a.b = 1\v", "a/b", "1\v"),
        (parse_sysctl_conf, ".a.b = 1", "a/b", "1"),
        (parse_sysctl_conf, "/a.b = 1", "a.b", "1"),
        (parse_procps_conf, "a=", "a", ""),
        (parse_sysctl_conf, "\xa0a.b = 1", "\xa0a/b", "1"),
        (parse_procps_conf, "- a.b = 1", " a/b", "1"),
        (parse_procps_conf, "--a.b = 1", "a/b", "1"),
        (parse_procps_conf, "-a.b \r", "a/b", None),
        (parse_procps_conf, "a//b/=", "a//b/", ""),
        (parse_procps_conf, "\va.b = 1\v", "a/b", "1"),
        (parse_procps_conf, "a.b = 1\0 2", "a/b", "1"),
        (parse_procps3_conf, "- a.b = 1", " a/b", "1"),
        (parse_procps3_conf, "==a.b==1", "a/b", "=1"),
        (parse_procps3_conf, "-a.b = 1\r2", "a/b", "1"),
        (parse_procps3_conf, "a.* = 1\v", "a/*", "1\v"),
    ],
)
def test_each_program_reads_a_line_in_its_own_way(
    parse: Callable[[str, str], list[SysctlLine]], line: str, name: str, value: str | None
) -> None:
    """Measured with systemd 247 to 257 and procps 3.3.17 to 4.0.4."""
    assert [(found.name, found.value) for found in parse(f"# a\n{line}\n", "/x")] == [(name, value)]


@pytest.mark.parametrize(
    ("parse", "line"),
    [
        *((parse_procps_conf, line) for line in ("", "x", "a.b 1", "# a=1", " ; a=1", "\0a.b=1")),
        *((parse_procps3_conf, line) for line in ("a.b", "-a.b", "a.b=", "a.b= ", "=", "; a=1")),
        (parse_procps3_conf, "net.ipv4.neigh.lo.retrans_time = 5"),
    ],
)
def test_procps_leaves_other_lines_alone(
    parse: Callable[[str, str], list[SysctlLine]], line: str
) -> None:
    assert parse(line, "/x") == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a=1\nb=2\n\nc=3", [1, 2, 4]),
        ("a=1\r\nb=2\r\n\r\nc=3", [1, 2, 4]),
        ("a=1\rb=2\n\r\0c=3\0\nd=4", [1, 2, 3, 5]),
    ],
)
def test_systemd_counts_lines_by_any_line_end(text: str, numbers: list[int]) -> None:
    assert [line.line for line in parse_sysctl_conf(text, "/x")] == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("0", 0),
        ("012", 10),
        ("08", None),
        ("0x0B", 11),
        ("0X0b", 11),
        ("0x", None),
        ("10 # c", 10),
        ("10\t20", 10),
        ("10\0x", 10),
        ("10\v", None),
        ("10;c", None),
        ("11x", None),
        ("+12", None),
        ("-1", None),
        ("", None),
        (" 1", None),
        ("1.5", None),
        ("9" * 40, 10**40 - 1),
        ("9" * 41, None),
        ("0x" + "f" * 5000, None),
    ],
)
def test_a_number_is_read_as_the_kernel_reads_it(text: str, number: int | None) -> None:
    assert parse_sysctl_number(text) == number


@given(st.integers(0, 2**64 - 1), st.sampled_from(["%d", "0x%x", "0%o"]))
def test_every_base_gives_the_same_number(number: int, form: str) -> None:
    assert parse_sysctl_number(form % number) == number


@pytest.mark.parametrize(
    ("key", "running", "default"),
    [
        ("fs.file-max", 2**63 - 1, 2**63 - 1),
        ("fs.file-max", 2097152, None),
        ("fs.nr_open", 1048576, 1048576),
        ("fs.nr_open", 2097152, 1048576),
        ("fs.nr_open", 1073741816, 1073741816),
        ("fs.nr_open", None, 1048576),
        ("vm.max_map_count", 262144, 65530),
        ("kernel.pid_max", 4194304, None),
    ],
)
def test_what_is_known_of_a_boot_without_files(
    key: str, running: int | None, default: int | None
) -> None:
    assert find_boot_default(key, running) == default


def test_single_dots_and_empty_parts_are_no_part_of_a_key() -> None:
    assert [spell_key(name) for name in ("fs/./file-max", "fs//file-max", "/fs/file-max/")] == [
        "fs.file-max"
    ] * 3


def test_procps_3_counts_lines_from_one() -> None:
    lines = parse_procps3_conf("fs.file-max = 5\n\nfs.nr_open = 6\n", "/x")
    assert [one.line for one in lines] == [1, 3]
