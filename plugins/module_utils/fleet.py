# SPDX-License-Identifier: BSD-2-Clause
"""Read what one host of a fleet returned; what is not a result is reported and never left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED
from .core.quote import one_line, quote
from .core.values import NamedTuple
from .fleet_shape import RESULT, find_misfit

CHECKED, UNREACHABLE, CRASHED, GARBLED, MISSING, STALE = (
    "checked",
    "unreachable",
    "crashed",
    "garbled",
    "missing",
    "stale",
)
UNCHECKED = "unchecked"
WORST_FIRST = (FAIL, UNKNOWN, LATER, WAIVED, PASS)
HOST_STATUSES = (FAIL, UNCHECKED, UNKNOWN, LATER, WAIVED, PASS)
STATES = (CHECKED, UNREACHABLE, CRASHED, GARBLED, MISSING, STALE)
_LONGEST_NAME = 253
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|[+-]00:?00)", re.ASCII)
_ABSENT = "no result: the check did not run there"
_TIMELESS = "it does not say when it was measured"
_NO_RESULT = "is not a result of the check"


class HostResult(NamedTuple):
    """What is known of one host: ``state``, and where that is not ``checked`` the ``reason``.

    ``findings`` are as :meth:`Finding.as_dict` gives them. ``note`` says what is odd about its
    clock. ``policy`` is the digest of what it was judged by, empty where it does not say.
    """

    name: str
    state: str
    reason: str = ""
    groups: tuple[str, ...] = ()
    findings: Sequence[Mapping[str, object]] = ()
    measured: str = ""
    note: str = ""
    policy: str = ""

    @property
    def status(self) -> str:
        """The worst of its findings; unknown where nothing was asked of it."""
        return judge_host(self.state, set(map(find_status, self.findings)))


def judge_host(state: str, found: Collection[str]) -> str:
    """Return the status of a host by its state and the statuses of its findings."""
    if state != CHECKED:
        return UNCHECKED
    return next((status for status in WORST_FIRST if status in found), UNKNOWN)


def find_status(finding: Mapping[str, object]) -> str:
    """Return the status of a finding as plain data; one that will not last is ``later``."""
    status = str(finding["status"])
    ahead = (finding.get(key) for key in ("next_session", "next_restart", "after_boot"))
    return LATER if status == PASS and FAIL in ahead else status


def read_host(name: str, result: object, groups: tuple[str, ...] = (), now: str = "") -> HostResult:
    """Return a host by what its check returned, whatever that is.

    :param result: As Ansible registers it, or as ``mlhost-limits check --json`` prints it.
    :param now: The time here, as ``2026-11-30T12:00:00Z``, to tell of a clock that is ahead.
    """
    if result is None:
        return HostResult(name, MISSING, _ABSENT, groups)
    if not isinstance(result, dict):
        return HostResult(name, GARBLED, f"{quote(result)} {_NO_RESULT}", groups)
    if result.get("unreachable"):
        return HostResult(name, UNREACHABLE, _find_reason(result, "cannot be reached"), groups)
    if "findings" not in result:
        return HostResult(name, CRASHED, _find_reason(result, _ABSENT), groups)
    problem = find_misfit(result, RESULT)
    if problem:
        return HostResult(name, GARBLED, cut_line(problem), groups)
    measured, note = _read_time(str(result.get("measured") or ""), now)
    policy = cut_line(str(result.get("policy") or ""))
    return HostResult(name, CHECKED, "", groups, result["findings"], measured, note, policy)


def is_name(host: str) -> bool:
    """Tell whether a text is the name of a host, and could not be taken for something else."""
    is_path = "/" in host or host in ("", ".", "..")
    return host.isprintable() and not is_path and len(host) <= _LONGEST_NAME


def _find_reason(result: Mapping[str, object], otherwise: str) -> str:
    """Return what went wrong in a line; a crash of Python says it in the last, others first."""
    said = result.get("msg") or otherwise
    text = said if isinstance(said, str) else quote(said)
    crash = result.get("module_stderr") or result.get("exception")
    # A newer Ansible keeps an object there, whose words are for nobody.
    lines = crash.strip().splitlines() if isinstance(crash, str) else []
    told = lines[-1 if "Traceback" in lines[0] else 0] if lines else ""
    return cut_line(text if told in text else f"{text}: {told}")


def _read_time(measured: str, now: str) -> tuple[str, str]:
    """Return a time in the one form that sorts as a text, and what is odd about it."""
    found = _TIME.fullmatch(measured)
    if not found:
        told = f"its time {cut_line(measured)!r} is not a time" if measured else _TIMELESS
        return "", told if now or measured else ""
    told = f"{found[1]}Z"
    is_ahead = now and told[:15] > now[:15]  # Ten minutes apart at most.
    return told, f"its clock is ahead: it says {told}" if is_ahead else ""


def cut_line(text: str) -> str:
    """Return a text of a host on one line that is not too long to show."""
    text = one_line(text.strip().replace("\n", " "))
    return text if len(text) <= 300 else f"{text[:299]}…"
