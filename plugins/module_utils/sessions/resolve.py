# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for logins."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.forecast import list_extremes
from ..core.resolved import Effect, Query, describe
from ..core.values import ITEMS, UNLIMITED, User
from ..host.files import under
from ..kernel.resolve import find_highest_nr_open
from .dialect_read import read_dialect
from .limits_read import find_hanging_limits_files, read_limits_files
from .model import predict_limits, start_with
from .pam_limits import (
    LIMITS_CONF,
    Resolution,
    describe_unknown,
    find_obstacle,
    read_lines,
    resolve_limits,
    resolve_settings,
)
from .pam_stack import find_pam_limits, flatten, read_limits_options
from .tree_read import read_tree_pam_files, read_tree_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree


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
    reason = _find_hindrance(root, service) if service else ""
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
    nr_open = tree.at(find_highest_nr_open)
    asked = _fill_nr_open(resolution, nr_open) if dialect.reads_nr_open else resolution
    starts = [start_with(limit, nr_open, dialect.resets) for limit in list_extremes()]
    given = [predict_limits(asked, start) for start in starts]
    for (item, kind), bound in resolution.bounds.items():
        values = {getattr(limits[item], kind) for limits in given if item in limits}
        wanted = asked.bounds[item, kind].winner.value
        effect = _find_effect(item, wanted, values, nr_open)
        entry = describe(place, item, kind, bound, ITEMS[item].unit, effect)
        if bound.winner.value == UNLIMITED and not dialect.reads_nr_open:
            entry["value"] = "unlimited"  # And not the value of fs.nr_open.
        yield entry
    for item, bound in resolve_settings(read, user, dialect).items():
        yield describe(place, item, "value", bound, "")


def _fill_nr_open(resolution: Resolution, nr_open: int) -> Resolution:
    """Return what pam_limits asks for where an unlimited nofile is fs.nr_open to it."""
    bounds = {
        key: bound._replace(winner=bound.winner._replace(value=nr_open))
        if key[0] == "nofile" and bound.winner.value == UNLIMITED
        else bound
        for key, bound in resolution.bounds.items()
    }
    return Resolution(bounds, resolution.stopped_by)


def _find_effect(item: str, stated: int | str, values: set[int], nr_open: int) -> Effect | None:
    """Return what counts in the place of a stated limit, where it is something else.

    :param values: What sessions get that start with the least, and with the most.
    """
    if not values or stated in values:  # A soft limit alone goes as far as the hard one does.
        return None
    if len(values) == 1:
        return Effect(values.pop(), "the hard limit is lower")
    more = f"more than {nr_open}, fs.nr_open" if item == "nofile" else "it"
    return Effect(None, f"the kernel refuses {more}, and leaves what the login started with")


def _find_hindrance(root: str, service: str) -> str:
    """Return why a service's sessions do not read the limits files; or nothing."""
    found = find_pam_limits(flatten(service, "session", read_tree_pam_files(root)))
    if not found:
        return f"the PAM stack of {service} has no pam_limits, so no limits file counts"
    conf = read_limits_options(found[-1]).conf
    if conf and conf != LIMITS_CONF:
        return f"{found[-1].path}:{found[-1].line} reads {conf} and nothing else"
    return ""
