# SPDX-License-Identifier: BSD-2-Clause
"""Fill in what a policy states of memlock as a share of the host's memory: ``"90%"``."""

from __future__ import annotations

import re

from .reader import PolicyError

_ITEM = "memlock"
_SHARE = re.compile(r"([1-9][0-9]?|100) ?%")
_MIB, _GIB = 2**20, 2**30


def find_shares(policy: object, path: str = "", inside: bool = False) -> dict[str, int]:
    """Return each share of memory that a policy states, in percent, by its key path.

    :param inside: Whether this is below the item, of which it may be one bound.
    """
    if isinstance(policy, dict):
        below = ((f"{path}.{key}" if path else str(key), key, one) for key, one in policy.items())
        parts = [find_shares(one, here, inside or key == _ITEM) for here, key, one in below]
    elif isinstance(policy, list):
        parts = [find_shares(one, f"{path}[{index}]") for index, one in enumerate(policy)]
    else:
        match = _SHARE.fullmatch(policy) if inside and isinstance(policy, str) else None
        return {path: int(match[1])} if match else {}
    return {where: share for part in parts for where, share in part.items()}


def fill_shares(policy: object, memory: int | None) -> object:
    """Return a policy with bytes in the place of each share of memory.

    :param memory: MemTotal in bytes; ``None`` where this is not a host that has any yet.
    :raises PolicyError: If there is a share, and no memory.
    """
    shares = find_shares(policy)
    if memory is None and shares:
        raise PolicyError(
            f"{path}: {share}% is a share of a memory that this tree does not have yet"
            for path, share in shares.items()
        )
    return _fill(policy, memory or 0, False) if shares else policy


def _fill(policy: object, memory: int, inside: bool) -> object:
    if isinstance(policy, dict):
        return {key: _fill(one, memory, inside or key == _ITEM) for key, one in policy.items()}
    if isinstance(policy, list):
        return [_fill(one, memory, False) for one in policy]
    match = _SHARE.fullmatch(policy) if inside and isinstance(policy, str) else None
    return take_share(int(match[1]), memory) if match else policy


def take_share(share: int, memory: int) -> int:
    """Return so many percent of a memory, in bytes.

    It is whole GiB above 16 GiB, and whole MiB below: what another kernel keeps for itself is a few
    MiB, and must not change a file.
    """
    size = memory * share // 100
    unit = _GIB if size >= 16 * _GIB else _MIB
    return size // unit * unit
