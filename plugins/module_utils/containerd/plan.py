# SPDX-License-Identifier: BSD-2-Clause
"""Plan the drop-in of containerd's unit, from which containers inherit what nobody else states.

Kubernetes has no limits in its interface: a pod has those of containerd, handed down by the shim,
unless ``base_runtime_spec`` states others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.edit import HEADER
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.toml_text import read_toml
from ..core.values import Declaration, NamedTuple, Rlimit
from ..systemd.limits import Statement, read_unit_limits
from ..systemd.unit_file import Source
from ..systemd.unread import format_limit
from ..systemd.want import declare, is_enough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..containers.policy import ContainerPolicy
    from ..systemd.model import Files

UNIT = "containerd.service"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
OURS = f"{FOLDER}/90-mlhost-containers.conf"


def plan_containerd(
    policy: ContainerPolicy,
    files: Files,
    nr_open: int | None,
    override: bool = False,
    absent: bool = False,
) -> SectionPlan:
    """Return the edits of our drop-in, and of lines of others where they are to be ineffective.

    :param files: All that systemd reads of the unit.
    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    before = {one.path: one.text for one in files.dropins if one.path.startswith(f"{FOLDER}/")}
    theirs = restore_all({path: text for path, text in before.items() if path != OURS})
    if absent or not policy.stated:
        return SectionPlan(plan_edits(before, {**theirs, OURS: None}))
    excess = policy.describe_excess("containers.containerd", nr_open)
    if excess:
        return SectionPlan(problems=(f"{excess}, to which systemd would cut it",))
    ours = format_drop_in(policy)
    shortfalls = tuple(
        Shortfall(
            declare(one),
            _format_line(one.item, policy.stated[one.item]),
            override and one.setting.path in theirs,
        )
        for one in _find_beaten(policy, _replace(files, {**theirs, OURS: ours}))
    )
    dead = [one.foreign for one in shortfalls if one.neutralized]
    texts = {**neutralise_all(theirs, dead), OURS: ours}
    notes = () if files.main else (f"{OURS}: takes effect once containerd is installed",)
    return SectionPlan(plan_edits(before, texts), (), shortfalls, notes)


def format_drop_in(policy: ContainerPolicy) -> str:
    lines = [_format_line(item, limit) for item, limit in sorted(policy.stated.items())]
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


CONFIG = "/etc/containerd/config.toml"
_RUNTIME = "runc"


class BaseSpec(NamedTuple):
    """The limits and tasks of a base specification, and the line of config.toml that names it."""

    path: str
    limits: Mapping[str, Rlimit]
    at: Declaration
    tasks: int | None = None


def find_base_spec(text: str, path: str = CONFIG) -> Declaration | None:
    """Return the line that names the base specification of the default runtime, if one does.

    Without one the limits are taken out, and a pod inherits those of containerd; with one, its
    ``process.rlimits`` are used as they are. Source: ``docs/cri/config.md`` and
    ``internal/cri/opts/spec_opts.go`` of containerd.

    :param text: config.toml, read as latin-1. The value is the path.
    :raises ValueError: If it is not TOML.
    """
    entries = read_toml(text.encode("latin-1").decode("utf-8"))
    names = [one.node.value for one in entries if one.keys[-1] == "default_runtime_name"]
    runtime = names[-1] if names else _RUNTIME
    rows = text.split("\n")
    for one in entries:
        if one.keys[-3:] == ("runtimes", runtime, "base_runtime_spec") and one.node.value:
            line = one.node.line
            return Declaration(path, line, rows[line - 1].rstrip("\r"), str(one.node.value))
    return None
