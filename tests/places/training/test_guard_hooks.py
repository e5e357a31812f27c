# SPDX-License-Identifier: GPL-3.0-or-later
"""The interpreter's events, as a guard hears them: none is lost, and few wait to be told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from mlhost_limits.training.guard_hooks_measure import Ear, Listener, make_table

TOGETHER, EACH = 1024, 8
"""At most so many comparisons wait to be told, and that part of what may come before a look."""


class Guard(Listener):  # type: ignore[misc]
    """What counts all that it is told; ``left`` events of each limit may come before a look."""

    def __init__(self, left: int) -> None:
        self.left, self.heard = left, 0
        self.told: list[int] = []

    def note(self, names: Iterable[str], number: int) -> None:
        self.told.append(number)
        self.count(names, number)

    def count(self, _names: Iterable[str], number: int) -> None:
        self.left, self.heard = self.left - number, self.heard + number

    def find_quiet(self, _names: Iterable[str]) -> int:
        return self.left


def listen(*guards: Guard) -> tuple[Ear, dict[object, None]]:
    ear = Ear("socket.__new__", ("descriptors",), guards)
    return ear, make_table([ear])


@pytest.mark.parametrize("together", [1, 5, 6, 11, 22])
def test_no_event_is_heard_twice_whatever_its_hash(together: int) -> None:
    """A dict's search may come by the same place again before it ends."""
    for start in range(0, 4000, together):
        names = [f"event.{number}" for number in range(start, start + together)]
        guard = Guard(0)
        table = make_table([Ear(name, ("descriptors",), [guard]) for name in names])
        for name in names:
            table.get(name)
        assert guard.told == [1] * together


def test_only_its_own_event_is_heard_and_nothing_is_found() -> None:
    guard = Guard(0)
    _ear, hook = listen(guard)
    arguments = ("anything",)
    assert hook.get("open", arguments) is arguments
    assert guard.told == []
    assert hook.get("socket.__new__", arguments) is arguments
    assert guard.told == [1]


@pytest.mark.parametrize("left", [0, 1, 40, 1000, 10**6])
def test_events_come_in_lumps_of_what_may_wait_and_none_is_lost(left: int) -> None:
    guard = Guard(left)
    ear, hook = listen(guard)
    for event in range(1, 3001):
        hook.get("socket.__new__")
        assert 0 <= event - guard.heard <= max(min(left // EACH, TOGETHER), 1)
    ear.hear_closely()
    assert guard.heard == 3000
    assert guard.left == left - 3000


def test_the_one_who_waits_least_decides() -> None:
    calm, near = Guard(10**6), Guard(EACH)
    _ear, hook = listen(calm, near)
    for _event in range(EACH):
        hook.get("socket.__new__")
    assert near.told == calm.told == [1] * EACH


def test_most_events_make_no_step_of_python() -> None:
    guard = Guard(10**9)
    ear, hook = listen(guard)
    most = TOGETHER // ear.each
    for _event in range(10 * most):
        hook.get("socket.__new__")
    assert guard.told == [1] + [most] * 9


def test_what_a_look_opens_is_no_reason_for_another() -> None:
    guard = Guard(0)
    ear, hook = listen(guard)

    def look(names: Iterable[str], number: int) -> None:
        guard.count(names, number)
        for _event in range(TOGETHER // ear.each - 1):
            hook.get("socket.__new__")

    guard.note = look  # type: ignore[method-assign]
    hook.get("socket.__new__")
    assert guard.heard == 1
    del guard.note
    hook.get("socket.__new__")
    assert guard.told == [1]


def test_an_ear_without_a_guard_waits_for_long() -> None:
    running: list[Listener] = []
    ear = Ear("socket.__new__", ("descriptors",), running)
    hook = make_table([ear])
    hook.get("socket.__new__")
    guard = Guard(0)
    running.append(guard)
    most = TOGETHER // ear.each - 1
    for _event in range(most):
        hook.get("socket.__new__")
    assert guard.told == []
    ear.hear_closely()
    assert guard.heard == most
