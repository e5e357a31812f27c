# SPDX-License-Identifier: BSD-2-Clause
"""Run a command that trains until its loaders have shown themselves, as the user who runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..host.as_user import (
    Ended,
    Errand,
    describe_person,
    find_person,
    name_person,
    run_as_user,
)
from ..kernel.use_read import read_kernel_use
from .loader import HEAP
from .loader_hook_measure import BATCHES, FOLDER
from .own_code_read import require_own

_GRACE = 15.0
_MOST = 2**22
_MOST_TASKS = 2**14
_NOT_STARTED = 127
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def try_command(
    command: Sequence[str],
    batches: int,
    user: str | None,
    seconds: float,
    paths: Sequence[str] | None,
) -> Mapping[str, Any]:
    """Run a command in this folder and return what its loaders showed; see ``confine_measure``.

    :param batches: After so many of each loader it is ended, with all that it has started.
    :param user: As whom root runs it.
    :param paths: Where it is said to write, which is kept out of the files of this host as all
        else is; ``None`` lets it write there.
    :raises ValueError: If nobody may run it so, or nothing came back.
    """
    variables, words = _split_assignments(command)
    if not words:
        raise ValueError("--try: no command follows its variables")
    person = _find_runner(user, variables, words)
    given = {
        "hook": _read_source("loader_hook_measure"),
        "into": FOLDER,
        "number": BATCHES,
        "batches": batches,
        "seconds": seconds,
        "confines": paths is not None,
        "paths": list(paths or ()),
        "folder": os.getcwd(),
        "asker": os.getpid(),
    }
    try:
        return _read_answer(run_as_user(_make_errand(person, given, variables, words)), person)
    except OSError as error:
        raise ValueError(f"--try: {error}") from None


def _make_errand(
    person: pwd.struct_passwd,
    given: Mapping[str, Any],
    variables: Mapping[str, str],
    words: Sequence[str],
) -> Errand:
    """Return what watches a command, as whoever runs it and with their environment."""
    is_own = person.pw_uid == os.geteuid()
    program = [sys.executable, "-I", "-S", "-c", _read_source("confine_measure")]
    return Errand(
        person,
        words=[*program, json.dumps(given), *words],
        environment={
            HEAP[0]: HEAP[1],  # What a worker's heap keeps of its batches is counted, not measured.
            **(os.environ if is_own else describe_person(person)),
            **variables,
        },
        seconds=given["seconds"] + _GRACE,
        most=_MOST,
        memory=read_kernel_use().available * 3 // 4,
        tasks=_MOST_TASKS,
    )


def _read_answer(ended: Ended, person: pwd.struct_passwd) -> Mapping[str, Any]:
    try:
        answer = json.loads(ended.said.strip().rpartition("\n")[2])
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict):
        return answer
    if ended.late:
        raise ValueError("--try: what watched the script was late, and ended with all it started")
    if ended.status == _NOT_STARTED and not ended.said:
        who = name_person(person)
        raise ValueError(f"--try: {who} cannot run {sys.executable}, which would watch the script")
    how = f"was killed by signal {-ended.status}"
    if ended.status >= 0:
        how = f"ended with status {ended.status}"
    raise ValueError(f"--try: what watched the script {how}, so nothing is known of it")


def _split_assignments(command: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables in front of a command, as a shell takes them, and the command."""
    words, variables = list(command), {}
    while words:
        match = _ASSIGNMENT.fullmatch(words[0])
        if match is None:
            break
        variables[match[1]] = match[2]
        words.pop(0)
    return variables, words


def _find_runner(
    user: str | None, variables: Mapping[str, str], words: Sequence[str]
) -> pwd.struct_passwd:
    """Return who runs a command: the one who asks, or whom root names.

    :raises ValueError: If root would run what another user may change.
    """
    if user:
        try:
            return pwd.getpwnam(user)
        except KeyError:
            raise ValueError(f"this host has no user {user}") from None
    if os.geteuid():
        return find_person(os.geteuid())
    require_own(words, {**os.environ, **variables})
    return find_person(0)


def _read_source(name: str) -> str:
    """Return the source of a file beside this one, from wherever the library was loaded."""
    spec = importlib.util.find_spec(f"{__package__}.{name}")
    source = spec.loader.get_source(spec.name) if spec and spec.loader else None  # type: ignore[attr-defined]
    if not source:
        raise ValueError(f"--try: this copy of the library lacks the source of {name}")
    return str(source)
