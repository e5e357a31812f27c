# SPDX-License-Identifier: BSD-2-Clause
"""The two verbs as Ansible calls them: which arguments each takes, and what it returns."""

from __future__ import annotations

import os
from typing import Any

from .check_within import check_within
from .core.policy import SERVICES, TIME_LIMIT, CheckOptions, ProvisionOptions
from .core.profiles import DEFAULT_PROFILE
from .core.reader import PolicyError
from .node.paths import INTERVAL
from .places import PLACES, PROVISIONED, SECTIONS
from .schema import load_policy

_DISPLAY = {"type": "str", "default": "auto", "choices": ["auto", "always", "never"]}
_POLICY: dict[str, dict[str, Any]] = {
    "profile": {"type": "str", "default": DEFAULT_PROFILE},
    "policy": {"type": "dict"},
}


def _choose(names: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "list", "elements": "str", "choices": list(names), "default": list(names)}


CHECK_ARGUMENTS: dict[str, dict[str, Any]] = {
    **_POLICY,
    "sections": _choose(SECTIONS),
    "users": {"type": "list", "elements": "str"},
    "services": {"type": "list", "elements": "str", "default": list(SERVICES)},
    "probe": {"type": "str", "default": "quiet", "choices": ["quiet", "full", "predict"]},
    "canary": {"type": "str", "default": "auto", "choices": ["auto", "always", "never"]},
    "fail_on": {"type": "str", "default": "fail", "choices": ["fail", "later", "unknown", "never"]},
    "root": {"type": "path", "default": ""},
    "time_limit": {"type": "float", "default": TIME_LIMIT},
    "provisioned": {"type": "bool", "default": False},
    "display": _DISPLAY,
}
_SWITCHES = {
    name: {
        "type": one.type,
        "default": one.default,
        **({"elements": "str"} if one.type == "list" else {}),
    }
    for place in PLACES
    for name, one in place.switches.items()
}
PROVISION_ARGUMENTS: dict[str, dict[str, Any]] = {
    **_POLICY,
    "sections": _choose(PROVISIONED),
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "override": {"type": "bool", "default": False},
    "heal": {"type": "bool", "default": False},
    **_SWITCHES,
    "display": _DISPLAY,
}

MONITOR_ARGUMENTS: dict[str, dict[str, Any]] = {
    **_POLICY,
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "interval": {"type": "str", "default": INTERVAL},
    "textfile_directory": {"type": "path", "default": "/var/lib/prometheus/node-exporter"},
    "canary": {"type": "str", "default": "never", "choices": ["auto", "always", "never"]},
    "first_boot": {"type": "bool", "default": False},
    "black_box": {"type": "bool", "default": False},
    "drain_on_error": {"type": "bool", "default": False},
}


def run_check(given: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Return what the module ``check`` does; ``failed`` is true where the host falls short."""
    from .host.root import is_root
    from .result import make_result
    from .spoken import tell_check  # The other verbs need none of it.

    del check_mode  # It changes nothing.
    given = {name: value for name, value in given.items() if name != "display"}
    can_provision = not given.pop("provisioned", False) and not given.get("root")
    try:
        run = any(place.is_of_run for place in PLACES if place.name in given["sections"])
        root = given.get("root", "")
        policy = load_policy(given.pop("policy"), given.pop("profile"), run, root=root)
        fail_on = given.pop("fail_on")
        result = check_within(policy, CheckOptions(**given))
    except (OSError, ValueError) as exc:
        return _refuse(exc)
    failed = result.falls_short(fail_on)
    told = tell_check(result, can_provision, is_root())
    return {"changed": False, "failed": failed, **told, **make_result(result, root)}


def run_provision(given: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Return what the module ``provision`` does; ``failed`` is true where it is refused."""
    from .provision import provision  # A check needs none of it.
    from .spoken import tell_provision

    given = {name: value for name, value in given.items() if name != "display"}
    try:
        policy = load_policy(given.pop("policy"), given.pop("profile"))
        absent = given.pop("state") == "absent"
        switches = {name: given.pop(name) for name in _SWITCHES if name in given}
        options = ProvisionOptions(absent=absent, check_mode=check_mode, switches=switches, **given)
        outcome = provision(policy, options)
    except (OSError, ValueError) as exc:
        return _refuse(exc)
    return {"failed": False, **tell_provision(outcome, options), **outcome.as_result()}


def run_monitor(given: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Return what the module ``monitor`` does; ``failed`` is true where it is refused."""
    from .host.root import require_root
    from .install_monitor import install_monitor  # The other two verbs need none of it.
    from .node.plan import Monitor

    wanted = Monitor(
        textfiles=(given["textfile_directory"] or "").rstrip("/"),
        interval=given["interval"],
        canary=given["canary"],
        first_boot=given["first_boot"],
        black_box=given["black_box"],
        drain_on_error=given["drain_on_error"],
        absent=given["state"] == "absent",
    )
    try:
        require_root()
        outcome = install_monitor(given["policy"], given["profile"], wanted, check_mode)
    except (OSError, ValueError) as exc:
        return _refuse(exc)
    return {"failed": False, **outcome.as_result()}


def _refuse(exc: OSError | ValueError) -> dict[str, Any]:
    problems = exc.problems if isinstance(exc, PolicyError) else [str(exc)]
    return {"changed": False, "failed": True, "msg": "; ".join(problems), "problems": problems}


def answer(verb: str, given: dict[str, Any], check_mode: bool, prefix: str) -> dict[str, Any]:
    """Return the result of a module whose arguments the controller has found right.

    A path may begin with a home of this host. Variables of the role begin with ``prefix``.
    """
    from .core.option_names import NamedWith  # Not of modules by themselves.

    arguments, work = VERBS[verb]
    given = {name: _expand(given[name], one["type"]) for name, one in arguments.items()}
    with NamedWith(prefix):
        result = work(given, check_mode)
    result["invocation"] = {"module_args": given}
    result["said"] = result.pop("warnings", [])  # The action knows of which host.
    return result


def _expand(value: Any, type_: str) -> Any:
    is_path = type_ == "path" and value
    return os.path.expanduser(os.path.expandvars(value)) if is_path else value


VERBS = {
    "check": (CHECK_ARGUMENTS, run_check),
    "provision": (PROVISION_ARGUMENTS, run_provision),
    "monitor": (MONITOR_ARGUMENTS, run_monitor),
}
