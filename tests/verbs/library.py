# SPDX-License-Identifier: GPL-3.0-or-later
"""The one file of these tests that knows where the library's modules lie.

Everything else calls what stands here. When files of the library move, this file changes alone.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import mlhost_limits
from mlhost_limits import adopt as adopt_module
from mlhost_limits import cli, verbs
from mlhost_limits import node_health as node_health
from mlhost_limits import provision as provisioning
from mlhost_limits.explain import explain as explain_place
from mlhost_limits.services import settle as restarts
from mlhost_limits.sessions import provision as of_sessions
from mlhost_limits.sessions import settle as proof
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.slurm import settle as of_slurm

PACKAGE = "mlhost_limits"
Given = dict[str, Any]
Told = dict[str, Any]


def load_all() -> None:
    """Load every module once, so that no run need load any."""
    for found in pkgutil.walk_packages(mlhost_limits.__path__, f"{PACKAGE}."):
        importlib.import_module(found.name)


def hurry() -> None:
    """Let a service that was restarted count as up after a moment, and not after seconds."""
    restarts._SETTLED = of_slurm._SETTLED = 0.2


def provision(check_mode: bool = False, **given: Any) -> Told:
    """Return what the module ``provision`` returns; what is not given has its default."""
    return _call("provision", given, check_mode)


def record_sessions(note: Callable[[Sequence[tuple[str, str]]], bool]) -> None:
    """Stand for the opening of sessions where a run proves that logins go on.

    :param note: It is told of the sessions, and returns whether they open.
    """

    def measure(wanted: Sequence[tuple[str, str]], *_rest: Any) -> list[Any]:
        opens = note(wanted)
        reason = "" if opens else "as the test wants it"
        return [SessionResult(*pair, None, "", reason, opens) for pair in wanted]

    proof.measure_sessions = measure


def refuse_nothing() -> None:
    """Stand for a way to lock a host that no refusal knows."""
    of_sessions.find_session_lockouts = provisioning._find_lockouts = lambda *_given: ()


def turn_places_round() -> None:
    """Let a run plan its sections, and hand them on, in the opposite order."""
    provisioning.PLACES = provisioning.PLACES[::-1]


def check(**given: Any) -> Told:
    """Return what the module ``check`` returns."""
    return _call("check", given, False)


def monitor(check_mode: bool = False, **given: Any) -> Told:
    """Return what the module ``monitor`` returns."""
    return _call("monitor", given, check_mode)


def _call(verb: str, given: Given, check_mode: bool) -> Told:
    arguments, run = verbs.VERBS[verb]
    defaults = {name: told.get("default") for name, told in arguments.items()}
    words = json.loads(json.dumps({**defaults, "profile": "none", **given}))
    told: Told = run(words, check_mode)
    return told


def explain(place: str, item: str) -> list[Told] | str:
    """Return the links of one limit of one place, or why there are none."""
    try:
        return [link._asdict() for link in explain_place(place, item)]
    except (OSError, ValueError) as error:
        return str(error)


def adopt(root: str) -> list[str]:
    """Return the policy that a tree's own files amount to, as lines of YAML."""
    lines: list[str] = adopt_module.adopt_tree(root)
    return lines


def command(*words: str) -> Told:
    """Return how the command ended and what it wrote."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = cli.main(list(words))
    return {
        "status": status,
        "out": out.getvalue().splitlines(),
        "errors": errors.getvalue().splitlines(),
    }


def tell_slurm(environment: dict[str, str], drain_on_error: bool = False) -> Told:
    """Return how the program that Slurm runs on a node ended and what it wrote."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = node_health.main(environment, drain_on_error)
    return {
        "status": status,
        "out": out.getvalue().splitlines(),
        "errors": errors.getvalue().splitlines(),
    }


__all__ = [
    "PACKAGE",
    "adopt",
    "check",
    "command",
    "explain",
    "hurry",
    "load_all",
    "monitor",
    "provision",
    "record_sessions",
    "refuse_nothing",
    "tell_slurm",
    "turn_places_round",
]
