# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documents tell their reader to type works, on a fresh host, as it is written there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .places import Desk, Machine, Outcome
from .plan import Step, find_stand_in, plan_all
from .table import DESK, DOCUMENTS, GUEST, Way

STEPS = plan_all()
RUN = [step for step in STEPS if step.way.runs]
TELLING = ("ansible-doc ", "make -n ", "python3 -c ")
ANSWERS: dict[str, Outcome] = {}
"""What was printed by commands that only tell something, which many documents have."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    guest = Machine(f"docs-{os.getpid()}")
    yield guest
    guest.stop()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, machine: Machine) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"), machine)


@pytest.mark.host
@pytest.mark.parametrize("step", RUN, ids=lambda step: step.name)
def test_a_command_does_what_its_document_says(desk: Desk, machine: Machine, step: Step) -> None:
    assert step.place, f"which place runs {step.text!r}? tests/docs/table.py does not say"
    outcome = take(desk if step.place == DESK else machine, step)
    assert outcome.status == step.way.status, f"status {outcome.status}\n{outcome.printed}"
    for text in step.way.prints or step.shown.splitlines()[:1]:
        assert flatten(text) in flatten(outcome.printed), outcome.printed


def take(place: Desk | Machine, step: Step) -> Outcome:
    if step.script in ANSWERS:
        return ANSWERS[step.script]
    before = f"set -e\n{step.way.before}\nset +e\n" if step.way.before else ""
    try:
        outcome = place.run(step, f"{before}{step.script}")
    finally:
        if step.way.after:
            place.run(step, step.way.after)
    if step.script.startswith(TELLING):
        ANSWERS[step.script] = outcome
    return outcome


def flatten(text: str) -> str:
    return " ".join(text.split())


def test_what_is_not_run_has_a_reason() -> None:
    """The line is for the log; the reasons are those of the table."""
    run = [step for step in RUN if not step.way.reason]
    stand_ins = [step for step in RUN if step.way.reason]
    not_run = [step for step in STEPS if not step.way.runs]
    documents = {step.path for step in STEPS}
    print(f"\n{len(STEPS)} cases in {len(documents)} documents: {len(run)} run as they stand,")
    print(f"{len(stand_ins)} by a stand-in, {len(not_run)} not run")
    for step in not_run:
        print(f"not run: {step.name}: {step.way.reason}")


def test_the_table_names_nothing_that_no_document_has() -> None:
    stated = {(path, text) for path, document in DOCUMENTS.items() for text in document.ways}
    assert stated - {(step.path, step.text) for step in STEPS} == set()
    assert {step.place for step in STEPS} <= {DESK, GUEST, ""}


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("make fuzz", "make -n fuzz"),
        ("pytest tests/seeds", "pytest tests/seeds --collect-only"),
        ("python -m tests.bench.growth", "python3 -c 'import tests.bench.growth'"),
        ("python3 -m tests.bench --quick", "python3 -m tests.bench --help"),
    ],
)
def test_what_runs_for_hours_is_seen_to_be_there(command: str, instead: str) -> None:
    way = find_stand_in(command)
    assert way
    assert (way.instead, bool(way.reason)) == (instead, True)


@pytest.mark.parametrize("command", ["mlhost-limits check", "python3 -m tests.host list", "make"])
def test_what_can_be_run_has_no_stand_in(command: str) -> None:
    assert find_stand_in(command) is None


def test_a_way_without_anything_to_run_is_not_run() -> None:
    assert not Way(reason="it needs a cluster").runs
    assert Way(reason="it takes an hour", instead="true").runs
