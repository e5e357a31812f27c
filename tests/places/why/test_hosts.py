# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose log it is, and what else stands in its lines: hosts, kills, paths."""

from __future__ import annotations

import pytest
from mlhost_limits.why.faults import find_faults
from mlhost_limits.why.hosts import _expand, find_hosts
from mlhost_limits.why.kills import Line, find_kills
from mlhost_limits.why.log_text import Words, find_block, find_path
from mlhost_limits.why.verdict import judge_words

TAIL = ",oom_memcg=/a,task_memcg=/a/b,task=python3,pid={},uid=7"
HEAD = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)"
PATH = "/srv/some/file"


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("srun: error: n[1-3,07]: tasks 0-3: Killed", {"n1", "n2", "n3", "n07"}),
        ("srun: error: n[01-03]: task 0: Killed", {"n01", "n02", "n03"}),
        ("*** STEP 9.0 ON gpu[1,3] CANCELLED", {"gpu1", "gpu3"}),
        ("*** JOB 9 ON gpu7 CANCELLED", {"gpu7"}),
        ("srun: error: n7: task 0: Killed", {"n7"}),
        ("srun: error: n[1-,2]: task 0: Killed", {"n1", "n2"}),
        ("Jan 12 10:00:00 node3.cluster.org kernel: x", {"node3"}),
        ("Jan 12 10:00:00 localhost kernel: x", set()),
        (" host      : node4", {"node4"}),
        ("nothing", set()),
    ],
)
def test_hosts_are_named_as_those_that_wrote_a_line(text: str, hosts: set[str]) -> None:
    assert find_hosts(Words(text), 0) == hosts
    for before, after in ((100, 0), (0, 100)):
        lines = "\n".join([*["x"] * before, text, *["x"] * after])
        assert find_hosts(Words(lines), after) == hosts
    assert find_hosts(Words("\n".join([text, *["x"] * 130, "y"])), 131) == set()
    assert find_hosts(Words("\n".join(["y", *["x"] * 130, text])), 0) == set()


def test_of_a_range_of_hosts_a_thousand_are_listed() -> None:
    found = find_hosts(Words("srun: error: n[1-99999]: task 0: Killed"), 0)
    assert 1000 < len(found) < 1100


def test_each_kill_is_agreed_on_by_the_line_behind_it() -> None:
    killed = "Memory cgroup out of memory: Killed process {} (python3)"
    texts = [
        "usb 1-1: new device",
        f"{HEAD}{TAIL.format(4)}",
        killed.format(4),
        f"{HEAD},nothing else",
        f"{HEAD}{TAIL.format(5)}",
        killed.format(6),
        f"{HEAD},oom_memcg=/x{TAIL.format(7)}",
    ]
    found = find_kills([Line(0.0, text) for text in texts])
    assert [(one.pid, one.group) for one in found] == [(4, "/a"), (0, "/a"), (7, "")]


@pytest.mark.parametrize(
    ("distance", "where"),
    [(2**17, "beside its stack pointer"), (2**17 + 1, "far from its stack")],
)
def test_a_frame_of_a_function_is_beside_the_stack(distance: int, where: str) -> None:
    text = f"deep[77]: segfault at {2**40 - distance:x} ip 00 sp {2**40:x} error 6 in deep"
    (fault,) = find_faults([Line(0.0, text)])
    assert fault.text.endswith(where)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (f"cannot write {PATH}", PATH),
        (f"cannot move {PATH} to /mnt/x/y", "/mnt/x/y"),
        ("cannot write 'a/b'", ""),
        ("cannot open /dev/shm/x", ""),
        ("nothing", ""),
    ],
)
def test_the_last_path_of_a_line_is_the_file(line: str, path: str) -> None:
    assert find_path(line) == path


FAILED = "OSError: [Errno 24] Too many open files"


@pytest.mark.parametrize(
    ("lines", "is_told"),
    [
        ([FAILED], True),
        # Python ignored it: what it says of that stands above, with the traceback.
        (["Exception ignored in: <x>", FAILED], False),
        (["Exception ignored in: <x>", "x", FAILED], True),
        (["Exception ignored in: <x>", "Traceback (most recent call last):", "  a", FAILED], False),
        ([f"Exception ignored in: {FAILED}"], False),
        # A warning after which it worked on, by two lines; an error, by twenty.
        ([f"WARNING {FAILED}", "epoch 1", "x"], True),
        ([f"WARNING {FAILED}", "epoch 1", "epoch 2"], False),
        ([FAILED, *["epoch 1"] * 30], True),
        ([FAILED, *["epoch 1"] * 19, "ValueError: x"], True),
        # It ended well.
        ([FAILED, "done"], True),
        ([FAILED, "a", "b", "done"], False),
        ([FAILED, "a", "", "done"], True),
        ([FAILED, "a", "b", "not done"], True),
    ],
)
def test_what_came_after_a_message_counts(lines: list[str], is_told: bool) -> None:
    verdict = judge_words(Words("\n".join(lines)))
    assert (verdict is not None and verdict.reason.code == "nofile") is is_told or (
        is_told and verdict is not None and bool(verdict.earlier)
    )


TRACEBACK = "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("lines", "number", "first", "end"),
    [
        ([f"line {number}" for number in range(12)], 5, 1, 10),
        ([TRACEBACK, *["  a"] * 20, FAILED], 21, 0, 22),
        ([TRACEBACK, "ValueError: x", *["b"] * 8, FAILED], 10, 6, 11),
        ([TRACEBACK, *["b"] * 3, FAILED], 4, 0, 5),
        ([TRACEBACK, *["  a"] * 8, f"  {FAILED}"], 9, 5, 10),
    ],
)
def test_a_line_is_seen_with_its_traceback_or_with_four_lines_on_each_side(
    lines: list[str], number: int, first: int, end: int
) -> None:
    assert find_block(Words("\n".join(lines)), number) == "\n".join(lines[first:end])


def test_of_a_very_long_line_both_ends_are_read() -> None:
    line = "".join(chr(97 + number % 26) for number in range(1101))
    assert Words(line[:1100])[0] == line[:1100]
    assert Words(line)[0] == f"{line[:700]} ... {line[-400:]}"


@pytest.mark.parametrize(("after", "code"), [(1499, "nofile"), (1500, "exception")])
def test_a_plain_error_counts_before_what_stands_far_above(after: int, code: str) -> None:
    lines = [FAILED, *["x"] * (after - 1), "ValueError: y"]
    verdict = judge_words(Words("\n".join(lines)))
    assert verdict
    assert (verdict.reason.code, bool(verdict.earlier)) == ("exception", code == "nofile")


def test_a_range_of_hosts_that_is_none_is_left_out() -> None:
    assert list(_expand("n[1-x,x-1,08-10]")) == ["n08", "n09", "n10"]
