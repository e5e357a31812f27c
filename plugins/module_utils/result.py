# SPDX-License-Identifier: BSD-2-Clause
"""The one form in which the result of a host travels, whoever writes it: docs/check.schema.json."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .check_host import CheckResult

FORMAT, VERSION = "mlhost.limits/check", 1
PROVISIONED = "mlhost.limits/provision"
"""The version grows when a reader of the one before would be wrong; keys may be added without."""


def make_result(result: CheckResult, root: str = "") -> dict[str, object]:
    """Return a result as it travels: with what it is, of which host, and by which policy.

    :param root: The tree of an image that was judged, if it was one.
    """
    head = {
        "format": FORMAT,
        "version": VERSION,
        "host": "" if root else os.uname().nodename,
        "policy": digest_policy(result.stated),
    }
    return {**head, **result.as_result()}


def digest_policy(stated: Mapping[str, object]) -> str:
    """Return what tells one policy from another: two spellings of one value are two policies."""
    import hashlib  # Long, and who prints for people needs none of it.

    text = json.dumps(stated, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def make_provisioned(
    shown: Mapping[str, object], check: bool, diff: bool, result: CheckResult | None
) -> dict[str, object]:
    """Return what ``provision --json`` prints; see docs/provision.schema.json.

    :param shown: What a run did, or in check mode would do.
    :param result: Of the check afterwards, if there was one.
    """
    told = {**shown, "diff": shown["diff"] if diff else []}
    verified = None if result is None else make_result(result)
    return {"format": PROVISIONED, "version": VERSION, "check": check, **told, "verified": verified}
