# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for logins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..core.cause import cite
from ..core.forecast import list_extremes
from ..core.resolved import Effect, Query, describe
from ..core.values import ITEMS, UNLIMITED, User
from ..host.files import read_text, under
from ..kernel.tree_read import TreeBoot
from .dialect_read import read_dialect
from .image import ask_hindrances
from .limits_read import find_hanging_limits_files, read_limits_files
from .model import find_refused, predict_limits, start_with
from .pam_limits import (
    LIMITS_CONF,
    Resolution,
    describe_unknown,
    find_obstacle,
    read_lines,
    resolve_limits,
    resolve_settings,
)
from .pam_stack import find_pam_limits, find_service_file, flatten
from .refusals_read import find_refusal
from .shell_limits import BOTH
from .tree_doubts_read import TreeDoubt, find_tree_doubts
from .tree_read import SessionsTree, read_tree_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.distribution import Dialect
    from ..host.image import Tree

_WAYS = ("sshd", "login", "su", "sudo")
"""The services that people come in by, whose lines are told where no service is asked."""
_MAY_CHANGE = "may change it after PAM"


def resolve_sessions(tree: Tree, query: Query) -> Iterator[dict[str, object]]:
    """Yield the limits of a user, or of root and of the ordinary one.

    :raises ValueError: If a user or service is not in the tree.
    """
    for name in [query.user] if query.user else ["root", "*"]:
        yield from _resolve_user(tree, name, query.service)


def _resolve_user(tree: Tree, name: str, service: str | None) -> Iterator[dict[str, object]]:
    root = tree.root
    place = f"session:{name}@{service or 'any'}"
    user = User("", 2**31, 2**31) if name == "*" else read_tree_user(root, name)
    reason = _find_hindrance(tree, service, user) if service else ""
    if reason:
        yield {"place": place, "reason": reason}
        return
    dialect = read_dialect(root)
    if not dialect.is_known:
        yield {"place": place, "reason": describe_unknown(dialect)}
    files = read_limits_files(root)
    missing = find_obstacle(files, find_hanging_limits_files(root), user, dialect)
    if missing and os.path.isdir(under(os.path.dirname(LIMITS_CONF), root)):
        yield {"place": place, "reason": f"{missing} is missing, and PAM refuses every login"}
        return
    read = read_lines(files, dialect)
    resolution = resolve_limits(read, user, dialect)
    if resolution.stopped_by:
        line = resolution.stopped_by
        yield {"place": place, "reason": f'{line.place} "{line.text.strip()}" cancels every limit'}
    doubts, unread = _find_doubts(tree, user, service)
    for entry in _list_limits(tree, resolution, dialect, doubts):
        yield {**entry, "place": place}
    for item, bound in resolve_settings(read, user, dialect).items():
        yield describe(place, item, "value", bound, "")
    for reason in dict.fromkeys([*unread, *(f"{cite(one.at)} {_MAY_CHANGE}" for one in doubts)]):
        yield {"place": place, "reason": reason}


def _list_limits(
    tree: Tree, resolution: Resolution, dialect: Dialect, doubts: Sequence[TreeDoubt]
) -> Iterator[dict[str, object]]:
    """Yield each limit that the files state for a user, of no place yet."""
    nr_open = tree.at(TreeBoot).nr_open_at_most
    asked = _fill_nr_open(resolution, nr_open) if dialect.reads_nr_open else resolution
    starts = [start_with(limit, nr_open, dialect.resets) for limit in list_extremes()]
    given = [predict_limits(asked, start) for start in starts]
    ends = dialect.ends_sessions and find_refused(asked, starts[-1]) is not None
    for (item, kind), bound in resolution.bounds.items():
        values = {getattr(limits[item], kind) for limits in given if item in limits}
        wanted = asked.bounds[item, kind].winner.value
        spoiled = _find_spoiler(item, kind, wanted, doubts)
        effect = spoiled or _find_effect(item, wanted, values, nr_open, ends)
        entry = describe("", item, kind, bound, ITEMS[item].unit, effect)
        if bound.winner.value == UNLIMITED and not dialect.reads_nr_open:
            entry["value"] = "unlimited"  # And not the value of fs.nr_open.
        yield entry


def _find_doubts(tree: Tree, user: User, service: str | None) -> tuple[list[TreeDoubt], list[str]]:
    """Return what may change a user's limits after PAM, and why some of it is not known.

    :param service: ``None`` for all that people come in by.
    """
    read = tree.at(SessionsTree)
    ways = [one for one in _WAYS if find_service_file(one, read.pam_files)]
    doubts: dict[TreeDoubt, None] = {}
    unread: dict[str, None] = {}
    for way in [service] if service else ways:
        try:
            doubts.update(dict.fromkeys(find_tree_doubts(way, user, read)))
        except ValueError as exc:
            unread[str(exc)] = None
    return list(doubts), list(unread)


def _find_spoiler(
    item: str, kind: str, stated: int | str, doubts: Sequence[TreeDoubt]
) -> Effect | None:
    """Return that nobody knows what counts, where a line may set it anew after PAM did."""
    for one in doubts:
        values = dict(one.values) or dict.fromkeys(BOTH)
        if one.item in ("", item) and values.get(kind, stated) != stated:
            return Effect(None, f"{cite(one.at)} {_MAY_CHANGE}")
    return None


def _fill_nr_open(resolution: Resolution, nr_open: int) -> Resolution:
    """Return what pam_limits asks for where an unlimited nofile is fs.nr_open to it."""
    bounds = {
        key: bound._replace(winner=bound.winner._replace(value=nr_open))
        if key[0] == "nofile" and bound.winner.value == UNLIMITED
        else bound
        for key, bound in resolution.bounds.items()
    }
    return Resolution(bounds, resolution.stopped_by)


def _find_effect(
    item: str, stated: int | str, values: set[int], nr_open: int, ends: bool
) -> Effect | None:
    """Return what counts in the place of a stated limit, where it is something else.

    :param values: What sessions get that start with the least, and with the most.
    :param ends: Whether a limit that the kernel refuses ends the session.
    """
    if not values or stated in values:  # A soft limit alone goes as far as the hard one does.
        return None
    if len(values) == 1:
        return Effect(values.pop(), "the hard limit is lower")
    more = f"more than {nr_open}, fs.nr_open" if item == "nofile" else "it"
    then = "PAM then refuses the login" if ends else "leaves what the login started with"
    return Effect(None, f"the kernel refuses {more}, and {then}")


def _find_hindrance(tree: Tree, service: str, user: User) -> str:
    """Return why a service's sessions do not read the limits files, or none opens; or nothing."""
    files = tree.at(SessionsTree).pam_files
    if find_service_file(service, files) is None:
        return f"no PAM service {service!r} in this tree"
    found = find_pam_limits(flatten(service, "session", files))
    if not found:
        return f"the PAM stack of {service} has no pam_limits, so no limits file counts"
    hindrances, refusal = ask_hindrances(service, tree)
    for one in hindrances:
        at = one.cause.at
        if not (one.bypasses and at and read_text(at.path, tree.root) is None):
            return one.cause.text
    return refusal or find_refusal(service, user, tree.at(SessionsTree))
