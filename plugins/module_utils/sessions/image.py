# SPDX-License-Identifier: BSD-2-Clause
"""Foretell the sessions of an image from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.cause import cite
from ..core.finding import FAIL, PASS, UNKNOWN, Requirement, judge, observe_limit, require_limits
from ..core.forecast import Forecast, conclude, list_extremes, settle
from ..kernel.tree_read import TreeBoot
from .causes import find_session_causes
from .facts import (
    SessionFacts,
    find_early_ending,
    find_ending,
    find_login_bar,
    predict_session,
)
from .model import Start, start_with
from .pam_limits import (
    describe_unknown,
    find_obstacle,
)
from .pam_stack import find_service_file
from .reach import Hindrance, ends_with_limits, find_bypass, find_earlier, find_hindrances
from .refusals_read import find_refusal, find_rewriter
from .rules import covers_everyone, find_limits, named_groups, named_users
from .selinux_tree_read import doubt_soft_limits
from .tree_doubts_read import TreeDoubt, find_tree_doubts
from .tree_groups_read import find_memberships
from .tree_read import SessionsTree, find_tree_sshd_unit, read_tree_use_pam
from .tree_samples_read import choose_others, find_tree_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.policy import CheckOptions
    from ..core.reader import Limit
    from ..core.values import Declaration, User
    from ..host.image import Tree
    from ..host.place import Foretold
    from .limits_conf import LimitsLine
    from .policy import SessionRule

    Members = list[tuple[str, User, tuple[LimitsLine, ...]]]


def foretell_session(wanted: Requirement, facts: SessionFacts, boot: TreeBoot) -> Forecast:
    """Return what a session gets, whatever the service that opens it starts from."""
    nr_opens = boot.nr_open, boot.nr_open_at_most
    scenes = [facts._replace(start=facts.start._replace(nr_open=one)) for one in nr_opens]
    least, most = (_foretell(wanted, one) for one in scenes)
    endings = [_find_ending_line(one) for one in scenes]
    if endings[0] and not endings[1]:
        return Forecast(UNKNOWN, reason=_describe_ending(endings[0], scenes[0]))
    return settle(least, most, boot.nr_open_doubt)


def _find_ending_line(facts: SessionFacts) -> Declaration | None:
    """Return the line for which PAM refuses the session of whoever may raise every limit."""
    if not facts.start.nr_open:
        return None
    facts = facts._replace(start=start_with(list_extremes()[1], *facts.start[2:4]))
    ending = find_ending(facts)
    line = facts.resolution.bounds[ending, "hard"].winner if ending else None
    return find_early_ending(facts) or line


def _foretell(wanted: Requirement, facts: SessionFacts) -> Forecast:
    """Return what a session gets where fs.nr_open is what the facts say."""
    bounds = facts.start.nr_open, facts.start.resets
    scenes = [facts._replace(start=start_with(one, *bounds)) for one in list_extremes()]
    early = find_early_ending(scenes[-1]) if facts.start.nr_open else None
    if early and not facts.is_closed:
        return Forecast(UNKNOWN, reason=_describe_ending(early, facts))
    if facts.is_closed or (facts.start.nr_open and find_ending(scenes[-1])):
        return conclude(FAIL, None, None, tuple(find_session_causes(wanted, scenes[-1])))
    seen = [observe_limit(wanted, predict_session(one), "", "") for one in scenes]
    statuses = {judge(wanted, one).status for one in seen}
    if len(statuses) > 1 or UNKNOWN in statuses:
        return Forecast(UNKNOWN, reason=_describe_doubt(wanted, facts))
    bound = facts.resolution.bounds.get((wanted.item, wanted.bound))
    causes = find_session_causes(wanted, scenes[-1]) if FAIL in statuses else []
    return conclude(statuses.pop(), seen[-1].value, bound, tuple(causes))


def _describe_ending(line: Declaration, facts: SessionFacts) -> str:
    """Say which line keeps sessions from opening, unless the first boot raises fs.nr_open."""
    return (
        f"{cite(line)} states more than {facts.start.nr_open}, the least that fs.nr_open may be:"
        " where it is no more, PAM refuses the login"
    )


def _describe_doubt(wanted: Requirement, facts: SessionFacts) -> str:
    """Say why it depends on what a login starts with: nothing is stated, or nothing is taken."""
    if facts.hindrances:
        return facts.hindrances[0].cause.text
    bounds = [facts.resolution.bounds.get((wanted.item, kind)) for kind in ("hard", "soft")]
    for bound in filter(None, bounds):
        nr_open = facts.start.nr_open
        if wanted.item == "nofile" and nr_open and int(bound.winner.value) > nr_open:
            return (
                f"{cite(bound.winner)} states more than {nr_open}, the least that fs.nr_open may be"
            )
    return f"no limits file states {wanted.item} {wanted.bound}"


def foresee_sessions(rules: Sequence[SessionRule], options: CheckOptions, tree: Tree) -> Foretold:
    """Yield what logins will have of those whom the rules mean."""
    names = _choose_users(rules) if options.users is None else options.users
    read = tree.at(SessionsTree)
    for name in names:
        place, reason, limits = f"session:{name}", "no rule of the policy is about them", {}
        try:
            user = find_tree_user(name, read)
            limits = find_limits(rules, user)
        except ValueError as exc:
            reason = str(exc)
        if not limits:
            yield Requirement(place, "all", "value"), Forecast(UNKNOWN, reason=reason)
        for service in options.services if limits else ():
            yield from _look_at_session(user, service, limits, tree)
    others, untold = choose_others(rules, names, read) if options.users is None else ([], [])
    for reason in untold:
        yield Requirement("session:*", "all", "value"), Forecast(UNKNOWN, reason=reason)
    for user in others:
        for service in options.services:
            yield from _look_at_session(user, service, find_limits(rules, user), tree)


def _choose_users(rules: Sequence[SessionRule]) -> list[str]:
    """Return who stands for all that the rules mean; an image may have none of them yet."""
    groups = [f"@{name}" for name in named_groups(rules)]
    everyone = ["*"] if covers_everyone(rules) else []
    return list(dict.fromkeys([*named_users(rules), *groups, *everyone]))


def _look_at_session(user: User, service: str, limits: Mapping[str, Limit], tree: Tree) -> Foretold:
    place, read = f"session:{user.name}@{service}", tree.at(SessionsTree)
    missing = find_obstacle(read.limits_files, read.hanging, user, read.dialect)
    trouble = f"{missing} is missing, and PAM refuses every login" if missing else ""
    if service not in read.hindrances:
        read.hindrances[service] = ask_hindrances(service, tree)
    hindrances, refusal = read.hindrances[service]
    doubts = () if refusal else tuple(find_tree_doubts(_name_in(read, service), user, read))
    refused = refusal or find_refusal(_name_in(read, service), user, read) or find_rewriter(read)
    trouble = refusal or trouble or describe_unknown(read.dialect)
    may_reset = doubt_soft_limits(service, tree.root)
    boot = tree.at(TreeBoot)
    start = Start({}, {}, boot.nr_open, read.dialect.resets)
    facts = SessionFacts(user, read.dialect, read.lines_of(user), start, hindrances)
    if not refusal:
        stack = _name_in(read, service), read.pam_files
        earlier = find_earlier(*stack, read.read_confs(stack[0]), read.dialect)
        line = boot.nr_open_line
        facts = facts._replace(
            is_fatal=ends_with_limits(*stack), earlier=earlier, nr_open_line=line
        )
    members = _list_members(user, read)
    refused = refused or next(_describe_bars(facts, members), "")
    for wanted in require_limits(place, limits):
        if trouble or wanted.bound == "value":
            yield wanted, Forecast(UNKNOWN, reason=trouble)
        else:
            asked = facts._replace(asked=limits[wanted.item])
            why = refused or (may_reset if wanted.bound == "soft" else "")
            foretold = _foretell_member(wanted, asked, boot, members)
            yield wanted, _doubt(wanted, foretold, doubts, why)


def _foretell_member(
    wanted: Requirement, facts: SessionFacts, boot: TreeBoot, members: Members
) -> Forecast:
    """Return what a user's session gets, whichever of the groups they may be in they are in."""
    foretold = foretell_session(wanted, facts, boot)
    for reason, user, lines in members:
        other = facts._replace(user=user, lines=lines)
        if foretell_session(wanted, other, boot).status != foretold.status:
            return Forecast(UNKNOWN, reason=reason)
    return foretold


def _describe_bars(facts: SessionFacts, members: Members) -> Iterator[str]:
    """Yield the lines that leave a user no login, in whichever of the groups they are in."""
    others = (facts._replace(user=user, lines=lines) for _why, user, lines in members)
    for line in map(find_login_bar, (facts, *others)):
        if line:
            yield f"{cite(line)} refuses every login of {facts.user.name}"


def _list_members(user: User, read: SessionsTree) -> Members:
    """Return who a user is in each of the groups that they may be in, and in all, and why."""
    found = find_memberships(user, read)
    chosen = [(one.describe(user), [one.group]) for one in found]
    chosen += [(found[0].describe(user), [one.group for one in found])] if found[1:] else []
    members = [(why, user._replace(groups=user.groups.union(each))) for why, each in chosen]
    return [(why, one, read.lines_of(one)) for why, one in members]


def _doubt(
    wanted: Requirement, forecast: Forecast, doubts: Sequence[TreeDoubt], refused: str
) -> Forecast:
    """Return a forecast of no pass that a line may spoil after pam_limits, or of a fail it mends.

    :param refused: What turns the user away, or takes the limit, if something does.
    """
    spoilers = (
        f"{cite(one.at)} may change it after PAM" for one in doubts if one.may_spoil(wanted)
    )
    mender = next((one.at for one in doubts if one.may_mend(wanted)), None)
    if forecast.status == FAIL and mender and not refused:
        return Forecast(UNKNOWN, reason=f"{cite(mender)} sets it after PAM")
    reason = refused or next(spoilers, "")
    return Forecast(UNKNOWN, reason=reason) if reason and forecast.status == PASS else forecast


def ask_hindrances(service: str, tree: Tree) -> tuple[tuple[Hindrance, ...], str]:
    """Return why the limits files do not count for a service, or why nobody can tell."""
    try:
        return tuple(_find_hindrances(service, tree)), ""
    except ValueError as exc:
        return (), str(exc)


def _name_in(read: SessionsTree, service: str) -> str:
    """Return the name that a service has in the tree: Red Hat has crond."""
    is_there = find_service_file(service, read.pam_files) is not None
    return "crond" if service == "cron" and not is_there else service


def _find_hindrances(service: str, tree: Tree) -> Iterator[Hindrance]:
    """Yield why the limits files do not count for a service of the tree.

    :raises ValueError: If there is none of that name, or libpam refuses it.
    """
    read = tree.at(SessionsTree)
    service = _name_in(read, service)
    if find_service_file(service, read.pam_files) is None:
        raise ValueError(f"no PAM service {service!r} in this image")
    if service == "sshd":
        bypass = find_bypass(read_tree_use_pam(tree.root), find_tree_sshd_unit(tree.root))
        yield from filter(None, [bypass])
    confs = read.read_confs(service)
    yield from find_hindrances(service, read.pam_files, (), confs, read.dialect)
