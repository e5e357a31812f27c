# SPDX-License-Identifier: BSD-2-Clause
"""Write a host's plans in the order that locks nobody out, prove it, or put all of it back."""

from __future__ import annotations

from ..probe.session import measure_sessions, pick_users
from ..probe.users import find_connecting_user
from .docker import restart_docker
from .kernel import apply_sysctls
from .replace import apply_edits, revert_edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..policy.plan import SectionPlan

_SERVICES = ("sshd", "su", "sudo", "cron", "login")


def apply_plans(
    plans: tuple[SectionPlan, SectionPlan, SectionPlan],
    writes: tuple[tuple[str, str], ...],
    docker_address: str | None,
) -> None:
    """Write the plans of kernel, sessions and Docker.

    Running values rise first, so that fs.nr_open is up before a nofile may reach for it.

    :param docker_address: The socket of the daemon to restart, or ``None`` for no restart.
    :raises OSError: If something could not be written, a session that opened does not open any
        more, or Docker does not come back. Everything is as it was then.
    """
    kernel, sessions, docker = plans
    edits = (*kernel.edits, *sessions.edits, *docker.edits)
    before = _find_open_ways() if sessions.edits else {}
    undo = apply_sysctls(writes)
    try:
        done = apply_edits(edits)
    except OSError:
        apply_sysctls(undo)
        raise
    lost = _find_lost_session(before)
    down = "" if lost or not docker_address else restart_docker(docker_address)
    if not lost and not down:
        return
    revert_edits(done)
    apply_sysctls(undo)
    again = restart_docker(docker_address) if docker_address and down else ""
    state = f" and Docker still does not run: {again}" if again else ""
    raise OSError(f"{lost or down}; every file was put back{state}")


def _find_open_ways() -> dict[tuple[str, str], str]:
    """Return the sessions that open now, and for the others the reason."""
    users = dict.fromkeys(["root", *filter(None, [find_connecting_user()]), *pick_users(1)])
    wanted = [(service, user) for user in users for service in _SERVICES]
    return {
        (result.service, result.user): "" if result.opens else result.reason
        for result in measure_sessions(wanted)
    }


def _find_lost_session(before: dict[tuple[str, str], str]) -> str:
    """Return which session that opened before does not open any more, and why; or nothing."""
    wanted = [way for way, reason in before.items() if not reason]
    for result in measure_sessions(wanted):
        if not result.opens:
            return (
                f"a session of {result.user} through {result.service} would not open any more"
                f" ({result.reason})"
            )
    return ""
