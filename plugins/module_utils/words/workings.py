# SPDX-License-Identifier: BSD-2-Clause
"""Work out what words only imply of a run, and assume what they leave open."""

from __future__ import annotations

import re

from ..training.keys import KEYS
from ..training.loader import find_hold
from ..training.policy import Training
from .choice import ASSUMED, OPTIONS, Choice, number_of
from .facts import DEFAULT, MEASURED, NAMED, Fact, Words, join_path
from .names import AUTO
from .quantities import parse_count

_PATHS = ("output_dir", "cache_dir")
_MANY_WORKERS, _MANY_RANKS, _MANY_TENSORS = 8, 8, 8
_MIB = 2**20
_SAMPLE = _MIB
"""Bytes of a sample of which nothing is known: three color planes of 295 x 295 float32."""
_TOKEN, _PIXEL = 3 * 8, 3 * 4
"""Bytes of a token in three tensors of int64, and of a pixel of three colors in float32."""
_LONGEST_BATCH = 2**50
_LORA_RANK = 64
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_LARGEST_LAYERS = 4
"""Of small models the embedding is a quarter of all; of larger ones it is less."""


class Workings:
    """Works out what words only imply, and assumes what they leave open."""

    def __init__(self, choice: Choice, words: Words, folder: str) -> None:
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
        self.chosen[key] = Fact(key, value, f"{ASSUMED}{why}", DEFAULT)
        if asks:
            self.choice.asked.append(OPTIONS.get(key, key))

    def _find_paths(self) -> None:
        for key in _PATHS:
            fact = self.chosen.get(key)
            if fact is None:
                continue
            path = str(fact.value)
            if path == AUTO:
                del self.chosen[key]
                self.choice.asked.append(OPTIONS[key])
                self.choice.notes.append(f"{key} ({fact.where}) is known only in the job")
                continue
            path = path[len("file://") :] if path.startswith("file://") else path
            if _URL.match(path):
                del self.chosen[key]
                self.choice.notes.append(f"not looked at: {path}, the {key} ({fact.where})")
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
        nodes = number_of(self.chosen["nodes"]) if "nodes" in self.chosen else 1
        at_once = self.chosen.pop("at_once", None)
        times = number_of(at_once) if at_once else 1
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
                key="ranks_per_node", value=number_of(gpus) * times
            )
        else:
            many = _MANY_RANKS * times
            self._assume("ranks_per_node", many, f"{winner.where} takes every GPU")

    def _find_world(self) -> None:
        """Find the processes of all nodes, with which each one of this node talks."""
        ranks, nodes = self.chosen.get("ranks_per_node"), self.chosen.get("nodes")
        if ranks and nodes and number_of(ranks) > 0 and number_of(nodes) > 1:
            number = number_of(ranks) * number_of(nodes)
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
            number = number_of(gpus) if gpus else _MANY_RANKS
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
            number_of(self.chosen[key]) if key in self.chosen else 0
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
        steps = number_of(self.chosen[key]) if key in self.chosen else stated
        library = str(self.choice.stated.get("library", self.library) or "torch")
        run = Training(library=library, gradient_accumulation=max(int(str(steps)), 1))
        self.chosen["hold"] = fact._replace(value=max(number_of(fact) - find_hold(run), 0))

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
        if nodes and number_of(nodes) > 0:
            self.chosen["deepspeed.nodes"] = nodes._replace(key="deepspeed.nodes")
        self._count_models()
        parameters = self._find_parameters()
        if parameters is None:
            self.choice.problems.append(
                "deepspeed.parameters: the number of the model's parameters is not known; state"
                f" {OPTIONS['deepspeed.parameters']}"
            )
        elif "deepspeed.stage" not in self.chosen or self.chosen["deepspeed.stage"].value != 2:
            largest = max(parameters // _LARGEST_LAYERS, 1)
            self._assume("deepspeed.largest_layer", largest, "a quarter of them")
        self._find_trainable(parameters or 0)

    def _find_trainable(self, parameters: int) -> None:
        """Assume how many parameters LoRA trains: two matrices of its rank beside each layer's.

        A model of width h has about 12h² parameters in each of h / 128 layers, and such matrices
        beside all of them have 2r / h as many; twice that is assumed.
        """
        key = "deepspeed.trainable_parameters"
        uses, rank = self.chosen.get("lora"), self.chosen.get("lora_rank")
        is_lora = uses.value is True if uses else rank is not None and self.library != "trl"
        if not is_lora or key in self.chosen or parameters < 1:
            return
        number = number_of(rank) if rank else _LORA_RANK
        width = (parameters * 128 / 12) ** (1 / 3)
        trained = min(int(parameters * 4 * number / width), parameters)
        self._assume(key, max(trained, 1), f"LoRA of rank {number}")

    def _count_models(self) -> None:
        """Count the model of each run that goes on at once: none shares its states."""
        key, runs = "deepspeed.parameters", self.chosen.get("runs")
        fact = self.chosen.get(key)
        if fact and runs and number_of(fact) > 0:
            where = f"{fact.where}, {runs.where}"
            number = number_of(fact) * number_of(runs)
            self.chosen[key] = fact._replace(value=number, where=where)

    def _find_parameters(self) -> int | None:
        key = "deepspeed.parameters"
        if self.choice.is_stated(key):
            try:
                return parse_count(self.choice.stated[key])
            except ValueError:
                return 0  # Whoever reads it says what is wrong with it.
        return number_of(self.chosen[key]) if key in self.chosen else None
