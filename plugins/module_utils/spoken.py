# SPDX-License-Identifier: BSD-2-Clause
"""Put the results of the verbs into words as Ansible shows them: a line, a report, warnings."""

from __future__ import annotations

from collections.abc import Iterator

from .core.brief import describe_reasons, format_head
from .core.finding import FAIL, LATER, UNKNOWN, count_statuses
from .core.option_names import switch_on
from .core.reasons import find_reasons
from .core.report import INDENT, note_workers, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .check_host import CheckResult
    from .core.policy import ProvisionOptions
    from .provision import Outcome

_PLAYBOOK = "ansible-playbook mlhost.limits.provision"
_ROLES = ("kernel", "sessions", "services", "docker", "podman", "slurm")
_ROLE_OF = {
    **dict(zip(_ROLES, _ROLES)),
    **dict.fromkeys(("containerd", "crio"), "podman"),
    "shared_memory": "host",
}
_RESTARTED_BY = {
    "docker.service": ("docker", "ends containers without live-restore"),
    "containerd.service": ("containerd", "containers go on"),
    "crio.service": ("crio", "containers go on"),
    "slurmd.service": ("slurm", "steps of jobs go on"),
}
"""The section whose switch restarts a unit, and what that does."""
_LONGEST = 300
_MOST_OLD = 3


def tell_check(result: CheckResult, can_provision: bool, is_root: bool) -> dict[str, Any]:
    """Return ``msg``, ``brief``, ``reasons`` and ``warnings`` of a check.

    :param can_provision: Whether to provision is a remedy: not where it was just done.
    """
    reasons = describe_reasons(result.findings, result.samples)
    workers = list(note_workers(result.findings))
    provision, of_section = (_PLAYBOOK, _name_roles(result)) if can_provision else ("", {})
    return {
        "msg": shorten("; ".join([format_head(result.findings), *workers, *reasons])),
        "brief": [
            *result.format_brief(provision=provision, of_section=of_section),
            *(part for line in workers for part in wrap(line)),
        ],
        "reasons": reasons,
        "warnings": [] if is_root else list(_warn_of_unseen(result)),
    }


def _name_roles(result: CheckResult) -> dict[str, str]:
    """Return what provisions each section; the head names the playbook where there are several."""
    states = (FAIL, LATER)
    reasons = [one for state in states for one in find_reasons(result.findings, state)]
    first = "" if sum(bool(one.section) for one in reasons) > 1 else f"{_PLAYBOOK}, or "
    return {name: f"{first}role mlhost.limits.{role}" for name, role in _ROLE_OF.items()}


def shorten(text: str) -> str:
    """Return a text of one line that a person reads at a glance."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4].rstrip()} ..."


def _warn_of_unseen(result: CheckResult) -> Iterator[str]:
    counts = count_statuses(result.findings)
    if counts[UNKNOWN]:
        total = len(result.findings)
        verb = "is" if counts[UNKNOWN] == 1 else "are"
        seen = f"{counts[UNKNOWN]} of {total} requirements {verb} unknown"
        yield f"this check did not run as root, and {seen}; use become: true"


def tell_provision(outcome: Outcome, options: ProvisionOptions) -> dict[str, Any]:
    """Return ``msg``, ``brief`` and ``warnings`` of a run that makes a policy true."""
    counts = (len(outcome.edits), "file"), (len(outcome.sysctls), "running kernel value")
    changes = " and ".join(filter(None, (_count(*one) for one in counts)))
    restarts = ", ".join(outcome.restarted)
    words = ("would change", "would restart") if options.check_mode else ("changed", "restarted")
    done = [f"{word} {what}" for word, what in zip(words, (changes, restarts)) if what]
    if outcome.raised:
        done.append("would raise what runs" if options.check_mode else "raised what runs")
    waiting = ", ".join(outcome.restart_required)
    later = [f"in effect after a restart of {waiting}"] if waiting else []
    short = [f"{len(outcome.shortfalls)} lines of others beat ours"] if outcome.shortfalls else []
    if len(outcome.shortfalls) == 1:
        short = ["one line of others beats ours"]
    return {
        "msg": shorten("; ".join([*(done or ["nothing to change"]), *later, *short])),
        "brief": list(_list_duties(outcome, options)),
        "warnings": [*_warn_of_shortfalls(outcome), *_warn_of_check_mode(done, options)],
    }


def _count(number: int, what: str) -> str:
    return "" if not number else f"{number} {what}" if number == 1 else f"{number} {what}s"


def _list_duties(outcome: Outcome, options: ProvisionOptions) -> Iterator[str]:
    """Yield what a person has to do, or to know, before all of the policy is in effect."""
    for unit in outcome.restart_required:
        advice = _advise_restart(unit, options)
        yield from wrap(f"restart {unit}: only then it has the new limits{advice}", "todo ")
    if outcome.old_limits:
        yield from wrap("what runs has less than the policy asks for until it ends:", "old  ")
    for text in outcome.old_limits[:_MOST_OLD]:
        yield from wrap(text, INDENT)
    if len(outcome.old_limits) > _MOST_OLD:
        yield f"{INDENT}and {len(outcome.old_limits) - _MOST_OLD} more"
    for text in outcome.raised:
        yield from wrap(text, "raised ")
    for text in outcome.notes:
        yield from wrap(text, "note ")


def _advise_restart(unit: str, options: ProvisionOptions) -> str:
    """Return which switch would restart a unit, where this run has taken one."""
    section, does = _RESTARTED_BY.get(unit, ("", ""))
    if not section or not options.wants(section):
        return ""
    return f"; {switch_on(f'{section}_restart')} does it, and {does}"


def _warn_of_shortfalls(outcome: Outcome) -> Iterator[str]:
    for text in outcome.shortfalls:
        yield f"{text}; take that line out, or set {switch_on('override')}"


def _warn_of_check_mode(done: list[str], options: ProvisionOptions) -> Iterator[str]:
    if done and options.check_mode and not options.absent:
        yield "check mode wrote nothing, so what logins and services would get was not measured"


def leave(module: Any, result: dict[str, Any]) -> None:
    """End a module of Ansible with a result; its warnings are warnings of Ansible."""
    for text in result.pop("warnings", ()):
        module.warn(text)
    if result.pop("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
