# SPDX-License-Identifier: BSD-2-Clause
"""Make one run of all that words say: who wins, what is worked out, what is assumed and asked."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import NamedTuple, format_quantity
from ..training.keys import DEEPSPEED, KEYS
from ..training.loader import find_hold
from ..training.policy import Training
from .facts import DEFAULT, FILE, INNER, JOB, MEASURED, NAMED, RANKS, STEP, Fact, Words, join_path
from .names import AUTO
from .quantities import parse_count, parse_size

_PATHS = ("output_dir", "cache_dir")
_MANY_WORKERS, _MANY_RANKS, _MANY_TENSORS = 8, 8, 8
_MIB = 2**20
_SAMPLE = _MIB
"""Bytes of a sample of which nothing is known: three color planes of 295 x 295 float32."""
_TOKEN, _PIXEL = 3 * 8, 3 * 4
"""Bytes of a token in three tensors of int64, and of a pixel of three colors in float32."""
_LONGEST_BATCH = 2**50
_LARGEST_LAYERS = 4
"""Of small models the embedding is a quarter of all; of larger ones it is less."""
_ASSUMED = "assumed: "
_OPTIONS = {
    "deepspeed.parameters": "--parameters, such as 7B",
    "workers": "--workers N",
    "ranks_per_node": "--ranks-per-node N",
    "tensors_per_batch": "--tensors-per-batch N",
    "batch_size": "--batch-size SIZE (the bytes of one batch)",
    "deepspeed.largest_layer": "--largest-layer N",
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


def _name_option(key: str) -> str:
    """Return the option that states a key, or what a key serves."""
    key = _NEEDED_FOR.get(key, key)
    return _OPTIONS.get(key, f"--{key.rpartition('.')[2].replace('_', '-')}")


class Taken(NamedTuple):
    """A run as words have it: ``section`` is the policy's ``training``.

    ``told`` has each value with its origin; ``asked`` what is only assumed, with the option that
    states it; ``notes`` what was decided between two; ``problems`` why it cannot be judged.
    """

    section: Mapping[str, object]
    told: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    origins: Mapping[str, str] = {}
    """Where each key of the section is stated."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """Return the keys that no word states."""
        return tuple(key for key, where in self.origins.items() if where.startswith(_ASSUMED))


def take(words: Words, stated: Mapping[str, object], folder: str) -> Taken:
    """Return the run that words amount to.

    :param stated: What options or a policy state, by key, which wins over all words.
    :param folder: Where relative paths begin.
    """
    choice = _Choice(words, stated)
    choice.choose()
    _Workings(choice, words, folder).work_out()
    section: dict[str, object] = {}
    for key, fact in choice.chosen.items():
        top, _dot, below = key.partition(".")
        if top in INNER or top == "gpus" or top not in KEYS or key in stated:
            continue
        if below and below in DEEPSPEED:
            section.setdefault(top, {})[below] = fact.value  # type: ignore[index]
        elif not below:
            section[top] = fact.value
    told = [_tell(key, choice.chosen[key]) for key in _list_told(choice, stated)]
    return Taken(
        section,
        tuple(told),
        tuple(choice.asked),
        tuple(choice.notes),
        tuple(choice.problems),
        {key: fact.where for key, fact in choice.chosen.items() if key not in stated},
    )


def _list_told(choice: _Choice, stated: Mapping[str, object]) -> list[str]:
    """Return the keys of a policy that words state, in the order of its reference."""
    keys = list(KEYS)
    tops = {key: key.partition(".")[0] for key in choice.chosen if key not in stated}
    told = [key for key, top in tops.items() if top in KEYS and top != "gpus"]
    return sorted(told, key=lambda key: keys.index(tops[key]))


def _tell(key: str, fact: Fact) -> str:
    return f"{key.rpartition('.')[2]} {_format(key, fact.value)} ({fact.where})"


def _format(key: str, value: object) -> str:
    kind = KEYS[key].kind if key in KEYS else ""
    if kind == "size" and isinstance(value, int):
        return format_quantity(value, "bytes")
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


class _Choice:
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
                self.problems.append(f"{winner.problem}; mend it, or state {_name_option(key)}")
            else:
                self.chosen[key] = winner

    def is_stated(self, key: str) -> bool:
        return key in self.stated or _NEEDED_FOR.get(key) in self.stated

    def _pick(self, key: str, facts: list[Fact]) -> Fact:
        """Return the fact that wins, and note whom it beats."""
        rank = max(fact.rank for fact in facts)
        best = [fact for fact in facts if fact.rank == rank]
        if rank == MEASURED and key in _AT_LEAST:
            best = [max(reversed(facts), key=_number)]
        winner = best[-1]
        numbers = {fact.value for fact in best if isinstance(fact.value, int)}
        if len({fact.value for fact in best}) > 1 and winner.where[:1] not in "-$":
            files = {fact.where.rpartition(":")[0] for fact in best}
            if rank == FILE and len(files) > 1 and not self.is_stated(key):
                self._refuse_both(key, best)
            if len(numbers) > 1:
                winner = max((one for one in best if one.value in numbers), key=_number)
        if key not in INNER and not self.is_stated(key):
            self._note_beaten(key, winner, facts)
        if winner.rank == MEASURED and key in self.stated:
            self._note_stated(key, winner)
        return winner

    def _note_stated(self, key: str, measured: Fact) -> None:
        """Say both where an option or a policy asks for another value than was measured."""
        told, seen = (
            _format(key, _read_stated(key, one)) for one in (self.stated[key], measured.value)
        )
        if told != seen:
            self.notes.append(f"{key} {told} counts, as stated, not {seen} ({measured.where})")

    def _refuse_both(self, key: str, best: list[Fact]) -> None:
        told = " and ".join(f"{one.where} says {_format(key, one.value)}" for one in best[:3])
        self.problems.append(
            f"{key}: {told}, and nothing says which file counts; name one file, or state"
            f" {_name_option(key)}"
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
            f"{key.rpartition('.')[2]} {_format(key, winner.value)} ({winner.where}) counts, not"
            f" {_format(key, other.value)} ({other.where}): {why}"
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


def _number(fact: Fact) -> int:
    return fact.value if isinstance(fact.value, int) else -1


class _Workings:
    """Works out what words only imply, and assumes what they leave open."""

    def __init__(self, choice: _Choice, words: Words, folder: str) -> None:
        self.choice, self.chosen, self.folder = choice, choice.chosen, folder
        self.library = words.library

    def work_out(self) -> None:
        self._find_paths()
        self._find_resume()
        self._find_ranks()
        self._find_world()
        self._find_workers()
        self._find_batch()
        self._find_hold()
        self._find_zero()
        if self.library and "library" in KEYS and not self.choice.is_stated("library"):
            self.chosen["library"] = Fact("library", self.library, "by its options", NAMED)

    def _assume(self, key: str, value: object, why: str, asks: bool = True) -> None:
        if self.choice.is_stated(key):
            return
        self.chosen[key] = Fact(key, value, f"{_ASSUMED}{why}", DEFAULT)
        if asks:
            self.choice.asked.append(_OPTIONS.get(key, key))

    def _find_paths(self) -> None:
        for key in _PATHS:
            fact = self.chosen.get(key)
            if fact is None:
                continue
            path = str(fact.value)
            if path == AUTO:
                del self.chosen[key]
                self.choice.asked.append(_OPTIONS[key])
                self.choice.notes.append(f"{key} ({fact.where}) is known only in the job")
                continue
            self.chosen[key] = fact._replace(value=join_path(self.folder, path))

    def _find_resume(self) -> None:
        """Tell a checkpoint of output_dir that is gone on from, from one that is elsewhere."""
        resume, output = self.chosen.get("resume"), self.chosen.get("output_dir")
        if resume is None or not isinstance(resume.value, str):
            return
        del self.chosen["resume"]
        path = join_path(self.folder, resume.value)
        if output and path.startswith(f"{str(output.value).rstrip('/')}/"):
            self.chosen["resume"] = resume._replace(value=True)
        elif "/" in resume.value:
            self.choice.notes.append(
                f"not looked at: {resume.value}, resumed from ({resume.where})"
            )

    def _find_ranks(self) -> None:
        """Find the processes of this node: stated, or those of all nodes divided."""
        found = [self.chosen.pop(key, None) for key in ("ranks_per_node", "world", "all_tasks")]
        nodes = _number(self.chosen["nodes"]) if "nodes" in self.chosen else 1
        at_once = self.chosen.pop("at_once", None)
        times = _number(at_once) if at_once else 1
        known = [
            fact if fact.key == "ranks_per_node" else self._divide(fact, max(nodes, 1))
            for fact in found
            if fact is not None
        ]
        if self.choice.is_stated("ranks_per_node"):
            return
        if not known:
            self._assume("ranks_per_node", 1, "no launcher is named")
            return
        winner = max(known, key=lambda fact: fact.rank)
        if winner.value != AUTO:
            self.chosen["ranks_per_node"] = winner._replace(key="ranks_per_node")
            return
        gpus = self.chosen.get("gpus.count")
        if gpus:
            self.chosen["ranks_per_node"] = gpus._replace(
                key="ranks_per_node", value=_number(gpus) * times
            )
        else:
            many = _MANY_RANKS * times
            self._assume("ranks_per_node", many, f"{winner.where} takes every GPU")

    def _find_world(self) -> None:
        """Find the processes of all nodes, with which each one of this node talks."""
        ranks, nodes = self.chosen.get("ranks_per_node"), self.chosen.get("nodes")
        if ranks and nodes and _number(ranks) > 0 and _number(nodes) > 1:
            number = _number(ranks) * _number(nodes)
            self.chosen["world_size"] = nodes._replace(key="world_size", value=number)

    @staticmethod
    def _divide(fact: Fact, nodes: int) -> Fact:
        if not isinstance(fact.value, int):
            return fact
        return fact._replace(value=max(-(-fact.value // nodes), 1))

    def _find_workers(self) -> None:
        auto = self.chosen.get("workers")
        if auto and auto.value == AUTO:
            gpus = self.chosen.get("gpus.count") or self.chosen.get("ranks_per_node")
            number = _number(gpus) if gpus else _MANY_RANKS
            self.chosen["workers"] = auto._replace(value=max(number, 1))
        prefetch = self.chosen.get("prefetch")
        if prefetch and prefetch.rank == DEFAULT and not (auto and auto.rank == DEFAULT):
            del self.chosen["prefetch"]  # It is the default of who states neither.
        if "workers" not in self.chosen:
            if self.library in ("transformers", "trl"):
                self._assume("workers", 0, "transformers' default", asks=False)
            else:
                self._assume("workers", _MANY_WORKERS, "no word says how many")
        workers = self.chosen.get("workers")
        if workers and not workers.value:
            self.chosen.pop("prefetch", None)  # Nothing is fetched before it is asked for.
        elif "prefetch" not in self.chosen:
            self._assume("prefetch", 2, "torch's default", asks=False)

    def _find_batch(self) -> None:
        workers = self.chosen.get("workers")
        if (workers.value if workers else self.choice.stated.get("workers")) in (0, "0"):
            return  # Batches are made where they are used.
        if "tensors_per_batch" not in self.chosen:
            self._assume("tensors_per_batch", _MANY_TENSORS, "most batches hold fewer")
        if "batch_size" in self.chosen or self.choice.is_stated("batch_size"):
            return
        samples, length, pixels = (
            _number(self.chosen[key]) if key in self.chosen else 0
            for key in ("samples", "length", "pixels")
        )
        if samples < 1:
            self._assume("batch_size", 64 * _MIB, "no word says how many samples")
            return
        each, of = _SAMPLE, "of 1 MiB"
        if length > 0:
            each, of = length * _TOKEN, f"of {length} tokens"
        elif pixels > 0:
            each, of = pixels**2 * _PIXEL, f"of {pixels} x {pixels} pixels"
        size = min(-(-samples * each // _MIB) * _MIB, _LONGEST_BATCH)
        self._assume("batch_size", size, f"{samples} sample{'s' * (samples != 1)} {of}")

    def _find_hold(self) -> None:
        """Leave of what is kept, where that was measured, what the library does not keep."""
        fact = self.chosen.get("hold")
        if fact is None or fact.rank != MEASURED:
            return
        key = "gradient_accumulation"
        stated = self.choice.stated.get(key, 1)
        steps = _number(self.chosen[key]) if key in self.chosen else stated
        library = str(self.choice.stated.get("library", self.library) or "torch")
        run = Training(library=library, gradient_accumulation=max(int(str(steps)), 1))
        self.chosen["hold"] = fact._replace(value=max(_number(fact) - find_hold(run), 0))

    def _find_zero(self) -> None:
        """Fill in what the floor of DeepSpeed needs; without a stage there is none."""
        if "deepspeed.stage" not in self.chosen and not self.choice.is_stated("deepspeed.stage"):
            for key in [key for key in self.chosen if key.startswith("deepspeed.")]:
                del self.chosen[key]
            return
        ranks, nodes = self.chosen.get("ranks_per_node"), self.chosen.get("nodes")
        if ranks:
            key = "deepspeed.gpus_per_node"
            self.chosen[key] = ranks._replace(key=key)
        if nodes and _number(nodes) > 0:
            self.chosen["deepspeed.nodes"] = nodes._replace(key="deepspeed.nodes")
        parameters = self._find_parameters()
        if parameters is None:
            self.choice.problems.append(
                "deepspeed.parameters: the number of the model's parameters is not known; state"
                f" {_OPTIONS['deepspeed.parameters']}"
            )
        elif "deepspeed.stage" not in self.chosen or self.chosen["deepspeed.stage"].value != 2:
            largest = max(parameters // _LARGEST_LAYERS, 1)
            self._assume("deepspeed.largest_layer", largest, "a quarter of them")

    def _find_parameters(self) -> int | None:
        key = "deepspeed.parameters"
        if self.choice.is_stated(key):
            try:
                return parse_count(self.choice.stated[key])
            except ValueError:
                return 0  # Whoever reads it says what is wrong with it.
        return _number(self.chosen[key]) if key in self.chosen else None
