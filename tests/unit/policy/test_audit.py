# SPDX-License-Identifier: GPL-3.0-or-later
"""The document of a fleet counts every host once, and the unreachable never as compliant."""

from __future__ import annotations

import pytest
from mlhost_limits.policy.audit import gather_audit


def result(**counts: int) -> dict[str, object]:
    summary = {"pass": 1, "fail": 0, "unknown": 0, **counts}
    return {"summary": summary, "findings": [], "connection": {}, "changed": False}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (result(), "pass"),
        (result(unknown=1), "unknown"),
        (result(unknown=1, fail=1), "fail"),
    ],
)
def test_the_status_of_a_checked_host(given: dict[str, object], status: str) -> None:
    host = gather_audit({"a": given})["hosts"]["a"]
    assert host["status"] == status
    assert set(host) == {"status", "summary", "findings", "connection"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "the host could not be reached, or the check did not run"),
        ({"unreachable": True, "msg": "Failed to connect"}, "Failed to connect"),
        ({"skipped": True}, "the host could not be reached, or the check did not run"),
        ("nonsense", "the host could not be reached, or the check did not run"),
    ],
)
def test_a_host_that_was_not_checked_says_why(given: object, reason: str) -> None:
    assert gather_audit({"a": given}) == {
        "summary": {"pass": 0, "fail": 0, "unknown": 0, "unchecked": 1},
        "hosts": {"a": {"status": "unchecked", "reason": reason}},
    }


def test_every_host_is_counted_once() -> None:
    audit = gather_audit({"a": result(), "b": result(fail=1), "c": None, "d": result(fail=2)})
    assert audit["summary"] == {"pass": 1, "fail": 2, "unknown": 0, "unchecked": 1}
