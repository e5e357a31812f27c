# SPDX-License-Identifier: BSD-2-Clause
"""Judge what is special to a cache: where it lies, who else uses it, which variable is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from ..core.folder_states import DIRECTORY
from ..core.values import NamedTuple
from .folder_rules import LOCAL, FolderFacts, blame, find_reach, place_of
from .pep440 import parse_version

WIDS, WDS, HF = "WIDS_CACHE", "WDS_CACHE", "HF_HOME"
VARIABLES = (WIDS, WDS, HF)
READERS: Mapping[str, Mapping[str, tuple[str, str] | None]] = {
    # The packages that may read a variable, and the versions that do: from, to.
    WIDS: {"wids": ("0.2.57", "0.2.111"), "webdataset": ("0.2.57", "0.2.111")},
    WDS: {"webdataset": None},
    HF: {"huggingface_hub": None, "transformers": None, "datasets": None, "diffusers": None},
}
PACKAGES = tuple(dict.fromkeys(name for readers in READERS.values() for name in readers))
_ADVICE = "give each job a directory of its own; mlhost.limits.workspace makes one and its variable"


class Neighbors(NamedTuple):
    """Who else may use the directory.

    ``sharers`` are processes of containers that mount the very directory, one of each container.
    """

    job: str = ""
    host: str = ""
    in_container: bool = False
    sharers: tuple[int, ...] = ()


def judge_filesystem(facts: FolderFacts) -> Finding:
    """Say whether the cache is local: locks and renames hold between hosts on few file systems."""
    wanted = Requirement(place_of(facts.path), "file system", "value", exact=LOCAL)
    how = "mountinfo"
    reach = find_reach(facts.filesystem)
    if facts.state != DIRECTORY or not reach:
        reason = facts.reason or (
            f"a file system of type {facts.filesystem or 'unknown'} may be local or not"
        )
        return Finding(UNKNOWN, wanted, Observation(None, how, reason))
    if reach == LOCAL:
        return Finding(PASS, wanted, Observation(LOCAL, how))
    text = f"{facts.path} is on {facts.filesystem}, mounted from {facts.source} at {facts.mount}"
    fix = "put the cache on a local disk or a tmpfs; the data that it is made from may stay"
    seen = Observation(f"{reach} ({facts.filesystem})", how)
    return Finding(FAIL, wanted, seen, (blame("cache-on-network", text, fix),))


def judge_unique(facts: FolderFacts, others: Neighbors) -> Iterator[Finding]:
    """Yield whether no other job or container uses the directory; nothing where there is none."""
    wanted = Requirement(place_of(facts.path), "used by", "value", exact="one job")
    seen_as = " ".join((facts.path, facts.real_path, facts.mount_root))
    if len(others.sharers) > 1:
        pids = ", ".join(map(str, others.sharers))
        text = f"the containers of pids {pids} mount {facts.path}: equal pids make equal file names"
        cause = blame("cache-shared-by-containers", text, "mount another directory in each")
        seen = Observation(f"{len(others.sharers)} containers", "/proc/PID/mountinfo")
        yield Finding(FAIL, wanted, seen, (cause,))
    elif others.job:
        how = "SLURM_JOB_ID"
        if re.search(rf"(?<![0-9]){re.escape(others.job)}(?![0-9])", seen_as):
            yield Finding(PASS, wanted, Observation("one job", how))
            return
        text = f"{facts.path} does not carry the number of the job, {others.job}"
        cause = blame("cache-not-of-one-job", text, _ADVICE)
        yield Finding(FAIL, wanted, Observation("every job", how), (cause,))
    elif others.in_container and facts.mount_root not in ("", "/"):
        if others.host and others.host in seen_as:
            yield Finding(PASS, wanted, Observation("one job", "the name of the container"))
        else:
            reason = f"a container does not see which others mount {facts.mount}"
            yield Finding(UNKNOWN, wanted, Observation(None, "mountinfo", reason))


def judge_variables(
    path: str, environment: Mapping[str, str], versions: Mapping[str, str] | None
) -> Iterator[Finding]:
    """Yield whether what reads a variable gets this directory; those that are not set say nothing.

    The variables of webdataset and wids win over what a program passes. That of Hugging Face names
    a directory that need not be this one.

    :param versions: What is installed; ``None`` where that is not known.
    """
    stated = {name: environment[name] for name in VARIABLES if environment.get(name)}
    here = {name for name, value in stated.items() if _is_same(value, path)}
    if versions is None:
        for name in sorted(here | (stated.keys() - {HF})):
            reason = f"{name} is set; name the interpreter to tell which version reads it"
            yield Finding(UNKNOWN, _require(path, name), Observation(None, "environment", reason))
        return
    read = {name for name in stated if _is_read(name, versions)}
    for name, value in stated.items():
        if name in here & read:
            yield Finding(PASS, _require(path, name), Observation(path, "environment"))
        elif name in read - {HF}:
            text = f"{name} is {value}, which wins over {path}"
            cause = blame("cache-variable-elsewhere", text, f"set {name} to {path}, or unset it")
            seen = Observation(value, "environment")
            yield Finding(FAIL, _require(path, name), seen, (cause,))
        elif name in here and not here & read:
            yield _blame_unread(path, name, versions)


def _blame_unread(path: str, name: str, versions: Mapping[str, str]) -> Finding:
    installed = [f"{one} {versions[one]}" for one in READERS[name] if one in versions]
    text = f"{' and '.join(installed)} does not read {name}"
    if not installed:
        text = f"nothing here reads {name}: none of {', '.join(READERS[name])} is installed"
    other = WDS if name == WIDS else WIDS
    fix = f"set {other}, or pass the directory to the library"
    cause = blame("cache-variable-unread", text, fix if name != HF else f"unset {name}")
    seen = Observation("not read", "environment and installed versions")
    return Finding(FAIL, _require(path, name), seen, (cause,))


def _require(path: str, name: str) -> Requirement:
    return Requirement(place_of(path), name, "value", exact=path)


def _is_same(value: str, path: str) -> bool:
    return value.rstrip("/") == path.rstrip("/")


def _is_read(name: str, versions: Mapping[str, str]) -> bool:
    """Tell whether an installed package reads a variable."""
    for package, bounds in READERS[name].items():
        version = parse_version(versions.get(package, ""))
        if version is None:
            continue
        if bounds is None:
            return True
        low, high = map(parse_version, bounds)
        if low <= version <= high:  # type: ignore[operator]
            return True
    return False


def judge_shards(path: str, shards: int, workers: int, ranks: int) -> Finding:
    """Say whether every worker of every rank has a shard; webdataset 1.0 stops where one has none.

    A rank that has no worker reads by itself.
    """
    needed = max(workers, 1) * ranks
    wanted = Requirement(place_of(path), "shards", "value", needed)
    seen = Observation(shards, "the parameters of the run")
    if shards >= needed:
        return Finding(PASS, wanted, seen)
    most = shards // ranks
    who = "1 rank" if ranks == 1 else f"{ranks} ranks"
    text = f"{who} with {max(workers, 1)} workers each need {needed} shards, and there are {shards}"
    start = "1 worker" if most == 1 else f"{most} workers"
    fix = f"start at most {start} for each rank, or write more shards"
    fix = fix if most else "start fewer ranks, or write more shards"
    return Finding(FAIL, wanted, seen, (blame("cache-few-shards", text, fix),))
