# SPDX-License-Identifier: BSD-2-Clause
"""Gather the results of many hosts in one document."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT = ("summary", "findings", "connection")


def gather_audit(results: Mapping[str, object]) -> dict[str, object]:
    """Return every host with its findings, and how many hosts comply.

    :param results: What ``mlhost.limits.check`` returned, by host; anything else means that the
        host could not be checked.
    :returns: ``summary`` (hosts by ``pass``, ``fail``, ``unknown`` and ``unchecked``) and
        ``hosts``, each with ``status``, ``summary``, ``findings`` and ``connection``.
    """
    hosts = {host: _describe(result) for host, result in results.items()}
    summary = dict.fromkeys(("pass", "fail", "unknown", "unchecked"), 0)
    for host in hosts.values():
        summary[str(host["status"])] += 1
    return {"summary": summary, "hosts": hosts}


def _describe(result: object) -> dict[str, object]:
    if not isinstance(result, dict) or "findings" not in result:
        return {"status": "unchecked", "reason": _find_reason(result)}
    counts = result["summary"]
    status = "fail" if counts["fail"] else "unknown" if counts["unknown"] else "pass"
    return {"status": status, **{name: result[name] for name in _KEPT}}


def _find_reason(result: object) -> str:
    message = result.get("msg") if isinstance(result, dict) else None
    return str(message or "the host could not be reached, or the check did not run")
