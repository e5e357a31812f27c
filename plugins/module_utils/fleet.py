# SPDX-License-Identifier: BSD-2-Clause
"""Read what one host of a fleet returned; what is not a result is reported and never left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED
from .core.quote import one_line
from .core.values import NamedTuple

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
_STATUSES = (PASS, FAIL, UNKNOWN, WAIVED)
_TEXTS = ("place", "item", "bound", "required", "how", "reason", "owner")
_ABSENT = "no result: the check did not run there"
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
        return HostResult(name, GARBLED, f"{cut_line(repr(result))} {_NO_RESULT}", groups)
    if result.get("unreachable"):
        return HostResult(name, UNREACHABLE, _find_reason(result, "cannot be reached"), groups)
    if "findings" not in result:
        return HostResult(name, CRASHED, _find_reason(result, _ABSENT), groups)
    problem = _find_garbled(result["findings"])
    if problem:
        return HostResult(name, GARBLED, problem, groups)
    measured = str(result.get("measured") or "")
    note, policy = _judge_clock(measured, now), cut_line(str(result.get("policy") or ""))
    return HostResult(name, CHECKED, "", groups, result["findings"], measured, note, policy)


def _find_reason(result: Mapping[str, object], otherwise: str) -> str:
    """Return what went wrong in a line; a crash of Python says it in the last, others first."""
    text = str(result.get("msg") or otherwise)
    crash = result.get("module_stderr") or result.get("exception")
    # A newer Ansible keeps an object there, whose words are for nobody.
    lines = crash.strip().splitlines() if isinstance(crash, str) else []
    told = lines[-1 if "Traceback" in lines[0] else 0] if lines else ""
    return cut_line(text if told in text else f"{text}: {told}")


def _find_garbled(findings: object) -> str:
    """Return what keeps findings from being read, or nothing."""
    if not isinstance(findings, list):
        return f"its findings are {cut_line(repr(findings))}; a list is accepted"
    for index, finding in enumerate(findings):
        where = f"finding {index + 1} of {len(findings)}"
        if not isinstance(finding, dict) or finding.get("status") not in _STATUSES:
            return f"{where} has no status: {cut_line(repr(finding))}"
        wrong = [key for key in _TEXTS if not isinstance(finding.get(key, ""), str)]
        causes = finding.get("causes", [])
        if wrong or not isinstance(causes, list) or not all(map(_is_cause, causes)):
            return f"{where} is garbled: {cut_line(repr(finding))}"
    return ""


def _is_cause(cause: object) -> bool:
    if not isinstance(cause, dict) or not isinstance(cause.get("text"), str):
        return False
    remedy, at = cause.get("remedy", {}), cause.get("at")
    return isinstance(remedy, dict) and (at is None or isinstance(at, dict))


def _judge_clock(measured: str, now: str) -> str:
    """Return what is odd about a time; both sort as texts."""
    if measured and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", measured):
        return f"its time {cut_line(measured)!r} is not a time"
    if measured and now and measured[:15] > now[:15]:  # Ten minutes apart at most.
        return f"its clock is ahead: it says {measured}"
    return ""


def cut_line(text: str) -> str:
    """Return a text of a host on one line that is not too long to show."""
    text = one_line(text.strip().replace("\n", " "))
    return text if len(text) <= 300 else f"{text[:299]}…"
