# SPDX-License-Identifier: GPL-3.0-or-later
"""A line that was meant for a sysctl and does nothing is found; a line about another never is."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.finding import Requirement
from mlhost_limits.kernel.unread import find_unread

from tests.worlds.kernel_world import MAPS, World

D, LIB = "/etc/sysctl.d", "/usr/lib/sysctl.d"
NEEDED = Requirement("kernel", MAPS, "value", 262144)


def find(
    top: Path, files: dict[str, str], wanted: Requirement = NEEDED
) -> list[tuple[str, str, str]]:
    facts = World(top, files, "1000", wanted.item).gather()
    return [(one.code, one.at.place, one.instead) for one in find_unread(wanted, facts)]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (f"{MAPS} 262144", "262144"),
        (f"{MAPS}\t300000 # for maps", "300000"),
        (f"{MAPS}: 300,000", "300000"),
        (f"{MAPS} == 300000;", "300000"),
        (f"'{MAPS}' = 300000", "300000"),
        (f"export {MAPS}=300000", "300000"),
        (f"/sbin/sysctl -q -w {MAPS}=300000", "300000"),
        ("/proc/sys/vm/max_map_count = 300000", "300000"),
        ("vm max_map_count = 300000", "300000"),
        ("vm.max-map-count = 300000", "300000"),
        ("vm_max_map_count = 1g", "262144"),
        ("vm.max_map_cont = 300000", "300000"),
        ("vm.maxx_map_cuont = 300000", ""),
        ("vm max_map_count 300000", "300000"),
        ("vm.max_map_cnt = 300000", "300000"),
        ("vm.max_map_ct = 300000", ""),
        ("xxvm.max_map_count = 300000", "300000"),
        ("vm.max_map_countxx = 300000", "300000"),
        ("xxxvm.max_map_count = 300000", ""),
        ("vm.max_mop_coont = 300000", "300000"),
        ("vm.mox_mop_coont = 300000", ""),
        ("vm.swappiness = 300000", ""),
        ("vm.max_map_count_ratio = 300000", ""),
        (f"{MAPS} = 1000", ""),
        (f"{MAPS} 1000", ""),
        (f"{MAPS} 1000k", "262144"),
        (f"{MAPS} 1k", ""),
        (f"{MAPS} infinity", "262144"),
        (f"{MAPS} high", ""),
        (f"{MAPS} 99999999999", ""),
        (f"{MAPS}", ""),
        (f"-{MAPS}", ""),
        ("[sysctl]", ""),
    ],
)
def test_what_a_line_was_meant_to_say(line: str, instead: str, tmp_path: Path) -> None:
    found = find(tmp_path, {f"{D}/a.conf": f"\n{line}\n"})
    code = "sysctl-line-skipped"
    expected = [(code, f"{D}/a.conf:2", f"{MAPS} = {instead}")] if instead else []
    assert [(code, place, text) for _code, place, text in found] == expected


@pytest.mark.parametrize(
    ("line", "found"), [("net.x: 1 2", True), ("net.x: 1 3", False), ("net.x unlimited", False)]
)
def test_a_text_must_be_the_one_required(line: str, found: bool, tmp_path: Path) -> None:
    wanted = Requirement("kernel", "net.x", "value", exact="1 2")
    assert bool(find(tmp_path, {f"{D}/a.conf": line}, wanted)) is found


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({f"{D}/a.conf": f"{MAPS} 262144"}, "it has no '=', so that it is skipped"),
        ({f"{D}/a.conf": "vm_max_map_count = 262144"}, "this kernel has no key of that name"),
        ({f"{D}/a.conf": f"{MAPS} = 262,144"}, "the kernel refuses that value"),
        (
            {f"{LIB}/a.conf": f"{MAPS} = 262144", f"{D}/a.conf": " \n"},
            f'{D}/a.conf "an empty file" hides it',
        ),
        (
            {f"{LIB}/a.conf": f"{MAPS} = 262144", f"{D}/a.conf": "#\n"},
            f'{D}/a.conf "a file of the same name" hides it',
        ),
    ],
)
def test_why_a_line_does_not_count(files: dict[str, str], reason: str, tmp_path: Path) -> None:
    facts = World(tmp_path, files, "1000").gather()
    assert [one.reason for one in find_unread(NEEDED, facts)] == [reason]


def test_a_line_that_counts_hides_none_after_it(tmp_path: Path) -> None:
    found = find(tmp_path, {f"{D}/a.conf": f"{MAPS} = 1000\n{MAPS} 262144\n"})
    assert [place for _code, place, _text in found] == [f"{D}/a.conf:2"]


def test_no_word_means_no_limit_where_little_is_asked(tmp_path: Path) -> None:
    wanted = NEEDED._replace(minimum=None, maximum=5)
    assert find(tmp_path, {f"{D}/a.conf": f"{MAPS} unlimited\n"}, wanted) == []
    assert find(tmp_path, {f"{D}/b.conf": f"{MAPS} 1k\n"}, wanted) == []
    assert find(tmp_path, {f"{D}/c.conf": f"{MAPS} 4\n"}, wanted)
    wanted = NEEDED._replace(minimum=None, maximum=1024)
    found = find(tmp_path / "b", {f"{D}/c.conf": f"{MAPS} 1k\n"}, wanted)
    assert [instead for _code, _place, instead in found] == [f"{MAPS} = 1024"]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("90-map", "90-map.conf"),
        ("90-map.CONF", "90-map.conf"),
        ("90-map.cnf", "90-map.conf"),
        ("90-map.conf.txt", "90-map.conf"),
        ("90-map.v2", "90-map.v2.conf"),
        (".90-map", "90-map.conf"),
        ("90-map.conf~", ""),
        ("90-map.conf.bak", "90-map.conf"),
        ("90-map.conf.sample", ""),
        ("90-map.conf.dpkg-old", ""),
        ("90-map.conf.rpmsave", ""),
        ("90-map.disabled", ""),
    ],
)
def test_the_name_under_which_a_file_would_be_read(name: str, right: str, tmp_path: Path) -> None:
    facts = World(tmp_path, {f"{D}/{name}": f"{MAPS} = 262144\n"}, "1000").gather()
    found = [one.name for one in find_unread(NEEDED, facts)]
    assert found == ([f"{D}/{right}"] if right else [])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"#{MAPS} = 262144", True),
        (f" ;; {MAPS}=262144", True),
        (f"# {MAPS}: systemd starts with at least 262144; a line might lower it.", False),
        (f"#mlhost.limits# {MAPS} = 262144", False),
        (f"# set {MAPS} = 262144", False),
        (f"# {MAPS} = 1000", False),
        ("# vm.swappiness = 262144", False),
        (f"# {MAPS} = many", False),
        ("# .=1", False),
    ],
)
def test_comments_that_were_lines(line: str, found: bool, tmp_path: Path) -> None:
    codes = [code for code, _place, _text in find(tmp_path, {f"{D}/a.conf": f"{line}\n"})]
    assert codes == ["sysctl-commented-out"] * found


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{LIB}/a.conf": f"{MAPS} = 262144\n-{MAPS}\n", f"{D}/a.conf": ""}, []),
        ({f"{LIB}/a.conf": f"{MAPS} = 262144\n", f"{D}/a.conf": "\n"}, [f"{LIB}/a.conf:1"]),
        ({f"{LIB}/a.conf": "#\n", f"{D}/a.conf": ""}, []),
        # One folder under two names hides nothing.
        (dict.fromkeys((f"{LIB}/a.conf", "/lib/sysctl.d/a.conf"), f"{MAPS} = 262144\n"), []),
        ({"/etc/sysctl.conf": f"{MAPS} = 262144\n"}, ["/etc/sysctl.conf:1"]),
        ({"/etc/sysctl.conf": f"{MAPS} = 262144x\n"}, []),
        ({"/etc/sysctl.conf": f"{MAPS} = 262144\n", f"{D}/z.conf": "->../sysctl.conf"}, []),
        ({f"{LIB}/.a.conf": f"{MAPS} = 262144\n"}, []),
        (
            {"/etc/sysctl.conf": f"{MAPS} = 262144\n", f"{D}/sysctl.conf": "#\n"},
            ["/etc/sysctl.conf:1"],
        ),
    ],
)
def test_files_that_are_not_read(
    files: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    assert [place for _code, place, _text in find(tmp_path, files)] == expected
