# SPDX-License-Identifier: BSD-2-Clause
"""Say why a job of Slurm gets less than a policy asks: the login, slurm.conf, PAM or slurmd."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from ..core.cause import Cause, Remedy, cite, replace_line
from ..core.finding import Requirement
from ..core.reader import Limit
from ..core.values import ITEMS, Declaration, NamedTuple, Rlimit, format_pair, format_quantity
from ..processes.causes import find_both_causes, let_pam_decide
from ..systemd.want import is_enough
from .model import JobFacts, find_given, predict_job, raise_nofile
from .slurm_conf import EXCEPT, Propagation, SlurmConf, read_propagation, write_propagation

CODES = {
    "slurm-login-decides": "slurm.conf does not say otherwise, so the login decides soft limits",
    "slurm-propagates": "a line of slurm.conf lets the login decide the soft limit",
    "slurm-except-lacks": "the line of slurm.conf that takes limits from the login lacks this one",
    "slurm-conf-not-read": "slurm.conf says otherwise, and Slurm has not read it since",
    "slurm-pam-decides": "UsePAM puts jobs through PAM, which sets their limits after slurmd",
    "slurm-started-by-hand": "slurmd was not started by its unit, whose limits do not count",
    "slurm-step-older": "the step was started by a slurmd that had less then",
    "slurm-daemon-elsewhere": "the job ran on another host, whose slurmd has too little",
}

RECONFIGURE = ("scontrol", "reconfigure")


class ConfFacts(NamedTuple):
    """slurm.conf as it stands: its path, its text and what it says.

    ``kept_back`` are the limits that no login shall decide. ``served`` tells that the controller
    hands the file out, so that it cannot be changed here.
    """

    path: str
    text: str
    conf: SlurmConf
    kept_back: Collection[str]
    served: bool = False


def is_met(wanted: Requirement, pair: Rlimit) -> bool:
    """Tell whether a pair of bounds meets one requirement."""
    return wanted.is_met_by(wanted.pick(pair))


def find_effective(item: str, has: Rlimit, facts: JobFacts) -> bool | None:
    """Tell from what a job had whether the login decides a limit; ``None`` where neither fits."""
    with_login, without = (predict_job(item, facts, way) for way in (True, False))
    if with_login == without == has:
        return item in facts.propagation.items
    return {with_login: True, without: False}.get(has)


def find_job_causes(
    wanted: Requirement, has: Rlimit, facts: JobFacts, conf: ConfFacts
) -> list[Cause]:
    """Return why a job falls short of a requirement, as far as slurmd is not at fault.

    :param has: What the job had.
    """
    item = wanted.item
    effective = find_effective(item, has, facts)
    if effective is None or is_met(wanted, has):
        return []
    effective = effective and item in facts.propagation.items
    causes = _find_pam_causes(wanted, facts)
    given = find_given(facts)[item]
    decides = wanted.bound == "soft" and effective and given.soft > has.soft
    if decides and (is_met(wanted, given) or not causes):
        causes.append(_blame_login(item, facts, conf))
    return causes


def _find_pam_causes(wanted: Requirement, facts: JobFacts) -> list[Cause]:
    item = wanted.item
    given = find_given(facts)[item]
    if facts.pam is None or is_met(wanted, given) or given == raise_nofile(facts.slurmd)[item]:
        return []
    limit = Limit(hard=wanted.minimum, max=wanted.maximum)
    if wanted.bound == "soft":
        limit = Limit(soft=wanted.minimum)
    session = facts.pam.session
    start = session.start._replace(inherited=raise_nofile(facts.slurmd))
    causes = find_both_causes(item, limit, session._replace(start=start))
    return [let_pam_decide(one, facts.pam.line, "slurm-pam-decides") for one in causes]


def _blame_login(item: str, facts: JobFacts, conf: ConfFacts) -> Cause:
    """Blame what hands the login's soft limit to its jobs, rather than the login."""
    unit, soft = ITEMS[item].unit, facts.login[item].soft
    whose = f"{facts.who} has a soft {item} of {format_quantity(soft, unit)}"
    line = facts.propagation.line
    if line is None:
        text = f"no line of {conf.path} says otherwise, so jobs take over soft limits of logins,"
        text += f" and {whose}"
        return Cause("slurm-login-decides", text, find_remedy(None, conf))
    does = "leaves the limit out" if _is_except(line) else "says so"
    text = f"jobs take over soft limits of logins: {cite(line)} {does}, and {whose}"
    code = "slurm-except-lacks" if "out" in does else "slurm-propagates"
    return Cause(code, text, find_remedy(line, conf), line)


def _is_except(line: Declaration) -> bool:
    return line.text.lower().lstrip().startswith(EXCEPT.lower())


def find_remedy(line: Declaration | None, conf: ConfFacts) -> Remedy:
    """Return how slurm.conf comes to keep logins from deciding what they shall not."""
    items = read_propagation(conf.conf).items - frozenset(conf.kept_back)
    text = write_propagation(items, conf.conf)
    if conf.served or not conf.path.isprintable():
        return Remedy(f'state it: "{text}" in slurm.conf of the controller, then reconfigure')
    if line and line.path == conf.path and _is_one_row(line, conf):
        remedy = replace_line(line, text)
    else:
        script = f"printf '\\n%s\\n' {shlex.quote(text)} >> {shlex.quote(conf.path)}"
        remedy = Remedy(f'state it: "{text}" in {conf.path}', (("sh", "-c", script),))
    commands = (*remedy.commands, RECONFIGURE) if remedy.commands else ()
    return remedy._replace(text=f"{remedy.text} on every node", commands=commands)


def _is_one_row(line: Declaration, conf: ConfFacts) -> bool:
    """Tell whether a line is not continued, so that its row can be put anew."""
    row = conf.text.split("\n")[line.line - 1]
    return not row.partition("#")[0].rstrip().endswith("\\")


def blame_propagation(
    line: Declaration | None, stated: Propagation, running: Collection[str], conf: ConfFacts
) -> Cause | None:
    """Say why Slurm runs with more left to logins than is asked for."""
    more = sorted(set(running) & set(conf.kept_back))
    if not more:
        return None
    names = ", ".join(more)
    if not stated.items & set(more):
        text = f"{conf.path} says otherwise, and Slurm has not read it since: jobs take over"
        remedy = Remedy("let Slurm read it", (RECONFIGURE,))
        return Cause("slurm-conf-not-read", f"{text} {names} of logins", remedy, line)
    if line is None:
        text = f"no line of {conf.path} says otherwise, so jobs take over {names} of logins"
        return Cause("slurm-login-decides", text, find_remedy(None, conf))
    excepts = _is_except(line)
    code = "slurm-except-lacks" if excepts else "slurm-propagates"
    text = f"{cite(line)} lets jobs take over {names} of logins"
    return Cause(code, text, find_remedy(line, conf), line)


def blame_hand(pid: int, unit: str, item: str, has: Rlimit) -> Cause:
    """Blame whoever started slurmd outside of its unit, with limits of their own."""
    text = (
        f"slurmd (pid {pid}) was not started by {unit}, and has {item} {format_pair(item, has)}:"
        " no file says so"
    )
    script = f"kill {pid}; while kill -0 {pid} 2> /dev/null; do sleep 0.2; done"
    commands = (("sh", "-c", script), ("systemctl", "restart", unit))
    return Cause("slurm-started-by-hand", text, Remedy(f"end it and start {unit}", commands))


def blame_age(step: str, pid: int, slurmd: int, item: str, now: Rlimit) -> Cause:
    """Say of a running step that one which starts now would get enough."""
    job = step.partition(".")[0]
    text = (
        f"step {step} (slurmstepd, pid {pid}) keeps what slurmd had when it started; slurmd (pid"
        f" {slurmd}) has {item} {format_pair(item, now)} now"
    )
    return Cause("slurm-step-older", text, Remedy(f"let job {job} end, or cancel and resubmit it"))


def blame_other_host(node: str, item: str, has: Rlimit) -> Cause:
    """Blame the slurmd of a host that is not this one."""
    text = f"slurmd of node {node} has too little: its jobs have {item} {format_pair(item, has)}"
    return Cause("slurm-daemon-elsewhere", text, Remedy(f"check {node} itself"))


def need_of_slurmd(limit: Limit, item: str, propagated: bool) -> Limit:
    """Return what slurmd must have so that a job can get what is asked for."""
    hard = max(limit.soft or 0, limit.hard or 0)
    # slurmd raises its own nofile, and where the login decides its soft limits do not count.
    soft = None if propagated or item == "nofile" else limit.soft
    return Limit(soft, hard, limit.max)


def is_slurmd_short(wanted: Requirement, slurmd: Rlimit, propagated: bool) -> bool:
    """Tell whether slurmd itself keeps a job from meeting a requirement."""
    if wanted.bound == "hard":
        return not is_met(wanted, slurmd)
    soft = None if propagated or wanted.item == "nofile" else wanted.minimum
    return not is_enough(Limit(soft, wanted.minimum), slurmd)
