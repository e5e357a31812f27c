# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a run: people get lines, programs the same as data."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Remedy
from mlhost_limits.why.answer import Answer, format_remedy
from mlhost_limits.why.log_text import Words
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.verdict import MINIMUM, POSSIBLE, REQUEST, SHOWN, Verdict, judge_words

FULL = Verdict(REASONS["nofile"], POSSIBLE, "", 0)


def tell(answer: Answer) -> str:
    return " ".join(" ".join(answer.lines).split())


@pytest.mark.parametrize(
    ("needed", "told"),
    [
        (("nofile", 65536), "need nofile of 65536 would have been enough"),
        (("memlock", 2**20), "need memlock of 1MiB would have been enough"),
        (("vm.max_map_count", 262144), "need vm.max_map_count of 262144 would have been enough"),
        ((REQUEST, 2**30), "need it asked for 1GiB at once"),
        ((MINIMUM, 2**20), "need at least 1MiB, and more while it goes on"),
    ],
)
def test_what_is_needed_is_told_in_its_unit(needed: tuple[str, int], told: str) -> None:
    answer = Answer(FULL._replace(needed=needed))
    assert told in tell(answer)
    assert answer.as_dict()["needed"] == {"item": needed[0], "value": needed[1]}


def test_another_reason_is_told_with_how_it_shows() -> None:
    told = tell(Answer(FULL._replace(others=(REASONS["killed-by-hand"],))))
    assert f"; then {REASONS['killed-by-hand'].tell}" in told
    assert "then" not in tell(Answer(FULL._replace(others=(REASONS["locked"]._replace(tell=""),))))


def test_a_fix_of_check_takes_the_place_of_the_reasons_own() -> None:
    verdict = FULL._replace(reason=REASONS["locked"])
    way = REASONS["locked"].way
    assert f"fix {way}" in tell(Answer(verdict))
    assert way not in tell(Answer(verdict, fault=["     fix  edit that line"]))
    assert " fix" not in tell(Answer(verdict._replace(reason=verdict.reason._replace(way=""))))


def test_a_note_is_the_hosts_where_the_host_shows_the_reason() -> None:
    verdict = FULL._replace(notes=("seen",))
    assert "note seen" in tell(Answer(verdict))
    assert "host seen" in tell(Answer(verdict._replace(sure=SHOWN)))


def test_the_place_of_a_limit_alone_is_told() -> None:
    assert "(place)" in tell(Answer(FULL, place="place"))
    assert "()" not in tell(Answer(FULL))
    verdict = FULL._replace(reason=REASONS["gpu-memory"])
    assert "(place)" not in tell(Answer(verdict, place="place"))


def test_only_the_first_command_has_a_head() -> None:
    remedy = Remedy("do it", (("first", "one"), ("second", "one")))
    told = format_remedy(remedy)
    assert [one.strip() for one in told] == ["fix  do it", "run  first one", "second one"]


@pytest.mark.parametrize(
    ("size", "at", "shown"),
    [(300, 0, (0, 300)), (301, 0, (0, 300)), (301, 300, (1, 301)), (900, 500, (400, 700))],
)
def test_of_a_long_line_300_characters_are_told(size: int, at: int, shown: tuple[int, int]) -> None:
    line = "".join(chr(0x4E00 + number) for number in range(size))
    told = "".join(Answer(FULL._replace(line=line, at=at)).lines)
    found = [number for number in range(size) if line[number] in told]
    assert (found[0], found[-1] + 1) == shown
    whole = "".join(told.split())
    assert (f"...{line[shown[0]]}" in whole) is (shown[0] > 0)
    assert whole.endswith("...") is (shown[1] < size)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("numpy: Unable to allocate 1.5 KiB for an array", 1536),
        ("numpy: Unable to allocate 29.5 MiB for an array", 59 * 2**19),
        ("numpy: Unable to allocate 3.00 GiB for an array", 3 * 2**30),
        ("numpy: Unable to allocate 2. TiB for an array", 2 * 2**40),
        ("numpy: Unable to allocate 2. PiB for an array", 2 * 2**50),
        ("numpy: Unable to allocate 512. B for an array", 512),
        ("memory allocation of 512 bytes failed", 512),
        ("failed to mlock 7-byte buffer (after previously locking 5 bytes): Cannot allocate memory",
         12),
    ],
)  # fmt: skip
def test_the_size_that_was_asked_for_is_read(text: str, needed: int) -> None:
    verdict = judge_words(Words(text))
    assert verdict
    assert verdict.needed
    assert verdict.needed[1] == needed
    assert verdict.number == 1


@pytest.mark.parametrize(("size", "is_first"), [("1023.0 GiB", False), ("1.0 TiB", True)])
def test_what_no_host_has_was_not_promised(size: str, is_first: bool) -> None:
    verdict = judge_words(Words(f"_ArrayMemoryError: Unable to allocate {size} for an array"))
    assert verdict
    assert (verdict.reason.code == "overcommit") is is_first
