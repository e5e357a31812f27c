# SPDX-License-Identifier: BSD-2-Clause
"""Read what a specification of the OCI runtime gives a container: config.json, for runc or crun.

Source: ``config.md`` and ``config-linux.md`` of the specification.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..core.values import RLIMITS, UNLIMITED, NamedTuple, Rlimit

TYPES = {f"RLIMIT_{name.upper()}": name for name in RLIMITS}
"""The names of limits, by what a specification calls them."""


class Spec(NamedTuple):
    """What is stated; ``tasks`` is ``None`` where that is nothing."""

    limits: Mapping[str, Rlimit]
    tasks: int | None = None


class Started(NamedTuple):
    """How a running container was started; ``limits`` are ``None`` where that is not known.

    ``tasks`` is what its runtime was told to bound them with, ``None`` where that is nothing.
    """

    name: str
    limits: Mapping[str, Rlimit] | None = None
    since: str = ""
    tasks: int | None = None
    in_pod: bool = False


def read_spec(text: str) -> Spec:
    """Return the limits in a specification, and its bound on tasks, where 0 or less means none.

    :raises ValueError: If it is not one.
    """
    try:
        spec = json.loads(text)
        limits = {
            TYPES[entry["type"]]: Rlimit(int(entry["soft"]), int(entry["hard"]))
            for entry in spec["process"].get("rlimits") or ()
            if entry["type"] in TYPES
        }
        pids = ((spec.get("linux") or {}).get("resources") or {}).get("pids") or {}
        tasks = None if pids.get("limit") is None else int(pids["limit"])
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a specification of a container: {error}") from None
    return Spec(limits, tasks if tasks is None or tasks > 0 else UNLIMITED)
