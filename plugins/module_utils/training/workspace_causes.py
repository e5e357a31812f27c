# SPDX-License-Identifier: BSD-2-Clause
"""What can be wrong with the directories, files, packages and GPUs of one run."""

from __future__ import annotations

from ..core.cause import Cause
from ..core.line_edit import as_user
from ..core.quote import one_line
from ..core.remedy import Remedy

CODES = {
    "folder-absent": "the directory is not there, and nobody makes it",
    "folder-not-one": "something else than a directory has that name",
    "folder-closed": "the user may not go through a directory above it",
    "folder-not-writable": "the user may not write to the directory",
    "folder-read-only": "its file system is mounted read-only",
    "folder-broken": "the file system answers with an error",
    "folder-full": "too few bytes are free",
    "folder-no-inodes": "too few files can still be made",
    "folder-no-exclusion": "two processes can do at once what only one may",
    "folder-no-atomic-rename": "a reader can see a rename half done",
    "cache-on-network": "the cache is on a network file system",
    "cache-not-of-one-job": "jobs that run at the same time use the same directory",
    "cache-shared-by-containers": "containers use the same directory, and have the same pids",
    "cache-variable-elsewhere": "the variable that the library reads names another directory",
    "cache-variable-unread": "a variable is set that the installed version does not read",
    "cache-few-shards": "there are more workers than shards",
    "cache-file-corrupt": "a file of the cache is damaged",
    "checkpoint-conflict": "something else than a directory has a checkpoint's name",
    "checkpoint-broken": "the newest checkpoint cannot be resumed from",
    "checkpoint-hidden-files": "a directory seems empty and holds hidden files",
    "checkpoint-stale": "an old checkpoint has a higher number than the newest",
    "output-in-use": "another run works in the directory",
    "package-absent": "a package that the run needs is not installed",
    "package-version": "the installed version is not one of those asked for",
    "package-development": "the installed version is a development version",
    "gpu-too-few": "the host has fewer GPUs than the run needs",
    "gpu-little-memory": "a GPU has less memory than the run needs",
    "gpu-in-use": "processes are already on the GPUs",
}


def blame(
    code: str,
    text: str,
    fix: str,
    *commands: tuple[str, ...],
    then: str = "",
    actor: str | None = "",
) -> Cause:
    """Return a cause; a command that names what cannot be typed is left to a person.

    :param actor: As whom the commands run: empty for whoever looks, ``None`` where nobody safely
        can.
    """
    if not all(word.isprintable() for words in commands for word in words):
        commands = ()
    if actor is None:
        commands = ()
    elif actor:
        commands = tuple(as_user(actor, words) for words in commands)
    return Cause(code, one_line(text), Remedy(one_line(fix), commands, then))
