# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial has shown becomes values of a run, a note, or the reason why it is not known."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.training.tried import Tried, read_tried

_MIB = 2**20


def loader(**seen: Any) -> dict[str, Any]:
    options = {"workers": 2, "epochs": 2, "prefetch": 4, "sharing": "file_descriptor"}
    options.update(seen.pop("options", {}), start_method=seen.pop("start_method", "fork"))
    plain = {"batches": 5, "ended": False, "tensors": 3, "bytes": 5000, "memory": 0}
    return {**plain, "options": options, **seen}


def report(*loaders: dict[str, Any], **seen: Any) -> dict[str, Any]:
    plain = {"made": len(loaders), "unused": 0, "base": 9, "hold": 1, "at_once": 1, "ranks": ""}
    return {**plain, "loaders": list(loaders), **seen}


def read(*reports: Any, why: str = "seen", status: int | None = None, tail: str = "") -> Tried:
    told = {"why": why, "status": status, "tail": tail, "reports": list(reports)}
    return read_tried(told, "t.py", 5, 60.0)


def test_one_loader_states_a_run() -> None:
    tried = read(report(loader()))
    assert tried == Tried(
        {
            "workers": 2,
            "base": 9,
            "prefetch": 4,
            "tensors_per_batch": 3,
            "batch_size": 5000,
            "hold": 1,
            "loaders": 1,
            "sharing": "file_descriptor",
            "start_method": "fork",
        },
        "measured: 5 batches of t.py",
    )


def test_of_loaders_and_ranks_the_largest_counts() -> None:
    small = loader(tensors=1, options={"workers": 1, "prefetch": 2, "epochs": 1})
    values = read(
        report(small, at_once=2, hold=0, ranks="2"), report(loader(bytes=9), hold=7, base=3)
    ).values
    assert (values["workers"], values["prefetch"], values["tensors_per_batch"]) == (2, 4, 3)
    assert (values["batch_size"], values["hold"], values["base"]) == (5000, 7, 9)
    assert (values["loaders"], values["ranks_per_node"]) == (2, 2)
    assert "epochs" not in values


@pytest.mark.parametrize(
    ("seen", "key", "value"),
    [
        ({"bytes": 52}, "batch_size", "52B"),
        ({"bytes": 1023}, "batch_size", "1023B"),
        ({"bytes": 1024}, "batch_size", 1024),
        ({"bytes": 0}, "batch_size", 0),
        ({"options": {"prefetch": None}}, "prefetch", 1),
        ({"tensors": 0, "bytes": 0}, "tensors_per_batch", 1),
        ({"memory": 100 * _MIB}, "worker_memory", 84 * _MIB),
        ({"memory": 200 * _MIB, "start_method": "spawn"}, "worker_memory", 40 * _MIB),
        ({"memory": 15 * _MIB}, "worker_memory", None),
        ({"options": {"epochs": 1}}, "epochs", 1),
        ({"options": {"sharing": "file_system"}}, "sharing", "file_system"),
        ({"start_method": "forkserver"}, "start_method", "forkserver"),
        ({"start_method": "teleport"}, "start_method", None),
        ({"options": {"workers": 0}}, "tensors_per_batch", None),
        ({"options": {"workers": 0}}, "workers", 0),
    ],
)
def test_a_value_is_what_a_policy_takes(seen: dict[str, Any], key: str, value: object) -> None:
    assert read(report(loader(**seen))).values.get(key) == value


@pytest.mark.parametrize(
    ("unused", "told"),
    [
        (1, "t.py had made 1 loader more by then and not used it"),
        (2, "t.py had made 2 loaders more by then and not used them"),
    ],
)
def test_a_loader_that_was_not_reached_is_counted_and_told(unused: int, told: str) -> None:
    tried = read(report(loader(), unused=unused))
    assert tried.values["loaders"] == 1 + unused
    assert tried.notes == (f"{told}: counted as beside the others",)


@pytest.mark.parametrize(("wanted", "told"), [(1, "1 batch"), (2, "2 batches"), (5, "5 batches")])
def test_the_batches_that_were_seen_are_told(wanted: int, told: str) -> None:
    answer = {"why": "seen", "status": None, "tail": "", "reports": [report(loader())]}
    assert read_tried(answer, "t.py", wanted, 60.0).where == f"measured: {told} of t.py"


@pytest.mark.parametrize(
    ("reports", "how", "told"),
    [
        ([], {"why": "", "status": 0}, "t.py: makes no DataLoader: nothing was measured,"),
        ([report(made=1)], {"why": "", "status": 0}, "t.py: its DataLoader makes no batch:"),
        ([report(loader(batches=2))], {"why": "late"}, "t.py made 2 of 5 batches within 60 s;"),
        ([report(loader())], {"why": "", "status": 3}, "t.py ended with status 3 after 5 of 5"),
    ],
)
def test_what_is_known_by_half_is_told(
    reports: list[dict[str, Any]], how: dict[str, Any], told: str
) -> None:
    tried = read(*reports, **how)
    assert not tried.refusal
    assert tried.notes[0].startswith(told)


@pytest.mark.parametrize(
    ("reports", "how", "told"),
    [
        ([], {"why": "late"}, "--try: t.py made 0 of 5 batches within 60 s; --time-limit SECONDS"),
        (
            [report(loader(batches=2))],
            {"why": "", "status": 1, "tail": "a\n\nb\nc\nKeyError: 1\n"},
            "--try: t.py ended with status 1 after 2 of 5 batches: b / c / KeyError: 1",
        ),
        ([], {"why": "", "status": -9}, "--try: t.py was killed by signal 9 after 0 of 5 batches"),
        ([report(loader(batches=2))], {"why": "memory"}, "--try: t.py was ended after 2 of 5"),
    ],
)
def test_a_run_that_does_not_get_there_is_refused(
    reports: list[dict[str, Any]], how: dict[str, Any], told: str
) -> None:
    assert read(*reports, **how).refusal.startswith(told)


@pytest.mark.parametrize(
    "reports",
    [[None], [{}], [report({})], [report({**loader(), "options": 0})], "x"],
)
def test_a_claim_that_makes_no_sense_is_refused(reports: Any) -> None:
    told = {"why": "seen", "status": None, "tail": "", "reports": reports}
    sense = "--try: what t.py reports of its loaders makes no sense"
    assert read_tried(told, "t.py", 5, 60.0).refusal == sense


def test_a_host_without_mounts_of_our_own_is_told_with_the_way_out() -> None:
    told = read_tried({"open": "unshare: Operation not permitted"}, "t.py", 5, 60.0).refusal
    assert told == (
        "--try: what t.py writes cannot be kept out here (unshare: Operation not permitted);"
        " --let-write tries it all the same"
    )


def test_a_number_has_an_end() -> None:
    values = read(report(loader(tensors=2**200, bytes=-5), hold="many")).values
    assert (values["tensors_per_batch"], values["batch_size"], values["hold"]) == (2**50, 0, 0)
