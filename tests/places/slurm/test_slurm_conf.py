# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm.conf is read as Slurm reads it: each case was put before Slurm 22.05."""

from __future__ import annotations

import pytest
from mlhost_limits.slurm import slurm_conf
from mlhost_limits.slurm.policy import PROPAGATED
from mlhost_limits.slurm.slurm_conf import (
    _DEEPEST,
    Propagation,
    parse_slurm_conf,
    read_propagation,
    read_shown,
    read_use_pam,
    write_propagation,
)

C = "/etc/slurm/slurm.conf"
ALL = frozenset(PROPAGATED)
START = "ClusterName=One\n"


def items(text: str, **others: str) -> frozenset[str]:
    files = {C: text, **{f"/etc/slurm/{name}.conf": other for name, other in others.items()}}
    conf = parse_slurm_conf(files, C)
    assert not conf.faults
    assert not conf.missing
    return frozenset(read_propagation(conf).items)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ALL),
        ("#PropagateResourceLimits=NONE\n", ALL),
        ("PropagateResourceLimits=NONE\n", set()),
        ("PropagateResourceLimits=NONE", set()),
        ("PropagateResourceLimits=NONE\r\n", set()),
        ("PropagateResourceLimits=NONE # as agreed\n", set()),
        ("  propagateresourcelimits = NONE  \n", set()),
        ('PropagateResourceLimits=""\n', set()),
        ("PropagateResourceLimits=ALL\n", ALL),
        ("PropagateResourceLimits=NONE\nPropagateResourceLimits=ALL\n", ALL),
        ("PropagateResourceLimits=MEMLOCK,RLIMIT_NOFILE\n", {"memlock", "nofile"}),
        ('PropagateResourceLimits="MEMLOCK, NOFILE"\n', {"memlock", "nofile"}),
        ("PropagateResourceLimitsExcept=MEMLOCK,NOFILE\n", ALL - {"memlock", "nofile"}),
        ("PropagateResourceLimitsExcept=ALL\n", set()),
        ("PropagateResourceLimitsExcept=NONE\n", ALL),
        ("PropagateResourceLimitsExcept=CPU\nPropagateResourceLimits=NONE\n", ALL - {"cpu"}),
        ("PropagateResourceLimits=NONE\nPropagateResourceLimitsExcept=CPU\n", ALL - {"cpu"}),
        ("PropagateResourceLimits=\\\nNONE\n", set()),
        ("PropagateResourceLimits=\\   # why\nNONE\n", set()),
        ("PropagateResourceLimits=CORE\\\n,CPU\n", {"core", "cpu"}),
        ("Prolog=/a\\#b\nPropagateResourceLimits=NONE\\", set()),
        ("NodeName=n CPUs=2 # two\nPropagateResourceLimits=NONE\n", set()),
    ],
)
def test_what_jobs_take_over(text: str, expected: set[str]) -> None:
    assert items(START + text) == expected


def test_included_files_count_where_they_stand() -> None:
    assert (
        items("include a.conf\nPropagateResourceLimits=NONE\n", a="PropagateResourceLimits=CPU\n")
        == set()
    )
    text = "PropagateResourceLimits=NONE\nINCLUDE\t/etc/slurm/a.conf  \n"
    assert items(text, a="include b.conf\n", b="PropagateResourceLimits=CPU\n") == {"cpu"}
    assert items(f"{START}include %c.conf\n", one="PropagateResourceLimits=NONE\n") == set()


def test_a_file_that_includes_itself_ends() -> None:
    assert items("PropagateResourceLimits=NONE\ninclude slurm.conf\n") == set()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"A=x\#b", "x#b"),
        (r"A=x\\#b", "x\\"),
        (r"A=x\\\#b", r"x\#b"),
        (r"A=x#b", "x"),
        ("A=x\\\ny", "xy"),
        ("A=x\\\\\n\n", "x\\"),
        ("A=x\\\\\\\ny", "x\\y"),
        ("A=x\\  # why\ny", "xy"),
    ],
)
def test_a_backslash_holds_for_what_follows_it(text: str, value: str) -> None:
    """A second one takes its meaning away."""
    line = parse_slurm_conf({C: text}, C).find("a")
    assert line
    assert line.value == value


def test_files_are_included_so_deep() -> None:
    files = {f"/{n}": f"A={n}\ninclude /{n + 1}\n" for n in range(_DEEPEST + 5)}
    conf = parse_slurm_conf(files, "/0")
    assert [one.value for one in conf.stated["a"]] == [str(n) for n in range(_DEEPEST + 1)]


@pytest.mark.parametrize(("rows", "faults"), [(4, 0), (5, 1), (50, 1)])
def test_lines_are_read_to_an_end(monkeypatch: pytest.MonkeyPatch, rows: int, faults: int) -> None:
    monkeypatch.setattr(slurm_conf, "_MOST_LINES", 5)
    found = parse_slurm_conf({C: "A=1\n" * rows}, C).faults
    assert [one.value for one in found] == ["too much is included to be read"] * faults


def test_a_missing_include_is_told() -> None:
    assert parse_slurm_conf({C: "include x.conf\n"}, C).missing == ("/etc/slurm/x.conf",)
    assert parse_slurm_conf({}, C) == ({}, (), ())


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("PropagateResourceLimits=MEMLOCK, NOFILE", "'NOFILE'"),
        ("UsePAM=1 ReturnToService=2", "'ReturnToService=2'"),
        ("nonsense", "'nonsense'"),
        (" Include x.conf", "'Include x.conf'"),
        ('Prolog="/a"b c', "'c'"),
        ("include a.conf b.conf", "'b.conf'"),
    ],
)
def test_lines_on_which_slurm_gives_up(line: str, rest: str) -> None:
    (fault,) = parse_slurm_conf({C: f"\n{line}\n", "/etc/slurm/a.conf": ""}, C).faults
    assert fault == (C, 2, line, f"{rest} is more than a key and its value")


@pytest.mark.parametrize("value", ["memlock", "all", "none", "FOO", "CPU;CORE"])
def test_names_that_slurm_does_not_know(value: str) -> None:
    conf = parse_slurm_conf({C: f"PropagateResourceLimits={value}\n"}, C)
    with pytest.raises(ValueError, match="is not a limit that Slurm knows"):
        read_propagation(conf)


def test_where_a_line_stands() -> None:
    conf = parse_slurm_conf({C: "A=1\nPropagate\\\nResourceLimits=\\\nNONE\nB=2\n"}, C)
    line = conf.find("PropagateResourceLimits")
    assert line == (C, 2, "Propagate\\\nResourceLimits=\\\nNONE", "NONE")
    assert conf.find("b") == (C, 5, "B=2", "2")
    assert conf.find("c") is None


@pytest.mark.parametrize(
    ("text", "uses"),
    [("", False), ("UsePAM=1\n", True), ("usepam=Yes\n", True), ("UsePAM=1\nUsePAM=no\n", False)],
)
def test_whether_jobs_go_through_pam(text: str, uses: bool) -> None:
    assert bool(read_use_pam(parse_slurm_conf({C: text}, C))) is uses


def test_slurm_knows_no_other_word_for_yes() -> None:
    with pytest.raises(ValueError, match=r"slurm.conf:1: 'on' is neither yes nor no"):
        read_use_pam(parse_slurm_conf({C: "UsePAM=on\nUsePAM=yes\n"}, C))


@pytest.mark.parametrize(
    ("stated", "excepted", "expected"),
    [
        ("ALL", "(null)", ALL),
        ("(null)", "MEMLOCK,NOFILE", ALL - {"memlock", "nofile"}),
        ("NONE", "", frozenset()),
        ("CPU", "MEMLOCK", ALL - {"memlock"}),
        ("CORE", "(null)", frozenset({"core"})),
        ("", "", None),
        ("ODD", "", None),
    ],
)
def test_what_scontrol_shows(stated: str, excepted: str, expected: frozenset[str] | None) -> None:
    shown = read_shown(stated, excepted)
    assert (shown and shown.items) == expected
    if shown:
        assert shown.line
        assert shown.line.place == "scontrol show config"  # No line of a file.


@pytest.mark.parametrize(
    ("before", "wanted", "line"),
    [
        ("", set(), "PropagateResourceLimits=NONE"),
        ("", ALL - {"nofile", "memlock"}, "PropagateResourceLimitsExcept=MEMLOCK,NOFILE"),
        ("PropagateResourceLimitsExcept=CPU\n", set(), "PropagateResourceLimitsExcept=ALL"),
        ("PropagateResourceLimits=NONE\n", ALL, "PropagateResourceLimitsExcept=NONE"),
    ],
)
def test_a_line_that_is_added_gives_what_was_asked_for(
    before: str, wanted: set[str], line: str
) -> None:
    assert write_propagation(wanted, parse_slurm_conf({C: before}, C)) == line
    assert items(f"{before}{line}\n") == wanted


def test_without_a_line_all_is_taken_over() -> None:
    assert read_propagation(parse_slurm_conf({C: ""}, C)) == Propagation(ALL, None)
