# SPDX-License-Identifier: BSD-2-Clause
"""Choose what counts where words say two things of one value, and note whom it beats."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import format_quantity
from ..training.keys import KEYS
from .facts import DEFAULT, FILE, INNER, JOB, MEASURED, NAMED, RANKS, STEP, Fact, Words
from .names import AUTO
from .quantities import parse_count, parse_size

ASSUMED = "assumed: "
OPTIONS = {
    "deepspeed.parameters": "--parameters, such as 7B",
    "workers": "--workers N",
    "ranks_per_node": "--ranks-per-node N",
    "tensors_per_batch": "--tensors-per-batch N",
    "batch_size": "--batch-size SIZE (the bytes of one batch)",
    "deepspeed.largest_layer": "--largest-layer N",
    "deepspeed.trainable_parameters": "--trainable-parameters N",
    "output_dir": "--output-dir DIR",
    "cache_dir": "--cache-dir DIR",
}
_AT_LEAST = ("loaders",)
"""What a run that is ended early has not shown all of."""

_NEEDED_FOR = {
    **dict.fromkeys(("samples", "length", "pixels"), "batch_size"),
    **dict.fromkeys(("nodes", "world", "all_tasks", "at_once"), "ranks_per_node"),
    "zero": "deepspeed.stage",
}


def name_option(key: str) -> str:
    """Return the option that states a key, or what a key serves."""
    key = _NEEDED_FOR.get(key, key)
    return OPTIONS.get(key, f"--{key.rpartition('.')[2].replace('_', '-')}")


def format_value(key: str, value: object) -> str:
    kind = KEYS[key].kind if key in KEYS else ""
    if kind == "size" and isinstance(value, int):
        return format_quantity(value, "bytes")
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


class Choice:
    """What counts of all facts, key by key, and what is to be said of it."""

    def __init__(self, words: Words, stated: Mapping[str, object]) -> None:
        self.facts, self.stated = words.facts, stated
        self.chosen: dict[str, Fact] = {}
        self.asked: list[str] = []
        self.notes: list[str] = []
        self.problems: list[str] = []

    def choose(self) -> None:
        by_key: dict[str, list[Fact]] = {}
        for fact in self.facts:
            by_key.setdefault(fact.key, []).append(fact)
        for key, facts in by_key.items():
            winner = self._pick(key, facts)
            if self.is_stated(key):
                continue
            if winner.problem:
                self.problems.append(f"{winner.problem}; mend it, or state {name_option(key)}")
            else:
                self.chosen[key] = winner

    def is_stated(self, key: str) -> bool:
        return key in self.stated or _NEEDED_FOR.get(key) in self.stated

    def _pick(self, key: str, facts: list[Fact]) -> Fact:
        """Return the fact that wins, and note whom it beats."""
        rank = max(fact.rank for fact in facts)
        best = [fact for fact in facts if fact.rank == rank]
        if rank == MEASURED and key in _AT_LEAST:
            best = [max(reversed(facts), key=number_of)]
        winner = best[-1]
        numbers = {fact.value for fact in best if isinstance(fact.value, int)}
        if len({fact.value for fact in best}) > 1 and winner.where[:1] not in "-$":
            files = {fact.where.rpartition(":")[0] for fact in best}
            if rank == FILE and len(files) > 1 and not self.is_stated(key):
                self._refuse_both(key, best)
            if len(numbers) > 1:
                winner = max((one for one in best if one.value in numbers), key=number_of)
        if key not in INNER and not self.is_stated(key):
            self._note_beaten(key, winner, facts)
        if winner.rank == MEASURED and key in self.stated:
            self._note_stated(key, winner)
        return winner

    def _note_stated(self, key: str, measured: Fact) -> None:
        """Say both where an option or a policy asks for another value than was measured."""
        told, seen = (
            format_value(key, _read_stated(key, one)) for one in (self.stated[key], measured.value)
        )
        if told != seen:
            self.notes.append(f"{key} {told} counts, as stated, not {seen} ({measured.where})")

    def _refuse_both(self, key: str, best: list[Fact]) -> None:
        told = " and ".join(f"{one.where} says {format_value(key, one.value)}" for one in best[:3])
        self.problems.append(
            f"{key}: {told}, and nothing says which file counts; name one file, or state"
            f" {name_option(key)}"
        )

    def _note_beaten(self, key: str, winner: Fact, facts: list[Fact]) -> None:
        beaten = [
            one
            for one in facts
            if one.value != winner.value and one.rank not in (DEFAULT, NAMED) and not one.problem
        ]
        if not beaten or winner.value == AUTO:
            return
        other = beaten[-1]
        if key == "ranks_per_node" and other.rank in (JOB, STEP):
            return  # The job starts one launcher on each node.
        why = f"{RANKS[winner.rank]} wins over {RANKS[other.rank]}"
        if key in _AT_LEAST and other.rank == MEASURED:
            why = "there may be more than were seen"
        if winner.rank == other.rank:
            largest = isinstance(winner.value, int) and winner.where[:1] not in "-$"
            why = "the largest" if largest else "the last one wins"
        self.notes.append(
            f"{key.rpartition('.')[2]} {format_value(key, winner.value)} ({winner.where}) counts,"
            f" not {format_value(key, other.value)} ({other.where}): {why}"
        )


def _read_stated(key: str, value: object) -> object:
    """Return a value of an option or a policy as it is measured; as it is, if it is refused."""
    kind = KEYS[key].kind
    try:
        if kind == "size":
            return parse_size(str(value))
        return parse_count(value) if kind == "count" else value
    except ValueError:
        return value


def number_of(fact: Fact) -> int:
    return fact.value if isinstance(fact.value, int) else -1
