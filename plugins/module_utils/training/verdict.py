# SPDX-License-Identifier: BSD-2-Clause
"""Tell what no run survives from what an estimate says: ``cannot`` and ``tight``.

What no run can do without is counted low: one batch in use beside those that the program keeps,
the processes, pipes and threads of its workers, what is stated of their data, and of a model's
states the weights and gradients that an optimizer works on. Nothing that is only assumed counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..core.cause import Cause
from ..core.finding import FAIL, Finding
from ..core.no_go import CANNOT, TIGHT
from ..core.values import NamedTuple
from .loader import format_size, passes_descriptors
from .policy import Training

_FILES_OF_WORKER, _TASKS_OF_WORKER = 4, 3
"""A queue of two ends, a sentinel and a pipe; a process, and a thread at each end of its queues."""
_STATES, _WEIGHTS = 8, 2
"""Bytes of what is trained: a gradient and a copy in 32 bits; the parameter itself in 16."""

_UNKNOWN: dict[str, object] = {
    "workers": 0,
    "tensors_per_batch": 0,
    "batch_size": 0,
    "ranks_per_node": 1,
    "loaders": 1,
}
"""What is left of a value that is only assumed."""


class Verdict(NamedTuple):
    """A word of the two, and the end of a sentence."""

    word: str
    text: str


SURE = Verdict(CANNOT, "it cannot run")


def decide(
    run: Training,
    has: int | None,
    count: Callable[[Training], int],
    why: str,
    write: Callable[[int], str] = str,
) -> Verdict:
    """Return whether no run survives with so little.

    :param has: What there is at most; ``None`` where nobody knows.
    :param count: Counts what no run can do without.
    :param why: Why what was counted is no such number.
    """
    least = count(_forget(run, run.assumed))
    if has is not None and has < least:
        return Verdict(CANNOT, f"it cannot run: at least {write(least)} are needed")
    deciding = [key for key in run.assumed if count(_forget(run, [key])) < count(run)]
    assumed = ", ".join(_tell(run, key) for key in deciding)
    reasons = [] if has is not None and has < count(run) else [why]
    reasons += [f"{assumed}, as assumed"] if assumed else []
    return Verdict(TIGHT, f"it is tight, an estimate: {'; '.join(reasons)}")


def add_verdict(cause: Cause, verdict: Verdict) -> Cause:
    """Return a cause that says which of the two it is."""
    return cause._replace(text=f"{cause.text}; {verdict.text}", verdict=verdict.word)


def be_tight(cause: Cause, why: str) -> Cause:
    """Return a cause other than a bound which kills for sure."""
    return add_verdict(cause, Verdict(TIGHT, f"it is tight: {why}"))


def _forget(run: Training, keys: Iterable[str]) -> Training:
    return run._replace(**{key: _UNKNOWN[key] for key in keys if key in _UNKNOWN})  # type: ignore[arg-type]


def _tell(run: Training, key: str) -> str:
    number = getattr(run, key)
    told = {
        "workers": f"with {number} workers",
        "tensors_per_batch": f"where a batch holds {number} tensors",
        "ranks_per_node": f"with {number} ranks",
        "loaders": f"with {number} loaders at a time",
    }
    return told.get(key) or f"where a batch takes {format_size(number or 0)}"


def count_least_files(run: Training) -> int:
    """Return the descriptors that the process that trains has at least."""
    tensors = _count_kept(run) * (run.tensors_per_batch or 0) if passes_descriptors(run) else 0
    return run.base + _FILES_OF_WORKER * (run.workers or 0) + tensors


def count_least_mappings(run: Training) -> int:
    """Return the mappings that the process that trains has at least."""
    return _count_kept(run) * (run.tensors_per_batch or 0)


def count_least_mapped(run: Training) -> int:
    """Return the bytes that a process of the run maps at least."""
    data = run.worker_memory if run.workers else 0
    return max(data, _count_kept(run) * (run.batch_size or 0))


def count_least_shm(run: Training) -> int:
    """Return the bytes that all ranks have in /dev/shm at least, in the midst of a step."""
    return run.ranks_per_node * _count_kept(run) * (run.batch_size or 0)


def count_least_tasks(run: Training) -> int:
    """Return the processes and threads of all ranks at least."""
    return run.ranks_per_node * (1 + _TASKS_OF_WORKER * (run.workers or 0))


def count_least_memory(run: Training) -> int:
    """Return the bytes of memory that a node needs at least."""
    each = (run.workers or 0) * run.worker_memory + (run.pinned_buffer or 0)
    return run.ranks_per_node * each + count_least_shm(run) + count_least_states(run)


def count_least_states(run: Training) -> int:
    """Return the bytes of a model's states on each node, of what is stated to be trained."""
    spread = run.deepspeed
    if not spread or not spread.trainable_parameters:
        return 0  # With LoRA it is next to nothing, and what is frozen may have few bits.
    weights = _WEIGHTS if spread.offload_parameters else 0
    each = (_STATES if spread.offload_optimizer else 0) + weights
    return spread.trainable_parameters * each // spread.nodes


def judge_tasks(run: Training, cause: Cause, free: int) -> Cause:
    """Return a cause of too few tasks with its verdict."""
    why = "what a worker and each library starts was measured, and may be less"
    return add_verdict(cause, decide(run, free, count_least_tasks, why))


def _count_kept(run: Training) -> int:
    """Return the batches from workers that are kept at a time, at least."""
    return 1 + run.hold if run.workers else 0


_RISKS = {
    **dict.fromkeys(
        ("logind-not-reloaded", "logind-not-stated", "logind-states-otherwise"),
        "it goes wrong only when the user logs out of the last session",
    ),
    "folder-no-exclusion": "it goes wrong only when two processes meet",
    "folder-no-atomic-rename": "it goes wrong only when a reader meets a writer",
    "cache-on-network": "it goes wrong only where the locks or renames of that file system do",
    "cache-not-of-one-job": "it goes wrong only when another job uses it",
    "cache-shared-by-containers": "it goes wrong only when two of them write the same file",
    "cache-variable-elsewhere": "the other directory may work as well",
    "cache-variable-unread": "the library has a directory of its own, which may work as well",
    "cache-few-shards": "only webdataset 1.0 and later refuse it",
    "checkpoint-hidden-files": "some versions of transformers save in place",
    "checkpoint-stale": "which ones are deleted differs between versions of transformers",
    "output-in-use": "it goes wrong only when both save",
    "package-version": "a version other than the one asked for may work as well",
    "package-development": "a development version may work as well",
    "gpu-in-use": "they may have ended by then",
}
"""Causes that are a fact, and yet kill not every run."""

_OF_WORKERS = ("run-descriptors", "run-shared-memory", "run-shared-memory-quota", "run-tasks")
_OF_MEMORY = ("run-memory-cgroup", "run-memory-host")


def settle(findings: Iterable[Finding], run: Training) -> Iterator[Finding]:
    """Yield findings of which every cause of a failure says which of the two it is.

    What is at fault for a limit, such as a line of a file, is what the run makes of that limit;
    how many workers fit is what the worst of their bounds is.
    """
    of_workers = TIGHT
    for finding in findings:
        if finding.status == FAIL:
            finding = _settle(finding, run, of_workers)
        for cause in finding.causes:
            if cause.verdict == CANNOT and cause.code in (*_OF_WORKERS, *_OF_MEMORY):
                of_workers = CANNOT
        yield finding


def _settle(finding: Finding, run: Training, of_workers: str) -> Finding:
    causes = []
    above = next((cause.verdict for cause in finding.causes if cause.verdict), "")
    for cause in finding.causes:
        if not cause.verdict:
            why = _find_risk(cause.code, finding.requirement.minimum or 0, run)
            why = "its bounds are" if cause.code == "run-workers" and of_workers == TIGHT else why
            if why:
                cause = be_tight(cause, why)
            else:
                cause = cause._replace(verdict=above) if above else add_verdict(cause, SURE)
        causes.append(cause)
    return finding._replace(causes=tuple(causes))


def _find_risk(code: str, needed: int, run: Training) -> str:
    """Return why what is a fact does not kill every run; nothing where it does."""
    if code == "checkpoint-broken" and run.resume is None:
        return "it goes wrong only where the run goes on from it"
    if code in ("folder-full", "folder-no-inodes") and needed > 1:
        return "the run may write less than was stated"
    if code == "gpu-little-memory" and needed > ((run.gpus and run.gpus.memory) or 0):
        return "DeepSpeed's own estimate is for Adam and all parameters trained"
    return _RISKS.get(code, "")
