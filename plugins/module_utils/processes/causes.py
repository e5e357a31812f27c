# SPDX-License-Identifier: BSD-2-Clause
"""Say why a running process has less than a policy asks: its files, or that it is older than they.

A process keeps what it started with. So what the files give is one question, which
``unit_causes`` and ``session_causes`` answer, and whether the process knows of it is another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..core.cause import Cause, Remedy, cite
from ..core.finding import Requirement
from ..core.line_edit import edit_line, find_row
from ..core.reader import Limit
from ..core.values import UNLIMITED, Declaration, NamedTuple, Rlimit, format_pair
from ..sessions.causes import find_session_causes
from ..sessions.facts import SessionFacts
from ..systemd.causes import find_unit_causes
from ..systemd.edits import find_source
from ..systemd.model import Pam, UnitFacts, find_asked, predict_start, predict_unit, rank_statements
from ..systemd.want import declare, find_target, is_enough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..sessions.shell_limits import ShellLine

    Commands = tuple[tuple[str, ...], ...]

CODES = {
    "unit-not-restarted": "the service has run since before its files were changed",
    "unit-not-reloaded": "the service manager has not read the files since they were changed",
    "unit-start-sets-limit": "what the unit starts sets a limit of its own, over that of systemd",
    "unit-pam-decides": "the unit runs through PAM (PAMName=), which sets the limits after systemd",
    "process-changed-by-hand": "the process was changed after its start, and no file says so",
}
# A colon does nothing, and is a command: it may stand wherever one must. The quotes are written as
# numbers, so that a shell has none to mind.
_TAKE_OUT = r"s/\<ulimit\( *-[A-Za-z]*\)* *\(\x22[^\x22]*\x22\|[^ ;&|)\x22\x27]*\)/:/g"


class Moment(NamedTuple):
    """A point in time: in seconds since 1970, and as people read it."""

    seconds: float
    text: str


class Run(NamedTuple):
    """A running process of a unit.

    ``main`` is the process that systemd started, ``changed`` when and which file of the unit
    changed last. ``loaded`` is what the manager has read, if it was asked, and ``is_stale`` whether
    files have changed since. ``starters`` are lines of what the unit runs that set a limit;
    ``may_set`` tells that the program may do so itself. ``reload`` and ``restart`` are commands.
    """

    pid: int
    limits: Mapping[str, Rlimit]
    main_pid: int
    main_limits: Mapping[str, Rlimit]
    started: Moment
    changed: Moment
    changed_path: str
    reload: Commands
    restart: Commands
    loaded: Mapping[str, Rlimit] | None = None
    is_stale: bool = False
    starters: tuple[ShellLine, ...] = ()
    may_set: bool = False


class Verdict(NamedTuple):
    """Why a limit falls short, and what the next start and that after a boot give.

    ``Rlimit(0, 0)`` stands for a start that fails, and ``None`` for what is not known. ``given``
    is what root's own files give, before whoever owns the process has a say. ``doubts`` say why a
    start is not known.
    """

    causes: tuple[Cause, ...] = ()
    next_start: Rlimit | None = None
    at_boot: Rlimit | None = None
    given: Rlimit | None = None
    doubts: tuple[Cause, ...] = ()


_FAILED = Rlimit(0, 0)


def explain_run(item: str, limit: Limit, run: Run, facts: UnitFacts, booted: UnitFacts) -> Verdict:
    """Say why one limit of a process falls short, now or later.

    :param booted: The facts as they will be after a boot.
    """
    if _is_refuted(item, run, facts):
        return Verdict()
    after, at_boot = (_predict(item, one) for one in (facts, booted))
    soon = after if run.loaded is None else _predict_loaded(item, run.loaded, facts)
    if is_enough(limit, run.limits[item]):
        return _explain_later(item, limit, run, (facts, booted), Verdict((), soon, at_boot))
    if not is_enough(limit, after):
        causes = [*find_start_causes(item, limit, facts), *_blame_starters(item, run, facts)]
        return Verdict(finish(causes, (*run.reload, *run.restart)), soon, at_boot)
    verdict = _explain_age(item, limit, run, facts, Verdict((), soon, at_boot))
    if not is_enough(limit, at_boot):
        rest = finish(find_start_causes(item, limit, booted), run.reload)
        verdict = verdict._replace(causes=(*verdict.causes, *rest))
    return verdict


def _predict(item: str, facts: UnitFacts) -> Rlimit:
    given = predict_unit(facts)
    return given[item] if given else _FAILED


def _predict_loaded(item: str, loaded: Mapping[str, Rlimit], facts: UnitFacts) -> Rlimit:
    given = predict_start(loaded, facts)
    return given[item] if given else _FAILED


def _is_refuted(item: str, run: Run, facts: UnitFacts) -> bool:
    """Tell whether the manager has read something else than we did, from the same files."""
    if run.loaded is None or run.is_stale:
        return False
    asked, nr_open = find_asked(item, facts), facts.manager.nr_open
    cut = Rlimit(asked.soft, min(asked.hard, nr_open)) if item == "nofile" else asked
    stated = rank_statements(item, facts)
    return run.loaded[item] not in ((asked,) if stated else (asked, cut))


def _explain_later(
    item: str, limit: Limit, run: Run, facts: Sequence[UnitFacts], verdict: Verdict
) -> Verdict:
    """Say why what is enough now will not be after a restart or a boot."""
    after, at_boot = (_predict(item, one) for one in facts)
    soon = after if verdict.next_start is None else verdict.next_start
    if all(is_enough(limit, given) for given in (after, soon, at_boot)):
        return verdict
    if run.limits[item] != after and (run.may_set or run.starters):
        return Verdict()  # It sets its own limits, and will again.
    if not is_enough(limit, after):
        causes = find_start_causes(item, limit, facts[0])
    elif not is_enough(limit, at_boot):
        causes = find_start_causes(item, limit, facts[1])
    else:
        return verdict._replace(causes=(_blame_reload(item, run, facts[0], run.reload),))
    return verdict._replace(causes=finish(causes, run.reload))


def _explain_age(item: str, limit: Limit, run: Run, facts: UnitFacts, verdict: Verdict) -> Verdict:
    """Say why a process has too little though its files state enough."""
    if verdict.next_start is not None and not is_enough(limit, verdict.next_start):
        cause = _blame_reload(item, run, facts, (*run.reload, *run.restart))
        return verdict._replace(causes=(cause,))
    starters = _blame_starters(item, run, facts)
    if starters:
        has = run.limits[item]
        return Verdict(finish(starters, (*run.reload, *run.restart)), has, has)
    other = run.pid != run.main_pid and is_enough(limit, run.main_limits[item])
    if not other and _is_older(item, run, facts):
        return verdict._replace(causes=(_blame_age(item, run, facts),))
    cause = _blame_hand(item, limit, run, facts, other)
    unknown = verdict._replace(next_start=None, at_boot=None)
    return (unknown if run.may_set else verdict)._replace(causes=(cause,))


def _is_older(item: str, run: Run, facts: UnitFacts) -> bool:
    """Tell whether a process may have been started under other files, or another fs.nr_open."""
    if run.started.seconds < run.changed.seconds:
        return True
    manager, has, asked = facts.manager, run.limits[item], find_asked(item, facts)
    return item == "nofile" and has.hard == manager.own[item].hard < asked.hard <= manager.nr_open


def _blame_reload(item: str, run: Run, facts: UnitFacts, commands: Commands) -> Cause:
    ranked, loaded = rank_statements(item, facts), (run.loaded or {})[item]
    at = declare(ranked[-1]) if ranked else None
    line = cite(at) if at else f"{run.changed_path}, changed {run.changed.text},"
    text = f"{line} is not read yet: the service manager still has {format_pair(item, loaded)}"
    text += f" for {facts.name}"
    remedy = Remedy(f"let the manager read its files, and restart {facts.name}", commands)
    if len(commands) == len(run.reload):
        remedy = remedy._replace(text="let the manager read its files")
    return Cause("unit-not-reloaded", text, remedy, at)


def _blame_age(item: str, run: Run, facts: UnitFacts) -> Cause:
    at = _find_winner(item, run.limits[item], facts)
    if run.started.seconds < run.changed.seconds:
        since = f"{run.changed_path} was changed {run.changed.text}"
    else:
        since = "fs.nr_open was raised"
    has = format_pair(item, run.limits[item])
    text = f"{facts.name} has run since {run.started.text}, and {since}; it still has {has}"
    if run.loaded is not None and run.loaded[item] != run.limits[item]:
        text += f", whatever systemctl show says ({format_pair(item, run.loaded[item])})"
    remedy = Remedy(f"restart {facts.name}", (*run.reload, *run.restart))
    return Cause("unit-not-restarted", text, remedy, at)


def _find_winner(item: str, has: Rlimit, facts: UnitFacts) -> Declaration | None:
    """Return the line that counts: PAM's for the bound that it changes, or else systemd's."""
    if facts.pam:
        session = facts.pam.session
        bound = "hard" if has.hard != _predict(item, facts).hard else "soft"
        found = session.resolution.bounds.get((item, bound))
        if found:
            return found.winner
    ranked = rank_statements(item, facts)
    return declare(ranked[-1]) if ranked else None


def _blame_starters(item: str, run: Run, facts: UnitFacts) -> list[Cause]:
    """Blame the last line that may have set what the process has; a shell may compute the value."""
    has = run.limits[item]
    about = [
        line.at
        for line in run.starters
        if line.item == item and (isinstance(line.at.value, str) or line.at.value in has)
    ]
    return [blame_starter(about[-1], facts)] if about else []


def blame_starter(at: Declaration, facts: UnitFacts, does: str = "sets") -> Cause:
    """Blame a line of what a unit starts, which comes after systemd."""
    text = f"{cite(at)} {does} the limit after systemd has, each time that {facts.name} starts"
    # Of a unit's line the probe knows the key and the value; of a script's, the whole line.
    source = find_source(at.path, facts)
    whole = find_row(at, source.text) if source else at
    commands = edit_line(whole, _TAKE_OUT) if "ulimit" in at.text else ()
    return Cause("unit-start-sets-limit", text, Remedy("take that out", commands), at)


def _blame_hand(item: str, limit: Limit, run: Run, facts: UnitFacts, other: bool) -> Cause:
    has = format_pair(item, run.limits[item])
    text = (
        f"no file says so: {facts.name} has run since {run.started.text} from files that give"
        f" {format_pair(item, _predict(item, facts))}, and process {run.pid} has {has} now"
    )
    if other:
        main = format_pair(item, run.main_limits[item])
        text = f"process {run.pid} has {has}, and the one that started it, {run.main_pid}, {main}"
    commands = raise_in_place(item, limit, {run.pid: run.limits[item]})
    remedy = Remedy(f"set it in place, or restart {facts.name}", commands)
    return Cause("process-changed-by-hand", text, remedy)


def raise_in_place(item: str, limit: Limit, pids: Mapping[int, Rlimit]) -> Commands:
    """Return the commands that give running processes what is asked for, without ending them."""
    return tuple(
        ("prlimit", "--pid", str(pid), f"--{item}={_format_plain(find_target(limit, given))}")
        for pid, given in pids.items()
    )


def _format_plain(pair: Rlimit) -> str:
    return ":".join("unlimited" if value >= UNLIMITED else str(value) for value in pair)


def merge_limits(asked: Sequence[Mapping[str, Limit]]) -> dict[str, Limit]:
    """Return what several rules ask of one process together."""
    merged: dict[str, Limit] = {}
    for limits in asked:
        for item, limit in limits.items():
            old = merged.get(item, limit)
            merged[item] = Limit(
                _pick(max, old.soft, limit.soft),
                _pick(max, old.hard, limit.hard),
                _pick(min, old.max, limit.max),
                limit.text,
            )
    return merged


def _pick(choose: Callable[[list[int]], int], *values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


def find_start_causes(item: str, limit: Limit, facts: UnitFacts) -> list[Cause]:
    """Return why the next start gives too little: what the files state, or what PAM makes of it."""
    bare = predict_unit(facts._replace(pam=None))
    if facts.pam and bare and _predict(item, facts) != bare[item]:
        return _find_pam_causes(item, limit, facts, facts.pam, bare)
    return find_unit_causes(item, limit, facts)


def _find_pam_causes(
    item: str, limit: Limit, facts: UnitFacts, pam: Pam, bare: dict[str, Rlimit]
) -> list[Cause]:
    """Return why PAM gives a unit too little."""
    start = pam.session.start._replace(inherited=bare, nr_open=facts.manager.nr_open)
    stated = tuple(declare(one) for one in rank_statements(item, facts)[-1:])
    causes = find_both_causes(item, limit, pam.session._replace(start=start))
    return [let_pam_decide(one, pam.line, "unit-pam-decides", stated) for one in causes]


def let_pam_decide(
    cause: Cause, line: Declaration, code: str, shadows: tuple[Declaration, ...] = ()
) -> Cause:
    """Return the cause of a session that a daemon's own line puts through PAM.

    :param code: What is at fault where no file of PAM's is: that line, which shadows others.
    """
    if cause.at is None:
        cause = cause._replace(code=code, at=line, shadows=shadows)
    text, remedy = f"{cite(line)} lets PAM decide: {cause.text}", cause.remedy._replace(then="")
    return cause._replace(text=text, remedy=remedy)


def find_both_causes(item: str, limit: Limit, session: SessionFacts) -> list[Cause]:
    """Return why a session falls short of the soft and the hard bound that are asked of it."""
    session = session._replace(asked=limit)
    soft = find_session_causes(Requirement("", item, "soft", limit.soft), session)
    hard = find_session_causes(Requirement("", item, "hard", limit.hard, limit.max), session)
    if hard:  # What it takes for the hard bound is said there.
        soft = [one for one in soft if one.code not in ("pam-soft-alone", "pam-hard-clamps-soft")]
    return list(dict.fromkeys([*soft, *hard]))


def finish(causes: Sequence[Cause], commands: Commands, then: str = "") -> tuple[Cause, ...]:
    """Add to the last remedy what makes all of them count.

    :param then: What these commands leave to a person.
    """
    if not causes:
        return ()
    *others, last = causes
    remedy = last.remedy
    if remedy.commands:
        commands = (*remedy.commands, *commands)
        remedy = remedy._replace(commands=commands, then=then or remedy.then)
    return (*others, last._replace(remedy=remedy))
