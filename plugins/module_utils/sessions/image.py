# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the sessions of an image from its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.cause import cite
from ..core.finding import FAIL, PASS, UNKNOWN, Requirement, judge, observe_limit, require_limits
from ..core.forecast import Forecast, conclude, list_extremes
from ..core.resolved import Effect, Query, describe
from ..core.values import ITEMS, UNLIMITED, User
from ..host.files import under
from ..kernel.host_read import TreeBoot
from ..kernel.resolve import find_highest_nr_open
from .causes import SessionFacts, find_session_causes, predict_session
from .dialect_read import read_dialect
from .limits_read import find_hanging_limits_files, read_limits_files
from .model import Start, predict_limits, start_with
from .pam_limits import (
    LIMITS_CONF,
    Resolution,
    describe_unknown,
    find_obstacle,
    read_lines,
    resolve_limits,
    resolve_settings,
)
from .pam_stack import find_pam_limits, find_service_file, flatten, read_limits_options
from .reach import Hindrance, find_bypass, find_hindrances
from .rules import covers_everyone, find_limits, named_groups, named_users
from .tree_doubts_read import TreeDoubt, find_tree_doubts
from .tree_read import (
    SessionsTree,
    find_tree_sshd_unit,
    read_tree_pam_files,
    read_tree_use_pam,
    read_tree_user,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.policy import CheckOptions
    from ..core.reader import Limit
    from ..host.image import Tree
    from ..host.place import Foretold
    from .policy import SessionRule


def foretell_session(wanted: Requirement, facts: SessionFacts) -> Forecast:
    """Return what a session gets, whatever the service that opens it starts from."""
    bounds = facts.start.nr_open, facts.start.resets
    scenes = [facts._replace(start=start_with(one, *bounds)) for one in list_extremes()]
    seen = [observe_limit(wanted, predict_session(one), "", "") for one in scenes]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=_describe_doubt(wanted, facts))
    bound = facts.resolution.bounds.get((wanted.item, wanted.bound))
    causes = find_session_causes(wanted, scenes[-1]) if FAIL in statuses else []
    return conclude(statuses.pop(), seen[-1].value, bound, tuple(causes))


def _describe_doubt(wanted: Requirement, facts: SessionFacts) -> str:
    """Say why it depends on what a login starts with: nothing is stated, or nothing is taken."""
    bounds = [facts.resolution.bounds.get((wanted.item, kind)) for kind in ("hard", "soft")]
    for bound in filter(None, bounds):
        nr_open = facts.start.nr_open
        if wanted.item == "nofile" and nr_open and int(bound.winner.value) > nr_open:
            return (
                f"{cite(bound.winner)} states more than {nr_open}, the least that fs.nr_open may be"
            )
    return f"no limits file states {wanted.item} {wanted.bound}"


_NOBODY = 2**31  # The number of whoever stands for users that an image does not have yet.


def foresee_sessions(rules: Sequence[SessionRule], options: CheckOptions, tree: Tree) -> Foretold:
    """Yield what logins will have of those whom the rules mean."""
    for name in _choose_users(rules) if options.users is None else options.users:
        place, reason, limits = f"session:{name}", "no rule of the policy is about them", {}
        try:
            user = _STAND_INS.get(name[:1], _read_user)(name, tree)
            limits = find_limits(rules, user)
        except ValueError as exc:
            reason = str(exc)
        if not limits:
            yield Requirement(place, "all", "value"), Forecast(UNKNOWN, reason=reason)
        for service in options.services if limits else ():
            yield from _look_at_session(user, service, limits, tree)


def _choose_users(rules: Sequence[SessionRule]) -> list[str]:
    """Return who stands for all that the rules mean; an image may have none of them yet."""
    groups = [f"@{name}" for name in named_groups(rules)]
    everyone = ["*"] if covers_everyone(rules) else []
    return list(dict.fromkeys([*named_users(rules), *groups, *everyone]))


def _read_user(name: str, tree: Tree) -> User:
    return read_tree_user(tree.root, name)


_STAND_INS: Mapping[str, Callable[[str, Tree], User]] = {
    "*": lambda name, _tree: User(name, _NOBODY, _NOBODY),
    "@": lambda name, _tree: User(name, _NOBODY, _NOBODY, frozenset({name[1:]})),
}


def _look_at_session(user: User, service: str, limits: Mapping[str, Limit], tree: Tree) -> Foretold:
    place, read = f"session:{user.name}@{service}", tree.at(SessionsTree)
    missing = find_obstacle(read.limits_files, read.hanging, user, read.dialect)
    trouble = f"{missing} is missing, and PAM refuses every login" if missing else ""
    if service not in read.hindrances:
        read.hindrances[service] = _ask_hindrances(service, tree)
    hindrances, refusal = read.hindrances[service]
    doubts = () if refusal else tuple(find_tree_doubts(service, user, read))
    trouble = refusal or trouble or describe_unknown(read.dialect)
    start = Start({}, {}, tree.at(TreeBoot).nr_open, read.dialect.resets)
    facts = SessionFacts(user, read.dialect, read.lines_of(user), start, hindrances)
    for wanted in require_limits(place, limits):
        if trouble or wanted.bound == "value":
            yield wanted, Forecast(UNKNOWN, reason=trouble)
        else:
            yield wanted, _doubt(wanted, foretell_session(wanted, facts), doubts)


def _doubt(wanted: Requirement, forecast: Forecast, doubts: Sequence[TreeDoubt]) -> Forecast:
    """Return a forecast that foretells no pass which a line may spoil after pam_limits."""
    spoilers = [one.at for one in doubts if one.may_spoil(wanted)]
    if forecast.status != PASS or not spoilers:
        return forecast
    return Forecast(UNKNOWN, reason=f"{cite(spoilers[0])} may change it after PAM")


def _ask_hindrances(service: str, tree: Tree) -> tuple[tuple[Hindrance, ...], str]:
    """Return why the limits files do not count for a service, or why nobody can tell."""
    try:
        return tuple(_find_hindrances(service, tree)), ""
    except ValueError as exc:
        return (), str(exc)


def _find_hindrances(service: str, tree: Tree) -> Iterator[Hindrance]:
    """Yield why the limits files do not count for a service of the tree.

    :raises ValueError: If there is none of that name, or libpam refuses it.
    """
    read = tree.at(SessionsTree)
    if service == "cron" and find_service_file(service, read.pam_files) is None:
        service = "crond"  # As Red Hat has it.
    if find_service_file(service, read.pam_files) is None:
        raise ValueError(f"no PAM service {service!r} in this image")
    if service == "sshd":
        bypass = find_bypass(read_tree_use_pam(tree.root), find_tree_sshd_unit(tree.root))
        yield from filter(None, [bypass])
    confs = read.read_confs(service)
    yield from find_hindrances(service, read.pam_files, (), confs, read.dialect)


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
