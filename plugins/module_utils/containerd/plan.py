# SPDX-License-Identifier: BSD-2-Clause
"""Plan the drop-in of containerd's unit, from which containers inherit what nobody else states.

Kubernetes has no limits in its interface: a pod has those of containerd, handed down by the shim,
unless ``base_runtime_spec`` states others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.edit import HEADER
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.values import Rlimit
from ..systemd.limits import Statement, read_unit_limits
from ..systemd.unit_file import Source
from ..systemd.unread import format_limit
from ..systemd.want import declare, find_target, is_enough
from .base_spec import Kept, declare_rlimit, put_back, read_kept, write_rlimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from ..systemd.model import Files
    from .base_spec import BaseSpec

UNIT = "containerd.service"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
OURS = f"{FOLDER}/90-mlhost-containers.conf"


def plan_containerd(
    policy: ContainerPolicy,
    files: Files,
    nr_open: int | None,
    override: bool = False,
    absent: bool = False,
    base: BaseSpec | None = None,
) -> SectionPlan:
    """Return the edits of our drop-in, and of lines of others where they are to be ineffective.

    :param files: All that systemd reads of the unit.
    :param nr_open: The lowest fs.nr_open that will be in force.
    :param base: What pods are started with, whatever the unit gives.
    """
    before = {one.path: one.text for one in files.dropins if one.path.startswith(f"{FOLDER}/")}
    theirs = restore_all({path: text for path, text in before.items() if path != OURS})
    kept = read_kept(before.get(OURS, ""))
    others = [one for one in kept if not base or one.path != base.path]
    if base:
        before, base = {**before, base.path: base.text}, put_back(base, kept)
        theirs[base.path] = base.text
    if absent or not policy.stated:
        notes = tuple(f"{one.path} has {one.item} of ours: it had {one.old}" for one in others)
        return SectionPlan(plan_edits(before, {**theirs, OURS: None}), notes=notes)
    excess = policy.describe_excess("containers.containerd", nr_open)
    if excess:
        return SectionPlan(problems=(f"{excess}, to which systemd would cut it",))
    told, changed = _plan_base(policy, base, override) if base else ((), [])
    ours = format_drop_in(policy, (*changed, *others))
    beaten = _find_beaten(policy, _replace(files, {**theirs, OURS: ours}))
    shortfalls = [_tell(one, policy, override and one.setting.path in theirs) for one in beaten]
    dead = [one.foreign for one in shortfalls if one.neutralized]
    texts = {**neutralise_all(theirs, dead), OURS: ours}
    for one in changed:
        texts[one.path] = write_rlimit(texts[one.path], one.item, one.after) or texts[one.path]
    notes = () if files.main else (f"{OURS}: takes effect once containerd is installed",)
    return SectionPlan(plan_edits(before, texts), (), (*shortfalls, *told), notes)


def _tell(beaten: Statement, policy: ContainerPolicy, neutralized: bool) -> Shortfall:
    ours = _format_line(beaten.item, policy.stated[beaten.item])
    return Shortfall(declare(beaten), ours, neutralized)


def _plan_base(
    policy: ContainerPolicy, base: BaseSpec, override: bool
) -> tuple[list[Shortfall], list[Kept]]:
    """Return the limits of a base specification that give too little, and those that we change."""
    shortfalls, changed = [], []
    for item, limit in base.limits.items():
        if item not in policy.stated or is_enough(policy.limits[item], limit):
            continue
        target = find_target(policy.limits[item], limit)
        may = override and base.path.startswith("/etc/")
        can = may and write_rlimit(base.text, item, target) is not None
        changed += [Kept(item, limit, target, base.path)] if can else []
        ours = _format_line(item, policy.stated[item])
        shortfalls.append(Shortfall(declare_rlimit(base, item), ours, can))
    return shortfalls, changed


def format_drop_in(policy: ContainerPolicy, changed: Iterable[Kept] = ()) -> str:
    lines = [_format_line(item, limit) for item, limit in sorted(policy.stated.items())]
    lines += map(str, changed)
    return "\n".join([HEADER, "[Service]", *lines]) + "\n"


def _format_line(item: str, limit: Rlimit) -> str:
    return f"Limit{item.upper()}={format_limit(item, limit)}"


def _replace(files: Files, texts: Mapping[str, str]) -> Files:
    """Return the files as they will be with these drop-ins in our folder."""
    others = [one for one in files.dropins if not one.path.startswith(f"{FOLDER}/")]
    # Where two folders hold files of one name, the stronger folder's are first.
    mine = [Source(path, text) for path, text in texts.items()]
    above = [one for one in others if one.path.startswith("/etc/systemd/system.control/")]
    below = [one for one in others if one not in above]
    return files._replace(dropins=(*above, *mine, *below))


def _find_beaten(policy: ContainerPolicy, files: Files) -> Iterator[Statement]:
    """Yield the statements of others that count and give less than the policy asks for."""
    if files.main is None:
        return
    reading = read_unit_limits("service", files.main, files.dropins)
    for item in policy.stated:
        last = [one for one in reading.statements if one.item == item][-1]
        if last.setting.path != OURS and not is_enough(policy.limits[item], last.limit):
            yield last
