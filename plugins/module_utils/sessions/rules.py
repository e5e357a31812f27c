# SPDX-License-Identifier: BSD-2-Clause
"""What a policy's session rules mean for one user."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.distribution import Dialect
from ..core.reader import Limit
from ..core.values import User
from .pam_limits import rank_domain
from .policy import SessionRule

_STRICT = Dialect(wildcard_root=False)


def find_limits(rules: Iterable[SessionRule], user: User) -> dict[str, Limit]:
    """Return what the policy grants a user, item by item.

    The rules compete as lines of limits.conf(5) do: a user beats a group, a group beats ``*``,
    and of equals the last counts. ``*`` never means root, on no distribution.
    """
    return {item: limit for item, (_rank, _domain, limit) in _compete(rules, user).items()}


def find_domain(rules: Iterable[SessionRule], user: User, item: str) -> str:
    """Return for whom the policy asks what it grants a user; nothing where it asks nothing."""
    found = _compete(rules, user).get(item)
    return found[1] if found else ""


def _compete(rules: Iterable[SessionRule], user: User) -> dict[str, tuple[int, str, Limit]]:
    """Return by item the rank, the domain and the limit of the rule that counts for a user."""
    found: dict[str, tuple[int, str, Limit]] = {}
    for rule in rules:
        ranks = [(rank_domain(domain, user, _STRICT), domain) for domain in rule.users]
        known = [(rank, domain) for rank, domain in ranks if rank is not None]
        if not known:
            continue
        best = min(known, key=lambda one: one[0])
        for item, limit in rule.limits.items():
            if item not in found or best[0] <= found[item][0]:
                found[item] = (*best, limit)
    return found


def named_users(rules: Iterable[SessionRule]) -> list[str]:
    """Return the users that rules name one by one, in the policy's order, each once."""
    names = (domain for rule in rules for domain in rule.users)
    return list(dict.fromkeys(name for name in names if name != "*" and not _is_set(name)))


def find_samples(rules: Iterable[SessionRule] | None, places: Iterable[str]) -> list[str]:
    """Return the users whose sessions were opened for those that no rule names."""
    seen = {place.rpartition("@")[0].partition(":")[2] for place in places if "@" in place}
    return sorted(seen - set(named_users(rules or ()))) if seen else []


def named_groups(rules: Iterable[SessionRule]) -> list[str]:
    """Return the groups that rules name, without ``@``, each once."""
    names = (domain for rule in rules for domain in rule.users)
    return list(dict.fromkeys(name[1:] for name in names if name[0] == "@" and ":" not in name))


def covers_everyone(rules: Iterable[SessionRule]) -> bool:
    """Tell whether some rule is about users that it does not name."""
    return any(domain == "*" or ":" in domain for rule in rules for domain in rule.users)


def _is_set(domain: str) -> bool:
    return domain.startswith(("@", "%")) or ":" in domain
