# SPDX-License-Identifier: BSD-2-Clause
"""Say why containers of containerd, pods among them, have less than a policy asks."""

from __future__ import annotations

from collections.abc import Sequence

from ..containers.tasks import Bounds
from ..core.cause import Cause, Remedy, cite
from ..core.reader import Limit
from ..core.values import ITEMS, Rlimit, format_pair, format_quantity
from ..systemd.want import find_target
from .base_spec import edit_base, write_rlimit, write_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.spec import Started
    from ..core.finding import Requirement
    from ..systemd.tasks import Level
    from .base_spec import BaseSpec

CODES = {
    "containerd-base-spec": "the specification that config.toml names for pods states it",
    "containerd-own-spec": "the container was started with a limit of its own",
    "containerd-pod-pids": "the kubelet bounds the tasks of each pod, or of all pods together",
    "containerd-container-older": "the container is older than the limits, and keeps what it had",
    "containerd-changed-inside": "the limit was changed after the start, from inside or by prlimit",
}


def blame_base(
    wanted: Requirement, base: BaseSpec | None, asked: Limit | None = None
) -> Cause | None:
    """Blame the specification that pods are started with, where it states too little.

    :param asked: What the policy asks of both bounds of the limit.
    """
    limit = base.limits.get(wanted.item) if base else None
    if base is None or limit is None or wanted.is_met_by(wanted.pick(limit)):
        return None
    do = f"state {wanted.describe()} or nothing in process.rlimits of {base.path}"
    given = f"{_show(wanted, limit)} from {base.path}, whatever containerd's unit gives"
    target = find_target(asked or Limit(), limit)
    return _blame(base, given, do, write_rlimit(base.text, wanted.item, target))


def blame_base_tasks(wanted: Requirement, base: BaseSpec | None) -> list[Cause]:
    """Blame the specification that pods are started with, where it bounds their tasks."""
    if base is None or base.tasks is None or wanted.is_met_by(base.tasks):
        return []
    least = format_quantity(wanted.minimum or 0)
    do = f"make linux.resources.pids.limit of {base.path} {least} (-1 is unlimited)"
    given = f"a pids limit of {base.tasks} from {base.path}"
    return [_blame(base, given, do, write_tasks(base.text, wanted.minimum or 0))]


def _blame(base: BaseSpec, given: str, do: str, text: str | None) -> Cause:
    """Blame a base specification; a person edits it where no command can make it the text."""
    edits = edit_base(base, text)
    commands = (*edits, ("systemctl", "restart", "containerd.service")) if edits else ()
    remedy = Remedy(f"{do}, and restart containerd", commands, "pods that run keep what they have")
    text = f"{cite(base.at)}: pods get {given}"
    return Cause("containerd-base-spec", text, remedy, base.at)


def find_tasks_causes(
    wanted: Requirement, bounds: Bounds, task: Started, new: Sequence[Cause]
) -> list[Cause]:
    """Return why a running container's own bound on tasks is too low, or that of its pod.

    :param new: Why a new pod's own bound is too low as well.
    """
    return [*_find_own_tasks(wanted, bounds, task, new), *_find_pod_tasks(wanted, bounds)]


def _find_own_tasks(
    wanted: Requirement, bounds: Bounds, task: Started, new: Sequence[Cause]
) -> list[Cause]:
    own, stated = bounds.own, task.tasks
    if own is None or wanted.is_met_by(own.most) or task.limits is None:
        return []
    if stated is None and bounds.scope:
        return []  # It is systemd's.
    if stated is None or wanted.is_met_by(stated):
        given = "no bound" if stated is None else f"a pids limit of {format_quantity(stated)}"
        text = f"{task.name} was started with {given}, and {own.path} has {own.most} now"
        remedy = Remedy(f"start {task.name} anew, and look for what changes that")
        return [Cause("containerd-changed-inside", text, remedy)]
    text = f"{task.name} was started with a pids limit of {stated}"
    if task.in_pod:
        return [*new, Cause("containerd-container-older", text, _start_anew(task))]
    remedy = Remedy(f"start {task.name} with more: nerdctl run --pids-limit, or its specification")
    return [Cause("containerd-own-spec", text, remedy)]


def _start_anew(task: Started) -> Remedy:
    return Remedy(f"start {task.name} anew: a running container keeps what it started with")


def _find_pod_tasks(wanted: Requirement, bounds: Bounds) -> list[Cause]:
    """Blame the kubelet for a cgroup of pods: the lowest of them, which is a pod's own or of all.

    Source: ``podPidsLimit`` and ``kubeReserved`` of KubeletConfiguration.
    """
    found = [one for one in bounds.above if is_of_kubelet(one) and not wanted.is_met_by(one.most)]
    if not found:
        return []
    of_one = "pod" in found[0].unit.replace("kubepods", "")
    key = "podPidsLimit" if of_one else "pid of kubeReserved and systemReserved"
    text = f"{found[0].path} has {found[0].most}, which the kubelet gives it"
    remedy = Remedy(f"change {key} in the kubelet's configuration, restart it, make the pod anew")
    return [Cause("containerd-pod-pids", text, remedy)]


def leave_kubelet_out(bounds: Bounds) -> Bounds:
    """Return the bounds without those that the kubelet gives, which no file of systemd states."""
    scope = None if bounds.scope and is_of_kubelet(bounds.scope) else bounds.scope
    return Bounds(bounds.own, scope, tuple(one for one in bounds.above if not is_of_kubelet(one)))


def is_of_kubelet(level: Level) -> bool:
    """Tell whether a cgroup is one that the kubelet makes for pods."""
    return level.unit.startswith("kubepods") or level.path.count("/kubepods") > 0


def find_task_causes(
    wanted: Requirement, has: int, task: Started, new: Sequence[Cause], fresh: int | None
) -> tuple[Cause, ...]:
    """Return why a running container has too little.

    :param new: Why a new one has too little as well.
    :param fresh: What a new one has, where that was measured.
    """
    stated = (task.limits or {}).get(wanted.item)
    again = _start_anew(task)
    if stated is not None and wanted.pick(stated) != has:
        text = f"{task.name} was started with {_show(wanted, stated)}, and has"
        text += f" {wanted.bound} {_show_one(wanted.item, has)} now: something changed it"
        return (Cause("containerd-changed-inside", text, again),)
    if stated is not None and not task.in_pod:
        text = f"{task.name} was started with {_show(wanted, stated)} of its own"
        remedy = Remedy(f"start {task.name} with more: nerdctl run --ulimit, or its specification")
        return (Cause("containerd-own-spec", text, remedy),)
    if not new and (fresh is None or not wanted.is_met_by(fresh)):
        return ()
    since = f" has run since {task.since} and" if task.since else ""
    text = f"{task.name}{since} keeps {wanted.item} {_show_one(wanted.item, has)}"
    return (*new, Cause("containerd-container-older", text, again))


def _show(wanted: Requirement, pair: Rlimit) -> str:
    return f"{wanted.item} {format_pair(wanted.item, pair)}"


def _show_one(item: str, value: int) -> str:
    return format_quantity(value, ITEMS[item].unit)
