# SPDX-License-Identifier: BSD-2-Clause
"""Make the sessions of a policy of a site's limits files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from ..core.adopted import (
    Adopted,
    LeftOut,
    Stated,
    describe_loss,
    find_excess,
    find_refusal,
    require_few,
    write_value,
)
from ..core.distribution import Dialect
from ..core.edit import find_block_lines, remove_block
from ..core.values import ITEMS, UNLIMITED, Declaration, NamedTuple, format_quantity
from ..host.files import list_folder, read_text
from ..kernel.adopt import drop_ours, find_nr_open
from .dialect_read import read_dialect
from .limits_conf import LimitsLine, parse_setting, parse_value
from .limits_read import read_limits_files
from .lockouts import find_small_limits
from .pam_limits import LIMITS_D, LOGINS, declare, order_files, read_lines
from .policy import read_sessions
from .unread import find_unread

_OF_ANY_TYPE = (*LOGINS, "nonewprivs")
_WHOLE = "value"
_EVERYONE = "*"


class Host(NamedTuple):
    """What decides how lines are read: the build of PAM, and fs.nr_open where it is known."""

    dialect: Dialect
    nr_open: int | None = None


class Bound(NamedTuple):
    """One bound of one item for one domain, in the kernel's unit, and its line."""

    domain: str
    item: str
    kind: str
    value: int | str
    at: Declaration


class Rule(NamedTuple):
    """What a policy says of one domain: its bounds by item and kind."""

    domain: str
    limits: dict[str, dict[str, Bound]]


def adopt_sessions(files: Mapping[str, str], others: Mapping[str, str], host: Host) -> Adopted:
    """Return the rules that give logins what these files give them.

    :param files: Text of limits.conf and of limits.d, by path.
    :param others: Text of the files of limits.d that pam_limits does not read.
    :raises ValueError: If they state more than a policy can hold.
    """
    lines = read_lines(files, host.dialect)
    require_few(lines, "sessions")
    left = [
        LeftOut(declare(one.line, ""), f"has no effect: {one.reason}")
        for one in find_unread(files, others, host.dialect)
    ]
    unread = {one.at.place for one in left}
    held: dict[tuple[str, str, str], Bound] = {}
    read = []
    for line in lines:
        at = declare(line, "")
        if at.place in unread:
            continue
        reason = _find_reason(line, host)
        if reason:
            left.append(LeftOut(at, reason))
            continue
        read.append(line)
        for one in _read_bounds(line, host):
            held.pop(one[:3], None)  # So that the last comes last.
            held[one[:3]] = one
    rules = _place(held.values())
    left += [*_find_beaten(read, held, host), *_find_halves(read, held)]
    left += [*_find_high_soft(rules), *_find_root(held.values(), host.dialect)]
    return Adopted({"sessions": _write(rules)} if rules else {}, left)


def _find_reason(line: LimitsLine, host: Host) -> str:
    """Return why a policy cannot hold a line; or nothing."""
    if line.stops and line.domain != _EVERYONE:
        return "cancels every limit of its users, which a policy cannot say"
    if len(line.fields) < 4 or not (line.types or line.item in _OF_ANY_TYPE):
        return "has no effect: pam_limits skips it"
    if line.item not in ITEMS or line.item in host.dialect.unknown:
        return f"has no effect: this pam_limits knows no {line.item}"
    bounds = _read_bounds(line, host)
    if not bounds:
        return "has no effect: pam_limits cannot read the value"
    item, value = line.item, bounds[0].value
    if item == "nofile" and value == UNLIMITED:
        known = host.dialect.reads_nr_open
        return "means fs.nr_open, and its value is not known here" if known else "is refused by PAM"
    limits = {item: {one.kind: write_value(item, one.value) for one in bounds}}
    rule: dict[str, object] = {"users": [line.domain], "limits": limits}
    if ITEMS[item].resource is None:
        rule["limits"] = {item: write_value(item, value)}
    excess = find_excess(item, int(value) if isinstance(value, int) else 0, host.nr_open)
    return excess or _find_objection(rule)


def _find_objection(rule: Mapping[str, object]) -> str:
    """Return why a policy refuses a rule; what has its shape and keys is read once."""
    found: list[str] = []
    rules = read_sessions([rule], found)
    if found:
        return find_refusal(read_sessions, (), [rule])
    problems = find_small_limits(rules)
    return "; ".join(problem.partition(": ")[2] for problem in problems)


def _read_bounds(line: LimitsLine, host: Host) -> list[Bound]:
    """Return what a line states; nothing where pam_limits cannot read the value."""
    value: int | str | None
    if ITEMS[line.item].resource is None:
        kinds: tuple[str, ...] = (_WHOLE,)
        value = parse_setting(line.item, line.fields[3])
    else:
        kinds = line.types
        unlimited = host.nr_open if host.dialect.reads_nr_open else None
        value = parse_value(line.item, line.fields[3], unlimited or UNLIMITED)
    if value is None:
        return []
    at = declare(line, "")
    return [Bound(line.domain, line.item, kind, value, at) for kind in kinds]


def _find_beaten(
    lines: Iterable[LimitsLine], held: Mapping[tuple[str, str, str], Bound], host: Host
) -> Iterator[LeftOut]:
    """Yield the lines of which nothing is left, because others name the same users later."""
    carried = {bound.at.place for bound in held.values()}
    for line in lines:
        at = declare(line, "")
        if at.place not in carried:
            last = _read_bounds(line, host)[-1]
            yield LeftOut(at, describe_loss(held[last[:3]].at))


def _find_halves(
    lines: list[LimitsLine], held: Mapping[tuple[str, str, str], Bound]
) -> Iterator[LeftOut]:
    """Yield the ``-`` lines whose hard half PAM drops for those whom a stronger line names."""
    first: dict[tuple[str, int], int] = {}  # The first line of each item and rank.
    for index, line in enumerate(lines):
        bound = held.get((line.domain, line.item, "hard"))
        if line.fields[1] == "-" and bound is not None and bound.at == declare(line, ""):
            ranks = range(max(_ranks(line.domain)))
            stronger = [first[line.item, rank] for rank in ranks if (line.item, rank) in first]
            if stronger:
                place = declare(lines[min(stronger)], "").place
                reason = f"its hard half does not reach the users that {place} names;"
                reason += " in a policy it does"
                yield LeftOut(bound.at, reason)
        if "soft" in line.types:
            first.setdefault((line.item, min(_ranks(line.domain))), index)


def _place(bounds: Iterable[Bound]) -> list[Rule]:
    """Gather bounds in rules, each as early as no rule between could decide otherwise."""
    rules: list[Rule] = []
    for bound in bounds:
        _find_rule(rules, bound).limits.setdefault(bound.item, {})[bound.kind] = bound
    return rules


def _find_rule(rules: list[Rule], bound: Bound) -> Rule:
    for rule in reversed(rules):
        if rule.domain == bound.domain:
            return rule
        if any(_compete(item, rule.domain, bound) for item in rule.limits):
            break
    rules.append(Rule(bound.domain, {}))
    return rules[-1]


def _compete(item: str, domain: str, bound: Bound) -> bool:
    """Tell whether the order of two statements may matter to somebody."""
    if item in LOGINS and bound.item in LOGINS:
        return True
    if item != bound.item:
        return False
    # Of what is not a resource limit the last line counts, whoever it names.
    return ITEMS[item].resource is None or bool(_ranks(domain) & _ranks(bound.domain))


def _ranks(domain: str) -> set[int]:
    """Return the ranks that a domain may have; Debian takes the range of a group for root's uid."""
    if domain == _EVERYONE:
        return {4}
    if not domain.startswith("@"):
        return {0}
    return {0, 1} if ":" in domain else {1}


def _find_high_soft(rules: list[Rule]) -> Iterator[LeftOut]:
    """Yield the soft bounds that PAM lowers to the hard one, as the policy does."""
    for rule in rules:
        for item, kinds in rule.limits.items():
            if _soft(kinds) != kinds.get("soft"):
                hard = format_quantity(int(kinds["hard"].value), ITEMS[item].unit)
                reason = f"is above the hard one of {kinds['hard'].at.place}, so it is {hard}"
                yield LeftOut(kinds["soft"].at, reason)


def _soft(kinds: Mapping[str, Bound]) -> Bound | None:
    """Return the bound that decides the soft limit: the hard one where that is lower."""
    soft, hard = kinds.get("soft"), kinds.get("hard")
    return hard if soft and hard and soft.value > hard.value else soft  # type: ignore[operator]


def _find_root(bounds: Iterable[Bound], dialect: Dialect) -> Iterator[LeftOut]:
    """Yield a line for everyone that means root as well, which that of a policy never does."""
    at = next((bound.at for bound in bounds if bound.domain == _EVERYONE), None)
    if at and dialect.wildcard_root:
        yield LeftOut(at, "means root too on this host; a policy names root beside '*'")


def _write(rules: list[Rule]) -> list[dict[str, object]]:
    """Return the rules as a policy has them; neighbors that say the same are one."""
    written = [(rule.domain, _write_limits(rule)) for rule in rules]
    return [
        {"users": Stated([domain for domain, _limits in same], ()), "limits": _join(same)}
        for same in (list(group) for _key, group in groupby(written, lambda one: _values(one[1])))
    ]


def _write_limits(rule: Rule) -> dict[str, Stated]:
    return {item: _write_limit(item, kinds) for item, kinds in rule.limits.items()}


def _join(same: list[tuple[str, dict[str, Stated]]]) -> dict[str, Stated]:
    """Return the limits that several rules state, with the lines of all."""
    return {
        item: same[-1][1][item]._replace(
            at=tuple(at for _domain, limits in same for at in limits[item].at)
        )
        for item in same[-1][1]
    }


def _values(limits: Mapping[str, Stated]) -> dict[str, object]:
    return {item: stated.value for item, stated in limits.items()}


def _write_limit(item: str, kinds: Mapping[str, Bound]) -> Stated:
    at = tuple(dict.fromkeys(bound.at for bound in kinds.values()))
    if _WHOLE in kinds:
        return Stated(write_value(item, kinds[_WHOLE].value), at)
    found = {"soft": _soft(kinds), "hard": kinds.get("hard")}
    value = {kind: write_value(item, one.value) for kind, one in found.items() if one}
    same = len(value) == 2 and value["soft"] == value["hard"]
    return Stated(value["soft"] if same else value, at)


def adopt_tree_sessions(root: str) -> Adopted:
    """Return what the site's limits files give to logins."""
    limits = {path: _without_block(text, path) for path, text in read_limits_files(root).items()}
    limits = drop_ours(limits)
    host = Host(read_dialect(root), find_nr_open(root))
    return adopt_sessions(limits, _read_others(limits, root), host)


def _without_block(text: str, path: str) -> str:
    """Return a file with our block made empty lines, so that the others keep their number.

    :raises ValueError: If a marker stands alone.
    """
    remove_block(text, path)
    ours = find_block_lines(text)
    rows = enumerate(text.split("\n"), start=1)
    return "\n".join("" if number in ours else row for number, row in rows)


def _read_others(read: dict[str, str], root: str) -> dict[str, str]:
    """Return the text of the files of limits.d that pam_limits skips."""
    names = [f"{LIMITS_D}/{name}" for name in list_folder(LIMITS_D, root)]
    names = [path for path in names if path not in order_files(dict.fromkeys(names, ""))]
    return {path: read_text(path, root) or "" for path in names if path not in read}
