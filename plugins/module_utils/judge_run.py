# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``preflight``: read the words that start a run, and judge it before it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .check_host import CheckResult, conclude
from .check_within import check_within
from .core.policy import CheckOptions, Policy
from .core.policy_tree import Tree
from .core.profiles import find_profile
from .core.reader import PolicyError
from .core.report import format_notes
from .core.values import NamedTuple
from .gather_apart import gather_apart
from .policy_file import read_policy_within
from .run_options import read_run
from .schema import choose_profile, load_policy, merge
from .training.policy import SELF, choose_checks
from .training.runner_read import name_own_ranks, read_own_ranks
from .training.tried import MEASURED_AT
from .try_run import refuse_bare_try, try_run
from .words.facts import Words, join_words
from .words.precedence import Taken, take
from .words.stated import CONTAINER, judge_stated, tell_stated
from .words.ulimit_settle import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .check_within import Progress
    from .training.policy import Training

RUN = "training"
_SECONDS = 30.0
_BESIDE = ("user", "place", "python")
"""What an option may say beside words without describing the run itself."""

_OF_CONTAINER = ("descriptors", "tasks", "shared_memory")
_OF_NODE = ("shared_memory", "memory", "tasks", "deepspeed", "cpus")
"""Checks that a container, or a node that is another host, answers for itself."""


class Judged(NamedTuple):
    """What came of a run: what was taken from where, and the findings."""

    taken: Taken
    result: CheckResult

    @property
    def lines(self) -> list[str]:
        """All for people, what was taken first."""
        taken = self.taken
        told = [", ".join(_name_once(taken.told))] if taken.told else []
        told += taken.notes
        if taken.asked:
            told.append(f"to know rather than assume: {', '.join(dict.fromkeys(taken.asked))}")
        return [*format_notes(told), *self.result.lines]

    def as_result(self) -> dict[str, object]:
        taken = self.taken
        told = {
            "run": taken.section,
            "taken": taken.told,
            "asked": taken.asked,
            "notes": taken.notes,
        }
        return {**self.result.as_result(), **told}


def _name_once(told: Sequence[str]) -> list[str]:
    """Return what is told of each value, with what a trial was at the first alone."""
    first = next((one for one in told if f"({MEASURED_AT}" in one), "")
    where = first[first.find(f"({MEASURED_AT}") :] if first else ""
    short = f"({MEASURED_AT})"
    return [one.replace(where, short) if where and one is not first else one for one in told]


def judge_run(
    arguments: argparse.Namespace,
    command: Sequence[str] | None,
    progress: Progress | None = None,
) -> Judged:
    """Read what starts a run, and judge it.

    :param command: The words behind ``--``, if that was there.
    :raises PolicyError: With all that cannot be read, is not known or is missing.
    """
    refuse_bare_try(arguments, command)
    limit, has_policy = min(arguments.time_limit, _SECONDS), arguments.policy is not None
    stated, told = read_policy_within(arguments.policy, limit) if has_policy else Tree(None)
    options = read_run(arguments)
    over = _join(stated, options)
    words, names = Words(), list(arguments.files)
    is_bare = command is None and not arguments.files
    if not is_bare or not (set(options) - set(_BESIDE) or has_policy):
        words, names = gather_apart(arguments.files, command, options.get("user"), limit)
    if arguments.batches and command and not words.problems:
        tried = try_run(arguments, command, words, over)
        words = join_words([words, tried])
    known = {**_find_library(stated, arguments.profile), **_flatten(over)}
    taken = take(words, known, os.getcwd()) if names else _take_own(over)
    problems = [*words.problems, *taken.problems]
    if names and not (words.facts or words.stated or options or problems):
        asked = "says nothing of a run; state --workers N and --batch-size SIZE at least"
        problems.append(f"{', '.join(names[:5])}: {asked}")
        problems += [note for note in words.notes if ": not read: " in note]
    if problems:
        raise PolicyError(problems)
    given = _with_run(stated, merge(taken.section, over) if over else dict(taken.section))
    try:
        policy = load_policy(given, arguments.profile, run=True, told=told)
    except PolicyError as exc:
        raise PolicyError(_trace(one, taken.origins) for one in exc.problems) from None
    return _judge_taken(policy, taken, words, arguments, progress)


def _find_library(stated: object, profile: str) -> dict[str, object]:
    """Return whose loop a profile is for: words that show a library below it say no less."""
    _policy, profile = choose_profile(stated, profile)
    run: Any = (find_profile(profile) or {}).get(RUN, {})
    return {"library": run["library"]} if "library" in run else {}


def _take_own(over: Mapping[str, object]) -> Taken:
    """Return what our own environment says of a run that options alone describe."""
    own = {} if over.keys() & {"ranks_per_node", "place", "user"} else read_own_ranks()
    told = tuple(f"ranks_per_node {number} ({name_own_ranks()})" for number in own.values())
    return Taken(own, told)


def _judge_taken(
    policy: Policy,
    taken: Taken,
    words: Words,
    arguments: argparse.Namespace,
    progress: Progress | None,
) -> Judged:
    """Return what comes of a run that is known, and all that is to be said of it."""
    checked = CheckOptions(
        sections=(RUN,),
        probe=arguments.probe,
        canary=arguments.canary,
        time_limit=arguments.time_limit,
    )
    notes = [*taken.notes, *words.notes]
    if words.is_job and "SLURM_JOB_ID" not in os.environ:
        node = "this host is not the job's node: of that, only what the job asks for is judged"
        notes.append(f"{node}; in the job, preflight sees the rest")
    run = policy.get(RUN)
    if run is not None:
        policy = _with_training(policy, run._replace(assumed=taken.assumed))
    if run is not None and run.place == SELF:
        notes += follow(words.ulimits)
    limits = [one for stated in words.stated for one in tell_stated(stated)]
    taken = taken._replace(told=(*taken.told, *limits), notes=tuple(notes))
    return Judged(taken, _judge(policy, checked, words, progress))


def _with_training(policy: Policy, run: Training) -> Policy:
    return policy._replace(asked={**policy.asked, RUN: run})


def _trace(problem: str, origins: Mapping[str, str]) -> str:
    """Return a problem of a key with where that is stated."""
    key = problem.partition(":")[0][len(RUN) + 1 :]
    return f"{problem} ({origins[key]})" if key in origins else problem


def _join(policy: object, options: dict[str, object]) -> dict[str, object]:
    """Return what is stated of the run: options over a policy's own section."""
    stated = policy.get(RUN) if isinstance(policy, dict) else None
    return merge(stated, options) if isinstance(stated, dict) else dict(options)


def _with_run(policy: object, run: dict[str, object]) -> object:
    if policy is not None and not isinstance(policy, dict):
        return policy  # It is refused as it is.
    return {**(policy or {}), RUN: run} if run or policy else policy


def _flatten(section: Mapping[str, Any]) -> dict[str, object]:
    """Return what a section states by key, with what is below ``deepspeed``."""
    nested = section.get("deepspeed")
    below = nested if isinstance(nested, dict) else {}
    return {**section, **{f"deepspeed.{key}": value for key, value in below.items()}}


def _judge(
    policy: Policy, options: CheckOptions, words: Words, progress: Progress | None
) -> CheckResult:
    """Return the findings of this host, and those of what the words state themselves."""
    run = policy.get(RUN)
    if run is None or not (words.stated or words.is_job):
        return check_within(policy, options, progress=progress)
    checks = choose_checks(run)
    if run.place == SELF:
        if any(one.place == CONTAINER for one in words.stated):
            own = _OF_CONTAINER if any(one.shm for one in words.stated) else _OF_CONTAINER[:2]
            checks = tuple(check for check in checks if check not in own)
        elif any(one.place.startswith("pod:") for one in words.stated):
            checks = ()
        elif "SLURM_JOB_ID" not in os.environ and words.is_job:
            checks = tuple(check for check in checks if check not in _OF_NODE)
    findings = [one for stated in words.stated for one in judge_stated(run, stated)]
    if not checks:
        return conclude(policy, options, findings, ())
    policy = _with_training(policy, run._replace(checks=checks))
    result = check_within(policy, options, progress=progress)
    return result._replace(findings=[*findings, *result.findings])
