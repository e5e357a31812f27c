# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for sysctls meets the policy now and at boot, lowers nothing, and can be taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlhost_limits.core.edit import HEADER
from mlhost_limits.kernel.plan import (
    KernelOptions,
    KernelPlan,
    plan_kernel,
)
from mlhost_limits.kernel.policy import KernelValue, read_kernel
from mlhost_limits.kernel.sysctl_conf import (
    DROP_IN,
    find_boot_default,
    find_number,
    parse_sysctl_number,
)
from mlhost_limits.kernel.sysctl_writes import find_lowest_nr_open, resolve_sysctl

FILE_MAX, NR_OPEN, MAPS, PIDS = "fs.file-max", "fs.nr_open", "vm.max_map_count", "kernel.pid_max"
SYSTEMD = {FILE_MAX: "9223372036854775807", NR_OPEN: "1048576", MAPS: "65530", PIDS: "32768"}
LATER = "/etc/sysctl.d/99-vendor.conf"
EARLIER = "/usr/lib/sysctl.d/50-vendor.conf"


def plan(
    wanted: Mapping[str, int | KernelValue],
    files: dict[str, str] | None = None,
    running: Mapping[str, str | None] | None = None,
    **options: Any,
) -> KernelPlan:
    values = {
        key: value if isinstance(value, KernelValue) else KernelValue(value)
        for key, value in wanted.items()
    }
    return plan_kernel(
        values, files or {}, {**SYSTEMD, **(running or {})}, KernelOptions(**options)
    )


def apply(files: dict[str, str], planned: KernelPlan) -> dict[str, str]:
    after = dict(files)
    for edit in planned.section.edits:
        assert (edit.before or b"") == files.get(edit.path, "").encode("latin-1")
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after.decode("latin-1")
    return after


def body(files: dict[str, str], path: str = DROP_IN) -> list[str]:
    header, *lines = files[path].splitlines()
    assert header == HEADER
    return lines


@pytest.mark.parametrize(
    ("wanted", "files", "running", "line"),
    [
        ({MAPS: 262144}, {}, {}, f"{MAPS} = 262144"),
        ({MAPS: 262144}, {}, {MAPS: "1000000"}, f"{MAPS} = 262144"),
        ({MAPS: 262144}, {EARLIER: f"{MAPS} = 5"}, {}, f"{MAPS} = 262144"),
        ({NR_OPEN: 2097152}, {}, {}, f"{NR_OPEN} = 2097152"),
        ({FILE_MAX: 2097152}, {}, {FILE_MAX: "3000000"}, f"{FILE_MAX} = 3000000"),
        ({FILE_MAX: 2097152}, {}, {FILE_MAX: "100"}, f"{FILE_MAX} = 2097152"),
        ({PIDS: 32768}, {}, {PIDS: "4194304"}, f"{PIDS} = 4194304"),
        ({PIDS: 32768}, {EARLIER: f"{PIDS} = 4194304k"}, {PIDS: "4194304"}, f"{PIDS} = 4194304"),
        ({PIDS: KernelValue(exact="5")}, {EARLIER: f"{PIDS} = 9"}, {}, f"{PIDS} = 5"),
    ],
    ids=["default too low", "raised by hand", "stated too low", "nr_open", "unknown default",
         "unknown default, low", "no default", "stated wrong", "exact"],
)  # fmt: skip
def test_what_our_file_states(
    wanted: dict[str, int], files: dict[str, str], running: dict[str, str], line: str
) -> None:
    assert body(apply(files, plan(wanted, files, running))) == [line]


@pytest.mark.parametrize(
    ("wanted", "files", "running"),
    [
        ({FILE_MAX: 2097152}, {}, {}),
        ({NR_OPEN: 1048576}, {}, {}),
        ({NR_OPEN: 2097152}, {}, {NR_OPEN: "1073741816"}),
        ({MAPS: 262144}, {EARLIER: f"{MAPS} = 1048576"}, {MAPS: "1048576"}),
        ({MAPS: 262144}, {LATER: f"{MAPS} = 0x40000"}, {MAPS: "262144"}),
        ({MAPS: 262144}, {EARLIER: "vm.* = 300000"}, {MAPS: "300000"}),
        ({MAPS: KernelValue(maximum=5)}, {}, {}),
        ({}, {}, {}),
    ],
    ids=["systemd's file-max", "the kernel's nr_open", "systemd's nr_open", "stated before us",
         "stated after us", "a glob", "only a maximum", "nothing"],
)  # fmt: skip
def test_a_value_that_is_met_at_boot_is_left_alone(
    wanted: dict[str, int], files: dict[str, str], running: dict[str, str]
) -> None:
    planned = plan(wanted, files, running)
    assert planned.section.edits == ()
    assert planned.writes == ()


def test_a_later_line_that_states_enough_is_not_in_the_way() -> None:
    files = {LATER: f"{MAPS} = 262144", "/etc/sysctl.d/99-z.conf": f"{MAPS} = 5"}
    found = plan({MAPS: 262144}, files).section.shortfalls
    assert [one.foreign.path for one in found] == ["/etc/sysctl.d/99-z.conf"]


def test_a_minimum_may_be_the_maximum() -> None:
    problems: list[str] = []
    assert read_kernel({MAPS: {"min": 5, "max": 5}}, problems) == {MAPS: KernelValue(5, 5)}
    assert problems == []
    read_kernel({MAPS: {"min": 6, "max": 5}}, problems)
    assert problems == [f"kernel.{MAPS}: min 6 is above max 5"]


def test_a_file_says_why_a_key_is_not_in_it() -> None:
    wanted = {FILE_MAX: 5, NR_OPEN: 5, MAPS: KernelValue(maximum=9), PIDS: 5, "vm.x": 9}
    files = {EARLIER: "vm.x = 9"}
    running = {NR_OPEN: "1073741816", "vm.x": "9"}
    assert body(apply(files, plan(wanted, files, running))) == [
        f"# {FILE_MAX}: systemd starts with at least 5; a line might lower it.",
        f"# {NR_OPEN}: systemd starts with at least 5; a line might lower it.",
        f"# {MAPS}: only a maximum is required, so nothing is set.",
        f"{PIDS} = 32768",
        f"# vm.x: {EARLIER} states at least 9.",
    ]
    again = body(apply({}, plan({NR_OPEN: 5, MAPS: 99999})))
    assert again[0] == f"# {NR_OPEN}: the kernel starts with at least 5; a line might lower it."


@pytest.mark.parametrize(
    ("wanted", "running", "writes"),
    [
        ({MAPS: 5, NR_OPEN: 5}, {}, ()),
        ({MAPS: 70000, NR_OPEN: 2000000}, {}, ((NR_OPEN, "2000000"), (MAPS, "70000"))),
        ({MAPS: KernelValue(maximum=5)}, {}, ()),
        ({MAPS: KernelValue(exact="5")}, {}, ((MAPS, "5"),)),
        ({"net.x": KernelValue(exact="1 2 3")}, {"net.x": "1\t2\t3"}, ()),
        ({"net.x": KernelValue(exact="1 2 3")}, {"net.x": "1\t2\t4"}, (("net.x", "1 2 3"),)),
    ],
)
def test_running_values_only_rise_and_nr_open_first(
    wanted: dict[str, int], running: dict[str, str], writes: tuple[tuple[str, str], ...]
) -> None:
    assert plan(wanted, {}, running).writes == writes


@pytest.mark.parametrize(
    ("options", "wanted", "running", "problems"),
    [
        ({}, {"vm.no": 5, PIDS: 5}, {}, ["kernel.vm.no: this kernel has no such sysctl"]),
        ({}, {"vm.x": 5}, {"vm.x": "x"}, ["kernel.vm.x: holds 'x', which is not a number; 'exact' is accepted"]),
        ({}, {"vm.x": 5}, {"vm.x": "1\t2"}, ["kernel.vm.x: holds '1\\t2', which is not a number; 'exact' is accepted"]),
        *(
            ({"target": target}, {}, {}, [f"kernel_file: {target!r} is not read at every boot; accepted is /etc/sysctl.d/NAME.conf"])
            for target in ("/etc/sysctl.conf", "/run/sysctl.d/a.conf", "/etc/sysctl.d/a", "/etc/sysctl.d/x/a.conf", "/etc/sysctl.d/.a.conf")
        ),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(
    options: dict[str, object], wanted: dict[str, int], running: dict[str, str], problems: list[str]
) -> None:
    planned = plan({**wanted, MAPS: 99999}, {}, running, **options)
    assert list(planned.section.problems) == problems
    assert planned.section.edits == planned.writes == ()


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    "text", ["vm.x = 1\n", ""], ids=["a file", "an empty file, which hides others"]
)
def test_a_file_of_somebody_else_is_not_overwritten(text: str, absent: bool) -> None:
    planned = plan({MAPS: 99999}, {DROP_IN: text}, absent=absent)
    problem = f"{DROP_IN}: was not written by mlhost.limits; name another kernel_file"
    assert planned == KernelPlan(planned.section)
    assert planned.section.problems == (problem,)


def test_a_file_of_ours_hides_no_other() -> None:
    hidden = "/usr/lib/sysctl.d/90-mlhost.conf"
    problem = f"kernel_file: {DROP_IN!r} would hide {hidden}; name another"
    assert plan({MAPS: 99999}, {hidden: ""}).section.problems == (problem,)


def test_all_problems_are_told_at_once() -> None:
    assert len(plan({"vm.no": 5, "vm.x": 5}, {}, {"vm.x": "x"}, target="/x").section.problems) == 3


@pytest.mark.parametrize(
    ("files", "override", "text"),
    [
        ({LATER: f"# a\n{MAPS} = 5\n"}, False, f'{LATER}:2 "{MAPS} = 5" beats our "{MAPS} = 99999"'),
        ({LATER: f"{MAPS} = 5"}, True, f'{LATER}:1 "{MAPS} = 5" was beating our "{MAPS} = 99999"'),
        ({LATER: f"-{MAPS}"}, True, f'{LATER}:1 "-{MAPS}" was beating our "{MAPS} = 99999"'),
        ({LATER: f"{MAPS} = 5x"}, False, f'{LATER}:1 "{MAPS} = 5x" beats our "{MAPS} = 99999"'),
        ({"/usr/lib/sysctl.d/z.conf": f"{MAPS}=5"}, True, f'/usr/lib/sysctl.d/z.conf:1 "{MAPS}=5" beats our "{MAPS} = 99999"'),
    ],
)  # fmt: skip
def test_a_later_line_that_states_less_is_told(
    files: dict[str, str], override: bool, text: str
) -> None:
    planned = plan({MAPS: 99999}, files, override=override)
    assert [str(shortfall) for shortfall in planned.section.shortfalls] == [text]
    neutralized = "was" in text
    assert any(edit.path in files for edit in planned.section.edits) is neutralized
    bound = resolve_sysctl(apply(files, planned), [MAPS])[MAPS]
    assert (bound.winner.value == 99999) is neutralized


def test_an_exact_value_is_beaten_by_any_other() -> None:
    wanted = {MAPS: KernelValue(exact="99999")}
    assert len(plan(wanted, {LATER: f"{MAPS} = 100000"}).section.shortfalls) == 1
    assert plan(wanted, {LATER: f"{MAPS} = 99999"}).section.shortfalls == ()


def test_a_vector_is_compared_as_a_whole() -> None:
    key = "net.ipv4.tcp_rmem"
    wanted = {key: KernelValue(exact="4096 87380 6291456")}
    same = plan(wanted, {LATER: f"{key} = 4096 87380 6291456"}, {key: "4096\t87380\t6291456"})
    assert same.section.shortfalls == ()
    other = plan(wanted, {LATER: f"{key} = 4096 87380 9"}, {key: "4096\t87380\t6291456"})
    assert len(other.section.shortfalls) == 1


def test_a_pattern_that_the_kernel_refuses_leaves_the_one_before_it() -> None:
    files = {EARLIER: "vm.max_map_* = 300000\nvm.max_map_c* = x"}
    assert body(apply({}, plan({MAPS: 262144, PIDS: 5}, files, {PIDS: "9"}))) == [
        f"# {MAPS}: {EARLIER} states at least 262144.",
        f"{PIDS} = 9",
    ]


def test_override_is_taken_back_when_it_is_not_asked_for_again() -> None:
    files = {LATER: f"a\r\n{MAPS} = 5"}
    wanted = {MAPS: 99999}
    overridden = apply(files, plan(wanted, files, override=True))
    assert overridden[LATER] == f"a\r\n#mlhost.limits# {MAPS} = 5"
    assert apply(overridden, plan(wanted, overridden, override=True)) == overridden
    assert apply(overridden, plan(wanted, overridden))[LATER] == files[LATER]
    assert apply(overridden, plan({}, overridden, absent=True)) == files


def test_another_file_name_replaces_the_old_file() -> None:
    first = apply({}, plan({MAPS: 99999}))
    other = "/etc/sysctl.d/80-other.conf"
    second = apply(first, plan({MAPS: 99999}, first, target=other))
    assert set(second) == {other}
    assert apply(second, plan({}, second, absent=True)) == {}


def test_what_looks_like_systemds_default_may_be_our_own_line() -> None:
    wanted = {NR_OPEN: 1073741816}
    files: dict[str, str] = {}
    running: dict[str, str] = {}
    for _ in range(2):
        planned = plan(wanted, files, running)
        files, running = apply(files, planned), {**running, **dict(planned.writes)}
        assert body(files) == [f"{NR_OPEN} = 1073741816"]


@pytest.mark.parametrize(
    ("files", "running", "lowest"),
    [
        ({}, "1048576", 1048576),
        ({}, "2097152", 1048576),
        ({}, "1073741816", 1073741816),
        ({EARLIER: f"{NR_OPEN} = 2097152"}, "1048576", 1048576),
        ({EARLIER: f"{NR_OPEN} = 5000"}, "1048576", 5000),
        ({EARLIER: f"{NR_OPEN} = 5000x"}, "2097152", 1048576),
        ({}, "524288", 524288),
        ({}, None, 1048576),
    ],
)
def test_the_lowest_nr_open_from_now_on(
    files: dict[str, str], running: str | None, lowest: int
) -> None:
    assert find_lowest_nr_open(files, {NR_OPEN: running}) == lowest


def test_the_plan_knows_the_nr_open_that_it_makes() -> None:
    assert plan({NR_OPEN: 2097152}).nr_open == 2097152
    assert plan({NR_OPEN: 2097152}, {LATER: f"{NR_OPEN} = 1048576"}).nr_open == 1048576
    assert plan({NR_OPEN: 2097152}, {LATER: f"{NR_OPEN} = 5"}, override=True).nr_open == 2097152
    assert (
        plan({}, apply({}, plan({NR_OPEN: 2097152})), {NR_OPEN: "2097152"}, absent=True).nr_open
        == 1048576
    )


KEYS = st.sampled_from([FILE_MAX, NR_OPEN, MAPS, PIDS])
NUMBERS = st.sampled_from([64, 65530, 70000, 1048576, 2097152, 1073741816, 2**63 - 1])
FOREIGN_LINES = st.lists(
    st.one_of(
        st.tuples(KEYS, NUMBERS).map(lambda pair: f"{pair[0]} = {pair[1]}"),
        KEYS.map(lambda key: f"-{key}"),
        st.sampled_from(
            ["vm.* = 70000", "fs.*=64", "# note", "", f"{MAPS} = 5x", "kernel.pid_max = 1 # c\r"]
        ),
    ),
    max_size=5,
).map("\n".join)
HOSTS = st.dictionaries(
    st.sampled_from([EARLIER, LATER, "/etc/sysctl.d/10-a.conf", "/run/sysctl.d/90-vendor.conf"]),
    FOREIGN_LINES,
)
RUNNING = st.fixed_dictionaries(dict.fromkeys([FILE_MAX, NR_OPEN, MAPS, PIDS], NUMBERS.map(str)))
WANTED = st.dictionaries(KEYS, NUMBERS)


@given(HOSTS, RUNNING, WANTED, st.booleans())
def test_a_second_run_changes_nothing(
    files: dict[str, str], running: dict[str, str], wanted: dict[str, int], override: bool
) -> None:
    first = plan(wanted, files, running, override=override)
    after, now = apply(files, first), {**running, **dict(first.writes)}
    second = plan(wanted, after, now, override=override)
    assert second.section.edits == second.writes == ()
    assert second.nr_open == first.nr_open


@given(HOSTS, RUNNING, WANTED, WANTED, st.booleans())
def test_what_was_provisioned_can_be_taken_back(
    files: dict[str, str],
    running: dict[str, str],
    wanted: dict[str, int],
    then: dict[str, int],
    override: bool,
) -> None:
    after = apply(files, plan(wanted, files, running, override=override))
    after = apply(after, plan(then, after, running, override=not override))
    assert apply(after, plan({}, after, running, absent=True)) == files


@given(HOSTS, RUNNING, WANTED, st.booleans())
def test_nothing_is_lower_than_before(
    files: dict[str, str], running: dict[str, str], wanted: dict[str, int], override: bool
) -> None:
    # To silence a "-key" is to let those speak that it hid.
    assume(
        not override
        or not any(line.startswith("-") for text in files.values() for line in text.split("\n"))
    )
    planned = plan(wanted, files, running, override=override)
    assert all(int(value) >= int(running[key]) for key, value in planned.writes)
    after = apply(files, planned)
    for key in wanted:
        assert at_boot(key, after, running) >= min(at_boot(key, files, running), int(running[key]))
        if find_boot_default(key, int(running[key])) is not None or key in resolve_sysctl(
            files, [key]
        ):
            assert at_boot(key, after, running) >= at_boot(key, files, running)


def at_boot(key: str, files: dict[str, str], running: dict[str, str]) -> int:
    """Return the value after a boot; where no file and no default decides, the running one."""
    taken = {"is_taken": lambda _key, text: parse_sysctl_number(text) is not None}
    bound = resolve_sysctl(files, [key], **taken).get(key)
    number = find_number(bound.winner) if bound else None
    if number is not None:
        return int(number)
    default = find_boot_default(key, int(running[key]))
    return int(running[key]) if default is None else default


@given(HOSTS, RUNNING, WANTED)
def test_the_policy_is_met_at_boot_or_the_line_in_its_way_is_told(
    files: dict[str, str], running: dict[str, str], wanted: dict[str, int]
) -> None:
    planned = plan(wanted, files, running)
    assume(not planned.section.shortfalls)
    now = {**running, **dict(planned.writes)}
    for key, minimum in wanted.items():
        assert at_boot(key, apply(files, planned), now) >= minimum
