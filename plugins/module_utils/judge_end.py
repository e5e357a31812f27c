# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``why``: what a run died of, by its last words and by what this host shows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from .core.brief import Told, format_brief
from .core.cause import Remedy
from .core.finding import FAIL, Finding, format_observed, judge_limits
from .core.policy import CheckOptions
from .core.profiles import NO_PROFILE
from .core.quote import quote
from .core.reader import Limit, PolicyError
from .core.values import RLIMITS, NamedTuple
from .host.door import ForeignError
from .host.look import read_limits, read_process
from .host.users import find_connecting_user, find_owner, name_user
from .places import look_at_host
from .schema import load_policy
from .watch.kept_ends_read import find_kept, find_kept_of, find_last
from .watch.reports_read import Evidence, join_evidence, split_reports
from .why.answer import Answer, format_remedy
from .why.ask import MEMORY, ask_enough, find_enough, name_way, raise_group
from .why.facts import SURE, Facts
from .why.host_read import name_unseen, read_facts
from .why.hosts import find_hosts
from .why.kills import is_below
from .why.log_read import Log, read_log, read_stream
from .why.log_text import Words, find_path, list_pids
from .why.reasons import CGROUP, HOST, OOMD, REASONS
from .why.signs import find_signs
from .why.verdict import FITS, POSSIBLE, REQUEST, SHOWN, Verdict, judge_words, weigh
from .why.where_read import (
    CONTAINER,
    SESSION,
    UNIT,
    Where,
    find_docker,
    find_job,
    find_process,
    find_unit,
    find_user,
    list_groups,
    place_process,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

STDIN = "-"
_SECONDS = 30.0
_SUFFIXES = (".log", ".out", ".err", ".txt")
_LIVING = ("nofile", "mappings", "memlock", "nproc", "pids-max", "cgroup-memory", "stack")
"""What is looked at of a process that still runs and whose words nobody gave."""


class Given(NamedTuple):
    """The words of a run, one log after the other, and how long ago it ended if known."""

    logs: Sequence[Log]
    age: float | None = None


def judge_end(arguments: argparse.Namespace) -> Answer:
    """Return what a run died of.

    :raises OSError: If a log cannot be read, or the run is another user's.
    :raises ValueError: If nothing was given, or its words name no failure.
    """
    if arguments.last:
        _require_alone(arguments)
        return tell_watched([find_last()], None, None)
    try:
        where = _find_where(arguments)
    except ProcessLookupError:
        kept = find_kept_of(arguments.pid)
        if kept is None:
            raise
        return tell_watched([kept], None, None)
    _require_failed(where, arguments.words)
    given = _read_given(arguments.words, where)
    seen, logs = split_reports(given.logs)
    seen = seen or find_kept(where, given.age, arguments.job)
    log, words, verdict = _judge_each(logs)
    if seen:
        return tell_watched(seen, verdict, where)
    answer = _judge(verdict, words, given.age, where)
    return answer._replace(log=log.name if len(given.logs) > 1 else "", is_cut=log.is_cut)


def tell_watched(seen: Sequence[Evidence], verdict: Verdict | None, where: Where | None) -> Answer:
    """Return what is told of a run that was watched, by its report and, if given, its words."""
    shown = [one for one in seen if one.verdict.sure == SHOWN] or seen
    first = shown[0]
    joined = join_evidence(first, verdict)
    told = blame(joined, where or place_process(first.cgroup, first.uid), group=first.group)
    return told._replace(note=[*told.note, *first.doubts])


def _judge(verdict: Verdict | None, words: Words, age: float | None, where: Where | None) -> Answer:
    """Return what is told of the words of a run, by what this host shows."""
    hosts = find_hosts(words, verdict.number) if verdict else set()
    note = _note_host(hosts)
    if verdict and note:
        return Answer(verdict, note=[note])
    verdict, unseen, group = _look(_hear(verdict, where), age, where, hosts)
    return blame(verdict, where, unseen, group)


def blame(
    verdict: Verdict, where: Where | None, unseen: Sequence[str] = (), group: str = ""
) -> Answer:
    """Return a verdict with the line at fault where the run lived, and how it is mended.

    :param unseen: What only root would see.
    :param group: The cgroup whose limit was reached.
    """
    if not verdict.reason.is_limit:
        return Answer(verdict, unseen=unseen)
    home = where or Where(SESSION, _name_caller(), None)
    place = f"{home.kind}:{home.name}" if where else ""
    if verdict.reason.item == MEMORY:
        remedy = raise_group(home.kind, *_find_bound(home, group))
        return Answer(verdict, place, format_remedy(remedy), unseen=unseen)
    found = _check(verdict.reason.item, home, verdict)
    findings = [one.as_dict() for one in found]
    short = [one for one in found if one.status == FAIL]
    if short:
        fault = format_brief(short, Told(provision=""))[1:]
        return Answer(verdict, place, fault, findings, unseen)
    is_seen = any(one.observation.value is not None for one in found)
    way = "" if is_seen or verdict.reason.way else name_way(verdict.reason.item, home.kind)
    fault = format_remedy(Remedy(way)) if way else []
    return Answer(verdict, place, fault, findings, unseen, list(_tell_enough(found)))


def _require_alone(arguments: argparse.Namespace) -> None:
    """Refuse what --last would leave unread.

    :raises ValueError: If anything is given beside it.
    """
    names = ("pid", "unit", "job", "container", "user")
    others = [f"--{name}" for name in names if getattr(arguments, name) is not None]
    others += ["FILE"] if arguments.words else []
    if others:
        raise ValueError(f"--last is the last run of all: give it, or {', '.join(others)}")


def _require_failed(where: Where | None, words: Sequence[str]) -> None:
    """Refuse a unit that has not failed, whatever an earlier run of it said.

    :raises ValueError: If it has not, and no words of its were given.
    """
    if where is None or where.kind != UNIT or words or where.pid:
        return
    told, name = where.told, where.name
    if told.get("Result") != "success" or not name.endswith(".service"):
        return
    if told.get("ExecMainStartTimestampMonotonic") == "0":
        raise ValueError(f"--unit: {name} has not run since the boot; give its log instead")
    if told.get("NRestarts", "0") == "0":
        raise ValueError(f"--unit: {name} did not fail: its last run ended with success")


def _hear(verdict: Verdict | None, where: Where | None) -> Verdict | None:
    """Return the verdict on the words; that of systemd where it says that memory was at fault."""
    if where is None or where.told.get("Result") != "oom-kill":
        return verdict
    reasons = tuple(REASONS[code] for code in (CGROUP, HOST, OOMD))
    if verdict and {verdict.reason, *verdict.others} & set(reasons):
        return verdict
    line, number = (verdict.line, verdict.number) if verdict else ("", 0)
    return Verdict(reasons[0], POSSIBLE, line, number, reasons[1:])


def _find_bound(home: Where, group: str) -> tuple[str, int | None]:
    """Return the cgroup whose memory limit was reached, and that limit, where both are known."""
    own = f"/docker/{home.home}" if home.kind == CONTAINER and home.home else home.home
    path = re.sub(r"^/sys/fs/cgroup(/memory)?(?=/)", "", group) or own
    told = home.told.get("MemoryMax", "")
    if told.isdigit() and is_below(path, home.home):
        return path, int(told)
    found = (one for one in list_groups(path) if one.item == MEMORY and one.path.endswith(path))
    return path, next((one.most for one in found), None)


def _tell_enough(found: Sequence[Finding]) -> Iterator[str]:
    """Yield that check finds enough where the run lived, or cannot see it."""
    for one in found:
        wanted, value = one.requirement, one.observation.value
        if value is None:
            yield f"check cannot see {wanted.place}: {one.observation.reason}"
        else:
            has = format_observed(value, wanted.unit)
            yield (
                f"{wanted.place} has {wanted.item} {has} now, so the run was started with less,"
                " or elsewhere, or it takes more and more"
            )
        return


def _find_where(arguments: argparse.Namespace) -> Where | None:
    """Return where the run lived, if somebody says so."""
    asked = [
        find(value)
        for find, value in (
            (find_process, arguments.pid),
            (find_unit, arguments.unit),
            (find_job, arguments.job),
            (find_docker, arguments.container),
            (find_user, arguments.user),
        )
        if value is not None
    ]
    if len(asked) > 1:
        raise ValueError(
            "a run has one place: give one of --pid, --unit, --job, --container, --user"
        )
    return asked[0] if asked else None


def _read_given(words: Sequence[str], where: Where | None) -> Given:
    """Return the words of a run: of files, of a message, of standard input, or where it lived."""
    paths = [word for word in words if word == STDIN or os.path.lexists(word)]
    if words and len(paths) == len(words):
        try:
            logs = [
                read_stream() if path == STDIN else read_log(path)._replace(name=path)
                for path in paths
            ]
        except ForeignError as error:
            raise OSError(f"{error}; show it: cat FILE | mlhost-limits why") from None
        return Given(logs, min(log.age for log in logs))
    if words:
        for word in words:
            is_path = " " not in word and ("/" in word or word.endswith(_SUFFIXES))
            if word in paths or is_path:
                raise ValueError(f"{quote(word)}: no such file; a message is one word in quotes")
        return Given([Log(" ".join(words), False)])
    if where is not None:
        age = where.words.age or None if where.ended is None else where.ended
        return Given([where.words] if where.words.text else [], age)
    if os.isatty(0):
        raise ValueError("give a log, a message, --pid, --unit, --job or --container")
    return Given([read_stream()], 0.0)


def _judge_each(logs: Sequence[Log]) -> tuple[Log, Words, Verdict | None]:
    """Return the log that tells most, its words, and the verdict on them."""
    told = []
    for log in logs:
        words = Words(log.text)
        verdict = judge_words(words)
        if verdict:
            told.append((log, words, verdict))
    if not told:
        return Log("", False), Words(""), None
    return max(told, key=lambda one: one[2].rank)


def _name_host() -> str:
    return os.uname().nodename.partition(".")[0]


def _note_host(hosts: set[str]) -> str:
    """Return that a log is another host's, which nothing here can tell of."""
    if not hosts or _name_host() in hosts:
        return ""
    return f"this is a log of {', '.join(sorted(hosts)[:3])}: judged by its words alone"


def _look(
    verdict: Verdict | None, age: float | None, where: Where | None, hosts: set[str]
) -> tuple[Verdict, Sequence[str], str]:
    """Return the verdict with what this host shows, what only root would see, and the cgroup whose
    limit was reached."""
    codes: Sequence[str] = _LIVING
    if verdict:
        codes = tuple(one.code for one in (verdict.reason, *verdict.others))
    own = {_name_host()}
    facts = _know(verdict, age, where)._replace(
        here=hosts == own or bool(where and where.here and hosts <= own)
    )
    facts = read_facts(codes, facts, where.pid if where else None)
    signs = find_signs(facts, codes)
    shown = [one for one in signs if one.worth == SURE]
    group = shown[0].group if shown else ""
    if verdict is None:
        if not (where and shown):
            raise ValueError(_tell_nothing(where))
        verdict = Verdict(REASONS[shown[0].code], SHOWN, "", 0)
    unseen = list(name_unseen(facts).values()) if verdict.others or verdict.sure == FITS else []
    return weigh(verdict, signs), unseen if verdict.reason.is_limit else [], group


def _know(verdict: Verdict | None, age: float | None, where: Where | None) -> Facts:
    """Return what is known of a run before anybody looks at the host."""
    needed = verdict.needed if verdict else None
    facts = Facts(
        uid=os.geteuid() or None,
        age=age,
        pids=list_pids(verdict.near) if verdict else frozenset(),
        path=find_path(verdict.line) if verdict else "",
        request=needed[1] if needed and needed[0] == REQUEST else 0,
    )
    if where is None:
        return facts
    return facts._replace(
        uid=where.uid, groups=where.groups, told=where.told, home=where.home, started=where.started
    )


def _tell_nothing(where: Where | None) -> str:
    if where and where.pid:
        return (
            f"process {where.pid} still runs, and nothing of it that can be seen is near a limit;"
            " give its words, if it has failed"
        )
    return "these words name no failure that is known; look for the first error above them"


def _name_caller() -> str:
    return (find_connecting_user() or "root") if os.geteuid() == 0 else name_user(os.geteuid())


def _check(item: str, home: Where, verdict: Verdict) -> Sequence[Finding]:
    """Return what check finds where the run lived, asked for enough; nothing where it judges none.

    Of a process that still runs, its own limit is judged.
    """
    from .kernel.read import read_sysctl

    needed = verdict.needed[1] if verdict.needed and verdict.needed[0] == item else None
    if home.pid and item in RLIMITS and home.kind != CONTAINER:
        return _check_process(item, home.pid, needed)
    now = read_sysctl(item) or "" if "." in item else ""
    raw = ask_enough(item, home.kind, home.name, int(now) if now.isdigit() else None, needed)
    return _check_place(raw) if raw else ()


def _check_process(item: str, pid: int, needed: int | None) -> Sequence[Finding]:
    from .processes.diagnose import explain_process
    from .systemd.read import Seen, World

    process, limits = read_process(pid), read_limits(pid)
    wanted = {item: Limit(soft=find_enough(item, limits[item].soft, needed))}
    findings = judge_limits(f"process:{pid}", wanted, limits, f"/proc/{pid}/limits")
    seen = Seen(process, limits, wanted, findings, owner=find_owner(process))
    return explain_process(seen, World(look_at_host()))


def _check_place(raw: dict[str, object]) -> Sequence[Finding]:
    from .check_within import check_within

    try:
        policy = load_policy(raw, NO_PROFILE)
        options = CheckOptions(canary="never", time_limit=_SECONDS)
        return check_within(policy, options).findings
    except (PolicyError, OSError, ValueError):
        return ()  # Nobody asked for a check, and its refusal is no answer.
