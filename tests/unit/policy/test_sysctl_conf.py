# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that wins a sysctl at boot is the one systemd-sysctl writes.

The expectations were measured with systemd 252 on Debian 12.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.policy.sysctl_conf import (
    SYSCTL_DIRECTORIES,
    find_boot_default,
    order_files,
    parse_sysctl_conf,
    parse_sysctl_number,
    resolve_sysctl,
)

ETC = "/etc/sysctl.d"
TTL = "net.ipv4.ip_default_ttl"


def winner(*texts: str, key: str = TTL) -> object:
    """Return the value that wins over the files a.conf, b.conf … with these texts."""
    files = {f"{ETC}/{name}.conf": text for name, text in zip("abcdef", texts)}
    bound = resolve_sysctl(files, [key]).get(key)
    return bound.winner.value if bound else None


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


def test_an_assignment_knows_its_place() -> None:
    text = "# note\n; note\n\nfs.file-max 5\n  -fs/file-max =  5 # five \r\n"
    lines = parse_sysctl_conf(text, "/x")
    assert [tuple(line) for line in lines] == [
        ("/x", 5, "-fs/file-max =  5 # five", "fs.file-max", "5 # five", False)
    ]
    assert lines[0].declaration.place == "/x:5"
    assert lines[0].declaration.value == 5


@pytest.mark.parametrize(
    "text", ["", "# a = 1", "; a = 1", "fs.file-max", "= 5", "-= 5", "-", "- = 5"]
)
def test_other_lines_do_not_count(text: str) -> None:
    assert parse_sysctl_conf(text, "/x") == []


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        ([f"{TTL} = 10", f"{TTL} = 11"], 11),
        ([f"{TTL} = 10\n{TTL}=11"], 11),
        (["net/ipv4/ip_default_ttl = 10"], 10),
        (["/net/ipv4/ip_default_ttl = 10"], 10),
        (["net/ipv4.ip_default_ttl = 10"], None),
        (["NET.ipv4.ip_default_ttl = 10"], None),
        ([f"- {TTL} = 10"], 10),
        ([f"--{TTL} = 10"], None),
        ([f"{TTL} = 10\r\n"], 10),
        ([f"{TTL} = 10\0junk"], 10),
        ([f"{TTL} = 10", f"{TTL} = 11x"], "11x"),
        ([f"{TTL} = 10", f"{TTL} ="], ""),
        ([f"{TTL} = 10\\\n{TTL} = 11"], 11),
        (["net.ipv4.*_ttl = 10"], 10),
        (["net.*.ip_default_ttl = 10"], 10),
        (["net.ipv4.ip_default_tt? = 10"], 10),
        (["net.ipv4.ip_default_tt[l] = 10"], 10),
        (["net.* = 10"], None),
        ([f"{TTL} = 10", "net.ipv4.*_ttl = 11"], 10),
        (["net.ipv4.*_ttl = 11", "net.ipv4.ip_* = 12"], 12),
        # "-key" alone undoes what stands before it, and keeps the globs away.
        ([f"{TTL} = 10", f"-{TTL}"], ""),
        ([f"-{TTL}", f"{TTL} = 10"], 10),
        ([f"-{TTL}", "net.ipv4.*_ttl = 11"], ""),
        (["net.ipv4.*_ttl = 11", "-net.ipv4.*_ttl"], 11),
        ([], None),
    ],
)
def test_the_value_at_boot(texts: list[str], value: object) -> None:
    assert winner(*texts) == value


def test_a_winner_knows_what_it_shadows() -> None:
    files = {
        f"{ETC}/b.conf": f"{TTL} = 1\n{TTL} = 2",
        f"{ETC}/a.conf": f"net.ipv4.*_ttl = 3\n{TTL}=4",
    }
    bound = resolve_sysctl(files, [TTL])[TTL]
    assert bound.winner.place == f"{ETC}/b.conf:2"
    assert [one.value for one in bound.shadowed] == [3, 4, 1]


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


@given(st.text(st.characters(max_codepoint=255)))
def test_any_bytes_are_resolved(text: str) -> None:
    keys = [line.key for line in parse_sysctl_conf(text, f"{ETC}/a.conf")]
    resolve_sysctl({f"{ETC}/a.conf": text}, keys)


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
