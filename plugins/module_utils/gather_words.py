# SPDX-License-Identifier: BSD-2-Clause
"""Gather the words that start a run: a command, files that are named, and those that they name."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from .core.policy_tree import decode_policy
from .core.reader import PolicyError
from .policy_file import parse_documents
from .words.facts import LAUNCHER, Wanted, Words, join_words
from .words.files_read import RunFiles
from .words.kinds import SCRIPT, START, SUFFIXES, Context, Read, Text, read_file
from .words.launchers import read_command, read_variables

_MOST_FILES = 50
_RUNS = ("SLURM_NTASKS_PER_NODE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "WIDS_CACHE")
"""Variables of our own environment that a run is started with."""

_OF_RUNS = {"workers", "prefetch", "ranks_per_node", "world", "samples", "gradient_accumulation"}


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
        self.context = Context(own, parse_documents, self._read_beside)
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
        if wanted.text:
            script = re.sub(r":\d+(: .*)?$", "", wanted.where)
            return Text(f"{script}: {wanted.path}", wanted.text, folder)
        start, trouble = f"{wanted.where}: " if wanted.where else "", ""
        went = os.path.normpath(os.path.join(os.getcwd(), wanted.folder))
        for base in dict.fromkeys((went, os.getcwd(), folder)):
            path = os.path.normpath(os.path.join(base, wanted.path))
            name = wanted.path if base == os.getcwd() else path
            try:
                text = self._read(path, os.path.normpath(name) if name else name)
                return text._replace(arguments=wanted.arguments)
            except PolicyError as exc:
                self.parts.append(Words(problems=tuple(exc.problems)))
                return None
            except OSError as exc:
                trouble = trouble or re.sub(f"^{re.escape(path)}: ", "", str(exc))
        like = self._find_like(wanted, folder)
        if like:
            more = f"{like[0]} is read, of {len(like)} files that it may be"
            if len(like) > 1:
                self.parts.append(Words(notes=(f"{start}{wanted.path}: {more}",)))
            return self._find(wanted._replace(path=like[0]), folder)
        told = f"{start}{wanted.path}: {trouble}"
        is_problem = wanted.must or not trouble.startswith(os.strerror(errno.ENOENT))
        self.parts.append(Words(problems=(told,)) if is_problem else Words(notes=(told,)))
        return None

    def _find_like(self, wanted: Wanted, folder: str) -> list[str]:
        """Return the files that a pattern such as ``configs/*.yaml`` may stand for."""
        above, name = os.path.split(wanted.path)
        for base in dict.fromkeys((os.getcwd(), folder)) if re.search(r"[*?[]", name) else ():
            try:
                names = self.files.list_names(os.path.join(base, above))
            except OSError:
                continue
            found = [one for one in names if fnmatchcase(one, name) and one != name]
            if found:
                return [os.path.join(above, one) for one in found]
        return []

    def _read(self, path: str, name: str) -> Text:
        content = self.files.read(path)
        if self.files.person and self.files.person.pw_uid != os.geteuid():
            # Nor do words of that user's tell what is in root's environment.
            self.context = self.context._replace(environment={})
        if not content.strip():
            raise PolicyError([f"{name}: is empty"])
        return Text(name, decode_policy(content, name), os.path.dirname(path))

    def _read_beside(self, folder: str, path: str) -> str:
        """Return what a file holds that another one takes its variables from, if it can be read."""
        whole = os.path.normpath(os.path.join(os.getcwd(), folder, path))
        try:
            content = decode_policy(self.files.read(whole), whole)
        except (OSError, ValueError):
            return ""
        self.names.append(path)
        return content

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
