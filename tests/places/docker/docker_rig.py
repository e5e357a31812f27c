# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a real dockerd once for each case, and one container; runs where dockerd is.

Each line of the input is a case: the files and the flags. Each line of the output says whether
dockerd refused to start, whether the container did, or which limits the container has.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time

from mlhost_limits.docker.api_read import exchange
from mlhost_limits.docker.measure import run_canary

FOLDER = "/run/oracle"
SOCKET = f"{FOLDER}/docker.sock"
CONTAINERD = "/run/containerd/containerd.sock"
FLAGS = (
    *("--data-root=/var/lib/oracle", f"--exec-root={FOLDER}/exec", f"--pidfile={FOLDER}/pid"),
    *("-H", f"unix://{SOCKET}", "--bridge=none", "--iptables=false", f"--containerd={CONTAINERD}"),
)
PATIENCE = 120.0


def start_containerd() -> None:
    """Start containerd where nobody did, and wait for it."""
    if not os.path.exists(CONTAINERD):
        with open(f"{FOLDER}/containerd.log", "wb") as log:
            subprocess.Popen(["containerd"], stdout=log, stderr=log)
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(CONTAINERD) and time.monotonic() < deadline:
        time.sleep(0.02)


def try_case(files: dict[str, str], flags: list[str]) -> dict[str, object]:
    """Return what becomes of dockerd and of a new container."""
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    with open(f"{FOLDER}/dockerd.log", "w+b") as log:
        daemon = subprocess.Popen(["dockerd", *FLAGS, *flags], stdout=log, stderr=log)
        try:
            if wait_for(daemon):
                return start_container()
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip()
        finally:
            daemon.terminate()
            daemon.wait()
            for path in files:
                os.unlink(path)
    if daemon.returncode < 0:
        return {"kind": "hung", "message": said[-400:]}
    return {"kind": "refused", "message": said[-2000:]}


def wait_for(daemon: subprocess.Popen[bytes]) -> bool:
    """Wait until the daemon answers, and tell whether it does."""
    deadline = time.monotonic() + PATIENCE
    while daemon.poll() is None and time.monotonic() < deadline:
        try:
            exchange("GET", "/_ping", address=SOCKET)
        except (OSError, ValueError):
            time.sleep(0.01)
        else:
            return True
    return False


def start_container() -> dict[str, object]:
    canary = run_canary(SOCKET)
    if canary.found is None:
        kind = "broken" if canary.refusal else "unknown"
        return {"kind": kind, "message": canary.refusal or canary.reason}
    limits = {name: list(limit) for name, limit in canary.found.limits.items()}
    return {"kind": "started", "limits": limits, "shm_size": canary.found.shm_size}


def main() -> None:
    os.makedirs(FOLDER, exist_ok=True)
    start_containerd()
    for line in sys.stdin:
        case = json.loads(line)
        sys.stdout.write(json.dumps(try_case(case["files"], case["flags"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
