# SPDX-License-Identifier: GPL-3.0-or-later
"""Let each managed file have one owner in a play: a second policy for it is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..module_utils.core.profiles import DEFAULT_PROFILE, PROFILE, find_profile

_PATHS = {
    "kernel": ("kernel",),
    "sessions": ("sessions",),
    "services": ("services",),
    "containerd": ("containers", "containerd"),
    "docker": ("containers", "docker"),
    "podman": ("containers", "podman"),
    "crio": ("containers", "crio"),
    "slurm": ("jobs", "slurm"),
    "shared_memory": ("shared_memory",),
}
"""Where a policy states what a section writes."""
_FILES = {
    "kernel": "/etc/sysctl.d/90-mlhost.conf",
    "sessions": "/etc/security/limits.d/90-mlhost.conf",
    "services": "the drop-ins of services",
    "containerd": "the drop-in of containerd",
    "docker": "/etc/docker/daemon.json",
    "podman": "the drop-in of containers.conf",
    "crio": "the drop-in of crio.conf",
    "slurm": "the drop-in of slurmd",
    "shared_memory": "the line of /dev/shm in /etc/fstab",
}
_SWITCHES = ("override", "slurm_conf")
"""Options that decide, beside the policy, what is written."""


def claim(arguments: Mapping[str, Any], who: str, host: str, play: str, folder: str) -> list[str]:
    """Note who provisions what on a host in this play, and return why that cannot be.

    :param arguments: Of the module ``provision``.
    :param who: A name of the task that a person knows, such as its role.
    :param folder: Of this run of Ansible alone, on the controller; it goes with the run.
    """
    claims = dict(_list_claims(arguments))
    name = hashlib.sha256(host.encode()).hexdigest()[:16]
    book = Path(folder) / f"mlhost-limits-{name}.json"
    known = _read(book, play)
    if arguments.get("state") == "absent":
        known = {key: value for key, value in known.items() if key not in claims}
        _write(book, play, known)
        return []
    rivals = {
        known[key]["who"]: key
        for key, claimed in claims.items()
        if key in known and not _is_alike(known[key]["claim"], claimed)
    }
    if not rivals:
        _write(
            book, play, {**{key: {"who": who, "claim": c} for key, c in claims.items()}, **known}
        )
    return [
        f"{file}: {who} would write it for another policy than {other} did in this play, and each"
        " would undo the other; put both into one mlhost_limits_policy, or name fewer sections"
        for other, file in rivals.items()
    ]


def _list_claims(arguments: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each file that a task owns, with what decides its content."""
    policy = arguments.get("policy")
    if isinstance(policy, str):
        try:
            policy = json.loads(policy)
        except ValueError:
            return  # Ansible knows other ways to write a mapping; the host tells what is wrong.
    policy = policy if isinstance(policy, dict) else {}
    profile = str(policy.get(PROFILE) or arguments.get(PROFILE) or DEFAULT_PROFILE)
    switches = [str(arguments.get(name, False)).lower() for name in _SWITCHES]
    for section in _list_sections(arguments.get("sections")):
        file = str(arguments.get(f"{section}_file") or _FILES[section])
        path = _PATHS[section]
        stated = {path[0]: policy[path[0]]} if path[0] in policy else {}
        yield file, [profile, stated, path, switches]


def _list_sections(given: object) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    told = [str(name).strip() for name in names] if isinstance(names, list) else list(_PATHS)
    return [name for name in told if name in _PATHS]


def _is_alike(first: list[Any], second: list[Any]) -> bool:
    """Tell whether two tasks write the same, once each policy is merged over its profile."""
    if first == json.loads(json.dumps(second)):
        return True
    from ..module_utils.schema import merge  # Seldom needed, and long.

    def settle(profile: str, stated: dict[str, Any], path: list[str], switches: list[str]) -> Any:
        found: Any = merge(find_profile(profile) or {}, stated)
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return json.dumps([found, switches], sort_keys=True)

    return bool(settle(*first) == settle(*second))


def _read(book: Path, play: str) -> dict[str, Any]:
    try:
        content = json.loads(book.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # The first of this run.
    return dict(content["claims"]) if content["play"] == play else {}


def _write(book: Path, play: str, claims: Mapping[str, Any]) -> None:
    book.write_text(json.dumps({"play": play, "claims": claims}), encoding="utf-8")
