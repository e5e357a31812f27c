# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a Trainer from saving or resuming is named; what is harmless is not."""

from __future__ import annotations

import pytest
from mlhost_limits.training.checkpoints import (
    STATE,
    Checkpoint,
    count_copies,
    find_number,
    judge_checkpoints,
)

WHOLE = ("model.safetensors", "optimizer.pt", STATE)


def whole(number: int, changed: float = 0.0) -> Checkpoint:
    return Checkpoint(number, True, WHOLE, changed or number)


def look(
    *checkpoints: Checkpoint, limit: int | None = None, resumes: bool | None = None
) -> list[str]:
    """Return the codes of what fails, or the status of what does not."""
    told = []
    for one in judge_checkpoints("/out", checkpoints, limit, resumes):
        told += [f"{cause.code} {cause.remedy.lines[0]}" for cause in one.causes] or [one.status]
    return told


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("checkpoint-100", 100),
        ("checkpoint-0", 0),
        ("tmp-checkpoint-100", None),
        ("checkpoint-100.bak", None),
        ("checkpoint-007", None),
        ("checkpoint-", None),
        (".ipynb_checkpoints", None),
        ("aside-checkpoint-100", None),
    ],
)
def test_names_are_told(name: str, number: int | None) -> None:
    assert find_number(name) == number


def test_what_is_sound_passes() -> None:
    assert look() == ["pass"]
    assert look(whole(100), whole(200)) == ["pass"]
    assert look(Checkpoint(100), whole(200)) == ["pass"]  # An older empty one does no harm.
    assert look(whole(100), whole(200), limit=2, resumes=True) == ["pass"]


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        (Checkpoint(200), "/out/checkpoint-200, the newest, is empty: resuming ends there"),
        (
            Checkpoint(200, True, WHOLE, 0, (("", "has no weights"), (STATE, "is missing"))),
            "/out/checkpoint-200, the newest, has no weights; trainer_state.json is missing: resuming"
            " ends there",
        ),
        (
            Checkpoint(200, True, WHOLE, 0, (("optimizer.pt", "is empty"),)),
            "/out/checkpoint-200, the newest, optimizer.pt is empty: resuming ends there",
        ),
    ],
)
def test_the_newest_must_be_whole(newest: Checkpoint, text: str) -> None:
    (finding,) = judge_checkpoints("/out", [whole(100), newest], None, None)
    (cause,) = finding.causes
    assert (cause.code, cause.text) == ("checkpoint-broken", text)
    assert cause.remedy.lines == ["mv -nT /out/checkpoint-200 /out/aside-checkpoint-200"]


@pytest.mark.parametrize(
    ("others", "fix"),
    [
        ((), "move it aside, and start without resuming"),
        ((whole(100),), "move it aside, so that the one before it is the newest"),
        ((whole(50), whole(100)), "move it aside, so that the one before it is the newest"),
    ],
)
def test_without_one_before_it_a_run_begins_anew(others: tuple[Checkpoint, ...], fix: str) -> None:
    (finding,) = judge_checkpoints("/out", [*others, Checkpoint(200)], None, None)
    assert finding.causes[0].remedy.text == fix


@pytest.mark.parametrize(
    ("count", "told"),
    [(3, "a; b; c"), (4, "a; b; c; and 1 more"), (5, "a; b; c; and 2 more")],
)
def test_of_many_damaged_files_three_are_named(count: int, told: str) -> None:
    damaged = tuple((name, "") for name in "abcde"[:count])
    newest = Checkpoint(200, True, WHOLE, 0, damaged)
    (finding,) = judge_checkpoints("/out", [newest], None, None)
    assert finding.causes[0].text == (
        f"/out/checkpoint-200, the newest, {told}: resuming ends there"
    )


def test_a_run_that_begins_anew_reads_no_checkpoint() -> None:
    broken = whole(200)._replace(damaged=((STATE, "is empty"),), unsure=(("x", "is odd"),))
    assert look(whole(100), broken, resumes=False) == ["pass"]
    moved = "checkpoint-broken mv -nT /out/checkpoint-200 /out/aside-checkpoint-200"
    assert look(whole(100), broken) == look(whole(100), broken, resumes=True) == [moved]
    assert look(Checkpoint(200), resumes=False) == ["pass"]
    hidden = Checkpoint(100, True, (".x",))
    assert look(hidden, resumes=False)[0].startswith("checkpoint-hidden-files")


def test_without_a_checkpoint_there_is_nothing_to_go_on_from() -> None:
    for checkpoints in ((), (Checkpoint(5, False),)):
        found = list(judge_checkpoints("/out", checkpoints, None, True))
        cause = found[0].causes[-1]
        assert (cause.code, cause.remedy.commands) == ("checkpoint-broken", ())
        assert cause.text.startswith("/out holds no checkpoint-N")
    assert look(resumes=False) == look() == ["pass"]


def test_what_nobody_can_tell_of_the_newest_is_unknown() -> None:
    newest = whole(200)._replace(unsure=(("model.safetensors", "is being written"),))
    (finding,) = judge_checkpoints("/out", [newest], None, True)
    assert finding.status == "unknown"
    assert finding.observation.reason == "/out/checkpoint-200: model.safetensors is being written"
    assert not newest.is_complete


def test_what_a_run_goes_on_without_is_told_where_it_resumes() -> None:
    newest = whole(200)._replace(lost=("optimizer.pt is missing: it begins anew",))
    (finding,) = judge_checkpoints("/out", [newest], None, True)
    assert finding.observation.value == "usable, though optimizer.pt is missing: it begins anew"
    (finding,) = judge_checkpoints("/out", [newest], None, None)
    assert (finding.status, finding.observation.value) == ("pass", "usable")


def test_what_has_another_name_is_not_moved() -> None:
    one = Checkpoint(0, True, ("latest",), damaged=(("latest", "is empty"),), title="latest")
    (finding,) = judge_checkpoints("/out", [one], None, True)
    assert finding.causes[0].text.startswith("/out/latest, the newest, latest is empty")
    assert finding.causes[0].remedy.commands == ()


def test_a_file_of_that_name_and_hidden_files_are_named() -> None:
    assert look(Checkpoint(50, False), Checkpoint(100, True, (".x",)), whole(200)) == [
        "checkpoint-conflict mv -nT /out/checkpoint-50 /out/aside-checkpoint-50",
        "checkpoint-hidden-files mv -nT /out/checkpoint-100 /out/aside-checkpoint-100",
    ]


def test_a_stale_checkpoint_with_a_higher_number_is_named() -> None:
    old = whole(900, 10.0)
    moved = "checkpoint-stale mv -nT /out/checkpoint-900 /out/aside-checkpoint-900"
    assert look(whole(100, 20.0), old) == ["pass"]
    assert look(whole(100, 20.0), old, limit=1) == [moved]
    assert look(whole(100, 10.5), old, limit=1, resumes=True) == ["pass"]
    assert look(old, limit=1) == ["pass", "unknown"]
    assert look(old, limit=1, resumes=True) == ["pass"]
    assert look(old, limit=1, resumes=False) == [moved]


@pytest.mark.parametrize(
    ("checkpoints", "limit", "copies"),
    [
        ([], None, 1),
        ([whole(1), whole(2)], None, 1),
        ([], 1, 2),
        ([], 3, 4),
        ([whole(1)], 3, 3),
        ([Checkpoint(1)], 3, 4),
        ([whole(1), whole(2), whole(3), whole(4), whole(5)], 3, 1),
    ],
)
def test_room_is_for_the_copies_that_are_not_there_yet(
    checkpoints: list[Checkpoint], limit: int | None, copies: int
) -> None:
    assert count_copies(checkpoints, limit) == copies


def many(count: int) -> tuple[tuple[str, str], ...]:
    return tuple((f"f{number}", "is empty") for number in range(count))


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        (3, "f0 is empty; f1 is empty; f2 is empty: resuming"),
        (5, "f0 is empty; f1 is empty; f2 is empty; and 2 more: resuming"),
    ],
)
def test_of_many_damaged_files_the_first_are_named(damaged: int, told: str) -> None:
    newest = Checkpoint(200, True, WHOLE, damaged=many(damaged))
    (finding,) = judge_checkpoints("/out", [newest], None, True)
    assert told in finding.causes[0].text
    (finding,) = judge_checkpoints("/out", [whole(200)._replace(unsure=many(damaged))], None, True)
    assert (finding.observation.reason or "").endswith("f1 is empty; f2 is empty")


def test_of_many_hidden_files_the_first_are_named() -> None:
    hidden = Checkpoint(100, True, (".a", ".b", ".c", ".d"))
    (finding,) = judge_checkpoints("/out", [hidden, whole(200)], None, None)
    assert "(.a, .b, .c)" in finding.causes[0].text
    assert look(Checkpoint(100, True, (".a", "b")), whole(200)) == ["pass"]


def test_what_is_stale_is_told_by_the_time_of_the_one_before_it() -> None:
    for later, told in ((11.0, ["pass"]), (11.5, ["checkpoint-stale"])):
        found = look(whole(100, later), whole(900, 10.0), limit=1, resumes=True)
        assert [line.partition(" ")[0] for line in found] == told
    runs = [whole(100, 30.0), whole(200, 40.0), whole(900, 10.0)]
    (finding,) = judge_checkpoints("/out", runs, 1, True)
    assert finding.causes[0].text.startswith("/out/checkpoint-900 is older than checkpoint-200:")
    (finding,) = judge_checkpoints("/out", [whole(900)], 2, False)
    assert "save_total_limit 2" in finding.causes[0].text
    # What has no state is not counted, and not deleted.
    assert look(Checkpoint(100, True, ("x",)), limit=1, resumes=False) == ["pass"]


def test_a_folder_may_end_in_a_slash_and_nobody_may_move_there() -> None:
    (finding,) = judge_checkpoints("/out/", [Checkpoint(5, False)], None, False)
    assert finding.causes[0].remedy.lines == ["mv -nT /out/checkpoint-5 /out/aside-checkpoint-5"]
    assert count_copies([whole(1)], 0) == 1
    assert Checkpoint(5).name == "checkpoint-5"
    assert not Checkpoint(5, True, WHOLE, damaged=many(1)).is_complete
    assert whole(5).is_complete
