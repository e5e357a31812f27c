# SPDX-License-Identifier: BSD-2-Clause
"""Plan what slurmd's unit and slurm.conf must say so that jobs get what the policy requires."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.cause import cite
from ..core.edit import HEADER, Edit, remove_block, set_block
from ..core.option_names import name_option, switch_on
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.reader import Limit
from ..core.values import NamedTuple, Rlimit
from ..systemd.edits import is_ours
from ..systemd.model import UnitFacts, find_asked, rank_statements, read_unit
from ..systemd.unit_file import Source
from ..systemd.unread import format_limit
from ..systemd.want import declare, is_enough
from .policy import SlurmPolicy
from .slurm_conf import SLURM_CONF, SlurmConf, parse_slurm_conf, read_propagation, write_propagation

UNIT = "slurmd.service"
_NAME = "90-mlhost-slurm.conf"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/{_NAME}"


class SlurmState(NamedTuple):
    """What is known of Slurm on a host.

    ``unit`` is slurmd's, ``None`` where there is none. ``files`` are slurm.conf and what it
    includes, none where it is absent. ``served`` tells that the controller hands it out.
    """

    unit: UnitFacts | None = None
    files: Mapping[str, str] = {}
    conf_path: str = SLURM_CONF
    served: bool = False


class SlurmOptions(NamedTuple):
    """How the section is made true; ``write_conf`` allows a block of ours in slurm.conf."""

    override: bool = False
    absent: bool = False
    write_conf: bool = False


def plan_slurm(
    policy: SlurmPolicy, state: SlurmState, nr_open: int | None, options: SlurmOptions
) -> SectionPlan:
    """Return the edits of slurmd's drop-ins, and of slurm.conf where that is allowed.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    parts = [_plan_conf(policy, state, options)]
    if state.unit:
        parts.insert(0, _plan_unit(policy, state.unit, nr_open, options))
    notes = tuple(note for part in parts for note in part.notes)
    if state.unit is None and not options.absent:
        notes = (f"there is no {UNIT} here, so no job runs here", *notes)
    return SectionPlan(
        tuple(edit for part in parts for edit in part.edits),
        tuple(problem for part in parts for problem in part.problems),
        tuple(shortfall for part in parts for shortfall in part.shortfalls),
        notes,
    )


def _plan_unit(
    policy: SlurmPolicy, facts: UnitFacts, nr_open: int | None, options: SlurmOptions
) -> SectionPlan:
    """Plan the drop-in that states the limits, and silence what beats it where that is allowed."""
    before = {source.path: source.text for source in facts.files.dropins}
    if not before.get(DROP_IN, HEADER).startswith(HEADER):
        return SectionPlan(problems=(f"{DROP_IN}: was not written by mlhost.limits; move it",))
    same = [path for path in before if path != DROP_IN and path.endswith(f"/{_NAME}")]
    if same:
        return SectionPlan(problems=(f"{same[0]}: hides {DROP_IN}, or is hidden by it; move it",))
    foreign = restore_all({path: text for path, text in before.items() if path != DROP_IN})
    bare = _with_dropins(facts, foreign)
    if options.absent:
        return SectionPlan(plan_edits(before, {**foreign, DROP_IN: None}))
    if read_unit(bare).refused:
        return SectionPlan(problems=(f"{UNIT}: systemd cannot read its file",))
    pairs = {
        item: _fill(limit, find_asked(item, bare))
        for item, limit in policy.limits.items()
        if (limit.soft, limit.hard) != (None, None)
    }
    if nr_open is not None and "nofile" in pairs and pairs["nofile"].hard > nr_open:
        problem = f"jobs.slurm.limits.nofile: {pairs['nofile'].hard} is above fs.nr_open {nr_open}"
        return SectionPlan(problems=(problem,))
    text = _format_dropin(pairs)
    whole = _with_dropins(facts, {**foreign, **({DROP_IN: text} if text else {})})
    beaten = [
        shortfall
        for item, pair in pairs.items()
        for shortfall in _find_shortfalls(item, policy.limits[item], pair, whole, options.override)
    ]
    fixed = neutralise_all(foreign, [one.foreign for one in beaten if one.neutralized])
    edits = plan_edits(before, {**fixed, DROP_IN: text or None})
    return SectionPlan(edits, shortfalls=tuple(beaten))


def _with_dropins(facts: UnitFacts, texts: Mapping[str, str]) -> UnitFacts:
    """Return a unit with these drop-ins, those that it had in the order in which it had them."""
    old = [source.path for source in facts.files.dropins]
    # A file that is new stands in /etc, which beats all but systemctl's own folders.
    paths = [*(path for path in texts if path not in old), *(path for path in old if path in texts)]
    dropins = tuple(Source(path, texts[path]) for path in paths)
    return facts._replace(files=facts.files._replace(dropins=dropins))


def _fill(limit: Limit, asked: Rlimit) -> Rlimit:
    """Return both bounds: systemd takes none alone, so what is not asked for stays."""
    hard = limit.hard if limit.hard is not None else max(asked.hard, limit.soft or 0)
    soft = limit.soft if limit.soft is not None else min(asked.soft, hard)
    return Rlimit(soft, hard)


def _format_dropin(pairs: Mapping[str, Rlimit]) -> str:
    lines = [f"Limit{item.upper()}={format_limit(item, pair)}" for item, pair in pairs.items()]
    return "\n".join([HEADER, "[Service]", *lines, ""]) if lines else ""


def _find_shortfalls(
    item: str, limit: Limit, pair: Rlimit, facts: UnitFacts, override: bool
) -> list[Shortfall]:
    """Return the lines of others that count more than ours, with too little."""
    ours = f"Limit{item.upper()}={format_limit(item, pair)}"
    ranked = rank_statements(item, facts)
    mine = max(index for index, one in enumerate(ranked) if one.setting.path == DROP_IN)
    later = ranked[mine + 1 :]
    if not later or is_enough(limit, later[-1].limit):
        return []
    return [
        Shortfall(declare(one), ours, override and is_ours(one.setting.path))
        for one in later
        if not is_enough(limit, one.limit)
    ]


def _plan_conf(policy: SlurmPolicy, state: SlurmState, options: SlurmOptions) -> SectionPlan:
    """Plan our block in slurm.conf, or say what a person must write there."""
    path, text = state.conf_path, state.files.get(state.conf_path)
    if text is None or state.served:
        return _plan_without_conf(state, options)
    try:
        base = remove_block(text, path) or ""
        if options.absent:
            return SectionPlan(_edit_conf(path, text, base))
        now = read_propagation(_parse(state, base))
        wanted = now.items - policy.kept_back
        if wanted == now.items:
            return SectionPlan(_edit_conf(path, text, base))
        line = write_propagation(wanted, _parse(state, base))
        if not options.write_conf:
            who = cite(now.line) if now.line else f"no line of {path}"
            note = _describe_leak(who, sorted(now.items & policy.kept_back), line, path)
            return SectionPlan(_edit_conf(path, text, base), notes=(note,))
        after = set_block(text, [line], path) or ""
        if read_propagation(_parse(state, after)).items != wanted:
            after = set_block(base, [line], path) or ""  # A line below our block beats it.
    except ValueError as exc:
        return SectionPlan(problems=(str(exc),) if options.write_conf else ())
    note = f"{path} must be the same on every node; Slurm warns of those where it is not"
    return SectionPlan(_edit_conf(path, text, after), notes=(note,) if after != text else ())


def _parse(state: SlurmState, text: str) -> SlurmConf:
    """Read slurm.conf with another text.

    :raises ValueError: If Slurm would not start with it.
    """
    conf = parse_slurm_conf({**state.files, state.conf_path: text}, state.conf_path)
    if conf.faults:
        raise ValueError(f"{cite(conf.faults[0])}: {conf.faults[0].value}; Slurm starts with none")
    if conf.missing:
        raise ValueError(f"{conf.missing[0]}: is included by {state.conf_path}, and missing")
    return conf


def _plan_without_conf(state: SlurmState, options: SlurmOptions) -> SectionPlan:
    if not options.write_conf or options.absent:
        return SectionPlan()
    why = f"{state.conf_path} is missing on this host"
    if state.served:
        why = "this node gets slurm.conf from its controller; write it there"
    return SectionPlan(problems=(f"{name_option('slurm_conf')}: {why}",))


def _describe_leak(who: str, items: list[str], line: str, path: str) -> str:
    """Return what lets logins decide limits of jobs, and what would end that."""
    does = "lets" if who.startswith("/") else "says otherwise, so Slurm lets"
    return (
        f"{who} {does} each login decide {', '.join(items)} of its jobs; write"
        f' "{line}" in {path} on every node and run scontrol reconfigure'
        f" ({switch_on('slurm_conf')} does it here)"
    )


def _edit_conf(path: str, before: str, after: str) -> tuple[Edit, ...]:
    edit = Edit(path, before.encode("latin-1"), after.encode("latin-1"), kind="lines")
    return (edit,) if edit.changes else ()
