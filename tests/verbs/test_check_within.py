# SPDX-License-Identifier: GPL-3.0-or-later
"""A section that hangs, crashes or is killed is unknown, and the others stand."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits import check_host, check_within
from mlhost_limits.core.finding import LOOK, Finding, Observation, Requirement, judge
from mlhost_limits.core.policy import CheckOptions, Policy
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.host.place import Place
from mlhost_limits.places import look_at_host
from mlhost_limits.schema import load_policy

from tests.children import read_children

POLICY = Policy(dict.fromkeys(("kernel", "sessions", "docker"), True))
NAMES = ("kernel", "sessions", "docker")


def good(name: str) -> Callable[..., Iterator[Finding]]:
    def look(*_words: Any) -> Iterator[Finding]:
        yield judge(Requirement(name, "x", "value", 1), Observation(2, ""))

    return look


def bad(name: str, end: Callable[[], object]) -> Callable[..., Iterator[Finding]]:
    def look(*words: Any) -> Iterator[Finding]:
        yield from good(name)(*words)
        end()

    return look


def make_up(name: str, look: Callable[..., Iterator[Finding]]) -> Place[Any]:
    """Return a place that every policy states, and whose check is what a test gives."""
    place: Place[Any] = Place()
    vars(place).update(name=name, check=look)
    return place


def use_places(
    monkeypatch: pytest.MonkeyPatch, looks: dict[str, Callable[..., Iterator[Finding]]]
) -> None:
    monkeypatch.setattr(check_host, "PLACES", tuple(map(make_up, looks, looks.values())))
    monkeypatch.setattr(check_host, "SECTIONS", tuple(looks))


def nest() -> object:
    return nest()


def check(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[], object], seconds: float = 60.0
) -> list[tuple[str, str, str, str]]:
    looks = {name: good(name) for name in NAMES}
    looks["sessions"] = bad("sessions", end)
    use_places(monkeypatch, looks)
    result = check_within.check_within(POLICY, CheckOptions(sections=NAMES, time_limit=seconds))
    return [
        (one.requirement.place, one.requirement.item, one.status, one.observation.reason)
        for one in result.findings
    ]


FINE = [("kernel", "x", "pass", ""), ("sessions", "x", "pass", ""), ("docker", "x", "pass", "")]


def test_all_that_answers_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(monkeypatch, lambda: None) == FINE


@pytest.mark.parametrize(
    ("end", "seconds", "reason"),
    [
        (lambda: time.sleep(600), 2.0, "the check did not finish in --time-limit 2 s"),
        (lambda: signal.pause(), 2.0, "the check did not finish in --time-limit 2 s"),
        (lambda: os.kill(os.getpid(), 9), 60.0, "the check was ended by signal 9"),
        (lambda: os._exit(3), 60.0, "the check ended without an answer"),
        (nest, 60.0, "RecursionError: maximum recursion depth exceeded"),
        (lambda: {"yes": 1}["no"], 60.0, "KeyError: 'no'"),
        (lambda: os.listdir("/no"), 60.0, "/no: No such file or directory"),
    ],
    ids=["sleeps", "pauses", "killed", "exits", "nests", "crashes", "reads"],
)
@pytest.mark.slow
def test_a_section_that_does_not_answer_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[], object], seconds: float, reason: str
) -> None:
    unlooked = ("sessions", LOOK, "unknown", reason)
    seen = check(monkeypatch, end, seconds)
    assert [one[:3] for one in seen] == [one[:3] for one in (*FINE[:2], unlooked, FINE[2])]
    assert seen[2][3].startswith(reason)


@pytest.mark.slow
def test_a_look_that_ignores_its_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_within, "_GRACE", 0.2)

    def stay() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)

    before = read_children()
    assert len(check(monkeypatch, stay, 1.0)) == 4
    assert read_children() <= before


@pytest.mark.slow
def test_what_was_made_is_put_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A look that is ended in time leaves what its ``finally`` removes to nobody."""

    def make() -> None:
        (tmp_path / "made").touch()
        try:
            time.sleep(600)
        finally:
            (tmp_path / "made").unlink()

    check(monkeypatch, make, 1.0)
    assert not list(tmp_path.iterdir())


def test_a_look_that_cannot_be_made_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    use_places(monkeypatch, {"kernel": bad("kernel", nest)})
    result = check_within.check_within(POLICY, CheckOptions(sections=("kernel",)))
    assert [result.falls_short(one) for one in ("fail", "later", "unknown", "never")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert not result.has_shortfall("fail")


def test_a_refused_question_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: Any) -> Iterator[Finding]:
        raise ValueError("no such run")
        yield

    use_places(monkeypatch, {"training": refuse})
    vars(check_host.PLACES[0]).update(is_of_run=True)
    policy = load_policy({"training": {"workers": 1}}, "none", True)
    with pytest.raises(ValueError, match=r"^no such run$"):
        check_within.check_within(policy, CheckOptions(sections=("training",)))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends between a look and whoever waits for it."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PolicyError(["a: is wrong", "b: too"]), ["a: is wrong", "b: too"]),
        (ValueError("no such run"), "no such run"),
        (KeyboardInterrupt("after 3 files"), "after 3 files"),
    ],
)
def test_a_look_tells_why_it_came_to_no_end(
    monkeypatch: pytest.MonkeyPatch,
    pipe: tuple[int, int],
    error: BaseException,
    told: object,
) -> None:
    """What a child does, done here: its last message says what ended it, of which kind."""

    def end() -> None:
        raise error

    use_places(monkeypatch, {"training": bad("training", end)})
    vars(check_host.PLACES[0]).update(is_of_run=True)
    blocked: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *_words: None)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *words: blocked.append(words))
    policy = load_policy({"training": {"workers": 1}}, "none", True)
    options = CheckOptions(sections=("training",))
    check_within._Watch(policy, options, look_at_host())._look_and_tell(pipe[1])
    assert blocked == [(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})]
    ear = check_within._Ear(pipe[0])
    messages = [ear.hear(time.monotonic() + 5) for _number in range(3)]
    heard = [(kind, body and check_within._decode(body)) for kind, body in messages]
    assert [kind for kind, _content in heard[:2]] == [check_within._SECTION, check_within._FINDING]
    is_interrupt = isinstance(error, KeyboardInterrupt)
    kind = check_within._INTERRUPTED if is_interrupt else check_within._REFUSED
    assert heard[2] == (kind, told)


@pytest.mark.parametrize(
    ("last", "said"), [(["after 3 files"], "after 3 files"), ([""], ""), ([], "")]
)
def test_what_a_look_says_of_its_interrupt_is_heard(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int], last: list[str], said: str
) -> None:
    monkeypatch.setattr(check_within, "_LEAST", 0.05)
    check_within._tell(pipe[1], check_within._SECTION, "kernel")
    for text in last:
        check_within._tell(pipe[1], check_within._INTERRUPTED, text)
    assert check_within._hear_interrupt(check_within._Ear(pipe[0])) == said


def test_a_look_that_is_told_to_end_minds_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *words: handled.append(words))
    with pytest.raises(SystemExit):
        check_within._leave(signal.SIGTERM, None)
    assert handled == [(signal.SIGTERM, signal.SIG_IGN)]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_is_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"^time_limit: .* is not a number of seconds above 0$"):
        check_within.check_within(POLICY, CheckOptions(time_limit=seconds))


@pytest.mark.slow
def test_an_interrupt_ends_the_look(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def interrupt() -> None:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    # In the background of a shell it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    threading.Thread(target=interrupt).start()
    running = read_children()
    with pytest.raises(KeyboardInterrupt):
        check(monkeypatch, lambda: time.sleep(600))
    assert read_children() <= running


@pytest.mark.slow
def test_no_exception_leaves_a_look_that_is_told_to_end_again_and_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is put away takes longer than the pause between two signals."""
    put_away = tmp_path / "put-away"

    def look() -> None:
        try:
            time.sleep(600)
        finally:
            time.sleep(0.3)
            put_away.touch()

    check(monkeypatch, look, 1.0)
    assert put_away.exists()


def test_who_waits_is_told_which_section_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_within, "_PULSE", 0.01)
    looks = {name: good(name) for name in NAMES}
    looks["sessions"] = bad("sessions", lambda: time.sleep(0.3))
    use_places(monkeypatch, looks)
    told: list[tuple[str, int, int]] = []
    options = CheckOptions(sections=NAMES)
    check_within.check_within(POLICY, options, progress=lambda *words: told.append(words))
    assert told.count(("sessions", 2, 3)) > 3
    assert {total for _name, _number, total in told} == {3}
