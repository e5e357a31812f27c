# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``preflight``: read the words that start a run, and judge it before it starts."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .check_host import CheckResult, conclude
from .check_within import check_within
from .core.policy import CheckOptions, Policy
from .core.policy_tree import Tree, decode_policy
from .core.reader import PolicyError
from .core.report import format_notes
from .core.values import NamedTuple
from .policy_file import parse_documents, read_policy
from .run_options import read_run
from .schema import load_policy, merge
from .training.policy import SELF, choose_checks
from .words.facts import LAUNCHER, Wanted, Words, join_words
from .words.files_read import RunFiles
from .words.kinds import SCRIPT, START, SUFFIXES, Context, Read, Text, read_file
from .words.launchers import read_command, read_variables
from .words.precedence import Taken, take
from .words.stated import CONTAINER, judge_stated, tell_stated

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

RUN = "training"
_MOST_FILES = 50
_BESIDE = ("user", "place", "python")
"""What an option may say beside words without describing the run itself."""

_OF_RUNS = {"workers", "prefetch", "ranks_per_node", "world", "samples", "gradient_accumulation"}
_OF_CONTAINER = ("descriptors", "shared_memory")
_OF_NODE = ("shared_memory", "memory", "deepspeed", "cpus")
"""Checks that a container, or a node that is another host, answers for itself."""

JOB = "job:slurm"
_RUNS = ("SLURM_NTASKS_PER_NODE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "WIDS_CACHE")


class Judged(NamedTuple):
    """What came of a run: what was taken from where, and the findings."""

    taken: Taken
    result: CheckResult

    @property
    def lines(self) -> list[str]:
        """All for people, what was taken first."""
        taken = self.taken
        told = [", ".join(taken.told)] if taken.told else []
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


def judge_run(arguments: argparse.Namespace, command: Sequence[str] | None) -> Judged:
    """Read what starts a run, and judge it.

    :param command: The words behind ``--``, if that was there.
    :raises PolicyError: With all that cannot be read, is not known or is missing.
    """
    stated, told = Tree(None) if arguments.policy is None else read_policy(arguments.policy)
    options = read_run(arguments)
    over = _join(stated, options)
    words, names = Words(), list(arguments.files)
    is_bare = command is None and not arguments.files
    if not is_bare or not (set(options) - set(_BESIDE) or arguments.policy is not None):
        words, names = gather_words(arguments.files, command, options.get("user"))
    taken = take(words, _flatten(over), os.getcwd()) if names else Taken({})
    problems = [*words.problems, *taken.problems]
    if names and not (words.facts or words.stated or options or problems):
        asked = "says nothing of a run; state --workers N and --batch-size SIZE at least"
        problems.append(f"{', '.join(names[:5])}: {asked}")
    if problems:
        raise PolicyError(problems)
    given = _with_run(stated, merge(taken.section, over) if over else dict(taken.section))
    try:
        policy = load_policy(given, arguments.profile, run=True, told=told)
    except PolicyError as exc:
        raise PolicyError(_trace(one, taken.origins) for one in exc.problems) from None
    checked = CheckOptions(
        sections=(RUN,),
        probe=arguments.probe,
        canary=arguments.canary,
        time_limit=arguments.time_limit,
    )
    notes = [*taken.notes, *words.notes]
    if any(one.place == JOB for one in words.stated) and "SLURM_JOB_ID" not in os.environ:
        node = "this host is not the job's node: of that, only what the job asks for is judged"
        notes.append(f"{node}; in the job, preflight sees the rest")
    limits = [one for stated in words.stated for one in tell_stated(stated)]
    taken = taken._replace(told=(*taken.told, *limits), notes=tuple(notes))
    return Judged(taken, _judge(policy, checked, words))


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


def _judge(policy: Policy, options: CheckOptions, words: Words) -> CheckResult:
    """Return the findings of this host, and those of what the words state themselves."""
    run = policy.get(RUN)
    if run is None or not words.stated:
        return check_within(policy, options)
    checks = choose_checks(run)
    if run.place == SELF:
        if any(one.place == CONTAINER for one in words.stated):
            checks = tuple(check for check in checks if check not in _OF_CONTAINER)
        elif any(one.place.startswith("pod:") for one in words.stated):
            checks = ()
        elif "SLURM_JOB_ID" not in os.environ and any(one.memory for one in words.stated):
            checks = tuple(check for check in checks if check not in _OF_NODE)
    findings = [one for stated in words.stated for one in judge_stated(run, stated)]
    if not checks:
        return conclude(policy, options, findings, ())
    here = policy._replace(asked={**policy.asked, RUN: run._replace(checks=checks)})
    result = check_within(here, options)
    return result._replace(findings=[*findings, *result.findings])


def gather_words(
    files: Sequence[str], command: Sequence[str] | None, user: object = None
) -> tuple[Words, list[str]]:
    """Return what all words say, and the names of what was read.

    :param files: Those that somebody names; without any, and without a command, what the current
        folder holds is taken.
    :param user: As whom root reads them.
    :raises ValueError: If the folder holds nothing of a run, or more than one that starts.
    """
    gathering = _Gathering(str(user) if user else None)
    if command is not None:
        gathering.add_command(command)
    for path in files:
        gathering.want(Wanted(path, ""))
    if command is None and not files:
        gathering.discover()
    gathering.follow()
    return join_words(gathering.parts), gathering.names


def _find_starts(found: Sequence[tuple[str, Read]]) -> list[tuple[str, Read]]:
    """Return what starts a run, but for what another of them starts."""
    starts = [one for one in found if _trains(one[1])]
    names = {name for name, _read in starts}
    callers = [one for one in found if _list_scripts(one[1]) & names and one not in starts]
    called = {name for _name, read in (*starts, *callers) for name in _list_scripts(read)}
    return [one for one in (*starts, *callers) if one[0] not in called]


def _list_scripts(read: Read) -> set[str]:
    return {os.path.normpath(one.path) for one in read.words.wanted if one.kind == SCRIPT}


def _trains(read: Read) -> bool:
    """Tell whether a script, or a container, trains, and does not only run some tool."""
    words = read.words
    keys = {fact.key for fact in words.facts if fact.rank >= LAUNCHER}
    is_named = any(one.kind != SCRIPT for one in words.wanted)
    return read.kind in (SCRIPT, START) and bool(keys & _OF_RUNS or is_named or words.library)


class _Gathering:
    """Reads words, and the files that they name, and what those name."""

    def __init__(self, user: str | None) -> None:
        self.files = RunFiles(user)
        own = {} if user else dict(os.environ)
        self.context = Context(own, parse_documents)
        self.parts: list[Words] = []
        if own:
            self.parts.append(read_variables({key: own[key] for key in _RUNS if key in own}, ""))
        self.names: list[str] = []
        self.waiting: list[tuple[Wanted, str]] = []
        self.seen: set[str] = set()

    def add_command(self, command: Sequence[str]) -> None:
        self.names.append("the command line")
        if not command:
            self.parts.append(Words(problems=("--: no command follows it",)))
        self._add(read_command(list(command)), os.getcwd())

    def want(self, wanted: Wanted) -> None:
        if not wanted.path.strip():
            self.parts.append(Words(problems=("FILE: the name of a file is empty",)))
            return
        self.waiting.append((wanted, os.getcwd()))

    def _add(self, words: Words, folder: str) -> None:
        self.parts.append(words)
        self.waiting += [(one, folder) for one in words.wanted]

    def follow(self) -> None:
        """Read what is wanted, until nothing is."""
        while self.waiting:
            wanted, folder = self.waiting.pop(0)
            found = self._find(wanted, folder)
            if found is None or found.name in self.seen:
                continue
            self.seen.add(found.name)
            if len(self.seen) > _MOST_FILES:
                told = f"{wanted.where}: names more than {_MOST_FILES} files"
                self.parts.append(Words(problems=(told,)))
                return
            self.names.append(found.name)
            self._add(read_file(found, self.context, wanted.kind).words, found.folder)

    def _find(self, wanted: Wanted, folder: str) -> Text | None:
        """Return a file, looked for where the run starts, then beside the one that names it."""
        start, trouble = f"{wanted.where}: " if wanted.where else "", ""
        for base in dict.fromkeys((os.getcwd(), folder)):
            path = os.path.normpath(os.path.join(base, wanted.path))
            name = wanted.path if base == os.getcwd() else path
            try:
                return self._read(path, os.path.normpath(name) if name else name)
            except PolicyError as exc:
                self.parts.append(Words(problems=tuple(exc.problems)))
                return None
            except OSError as exc:
                trouble = trouble or re.sub(f"^{re.escape(path)}: ", "", str(exc))
        told = f"{start}{wanted.path}: {trouble}"
        is_problem = wanted.must or not trouble.startswith(os.strerror(errno.ENOENT))
        self.parts.append(Words(problems=(told,)) if is_problem else Words(notes=(told,)))
        return None

    def _read(self, path: str, name: str) -> Text:
        content = self.files.read(path)
        if not content.strip():
            raise PolicyError([f"{name}: is empty"])
        return Text(name, decode_policy(content, name), os.path.dirname(path))

    def discover(self) -> None:
        """Take what starts a run in this folder; where nothing does, what a run would read."""
        folder = os.getcwd()
        names = [one for one in self.files.list_names(folder) if one.endswith(SUFFIXES)]
        found: list[tuple[str, Read]] = []
        for name in names[:_MOST_FILES]:
            try:
                read = read_file(self._read(os.path.join(folder, name), name), self.context)
            except (OSError, ValueError):
                continue
            if read.kind and (read.words.facts or read.words.stated or read.words.wanted):
                found.append((name, read))
        if not found:
            raise ValueError(
                f"{folder}: no file here says anything of a run; name one, or give the command"
                " after --, or options such as --workers"
            )
        starts = _find_starts(found)
        if len(starts) > 1:
            told = ", ".join(name for name, _read in starts)
            raise ValueError(f"{folder}: {told} each start a run; name one of them")
        for name, read in starts or found:
            self.names.append(name)
            self.seen.add(name)
            self._add(read.words, folder)
        left = [name for name, _read in found if name not in self.names]
        if left:
            told = f"not taken unless something names it: {', '.join(left)}"
            self.parts.append(Words(notes=(told,)))
