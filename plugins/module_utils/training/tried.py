# SPDX-License-Identifier: BSD-2-Clause
"""What a script that was tried has shown: values of a run, or the reason why there are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..core.values import NamedTuple
from .loader import WORKER_MEMORY
from .policy import SHARING, START_METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 2**50
_TOO_LARGE = "Value too large for defined data type"
_LINES, _LONGEST = 3, 400
_PLAIN = 1024
"""Bytes below which a policy asks for the unit: somebody may mean samples."""

MEASURED_AT = "measured"
LET_WRITE = "--let-write"


class Tried(NamedTuple):
    """What came of a trial: ``values`` by key of the section ``training``, measured at ``where``.

    ``refusal`` says why it is not known whether the run gets as far as that.
    """

    values: Mapping[str, object] = {}
    where: str = ""
    notes: tuple[str, ...] = ()
    refusal: str = ""


def read_tried(answer: Mapping[str, Any], name: str, wanted: int, seconds: float) -> Tried:
    """Return what a trial amounts to.

    :param answer: What ``confine_measure`` tells, a claim of the user's.
    :param name: What the script is called.
    :param wanted: The batches that each loader was to make.
    :param seconds: After which it was ended.
    """
    if "open" in answer:
        told = f"what {name} writes cannot be kept out here ({answer['open']})"
        return Tried(refusal=f"--try: {told}; {LET_WRITE} tries it all the same")
    if "trouble" in answer:
        return Tried(refusal=f"--try: {answer['trouble']}")
    try:
        return _read_reports(answer, name, wanted, seconds)
    except (LookupError, TypeError, ValueError, AttributeError):
        return Tried(refusal=f"--try: what {name} reports of its loaders makes no sense")


def _read_reports(answer: Mapping[str, Any], name: str, wanted: int, seconds: float) -> Tried:
    reports = answer["reports"]
    loaders = [loader for report in reports for loader in report["loaders"]]
    count = min(_find_most(loader["batches"] for loader in loaders), wanted)
    if _TOO_LARGE in str(answer["tail"]) and answer["status"]:
        folder = "a directory of another user's"
        told = f"{name} wrote below {folder}, where a trial cannot keep it out"
        return Tried(refusal=f"--try: {told}: name the directory (--output-dir), or {LET_WRITE}")
    is_done = count > 0 and all(_count(one["batches"]) >= wanted or one["ended"] for one in loaders)
    how = _tell_end(answer, name, f"{count} of {wanted} batches", seconds)
    if how and not is_done and (answer["why"] != "late" or not count):
        return Tried(refusal=f"--try: {how}")
    if not count:
        is_made = any(_count(report["made"]) for report in reports)
        told = "its DataLoader makes no batch" if is_made else "makes no DataLoader"
        return Tried(
            notes=(
                f"{name}: {told}: nothing was measured, so what the command and its files state"
                " counts",
            )
        )
    notes = [how] if how else []
    unused = _find_most(report["unused"] for report in reports)
    if unused:
        many, them = ("s", "them") if unused > 1 else ("", "it")
        told = f"{name} had made {unused} loader{many} more by then and not used {them}"
        notes.append(f"{told}: counted as beside the others")
    where = f"{MEASURED_AT}: {count} batch{'es' * (count > 1)} of {name}"
    return Tried(_find_values(reports, loaders, unused), where, tuple(notes))


def _tell_end(answer: Mapping[str, Any], name: str, made: str, seconds: float) -> str:
    """Return how the script ended, where that was neither by itself and well nor in good time."""
    why, status = answer["why"], answer["status"]
    if why == "late":
        return f"{name} made {made} within {seconds:g} s; --time-limit SECONDS gives it longer"
    if why == "memory":
        return f"{name} was ended after {made}, as the memory of this host was nearly used up"
    if why or not status:
        return ""
    end = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    said = _find_last(answer["tail"])
    return f"{name} {end} after {made}{f': {said}' if said else ', and said nothing'}"


def _find_last(said: str) -> str:
    """Return the last lines of what a script said, in one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " / ".join(lines[-_LINES:])[-_LONGEST:]


def _find_values(
    reports: Sequence[Mapping[str, Any]], loaders: Sequence[Mapping[str, Any]], unused: int
) -> dict[str, object]:
    """Return the largest of all loaders and all processes, by key."""
    options = [loader["options"] for loader in loaders]
    values: dict[str, object] = {
        "workers": _find_most(one["workers"] for one in options),
        "base": _find_most(one["base"] for one in reports),
    }
    ranks = [one["ranks"] for one in reports if re.fullmatch("[1-9][0-9]{0,5}", str(one["ranks"]))]
    if ranks:
        values["ranks_per_node"] = max(map(int, ranks))
    with_workers = [one for one in loaders if _count(one["options"]["workers"])]
    if not with_workers:
        return values
    values.update(
        prefetch=max(_find_most(one.get("prefetch") for one in options), 1),
        tensors_per_batch=max(_find_most(one["tensors"] for one in with_workers), 1),
        batch_size=_write_size(_find_most(one["bytes"] for one in with_workers)),
        hold=_find_most(one["hold"] for one in reports),
        loaders=max(_find_most(one["at_once"] for one in reports), 1) + unused,
    )
    memory = _find_most(map(_find_own, with_workers))
    if memory:
        values["worker_memory"] = _write_size(memory)
    if all(one["options"]["epochs"] == 1 for one in with_workers):
        values["epochs"] = 1
    for key, accepted in (("sharing", SHARING), ("start_method", START_METHODS)):
        found = [one["options"].get(key) for one in with_workers]
        values.update((key, one) for one in accepted if one in found)  # The dearest comes last.
    return values


def _find_own(loader: Mapping[str, Any]) -> int:
    """Return the bytes of a worker beyond what every worker has."""
    base = WORKER_MEMORY.get(loader["options"].get("start_method"), WORKER_MEMORY["fork"])
    return max(_count(loader["memory"]) - base, 0)


def _find_most(numbers: Iterable[object]) -> int:
    return max([0, *map(_count, numbers)])


def _count(value: object) -> int:
    """Return a number as far as it can be one: who was tried says it."""
    return min(max(value, 0), _MOST) if isinstance(value, int) else 0


def _write_size(size: int) -> object:
    """Return bytes as a policy takes them."""
    return size if size >= _PLAIN or not size else f"{size}B"
