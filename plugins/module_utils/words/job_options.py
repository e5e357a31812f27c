# SPDX-License-Identifier: BSD-2-Clause
"""Tell the options of sbatch(1) from the script that it is given."""

from __future__ import annotations

from collections.abc import Sequence

_ALONE = (
    *("-H", "-h", "-I", "-k", "-O", "-Q", "-s", "-v", "-V", "-W", "--hold", "--overcommit"),
    *("--quiet", "--oversubscribe", "--verbose", "--wait", "--contiguous", "--exclusive"),
    *("--no-kill", "--requeue", "--no-requeue", "--parsable", "--reboot", "--spread-job"),
    *("--test-only", "--use-min-nodes", "--ignore-pbs", "--get-user-env", "--nice"),
    *("--help", "--usage", "--version", "--propagate"),
)
"""They take no value, or only one behind an equals sign."""
_OF_SIZE = (
    *("-N", "--nodes", "-n", "--ntasks", "--ntasks-per-node", "-c", "--cpus-per-task", "-G"),
    *("--gpus", "--gres", "--gpus-per-node", "--mem", "--mem-per-cpu", "--mem-per-gpu"),
)


def split_job(words: Sequence[str], where: str) -> tuple[tuple[str, ...], list[str]]:
    """Return what is not read of the options, and the script with what follows it.

    A short option may have its value glued to it. Those that decide how large a job is are named.
    """
    sizes, at = [], 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at].partition("=")[0] if words[at].startswith("--") else words[at][:2]
        sizes += [name] if name in _OF_SIZE else []
        at += 1 if name in _ALONE or name != words[at] else 2
    told = f"{where}: {', '.join(sizes)} of sbatch: not read; lines of #SBATCH are"
    return (told,) if sizes else (), list(words[at:])
