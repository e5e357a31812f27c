# SPDX-License-Identifier: BSD-2-Clause
"""Measure what a person's shell makes of a session's limits, where its startup files set some."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from ..core.quote import one_line
from ..core.values import Declaration, NamedTuple, Rlimit, parse_proc_limits
from ..host.as_user import Errand
from ..host.children import Report
from ..host.files import read_text
from .doubts_read import may_set_limits
from .first_scripts import find_forced_keys
from .shell_clock_measure import NOT_ASKED, TIME_LIMIT, ShellClock
from .shell_files_read import find_lines, find_shared_lines
from .shell_limits import INTERACTIVE, LOGIN, ShellLine, list_startup_files
from .shell_measure import find_nobody, find_shell, start_shell
from .sshd_config import find_key_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .measure import SessionResult

_KINDS = {
    "sshd": (LOGIN, INTERACTIVE),  # bash reads .bashrc under sshd where it is given a command.
    "login": (LOGIN,),
    "su-l": (LOGIN,),
    "sudo-i": (LOGIN,),
    "su": (INTERACTIVE,),
}
_MOST = 10
_LONGEST = 3000
_MARK = "mlhost-limits:"
_PRINT = f"echo {_MARK}; exec /bin/cat /proc/self/limits"
_BASH = "/bin/bash"
_MOST_FORCED = 3


class ShellResult(NamedTuple):
    """What a session has once its shell has started; ``limits`` is ``None`` where that is not
    known, for this reason. ``lines`` are those that may have changed something, ``how`` says how
    it was measured. All of that the user's own files have a say in.

    ``forced`` are lines of authorized_keys whose command may set limits in the place of a shell.

    ``given`` is what the start files that are root's leave of the session, where they set limits:
    measured as nobody, whose files and processes no user has.
    """

    limits: dict[str, Rlimit] | None
    reason: str
    lines: tuple[ShellLine, ...]
    how: str = ""
    given: ShellResult | None = None
    forced: tuple[Declaration, ...] = ()

    @property
    def was_asked(self) -> bool:
        """Tell whether there was time for it, which other users may have taken."""
        return self.reason != NOT_ASKED


class _Plan(NamedTuple):
    """What is known of the shell of a session before it is started.

    ``lines`` are all that its person's shell meets, ``shared`` those of root's files among them;
    ``trouble`` says what keeps it from getting through them.
    """

    session: SessionResult
    person: pwd.struct_passwd
    lines: tuple[ShellLine, ...]
    shared: tuple[ShellLine, ...]
    trouble: str
    forced: tuple[Declaration, ...]


class _Trial(NamedTuple):
    """A shell to start in a session as a person, whose start files have these lines."""

    session: SessionResult
    person: pwd.struct_passwd
    lines: tuple[ShellLine, ...]


def measure_shells(
    sessions: Collection[SessionResult],
    items: Collection[str],
    keys: Mapping[str, Sequence[str]] | None = None,
    clock: ShellClock | None = None,
) -> dict[tuple[str, str], ShellResult]:
    """Start the shells of those whose startup files set one of these limits, and no others.

    :param keys: The files with each user's keys, as sshd names them.
    :param clock: That of the look, which knows what was asked before.
    :returns: By service and user; a session that no shell changes is not in it.
    """
    clock = clock or ShellClock()
    asked = [one for one in sessions if one.limits is not None and one.service in _KINDS]
    keys = keys or {}
    names = {_name(one, items, keys.get(one.user, ())): one for one in asked}
    new = {name: one for name, one in names.items() if name not in clock.told}
    clock.told.update(zip(new, _measure_new(list(new.values()), items, keys, clock)))
    found = {(one.service, one.user): clock.told[name] for name, one in names.items()}
    return {pair: result for pair, result in found.items() if result is not None}


def _name(session: SessionResult, items: Collection[str], keys: Sequence[str]) -> object:
    """Return what decides the answer of a session's shell, but for the files."""
    limits = frozenset((session.limits or {}).items())
    return session.service, session.user, limits, frozenset(items), tuple(keys)


def _measure_new(
    sessions: Sequence[SessionResult],
    items: Collection[str],
    keys: Mapping[str, Sequence[str]],
    clock: ShellClock,
) -> list[ShellResult | None]:
    """Return what each shell makes of its session; all that are to be started, are at once."""
    plans = _plan(sessions, items, keys, clock)
    pairs = [(_try_own(plan), _try_shared(plan)) for plan in plans]
    told = iter(_measure([trial for pair in pairs for trial in pair if trial], clock))
    results = [[next(told) if trial else None for trial in pair] for pair in pairs]
    return [_conclude(plan, own, given) for plan, (own, given) in zip(plans, results)]


def _plan(
    sessions: Sequence[SessionResult],
    items: Collection[str],
    keys: Mapping[str, Sequence[str]],
    clock: ShellClock,
) -> list[_Plan]:
    people = {name: pwd.getpwnam(name) for name in dict.fromkeys(one.user for one in sessions)}
    reports = _ask(list(people.values()), tuple(items), keys, clock)
    shells = {find_shell(person) for person in people.values()}
    shared_by = {one: tuple(islice(find_shared_lines(one, items), _MOST)) for one in shells}
    plans = []
    for session in sessions:
        person, report = people[session.user], reports[session.user]
        own, trouble = _read_report(report, session.user)
        shared = shared_by[find_shell(person)]
        forced = _read_forced(report) if session.service == "sshd" else ()
        lines = tuple(dict.fromkeys([*own, *shared]))
        plans.append(_Plan(session, person, lines, shared, trouble, forced))
    return plans


def _try_own(plan: _Plan) -> _Trial | None:
    is_tried = plan.lines and not plan.trouble
    return _Trial(plan.session, plan.person, plan.lines) if is_tried else None


def _try_shared(plan: _Plan) -> _Trial | None:
    """Return the trial of what root's files alone make of it, for nobody has files of nobody's."""
    is_tried = plan.shared and plan.person.pw_uid
    return _Trial(plan.session, find_nobody(plan.person), plan.shared) if is_tried else None


def _conclude(
    plan: _Plan, own: ShellResult | None, given: ShellResult | None
) -> ShellResult | None:
    if plan.trouble:
        return ShellResult(None, plan.trouble, plan.lines, given=given)
    if own:
        return own._replace(given=given, forced=plan.forced)
    session = plan.session
    plain = ShellResult(session.limits, "", (), session.how, forced=plan.forced)
    return plain if plan.forced else None


def _ask(
    people: Sequence[pwd.struct_passwd],
    items: tuple[str, ...],
    keys: Mapping[str, Sequence[str]],
    clock: ShellClock,
) -> dict[str, Report | None]:
    """Return what the start files of users state, each asked in time; who asks needs no child."""
    own = [one for one in people if one.pw_uid == os.geteuid()]
    others = [one for one in people if one not in own]
    looks = {one: partial(_look, one, items, keys.get(one.pw_name, ())) for one in people}
    errands = [Errand(one, looks[one]) for one in others]
    reports = [*(_look_here(looks[one]) for one in own), *clock.ask(errands)]
    return {one.pw_name: report for one, report in zip((*own, *others), reports)}


def _look_here(look: Callable[[], object]) -> Report:
    try:
        return Report(look())
    except (OSError, ValueError, RecursionError) as error:
        return Report(None, str(error))


def _read_report(report: Report | None, user: str) -> tuple[list[ShellLine], str]:
    """Return the lines of a user's own files, and what keeps a shell from getting through them."""
    if report is None:
        return [], NOT_ASKED
    value = report.value or {}
    lines = [_read_line(*fields) for fields in value.get("lines", ())]
    if report.problem:
        return lines, f"the startup files of {user} cannot be read: {report.problem}"
    odd = one_line(str(value.get("odd", "")))
    return lines, f"the start files of {user}'s shell give no session: {odd}" if odd else ""


def _read_forced(report: Report | None) -> tuple[Declaration, ...]:
    value = report.value if report else None
    return tuple(Declaration(*at) for at in (value or {}).get("forced", ()))


def _read_line(item: str, bounds: list[str], at: list[object]) -> ShellLine:
    return ShellLine(item, tuple(bounds), Declaration(*at))  # type: ignore[arg-type]


def _look(
    entry: pwd.struct_passwd, items: tuple[str, ...], keys: Sequence[str]
) -> dict[str, object]:
    """Return what a user's startup files say of these items, and keys. Runs as that user.

    Their links may lead anywhere, and the home may be on a server that trusts no root.
    """
    patterns = list_startup_files(entry.pw_shell or "/bin/sh")
    paths = [entry.pw_dir + one[1:] for one in patterns if one.startswith("~")]
    odd: list[str] = []
    lines = list(islice(find_lines(paths, entry.pw_dir, items, odd), _MOST))
    forced = list(islice(_find_forced(entry, keys), _MOST_FORCED))
    return {"lines": lines, "odd": next(iter(odd), ""), "forced": forced}


def _find_forced(entry: pwd.struct_passwd, keys: Sequence[str]) -> Iterator[Declaration]:
    """Yield the keys that run something in the place of the shell which may set limits."""
    for name in keys:
        path = find_key_file(name, entry.pw_name, entry.pw_uid, entry.pw_dir)
        try:
            text = read_text(path) or ""
        except OSError:
            continue  # sshd reads it as the user, and cannot either.
        for line in find_forced_keys(text, path):
            if may_set_limits(str(line.value)):
                yield line


def _measure(trials: Sequence[_Trial], clock: ShellClock) -> list[ShellResult]:
    """Start shells in each way that their services may."""
    errands = [
        start_shell(one.person, one.session.limits or {}, _write_words(one, kind), TIME_LIMIT)
        for one in trials
        for kind in _KINDS[one.session.service]
    ]
    reports = iter(clock.ask(errands))
    counts = [len(_KINDS[one.session.service]) for one in trials]
    return [_read_trial(one, list(islice(reports, count))) for one, count in zip(trials, counts)]


def _read_trial(trial: _Trial, told: Sequence[Report | None]) -> ShellResult:
    """Return the lowest of each limit that the shells of one session told."""
    session, entry, lines = trial
    reports = [report for report in told if report]
    if len(reports) < len(told):
        return ShellResult(None, NOT_ASKED, lines)
    texts = [report.value[1] if report.value else "" for report in reports]
    try:
        read = [parse_proc_limits(_find_table(text)) for text in texts]
    except ValueError:
        problems = [report.problem for report in reports if report.problem]
        problems += ["it printed no limits"] if any(_MARK in text for text in texts) else []
        reason = f"the start files of {entry.pw_name}'s shell give no session: "
        reason += (*problems, "it ended early")[0]
        unclear = [line.at.place for line in lines if not line.bounds]
        reason += f"; {unclear[0]} has it read or become something else" if unclear else ""
        return ShellResult(None, reason, lines)
    lowest = {
        item: Rlimit(min(one[item].soft for one in read), min(one[item].hard for one in read))
        for item in read[0]
    }
    kinds = " and the ".join(_KINDS[session.service])
    how = f"{session.how}; then the {kinds} shell of {entry.pw_name}"
    return ShellResult(lowest, "", lines, how)


def _write_words(trial: _Trial, kind: str) -> list[str]:
    """Return what a shell is called with, to tell its limits in the end."""
    shell = find_shell(trial.person)
    first = f"-{os.path.basename(shell)}" if kind == LOGIN else shell
    asked = ["-i"] if kind == INTERACTIVE and not shell.endswith("csh") else []
    # A script of bash is started from it, for that reads what BASH_ENV names.
    script = f"exec {_BASH} -c '{_PRINT}'" if os.path.exists(_BASH) else _PRINT
    return [first, *asked, "-c", script]


def _find_table(said: str) -> str:
    """Return what a shell printed last, after what its startup files did."""
    return said.rpartition(f"{_MARK}\n")[2][:_LONGEST]
