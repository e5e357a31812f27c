# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge an attack by what root's side saw of it, against the same command without an attack."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .attack import USER
from .on_guest.beside import MARKS
from .on_guest.eyes import SLICE, UID

TOTALS = (
    "became_root",
    "read_secrets",
    "wrote_or_deleted",
    "ran_as_root",
    "hung",
    "crashed",
    "drained",
    "wrong_finding_of_others",
)
_ENDS = (0, 1, 2)
_WHOLE = "0 0 4294967295"
_RAW = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

Seen = Mapping[str, Any]


class Verdict(NamedTuple):
    """What an attack did, by the total that it counts for; nothing is what we want."""

    harms: dict[str, list[str]]

    @property
    def worked(self) -> bool:
        return any(self.harms.values())

    @property
    def may_be_load(self) -> bool:
        """Tell whether a machine that is too busy would do the same: late, or not seen in time."""
        done = {name for name, lines in self.harms.items() if lines}
        return bool(done) and done <= {"hung", "wrong_finding_of_others"}


def judge(seen: Seen, calm: Seen) -> Verdict:
    """Return what an attack did.

    :param calm: What was seen of the same command beside a user who does nothing.
    """
    return Verdict(
        {
            "became_root": list(find_root(seen)),
            "read_secrets": list(find_secrets(seen, calm)),
            "wrote_or_deleted": find_writes(seen, calm),
            "ran_as_root": list(find_alien_runs(seen)),
            "hung": [f"did not end in {one['seconds']} s" for one in seen["runs"] if one["hung"]],
            "crashed": list(find_crashes(seen)),
            "drained": list(find_drains(seen, calm)),
            "wrong_finding_of_others": list(find_wrong_findings(seen, calm)),
        }
    )


def find_root(seen: Seen) -> Iterator[str]:
    """Yield how the attacker had root's rights: a program of theirs, or a file of root's."""
    yield from seen["helpers"]
    yield from (line for line in seen["files"] if line.startswith("given to the user"))
    for one in seen["loot"]:
        if one.get("map", _WHOLE) != _WHOLE:
            continue  # Its ids are those of a user namespace.
        if "0" in one.get("Uid", "").split():
            yield f"a start file ran with the ids {one['Uid']}"
        if one.get("Gid") and "0" in f"{one['Gid']} {one.get('Groups', '')}".split():
            yield f"a start file ran with root's group: {one['Gid']} {one.get('Groups')}"


def find_secrets(seen: Seen, calm: Seen) -> Iterator[str]:
    """Yield which secrets of root's were opened, printed or lie where the attacker can read them."""
    yield from seen["marks"]
    yield from (f"root's {line}" for line in seen["opens"] if line not in calm["opens"])
    for run in seen["runs"]:
        for name, mark in MARKS.items():
            if mark in run["stdout"] + run["stderr"]:
                yield f"{name} in what root's command printed"


def find_writes(seen: Seen, calm: Seen) -> list[str]:
    """Return the files of others that were changed or removed, but for what the command does."""
    usual = {_blur(line) for line in calm["files"]}
    return [line for line in seen["files"] if _blur(line) not in usual]


def _blur(line: str) -> str:
    """Return a line without what differs from run to run."""
    return re.sub(r"[0-9a-f]{6,}|[0-9]+", "#", line.partition(":")[0])


def find_alien_runs(seen: Seen) -> Iterator[str]:
    """Yield what ran as root's: in root's slice, with root's login id, or with root's keys."""
    yield from (f"left outside of the user's slice: {line}" for line in seen["strays"])
    for one in seen["loot"]:
        # In a user namespace the user's own login id is told as that of the namespace's root.
        if one.get("loginuid") == "0" and one.get("map", _WHOLE) == _WHOLE:
            yield "a start file ran with root's login id"
        if one.get("cgroup") and SLICE not in one["cgroup"]:
            yield f"a start file ran in {one['cgroup']}"


def find_crashes(seen: Seen) -> Iterator[str]:
    for run in seen["runs"]:
        text = run["stdout"] + run["stderr"]
        if "Traceback (most recent call last)" in text:
            yield "traceback: " + text.strip().splitlines()[-1][:200]
        elif run["status"] not in _ENDS and not run["hung"]:
            yield f"ended with {run['status']}: {text.strip()[-200:]}"


def find_drains(seen: Seen, calm: Seen) -> Iterator[str]:
    """Yield that the node was drained, or would be by a command that decides it."""
    if seen["slurm"].startswith("drain") and not calm["slurm"].startswith("drain"):
        yield seen["slurm"]


def find_wrong_findings(seen: Seen, calm: Seen) -> Iterator[str]:
    """Yield the findings of others that the attack changed, and bytes that fake a report."""
    for run in seen["runs"]:
        raw = _RAW.search(run["stdout"])
        if raw:
            yield f"raw byte {raw[0]!r} in what root's command printed"
        if re.search(r"^(raw byte|markup)", run["stdout"], re.M):
            yield run["stdout"].strip()[:200]
    before, after = (read_findings(one["runs"], one["owners"]) for one in (calm, seen))
    if before is None:
        return
    after = Counter() if after is None else after  # Who is told nothing has lost all there was.
    yield from (f"lost: {line}" for line in sorted((before - after).elements()))
    yield from (f"new: {line}" for line in sorted((after - before).elements()))


def read_findings(
    runs: Iterable[Mapping[str, Any]], owners: Mapping[str, str]
) -> Counter[str] | None:
    """Return the findings that are not the attacker's; ``None`` where none were printed."""
    for run in runs:
        try:
            found = json.loads(run["stdout"])["findings"]
        except (ValueError, KeyError, TypeError):
            continue
        return Counter(_line(one) for one in found if not is_attackers(one["place"], owners))
    return None


def _line(one: Mapping[str, Any]) -> str:
    causes = ",".join(sorted(str(cause.get("code")) for cause in one["causes"]))
    later = " ".join(str(one.get(key)) for key in ("next_session", "next_restart", "after_boot"))
    words = (one["place"], one["item"], one["bound"], one["status"], later, causes)
    return re.sub(r"process:[0-9]+", "process:PID", " ".join(map(str, words)))


def is_attackers(place: str, owners: Mapping[str, str]) -> bool:
    """Tell whether a place is the attacker's own."""
    process = re.match(r"process:([0-9]+)", place)
    if process and owners.get(process[1]) == str(UID):
        return True
    if place == "path:/dev/shm":
        return True  # What the attacker keeps there takes from everybody, which is to be told.
    return USER in place or str(UID) in re.split(r"\W", place)
