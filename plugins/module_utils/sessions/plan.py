# SPDX-License-Identifier: BSD-2-Clause
"""Plan what limits.conf(5) files must say so that logins get what the policy requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.distribution import Dialect
from ..core.edit import HEADER, find_block_lines, remove_block, set_block
from ..core.option_names import name_option
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.reader import Limit
from ..core.values import UNLIMITED, NamedTuple, User
from .limits_conf import LimitsLine, format_limits, parse_limits_conf, parse_value
from .lockouts import find_small_lines
from .pam_limits import DROP_IN, LIMITS_CONF, LIMITS_D, declare, rank_domain, read_lines
from .policy import SessionRule

_LONGEST_NEUTRAL_LINE = 1000  # PAM 1.5.3 and older read what follows byte 1023 as a new line.


class SessionsOptions(NamedTuple):
    """How the section is made true. ``target`` is a drop-in, or limits.conf for a block in it."""

    target: str = DROP_IN
    override: bool = False
    absent: bool = False


def plan_sessions(
    rules: tuple[SessionRule, ...],
    files: Mapping[str, str],
    dialect: Dialect,
    nr_open: int | None,
    options: SessionsOptions,
) -> SectionPlan:
    """Return the edits of the limits files.

    :param files: Text of limits.conf and of every file in limits.d, by path.
    :param nr_open: The lowest fs.nr_open that will be in force, now and after a boot.
    """
    problems = [] if options.absent else list(_find_problems(rules, nr_open, options.target))
    restored = restore_all(files)
    try:
        clean = _remove_ours(restored, options.target, dialect)
    except ValueError as exc:
        problems.append(str(exc))
    if problems:
        return SectionPlan(problems=tuple(problems))
    if options.absent:
        return SectionPlan(plan_edits(files, clean))
    lines = [
        line for rule in rules for user in rule.users for line in format_limits(user, rule.limits)
    ]
    wanted = _add_ours(restored, clean, lines, options.target)
    present = {path: text for path, text in wanted.items() if text is not None}
    beaten = list(_find_shortfalls(present, options, dialect, nr_open))
    if options.override:
        beaten_lines = [shortfall.foreign for shortfall in beaten if shortfall.neutralized]
        wanted.update(neutralise_all(present, beaten_lines))
    told = {_place(one) for one in _own_lines(present, options.target)}
    told |= {(shortfall.foreign.path, shortfall.foreign.line) for shortfall in beaten}
    others = [line for line in read_lines(present, dialect) if _place(line) not in told]
    notes = (*_find_notes(rules, dialect), *find_small_lines(others))
    return SectionPlan(plan_edits(files, wanted), shortfalls=tuple(beaten), notes=notes)


def _find_problems(
    rules: tuple[SessionRule, ...], nr_open: int | None, target: str
) -> Iterator[str]:
    folder, name = target.rpartition("/")[::2]
    well_named = name.isprintable() and name.endswith(".conf") and not name.startswith(".")
    if target != LIMITS_CONF and (folder != LIMITS_D or not well_named):
        yield (
            f"{name_option('sessions_file')}: {target!r} is not read by pam_limits;"
            f" accepted are {LIMITS_CONF} and {LIMITS_D}/NAME.conf"
        )
    for index, rule in enumerate(rules):
        path = f"sessions[{index}].limits"
        for item, limit in rule.limits.items():
            try:
                format_limits("*", {item: limit})
            except ValueError as exc:
                yield f"{path}.{exc}"
        if "nofile" in rule.limits:
            yield from find_nofile_problems(f"{path}.nofile", rule.limits["nofile"], nr_open)


def find_nofile_problems(path: str, limit: Limit, nr_open: int | None) -> Iterator[str]:
    """Yield why a nofile would end logins or be ignored by the kernel (setrlimit(2), EPERM)."""
    for bound, value in (("soft", limit.soft), ("hard", limit.hard)):
        if value == UNLIMITED:
            yield (
                f"{path}: {bound} 'unlimited' is above fs.nr_open, so logins would be refused"
                " or keep their old limit; a number is accepted"
            )
        elif value is not None and nr_open is not None and value > nr_open:
            yield (
                f"{path}: {bound} {value} is above fs.nr_open {nr_open}, so logins would be"
                " refused or keep their old limit; lower it or raise kernel.fs.nr_open"
            )


def _find_notes(rules: tuple[SessionRule, ...], dialect: Dialect) -> Iterator[str]:
    for index, rule in enumerate(rules):
        for item in rule.limits:
            if item in dialect.unknown:
                path = f"sessions[{index}].limits.{item}"
                yield f"{path}: has no effect on logins, since this host's pam_limits skips it"


def _remove_ours(files: Mapping[str, str], target: str, dialect: Dialect) -> dict[str, str | None]:
    """Return the files without our block and without any drop-in of ours."""
    clean: dict[str, str | None] = {}
    for path, text in files.items():
        ours = path.startswith(f"{LIMITS_D}/") and text.startswith(HEADER)
        clean[path] = None if ours else text
    if LIMITS_CONF in files:
        left = remove_block(files[LIMITS_CONF], LIMITS_CONF)
        # PAM 1.5.2 and older refuse every login where it is missing, so an empty one stays there.
        clean[LIMITS_CONF] = "" if left is None and dialect.line_length else left
    foreign = clean.get(target)
    if target != LIMITS_CONF and foreign is not None:
        advice = f"name another {name_option('sessions_file')}"
        raise ValueError(f"{target}: was not written by mlhost.limits; {advice}")
    return clean


def _add_ours(
    files: Mapping[str, str], clean: Mapping[str, str | None], lines: list[str], target: str
) -> dict[str, str | None]:
    wanted = dict(clean)
    if lines and target == LIMITS_CONF:
        wanted[target] = set_block(files.get(target), lines, target)
    elif lines:
        wanted[target] = "\n".join([HEADER, *lines]) + "\n"
    return wanted


def _find_shortfalls(
    files: Mapping[str, str], options: SessionsOptions, dialect: Dialect, nr_open: int | None
) -> Iterator[Shortfall]:
    """Yield every foreign line that takes a bound below ours for some user we cover."""
    ours = _own_lines(files, options.target)
    own_places = {_place(line) for line in ours}
    lines = read_lines(files, dialect)
    position = {_place(line): index for index, line in enumerate(lines)}
    whole = {path: text.split("\n") for path, text in files.items()}
    for line in lines:
        if _place(line) in own_places:
            continue
        later = [own for own in ours if position[_place(line)] < position[_place(own)]]
        kinds = set(line.types) - _find_answered(line, later)
        refused = _is_refused(line, nr_open, dialect)
        for own in (one for one in ours if _overlaps(line, one.domain, dialect)):
            beats = _beats(line, own, own not in later)
            if (beats and _falls_short(line, own, kinds, refused)) or (
                _caps(line, own, kinds, ours, refused)
            ):
                length = len(whole[line.path][line.line - 1])
                editable = options.override and length <= _LONGEST_NEUTRAL_LINE
                declaration = declare(line, line.fields[-1])
                yield Shortfall(declaration, " ".join(own.fields), editable)
                break


def _place(line: LimitsLine) -> tuple[str, int]:
    return line.path, line.line


def _own_lines(files: Mapping[str, str], target: str) -> list[LimitsLine]:
    text = files.get(target, "")
    lines = parse_limits_conf(text, target)
    if target != LIMITS_CONF:
        return lines
    block = find_block_lines(text)
    return [line for line in lines if line.line in block]


def _find_answered(line: LimitsLine, later: list[LimitsLine]) -> set[str]:
    """Return the bounds that a later line of ours sets for the very same domain."""
    return {
        kind
        for own in later
        if own.domain == line.domain and own.item == line.item
        for kind in own.types
    }


def _beats(line: LimitsLine, own: LimitsLine, later: bool) -> bool:
    if line.stops:
        return line.domain != "*"
    strength, our_strength = _strength(line.domain), _strength(own.domain)
    return strength < our_strength or (strength == our_strength and later)


def _strength(domain: str) -> int:
    """Order domains as pam_limits ranks them: users and uid ranges, groups, everyone."""
    return 1 if domain.startswith("@") else 4 if domain == "*" else 0


def _overlaps(line: LimitsLine, own: str, dialect: Dialect) -> bool:
    """Tell whether some user may match both domains; ranges and groups are taken to overlap."""
    foreign = line.domain
    if foreign.startswith("%"):
        return False
    # The groups of a two-field line match root everywhere.
    reading = Dialect() if line.stops else dialect
    if foreign == own or (_may_be_root(foreign, reading) and _may_be_root(own, dialect)):
        return True
    if "root" in (_only_user(foreign), _only_user(own)):
        return False
    both_users = _strength(foreign) == 0 and _strength(own) == 0
    is_range = ":" in foreign or ":" in own
    return is_range or not both_users


def _may_be_root(domain: str, dialect: Dialect) -> bool:
    in_group = domain.startswith("@") and dialect.wildcard_root
    return in_group or rank_domain(domain, User("root", 0, 0), dialect) is not None


def _only_user(domain: str) -> str:
    return "root" if domain in ("root", ":0", "0:0") else domain


def _falls_short(line: LimitsLine, own: LimitsLine, kinds: set[str], refused: bool) -> bool:
    """Tell whether a line gives less than ours, or what the kernel refuses to give at all."""
    if line.stops:
        return True
    if line.item != own.item or not kinds & set(own.types):
        return False
    return _is_less(line, own) or refused


def _is_refused(line: LimitsLine, nr_open: int | None, dialect: Dialect) -> bool:
    """Tell whether the kernel refuses a nofile, so that a session keeps its old limit or ends."""
    value = parse_value(line.item, line.fields[3]) if line.item == "nofile" else None
    if value is None or nr_open is None or (value == UNLIMITED and dialect.reads_nr_open):
        return False
    return value > nr_open


def _caps(
    line: LimitsLine, own: LimitsLine, kinds: set[str], ours: list[LimitsLine], refused: bool
) -> bool:
    """Tell whether a hard limit lowers a soft one of ours that stands without a hard one, or
    keeps it from being set at all."""
    hard = [one for one in ours if one.domain == own.domain and "hard" in one.types]
    alone = own.item not in (one.item for one in hard)
    concerned = alone and "hard" in kinds and line.item == own.item
    return concerned and (refused or _is_less(line, own))


def _is_less(line: LimitsLine, own: LimitsLine) -> bool:
    theirs = parse_value(line.item, line.fields[3])
    ours = parse_value(own.item, own.fields[3])
    return theirs is not None and ours is not None and theirs < ours
