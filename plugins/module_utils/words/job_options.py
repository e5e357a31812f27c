# SPDX-License-Identifier: BSD-2-Clause
"""Tell the options of sbatch(1), and of shells, from the script that is given."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.values import NamedTuple

_ALONE = (
    *("-H", "-h", "-I", "-k", "-O", "-Q", "-s", "-v", "-V", "-W", "--hold", "--overcommit"),
    *("--quiet", "--oversubscribe", "--verbose", "--wait", "--contiguous", "--exclusive"),
    *("--no-kill", "--requeue", "--no-requeue", "--parsable", "--reboot", "--spread-job"),
    *("--test-only", "--use-min-nodes", "--ignore-pbs", "--get-user-env", "--nice"),
    *("--help", "--usage", "--version", "--propagate", "--immediate", "--oom-kill-step"),
    *("--stepmgr", "--x11", "--resv-ports", "--consolidate-segments"),
)
"""They take no value, or only one behind an equals sign."""
_OF_SIZE = (
    *("-N", "--nodes", "-n", "--ntasks", "--ntasks-per-node", "-c", "--cpus-per-task", "-G"),
    *("--gpus", "--gres", "--gpus-per-node", "--mem", "--mem-per-cpu", "--mem-per-gpu"),
)

_WRAPS = ("--wrap", "--wra", "--wr")
_SHORTEST = 5  # Characters of a long option that is cut.
_OF_SHELLS = ("--rcfile", "--init-file")


class Job(NamedTuple):
    """What sbatch is given: the script with what follows it, or the command that is one."""

    unread: tuple[str, ...]
    script: list[str]
    wrapped: str


def split_job(words: Sequence[str], where: str) -> Job:
    """Return what is said behind the word ``sbatch``, and what is not read of the options.

    A short option may have its value glued to it. Those that decide how large a job is are named.
    """
    sizes, wrapped, at = [], "", 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            at += 1
            break
        glued = words[at].partition("=") if words[at].startswith("--") else (words[at][:2], "", "")
        name, is_wrapped = glued[0], glued[0] in _WRAPS
        sizes += [name] if name in _OF_SIZE else []
        takes = not _is_alone(name) and name == words[at] and (is_wrapped or at + 2 < len(words))
        if is_wrapped:
            wrapped = " ".join(words[at + 1 : at + 2]) if takes else glued[2]
        at += 2 if takes else 1
    told = f"{where}: {', '.join(sizes)} of sbatch: not read; lines of #SBATCH are"
    return Job((told,) if sizes else (), list(words[at:]), wrapped)


def _is_alone(name: str) -> bool:
    """Tell whether an option takes no value; a long one may be cut as long as it is one's alone."""
    return name in _ALONE or (len(name) > _SHORTEST and any(one.startswith(name) for one in _ALONE))


def skip_shell_options(words: Sequence[str]) -> list[str]:
    """Return the script that a shell is given, with what follows it; see bash(1)."""
    at = 0
    while at < len(words) and words[at][:1] in ("-", "+"):
        if words[at] in ("--", "-"):
            return list(words[at + 1 :])
        takes = words[at] in _OF_SHELLS or re.fullmatch("[-+][a-zA-Z]*[oO]", words[at])
        at += 2 if takes else 1
    return list(words[at:])
