# SPDX-License-Identifier: BSD-2-Clause
"""Make a policy true on a host in one run: read, plan, write, prove."""

from __future__ import annotations

from typing import NamedTuple

from .apply.lock import only_run, remove_leftovers, wait_for_packages
from .lockouts import find_kernel_lockouts, find_session_lockouts
from .policy.docker_record import find_record_path
from .policy.dockerd_flags import CONFIG_PATH, find_config_path, find_socket
from .policy.finding import judge_limits
from .policy.pam_limits import LIMITS_CONF, find_dialect
from .policy.plan import SectionPlan
from .policy.plan_docker import DockerState, plan_docker
from .policy.plan_kernel import KernelOptions, KernelPlan, plan_kernel
from .policy.plan_sessions import SessionsOptions, plan_sessions
from .policy.report import format_failures
from .policy.schema import PolicyError
from .policy.session_rules import find_limits
from .policy.sysctl_conf import SYSCTL_DIRECTORIES
from .policy.sysctl_writes import find_lowest_nr_open
from .probe.docker import find_daemon, read_container_limits, read_containers
from .probe.files import read_bytes, read_limits_files, read_os_release, read_sysctl_files
from .probe.kernel import read_sysctl
from .probe.leftovers import find_open_sessions
from .probe.process import started_before
from .probe.unit import read_dockerd_flags
from .probe.users import read_user
from .probe.writers import find_editor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .policy.edit import Edit
    from .policy.schema import Policy
    from .probe.docker import Container, Daemon

SECTIONS = ("kernel", "sessions", "docker")
"""In the order of writing: fs.nr_open must be up before a nofile may use it."""

_MOST_USERS = 5  # Of a long list, whose sessions are opened before and after a change.


class Options(NamedTuple):
    """How a policy is made true."""

    sections: tuple[str, ...] = SECTIONS
    absent: bool = False
    override: bool = False
    sessions_file: str = SessionsOptions().target
    kernel_file: str = KernelOptions().target
    docker_restart: bool = False
    check_mode: bool = False


class Docker(NamedTuple):
    """The Docker of this host: its files, and the daemon if it runs."""

    state: DockerState
    daemon: Daemon | None
    address: str


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
        left = remove_leftovers(_list_folders(options))
        outcome = _provision(policy, options)
    notes = [f"{path}: left by a run that was killed, removed" for path in left]
    return outcome._replace(notes=(*outcome.notes, *notes))


def _list_folders(options: Options) -> list[str]:
    """Return the folders in which files may be replaced."""
    docker = (CONFIG_PATH, find_record_path(CONFIG_PATH))
    files = (LIMITS_CONF, options.sessions_file, options.kernel_file, *docker)
    return [*(path.rpartition("/")[0] for path in files), *SYSCTL_DIRECTORIES]


def _provision(policy: Policy, options: Options) -> Outcome:
    running = {key: read_sysctl(key) for key in {*policy.kernel, "fs.nr_open"}}
    kernel = _plan_kernel(policy, options, running)
    sessions = _plan_sessions(policy, options, kernel.nr_open)
    docker = _read_docker() if "docker" in options.sections and policy.docker else None
    containers = SectionPlan()
    if docker:
        containers = plan_docker(policy.docker, docker.state, kernel.nr_open, options.absent)
    plans = (kernel.section, sessions, containers)
    problems = [problem for plan in plans for problem in plan.problems]
    if not problems and docker:
        problems += _find_refusal(docker, containers)
    problems += _find_lockouts(policy, options, kernel, sessions)
    problems += _find_editors(plans)
    if problems:
        raise PolicyError(problems)
    restart = bool(docker and _needs_restart(docker, containers))
    said: tuple[str, ...] = ()
    if not options.check_mode:
        to_restart = docker if restart and options.docker_restart else None
        said = _write(plans, kernel.writes, to_restart, _find_named_users(policy))
    restarts = ("docker.service",) if restart else ()
    return Outcome(
        edits=tuple(edit for plan in plans for edit in plan.edits),
        sysctls=tuple((key, running[key] or "", value) for key, value in kernel.writes),
        shortfalls=tuple(str(shortfall) for plan in plans for shortfall in plan.shortfalls),
        notes=(*(note for plan in plans for note in plan.notes), *said),
        restarted=restarts if options.docker_restart else (),
        restart_required=() if options.docker_restart else restarts,
        old_limits=() if options.absent else tuple(_find_old(policy, options, docker)),
        in_effect=tuple(_find_in_effect(options, docker, restart)),
    )


def _find_in_effect(options: Options, docker: Docker | None, restart: bool) -> Iterator[str]:
    """Yield the sections of a check that can be met now, without another restart."""
    yield from (section for section in ("kernel", "sessions") if section in options.sections)
    if docker and docker.daemon and (options.docker_restart or not restart):
        yield "containers"


def _plan_kernel(policy: Policy, options: Options, running: Mapping[str, str | None]) -> KernelPlan:
    files = read_sysctl_files()
    if "kernel" not in options.sections:
        return KernelPlan(SectionPlan(), nr_open=find_lowest_nr_open(files, running))
    chosen = KernelOptions(options.kernel_file, options.override, options.absent)
    return plan_kernel(policy.kernel, files, running, chosen)


def _plan_sessions(policy: Policy, options: Options, nr_open: int | None) -> SectionPlan:
    if "sessions" not in options.sections:
        return SectionPlan()
    dialect = find_dialect(read_os_release())
    chosen = SessionsOptions(options.sessions_file, options.override, options.absent)
    return plan_sessions(policy.sessions, read_limits_files(), dialect, nr_open, chosen)


def _read_docker() -> Docker:
    from .apply.docker import find_dockerd

    daemon = find_daemon()
    flags = tuple(read_dockerd_flags())
    given = flags or (tuple(daemon.flags) if daemon else ())
    path = find_config_path(given)
    installed = daemon is not None or find_dockerd() is not None
    record = read_bytes(find_record_path(path))
    state = DockerState(read_bytes(path), path, flags, installed, record)
    return Docker(state, daemon, find_socket(given))


def _find_refusal(docker: Docker, plan: SectionPlan) -> Iterator[str]:
    """Yield what the daemon itself says of a changed daemon.json."""
    from .apply.docker import find_refusal

    for edit in plan.edits:
        if edit.after is None or edit.path != docker.state.path:
            continue
        refusal = find_refusal(edit.after, docker.state.flags)
        if refusal:
            yield refusal


def _find_lockouts(
    policy: Policy, options: Options, kernel: KernelPlan, sessions: SectionPlan
) -> Iterator[str]:
    """Yield why this host could not be entered afterwards, or cannot be now."""
    if options.absent:
        return
    if "sessions" in options.sections:
        yield from find_session_lockouts(policy, sessions, options.sessions_file)
    if kernel.writes or kernel.section.edits or kernel.section.problems:
        yield from find_kernel_lockouts(policy, sessions)


def _find_editors(plans: Iterable[SectionPlan]) -> Iterator[str]:
    """Yield the files that somebody is editing: what they save later would undo our change."""
    for edit in (edit for plan in plans for edit in plan.edits):
        trace = find_editor(edit.path) if edit.before is not None else ""
        if trace:
            yield f"{edit.path}: is open in an editor ({trace}); close it first"


def _needs_restart(docker: Docker, plan: SectionPlan) -> bool:
    """Tell whether the daemon runs with an older configuration than it shall have."""
    if docker.daemon is None:
        return False
    path = docker.state.path
    edited = any(edit.path == path for edit in plan.edits)
    return edited or started_before(docker.daemon.process, path)


def _write(
    plans: tuple[SectionPlan, SectionPlan, SectionPlan],
    writes: tuple[tuple[str, str], ...],
    restart: Docker | None,
    users: Sequence[str],
) -> tuple[str, ...]:
    """Write everything in an order that locks nobody out, or leave everything as it was.

    :returns: What is worth saying of the host as it was before.
    """
    edits = [edit for plan in plans for edit in plan.edits]
    if not writes and not restart and not edits:
        return ()
    from .apply.host import apply_plans

    if any(edit.of_others for edit in edits):
        wait_for_packages()
    return apply_plans(plans, writes, restart.address if restart else None, users)


def _find_named_users(policy: Policy) -> list[str]:
    """Return the first users whom the policy names and the host has."""
    names = dict.fromkeys(name for rule in policy.sessions for name in rule.users)
    return [name for name in names if name[:1] not in "*@%:" and read_user(name)][:_MOST_USERS]


def _find_old(policy: Policy, options: Options, docker: Docker | None) -> Iterator[str]:
    """Yield open sessions and running containers that have less than the policy asks for."""
    if "sessions" in options.sections:
        for session in find_open_sessions():
            user = read_user(session.user)
            wanted = find_limits(policy.sessions, user) if user else {}
            place = f"{session.unit} of {session.user} (pid {session.pid})"
            how = f"/proc/{session.pid}/limits"
            yield from format_failures(judge_limits(place, wanted, session.limits, how))
    if docker and docker.daemon and policy.docker:
        for container in _running_containers(docker.address):
            how = f"/proc/{container.pid}/limits"
            limits = read_container_limits(container.pid).limits
            place = f"container {container.name} (pid {container.pid})"
            yield from format_failures(judge_limits(place, policy.docker.limits, limits, how))


def _running_containers(address: str) -> list[Container]:
    try:
        return read_containers(address)
    except (OSError, ValueError):
        return []  # The daemon went away between two looks; check says so where it matters.


def _diff_file(edit: Edit) -> dict[str, str]:
    before, after = (_show(content, edit) for content in (edit.before, edit.after))
    return {
        "before": before,
        "after": after,
        "before_header": edit.path if edit.before is not None else f"{edit.path} (absent)",
        "after_header": edit.path if edit.after is not None else f"{edit.path} (absent)",
    }


def _show(content: bytes | None, edit: Edit) -> str:
    from .policy.redaction import redact  # Only a change has something to show.

    if edit.hidden:
        return f"({len(content)} bytes, not shown)\n" if content else ""
    text = (content or b"").decode("utf-8", "backslashreplace")
    return redact(text) if edit.secret else text


def _diff_sysctls(changes: tuple[tuple[str, str, str], ...]) -> Iterator[dict[str, str]]:
    for key, before, after in changes:
        yield {
            "before": f"{key} = {before}\n",
            "after": f"{key} = {after}\n",
            "before_header": "running kernel",
            "after_header": "running kernel",
        }
