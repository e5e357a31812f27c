# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of variables: what those of a role begin with, and names that nobody reads any more."""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
_PREFIX = "mlhost_limits_"
_ROLES = "mlhost.limits."
_PLAIN = (
    "audit_dest", "audit_formats", "audit_previous", "containerd_restart", "crio_restart",
    "docker_restart", "fail_on", "heal", "kernel_file", "override", "profile", "services_restart",
    "sessions_file", "slurm_conf", "slurm_restart", "slurm_user", "state", "target", "training",
    "verify",
)  # fmt: skip
_OLD = {
    **{name: _PREFIX + name for name in _PLAIN},
    "limits_policy": "mlhost_limits_policy",
    "preflight_become": "mlhost_limits_become",
    "strict": "mlhost_limits_fail_on=unknown",
}


def find_prefix(role: str, verb: str) -> str:
    """Return what the variables begin with that a role of ours gives a module as options.

    :param role: The full name of the role that a task is part of; other roles have other names.
    """
    if not role.startswith(_ROLES):
        return ""
    return f"{_PREFIX}monitor_" if verb == "monitor" else _PREFIX


def find_old_words(given: Iterable[str], folder: str) -> list[str]:
    """Return what is wrong with the variables of a command line, a sentence each.

    Those of an inventory are its own: a site may well have a ``state`` for other ends.

    :param given: The names that were given with ``-e``.
    :param folder: Of the playbook that runs; another one than ours may have such names.
    """
    if Path(folder) != _PLAYBOOKS:
        return []
    return [
        f"-e {name}: nobody reads it; accepted is {_OLD[name]}" for name in given if name in _OLD
    ]
