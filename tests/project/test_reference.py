# SPDX-License-Identifier: GPL-3.0-or-later
"""What the reference says of each key of a policy is what its readers do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from mlhost_limits.core.reader import BOUNDS, Key, PolicyError
from mlhost_limits.schema import load_policy

from tests.reference import command_page, counts, house, manual
from tests.reference.policy_page import (
    HOLDERS,
    KINDS,
    PAGE,
    describe_value,
    format_page,
    list_defaults,
    walk,
)
from tests.reference.sections import list_sections

SECTIONS = list_sections()

KEYS = dict(walk())
NAMES = {"SYSCTL": "vm.max_map_count", "UNIT": "trainer.service", "PACKAGE": "torch"}
BESIDE: dict[str, dict[str, object]] = {
    "containers.podman.users": {"limits": {"core": 0}},
    "waivers[].why": {"what": "nofile", "until": "2026-12-31"},
}
"""What a key cannot be without."""

SAMPLES: dict[str, tuple[object, object]] = {
    # By the kinds of keys: a value that is accepted, and one that is not.
    "by name": ({}, []),
    "checks": (["cpus"], ["cpu"]),
    "count": (2, "many"),
    "day": ("2026-12-31", "tomorrow"),
    "domains": (["*", "@team", "1000:"], "*"),
    "limits": ({"core": "1GiB"}, {"core": "1GB"}),
    "line": ("1 2 3", ["1"]),
    "list": ([], {}),
    "mapping": ({}, []),
    "number": ("64KiB", "64KB"),
    "number or mapping": (65536, "many"),
    "one of three": ("alice", 1),
    "partitions": (["gpu"], ["a b"]),
    "path": ("/srv/run", "run"),
    "pattern": ("*:a", ""),
    "patterns": (["gpu-*"], "gpu-*"),
    "place": ("job:slurm", "slurm"),
    "propagate": (["core"], ["nice"]),
    "rule": ({"nofile": 1024}, {"nofile": "unlimited"}),
    "size": ("1GiB", "1GB"),
    "size above 0": ("1GiB", 0),
    "specifier": (">=2", 2),
    "stage": (2, 1),
    "switch": (False, "perhaps"),
    "tasks": ("unlimited", 0),
    "text": ("a reason", ""),
    "user": ("alice", "a b"),
    "users": (["alice"], ["root"]),
    "word": ("fork", "spoon"),
}


def state(path: str, value: object) -> dict[str, Any]:
    """Return a policy that states one key, with what it cannot be without."""
    head, _dot, name = path.rpartition(".")
    stated: object = {**BESIDE.get(path, {}), NAMES.get(name, name): value}
    for part in reversed(head.split(".") if head else []):
        bare = part.replace("[]", "")
        stated = {NAMES.get(bare, bare): [stated] if part != bare else stated}
    assert isinstance(stated, dict)
    return stated


def refuse(policy: Mapping[str, object]) -> list[str]:
    try:
        load_policy(dict(policy), "none")
    except PolicyError as error:
        return list(error.problems)
    return []


def name_in_problems(path: str) -> str:
    parts = (NAMES.get(part, part) for part in path.split("."))
    return ".".join(parts).replace("[]", "[0]")


def find_accepted(above: str) -> set[str]:
    """Ask the readers what they accept below a key."""
    path = f"{above}.nothing-of-the-kind" if above else "nothing-of-the-kind"
    told = [one for one in refuse(state(path, 1)) if "accepted are" in one]
    (said,) = [
        one
        for one in told
        if one.startswith(f"{name_in_problems(path) if above else 'policy.nothing-of-the-kind'}: ")
    ]
    return set(said.partition("accepted are ")[2].split(", "))


def list_holders() -> list[tuple[str, set[str]]]:
    """Return every mapping whose names are given, and the names that the reference has for it."""
    found = [("", set(SECTIONS))]
    for path, key in KEYS.items():
        names = set(key.accepted if key.kind in ("limits", "rule") else ()) | set(key.below)
        if names and not names & set(NAMES):
            found.append((path + ("[]" if key.kind == "list" else ""), names))
    return [*found, ("sessions[].limits.nofile", set(BOUNDS))]


@pytest.mark.parametrize(
    ("path", "names"), list_holders(), ids=[path for path, _ in list_holders()]
)
def test_the_reference_has_the_keys_that_the_readers_accept(path: str, names: set[str]) -> None:
    assert find_accepted(path) == names


@pytest.mark.parametrize("path", KEYS)
def test_a_value_of_a_key_is_read_as_the_kind_that_the_reference_says(path: str) -> None:
    good, bad = SAMPLES[KEYS[path].kind]
    good = KEYS[path].accepted[0] if KEYS[path].kind == "word" else good
    start = f"{name_in_problems(path)}:"
    accepted, refused = refuse(state(path, good)), refuse(state(path, bad))
    assert not [one for one in accepted if one.startswith(start) and "accepted" in one]
    assert set(refused) - set(accepted)


@pytest.mark.parametrize("path", [path for path, key in KEYS.items() if key.kind == "count"])
def test_a_count_ends_where_the_reference_says(path: str) -> None:
    key = KEYS[path]
    start = f"{name_in_problems(path)}:"
    for value, fits in (
        (key.least, True),
        (key.most, True),
        (key.least - 1, False),
        (key.most + 1, False),
    ):
        said = [one for one in refuse(state(path, value)) if one.startswith(start)]
        assert bool(said) != fits, f"{value}: {said}"


@pytest.mark.parametrize("path", [path for path, key in KEYS.items() if len(key.accepted) == 2])
def test_a_word_is_one_of_those_that_the_reference_has(path: str) -> None:
    for word in KEYS[path].accepted:
        assert not refuse(state(path, word))


def test_defaults_are_of_keys_that_exist() -> None:
    assert set(list_defaults()) <= set(KEYS)
    assert list_defaults()["training.prefetch"] == 2


def test_every_engine_holds_the_same_limits() -> None:
    held = {
        key.accepted for path, key in KEYS.items() if re.fullmatch(r"containers\.\w+\.limits", path)
    }
    assert held == {HOLDERS["containers"].accepted}
    ruled = {key.accepted for key in KEYS.values() if key.kind == "rule"}
    assert ruled == {HOLDERS["services"].accepted}


def test_every_kind_has_words_and_every_key_a_sentence() -> None:
    used = {key.kind for key in KEYS.values()}
    assert used == set(SAMPLES)
    assert set(KINDS) <= used | {"limit"}
    for key in (*KEYS.values(), *BOUNDS.values()):
        assert describe_value(key)
        assert key.text
        assert not key.text.endswith(".")


def test_the_page_in_the_docs_is_made_of_the_code_as_it_is() -> None:
    assert PAGE.read_text(encoding="utf-8") == format_page(), "run: python -m tests.reference"


def test_a_value_is_told_with_its_bounds() -> None:
    assert describe_value(Key("count", "", least=1, most=8)) == "a whole number from 1 to 8"
    assert describe_value(Key("count", "")) == "a whole number from 0"
    assert describe_value(Key("size", "", least=2**20)) == "a size from 1MiB"


def test_the_picture_of_the_house_is_drawn_of_the_code_as_it_is() -> None:
    drawn = house.PICTURE.read_text(encoding="utf-8")
    assert drawn == house.draw(), "run: python -m tests.reference"


def test_the_proof_counts_what_the_tests_hold() -> None:
    page = counts.PAGE.read_text(encoding="utf-8")
    assert page == counts.format_counts(page), "run: python -m tests.reference"


def test_the_page_of_the_command_is_made_of_its_parser_as_it_is() -> None:
    page = command_page.PAGE.read_text(encoding="utf-8")
    assert page == command_page.format_command_page(), "run: python -m tests.reference"


def test_the_manual_is_made_of_the_parser_as_it_is() -> None:
    assert manual.PAGE.read_text(encoding="utf-8") == manual.format_manual(), (
        "run: python -m tests.reference"
    )


def test_no_text_of_the_manual_is_taken_for_a_command_of_roff() -> None:
    assert manual.escape(".B 'a' -b \\c") == "\\&.B 'a' \\-b \\ec"
    known = re.compile(r"\.(\\\"|TH|SH|SS|TP|B|I)( |$)")
    lines = manual.format_manual().splitlines()
    assert [one for one in lines if one.startswith((".", "'")) and not known.match(one)] == []
