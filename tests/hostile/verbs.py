# SPDX-License-Identifier: GPL-3.0-or-later
"""What root runs beside an attack, by name: the words of each command on the guest."""

from __future__ import annotations

from collections.abc import Mapping

FOLDER = "/root/hostile"
_CLI = ("python3", "/root/hostile/command.py")
_ALONE = (*_CLI, "check", "--json", "--profile", "none", "--policy")
_CHECK = (*_CLI, "check", "--json", "--canary", "never", "--policy")
_NEXT = "s=$?; for n in 1 2; do timeout --foreground 2 sh >/dev/null 2>&1; done; exit $s"
"""The shells in which root goes on at the same terminal; the first one hears its end of input."""
_CACHE = ("--cache-dir", "/home/mallory/cache")
_WEB = ("webdataset", "--workers", "2", "--only", "cache", "--only", "cpus")
_OUTPUT = ("--output-dir", "/home/mallory/output")
_LOG = "/home/mallory/logs/train.log"
_LOCAL = ("preflight", "--json", "--profile")
_NODE_POLICY = f"{FOLDER}/node.json"

VERBS: Mapping[str, tuple[str, ...]] = {
    "check": (*_CHECK, f"{FOLDER}/sessions.json"),
    "check engines": (*_CLI, "check", "--json", "--policy", f"{FOLDER}/sessions.json"),
    "check as text": (*_CLI, "check", "--canary", "never", "--policy", f"{FOLDER}/sessions.json"),
    "check at a terminal": (
        *("script", "-qec", f"{' '.join((*_CHECK, f'{FOLDER}/sessions.json'))}; {_NEXT}"),
        "/dev/null",
    ),
    "check full": (*_CHECK, f"{FOLDER}/sessions.json", "--probe", "full"),
    "check podman": (*_ALONE, f"{FOLDER}/podman.json"),
    "check podman as text": (
        *_CLI,
        "check",
        "--profile",
        "none",
        "--policy",
        f"{FOLDER}/podman.json",
    ),
    "check slurm": (*_ALONE, f"{FOLDER}/slurm.json"),
    "check containerd": (*_ALONE, f"{FOLDER}/containerd.json"),
    "check processes": (*_ALONE, f"{FOLDER}/processes.json"),
    "preflight": (*_CLI, *_LOCAL, *_WEB, *_CACHE, "--as-user", "mallory"),
    "preflight by root": (*_CLI, *_LOCAL, *_WEB, *_CACHE),
    "preflight deep": (*_CLI, *_LOCAL, "simpletuner", *_CACHE, "--deep"),
    "preflight as text": (*_CLI, "preflight", "--profile", "simpletuner", *_CACHE),
    "preflight output": (*_CLI, *_LOCAL, "transformers", *_OUTPUT),
    "preflight output of alice": (*_CLI, *_LOCAL, "transformers", "--output-dir", "/srv/output"),
    "preflight shm": (
        *_CLI,
        *("preflight", "--json", "--profile", "none", "--workers", "2", "--batch-size", "4GiB"),
        *("--tensors-per-batch", "8"),
        *("--only", "shared_memory"),
    ),
    "explain session": (*_CLI, "explain", "session:mallory@sshd", "nofile"),
    "explain docker": (*_CLI, "explain", "new-container:docker", "nofile"),
    "explain podman": (*_CLI, "explain", "new-container:podman/mallory", "nofile"),
    "explain slurm": (*_CLI, "explain", "job:slurm", "nofile"),
    "why": (*_CLI, "why", _LOG),
    "monitor": (*_CLI, "monitor", "--policy", _NODE_POLICY, "--metrics", f"{FOLDER}/node.prom"),
    "node-health": (
        "env",
        "-i",
        "SLURMD_NODENAME=host",
        "/usr/local/lib/mlhost-limits/node-health",
    ),
    "provision": ("python3", f"{FOLDER}/provision_once.py"),
    "provision override": ("python3", f"{FOLDER}/provision_once.py", "override"),
    "provision check mode": ("python3", f"{FOLDER}/provision_once.py", "check"),
    "workspace": ("python3", f"{FOLDER}/workspace_once.py", "/home/mallory/cache"),
    "audit": ("python3", f"{FOLDER}/audit_once.py", f"{FOLDER}/sessions.json"),
}
WITHOUT_GUARDS: Mapping[str, tuple[str, ...]] = {
    "node-health": ("env", "-i", "SLURMD_NODENAME=host", *_CLI, "node-health"),
}
"""The words where guards are taken out: what is installed on the guest has them all."""
