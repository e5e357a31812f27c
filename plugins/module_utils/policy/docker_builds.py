# SPDX-License-Identifier: BSD-2-Clause
"""Tell what a step of BuildKit inherits from dockerd, whose own limits may not be what they seem.

BuildKit starts runc from dockerd and states no limits: neither daemon.json nor containerd has a
say. The Go runtime raises dockerd's soft nofile at its start (``syscall/rlimit.go``). Until Go
1.19.9 and 1.20.4 its children kept that; since then they have what dockerd was started with.
"""

from __future__ import annotations

import re

from .rlimit import Rlimit

_GIVEN_BACK = {19: 9, 20: 4}
"""The first patch release of Go 1.N whose children get the soft limit back."""


def is_raised_for_all(go: str) -> bool | None:
    """Tell whether children of a Go program keep the soft nofile that was raised for it.

    :param go: The version that built it, ``go1.19.8``; ``None`` where that does not say.
    """
    found = re.match(r"go1\.(\d+)(?:\.(\d+))?", go)
    if found is None:
        return None
    minor, patch = int(found[1]), int(found[2] or 0)
    return minor < min(_GIVEN_BACK) or patch < _GIVEN_BACK.get(minor, 0)


def inherit_nofile(seen: Rlimit, go: str, given: Rlimit | None) -> Rlimit | None:
    """Return the nofile of a step; ``None`` where its soft limit is not known.

    :param seen: dockerd's own. A raised soft limit is the hard one, or one below it.
    :param given: What systemd started dockerd with, where that is known.
    """
    if seen.soft < seen.hard - 1 or is_raised_for_all(go):
        return seen
    if is_raised_for_all(go) is None or given is None or given.hard != seen.hard:
        return None
    return given
