# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether a login to a node is taken into the job that its user has there.

Source: pam_slurm_adopt.c. With a job of the user on the node, sshd's process joins the cgroup of
that job's extern step. It sets no limits: the session has those that PAM gives any login.
pam_systemd in the same stack then moves it to the cgroup of a login session, out of the job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.cause import Cause, Remedy, append_line, cite, replace_line
from ..core.values import Declaration
from ..sessions.pam_stack import declare_call, flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .causes import ConfFacts

CODES = {"slurm-not-contained": "jobs have nothing that a login could be adopted into"}
_FLAGS, _CONTAIN = "PrologFlags", "Contain"
ADOPT = "pam_slurm_adopt"
_LEAVES = "pam_systemd"


def find_adopting(files: Mapping[str, str]) -> Declaration | None:
    """Return the line of sshd's stack that takes logins into jobs.

    :param files: Text of every PAM service file, by path.
    """
    return _find(ADOPT, ("account", "session"), files)


def find_leaving(files: Mapping[str, str]) -> Declaration | None:
    """Return the line of sshd's stack that takes logins out of jobs again."""
    return _find(_LEAVES, ("session",), files)


def _find(module: str, kinds: tuple[str, ...], files: Mapping[str, str]) -> Declaration | None:
    try:
        lines = [line for kind in kinds for line in flatten("sshd", kind, files)]
    except ValueError:
        return None  # libpam refuses the service, and no session opens at all.
    return next((declare_call(line) for line in lines if line.name == module), None)


def is_adopted(cgroup: str, job: str) -> bool:
    """Tell from /proc/PID/cgroup whether a process is in a job."""
    return re.search(rf"/job_{re.escape(job)}(/|$)", cgroup, re.MULTILINE) is not None


def blame_flags(shown: Mapping[str, str], facts: ConfFacts) -> Cause | None:
    """Blame that no job has the step that logins are adopted into (slurm.conf(5), ``PrologFlags``).

    :param shown: What the controller runs with.
    """
    if _CONTAIN.lower() in shown.get(_FLAGS.lower(), _CONTAIN).lower():
        return None
    line = facts.conf.find(_FLAGS)
    has = [word for word in str(line.value).split(",") if word.lower() != "none"] if line else []
    text = f"{_FLAGS}={','.join([*has, _CONTAIN])}"
    who = f"{cite(line)} lacks" if line else f"no {_FLAGS} in {facts.path} states"
    why = f"{who} {_CONTAIN}, so that jobs have no step that a login is adopted into"
    reconfigure = ("scontrol", "reconfigure")
    remedy = replace_line(line, text) if line else append_line(facts.path, text)
    remedy = remedy._replace(commands=(*remedy.commands, reconfigure) if remedy.commands else ())
    if line and _CONTAIN.lower() in [word.lower() for word in has]:
        remedy = Remedy("let Slurm read it", (reconfigure,))
        why = f"{cite(line)} was not read yet: jobs have no step that a login is adopted into"
    if facts.served:
        remedy = Remedy(f'state "{text}" in slurm.conf of the controller, then reconfigure')
    return Cause("slurm-not-contained", why, remedy, line)


def describe_adoption(cgroup: str, job: str, leaving: Declaration | None) -> str:
    """Return whether a login was taken into a job, and stays there."""
    if not is_adopted(cgroup, job):
        return f"not adopted into job {job}"
    if leaving:
        return f"adopted into job {job}, and taken out of it again by {cite(leaving)}"
    return f"adopted into job {job}"
