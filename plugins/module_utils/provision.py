# SPDX-License-Identifier: BSD-2-Clause
"""Make a policy true on a host in one run: read, plan, write, prove."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .core.finding import judge_limits
from .core.named import NamedTuple
from .core.plan import HostPlan, Section, SectionPlan
from .core.provision_options import Options
from .core.reader import PolicyError
from .core.report import format_failures
from .host.files import read_os_release
from .host.image import is_image, will_boot
from .host.users import read_user
from .kernel.files_read import read_sysctl_files
from .kernel.plan import KernelOptions, KernelPlan, plan_kernel
from .kernel.read import read_sysctl
from .kernel.sysctl_conf import SYSCTL_DIRECTORIES
from .kernel.sysctl_writes import find_lowest_nr_open
from .places import KERNEL, SESSIONS
from .provision_others import FIRST, find_foretold, list_folders, prepare_others
from .sessions.limits_read import read_limits_files
from .sessions.pam_limits import LIMITS_CONF, find_dialect
from .sessions.plan import SessionsOptions, plan_sessions
from .sessions.provision import find_kernel_lockouts, find_open_sessions, find_session_lockouts
from .sessions.rules import find_limits
from .write.lock import find_editor, only_run, remove_leftovers, wait_for_packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.edit import Edit
    from .core.policy import Policy

_UNBOOTED = "this is an image: files are written, and what they give comes with its first boot"
_MOST_USERS = 5  # Of a long list, whose sessions are opened before and after a change.
_SECRET_FILES = ("/systemd/", "containers.conf", ".toml")  # They may hold an environment.


class Outcome(NamedTuple):
    """What a run did, or would do in check mode."""

    edits: tuple[Edit, ...]
    sysctls: tuple[tuple[str, str, str], ...]
    shortfalls: tuple[str, ...]
    notes: tuple[str, ...]
    restarted: tuple[str, ...]
    restart_required: tuple[str, ...]
    old_limits: tuple[str, ...]
    in_effect: tuple[str, ...]

    def as_result(self) -> dict[str, object]:
        """Return what a task returns; the diff holds every file and every running value."""
        return {
            "changed": bool(self.edits or self.sysctls or self.restarted),
            "files": [edit.path for edit in self.edits],
            "sysctls": [
                {"key": key, "before": before, "after": after}
                for key, before, after in self.sysctls
            ],
            "shortfalls": list(self.shortfalls),
            "notes": list(self.notes),
            "restarted": list(self.restarted),
            "restart_required": list(self.restart_required),
            "old_limits": list(self.old_limits),
            "in_effect": list(self.in_effect),
            "diff": [*map(_diff_file, self.edits), *_diff_sysctls(self.sysctls)],
        }


def provision(policy: Policy, options: Options) -> Outcome:
    """Make the sections of a policy true on this host.

    :raises PolicyError: With every reason to refuse; nothing was written then.
    :raises OSError: If a file or a value could not be written; what was is put back.
    """
    if options.check_mode:
        return _provision(policy, options)
    with only_run():
        said = remove_leftovers(_list_folders(policy, options))
        outcome = _provision(policy, options)
    return outcome._replace(notes=(*outcome.notes, *said))


def _list_folders(policy: Policy, options: Options) -> list[str]:
    """Return the folders in which files may be replaced."""
    files = (LIMITS_CONF, _find_target(options), KERNEL.read_switch(options, "kernel_file"))
    own = [path.rpartition("/")[0] for path in files]
    return [*own, *SYSCTL_DIRECTORIES, *list_folders(policy)]


def _provision(policy: Policy, options: Options) -> Outcome:
    image = is_image()
    if image and not os.path.exists(os.devnull):
        raise PolicyError([f"{os.devnull}: is missing; programs of an image need its devices"])
    running = _read_running({*(policy.get("kernel") or ()), "fs.nr_open"}, image)
    kernel = _plan_kernel(policy, options, running)
    kernel = kernel._replace(writes=()) if image else kernel
    sessions = _plan_sessions(policy, options, kernel.nr_open)
    others = list(prepare_others(policy, options, kernel.nr_open))
    others = [Section(one.plan) for one in others] if image else others  # There is nothing to tell.
    plan = HostPlan(kernel.section, sessions, tuple(one.plan for one in others))
    plans = plan.sections
    problems = [problem for plan in plans for problem in plan.problems]
    problems += _find_lockouts(policy, options, kernel, sessions)
    problems += _find_editors(plans)
    if problems:
        raise PolicyError(problems)
    rivals = _find_rivals(plans)  # Nothing that may fail comes after the writing.
    said: tuple[str, ...] = (_UNBOOTED,) if image else ()
    if not options.check_mode:
        said += _write(plan, kernel.writes, others, _find_named_users(policy))
    return Outcome(
        edits=plan.edits,
        sysctls=(
            *((key, running[key] or "", value) for key, value in kernel.writes),
            *(change for one in others for change in one.running),
        ),
        shortfalls=tuple(str(shortfall) for plan in plans for shortfall in plan.shortfalls),
        notes=(*(note for plan in plans for note in plan.notes), *rivals, *said),
        restarted=tuple(unit for one in others for unit in one.restarted),
        restart_required=tuple(unit for one in others for unit in one.restart_required),
        old_limits=() if options.absent or image else tuple(_find_old(policy, options, others)),
        in_effect=tuple(_find_in_effect(policy, options, others, image)),
    )


def _find_target(options: Options) -> str:
    """Return the limits file that a run writes."""
    return str(SESSIONS.read_switch(options, "sessions_file"))


def _read_running(keys: Iterable[str], image: bool) -> dict[str, str | None]:
    """Return the kernel's values: those in force, or those an image's own kernel starts with."""
    if not image:
        return {key: read_sysctl(key) for key in keys}
    from .kernel.boot_read import BootRead  # Of no use on a host that runs.

    boot = BootRead({})
    return {key: boot.find_start(key) for key in keys}


def _find_in_effect(
    policy: Policy, options: Options, others: Iterable[Section], image: bool
) -> Iterator[str]:
    """Yield the sections of a check that can be met now, without another restart.

    Of an image that will boot, these are the ones whose files say what that boot will give.
    """
    if image:
        if will_boot():
            yield from (name for name in find_foretold(policy) if options.wants(name))
        return
    yield from (name for name in FIRST if name in policy.asked and options.wants(name))
    yield from (name for one in others for name in one.in_effect)


def _plan_kernel(policy: Policy, options: Options, running: Mapping[str, str | None]) -> KernelPlan:
    files = read_sysctl_files()
    if not options.wants("kernel"):
        return KernelPlan(SectionPlan(), nr_open=find_lowest_nr_open(files, running))
    chosen = KernelOptions(
        KERNEL.read_switch(options, "kernel_file"), options.override, options.absent
    )
    return plan_kernel(policy.get("kernel") or {}, files, running, chosen)


def _plan_sessions(policy: Policy, options: Options, nr_open: int | None) -> SectionPlan:
    if not options.wants("sessions"):
        return SectionPlan()
    dialect = find_dialect(read_os_release())
    chosen = SessionsOptions(_find_target(options), options.override, options.absent)
    rules = policy.get("sessions") or ()
    return plan_sessions(rules, read_limits_files(), dialect, nr_open, chosen)


def _find_lockouts(
    policy: Policy, options: Options, kernel: KernelPlan, sessions: SectionPlan
) -> Iterator[str]:
    """Yield why this host could not be entered afterwards, or cannot be now."""
    if options.absent:
        return
    if options.wants("sessions"):
        yield from find_session_lockouts(
            policy.get("sessions") or (), sessions, _find_target(options)
        )
    if is_image():
        return  # What the running kernel needs is of the machine that builds.
    if kernel.writes or kernel.section.edits or kernel.section.problems:
        yield from find_kernel_lockouts(policy.get("kernel") or {}, sessions)


def _find_editors(plans: Iterable[SectionPlan]) -> Iterator[str]:
    """Yield the files that somebody is editing: what they save later would undo our change."""
    for edit in (edit for plan in plans for edit in plan.edits):
        trace = find_editor(edit.path) if edit.before is not None else ""
        if trace:
            yield f"{edit.path}: is open in an editor ({trace}); close it first"


def _find_rivals(plans: Sequence[SectionPlan]) -> list[str]:
    """Return who else writes the files that we change, or that beat ours."""
    if not any(plan.edits or plan.shortfalls for plan in plans):
        return []
    from .host.rivals import describe_rivals

    return list(describe_rivals(plans))


def _write(
    plan: HostPlan,
    writes: tuple[tuple[str, str], ...],
    others: Iterable[Section],
    users: Sequence[str],
) -> tuple[str, ...]:
    """Write everything in an order that locks nobody out, or leave everything as it was.

    :returns: What is worth saying of the host as it was before.
    """
    settles = [one.settle for one in others if one.settle]
    if not writes and not settles and not plan.edits:
        return ()
    from .sessions.settle import apply_plans

    if any(edit.of_others for edit in plan.edits):
        wait_for_packages()
    return apply_plans(plan, writes, settles, users)


def _find_named_users(policy: Policy) -> list[str]:
    """Return the first users whom the policy names and the host has."""
    names = dict.fromkeys(name for rule in policy.get("sessions") or () for name in rule.users)
    return [name for name in names if name[:1] not in "*@%:" and read_user(name)][:_MOST_USERS]


def _find_old(policy: Policy, options: Options, others: Iterable[Section]) -> Iterator[str]:
    """Yield what goes on with less than the policy asks for until it ends."""
    rules = policy.get("sessions") or ()
    if options.wants("sessions"):
        for session in find_open_sessions():
            user = read_user(session.user)
            wanted = find_limits(rules, user) if user else {}
            place = f"{session.unit} of {session.user} (pid {session.pid})"
            how = f"/proc/{session.pid}/limits"
            yield from format_failures(judge_limits(place, wanted, session.limits, how))
    for one in others:
        yield from one.find_old()


def _diff_file(edit: Edit) -> dict[str, str]:
    before, after = (_show(content, edit) for content in (edit.before, edit.after))
    return {
        "before": before,
        "after": after,
        "before_header": edit.path if edit.before is not None else f"{edit.path} (absent)",
        "after_header": edit.path if edit.after is not None else f"{edit.path} (absent)",
    }


def _show(content: bytes | None, edit: Edit) -> str:
    from .core.redaction import redact  # Only a change has something to show.
    from .core.redaction_json import redact_json

    if edit.hidden:
        return f"({len(content)} bytes, not shown)\n" if content else ""
    text = (content or b"").decode("utf-8", "backslashreplace")
    if edit.kind == "json":
        return redact_json(text)
    is_line_file = edit.kind or any(part in edit.path for part in _SECRET_FILES)
    return redact(text) if is_line_file else text


def _diff_sysctls(changes: tuple[tuple[str, str, str], ...]) -> Iterator[dict[str, str]]:
    for key, before, after in changes:
        yield {
            "before": f"{key} = {before}\n",
            "after": f"{key} = {after}\n",
            "before_header": "running kernel",
            "after_header": "running kernel",
        }
