# SPDX-License-Identifier: GPL-3.0-or-later
"""Make one attack on a guest of its own, and hand on what root's side saw."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.host import guest
from tests.host.cache import HostError
from tests.host.connection import Host
from tests.host.snapshot import Snapshot

from .attack import USER, Attack
from .base import PROGRAMS, RELEASE, send
from .verbs import FOLDER, VERBS, WITHOUT_GUARDS

DEADLINE = 120
"""Seconds that a whole check may take."""
GRACE = 30
_READY_SECONDS = 120
_SETTLE = 1.0
_TRIES = 3
ROOM = "x" * 3000
"""Words for a program to overwrite that shows another command line."""
IDLE = "ready()\nstay()\n"

Seen = dict[str, Any]


class TrialError(RuntimeError):
    """An attack could not be made, so that it shows nothing."""


class UnreachableError(TrialError):
    """The attacker could not log in."""


def look_beside(saved: Snapshot, attack: Attack, guard: str = "") -> Seen:
    """Make an attack on a fresh guest and return what ``beside`` saw.

    A guest that cannot be reached is tried again: somebody else's may have taken its port.

    :param guard: The guard that root's command does without.
    :raises TrialError: If the attacker did not get ready, or root's side told nothing.
    """
    for _again in range(_TRIES - 1):
        try:
            return _look_once(saved, attack, guard)
        except (UnreachableError, HostError):
            continue
    return _look_once(saved, attack, guard)


def _look_once(saved: Snapshot, attack: Attack, guard: str) -> Seen:
    with guest.running(RELEASE, saved=saved) as host:
        if guard:  # What is there is of the day when the base was made.
            send(host, PROGRAMS, FOLDER)
            host.ssh(f"cp {FOLDER}/tricks.py /opt/hostile; echo {guard} > {FOLDER}/guard-out")
        if attack.setup:
            host.ssh(f"set -e\n{attack.setup}", timeout=300)
        with attacking(host, attack.program):
            if attack.shell:  # It may be none that a login accepts.
                host.ssh(f"sed -i '/^{USER}:/s#[^:]*$#{attack.shell}#' /etc/passwd")
            return run_beside(host, attack, guard)


def run_beside(host: Host, attack: Attack, guard: str = "") -> Seen:
    verbs = {**VERBS, **WITHOUT_GUARDS} if guard else VERBS
    spec = {
        "argv": verbs[attack.verb],
        "limit": DEADLINE + GRACE,
        "rounds": attack.rounds,
        "after": attack.after,
        "settle": _SETTLE,
    }
    words = f"cd {FOLDER} && python3 beside.py {shlex.quote(json.dumps(spec))}"
    seconds = (DEADLINE + GRACE + 30) * attack.rounds + 120
    try:
        done = host.ssh(words, check=False, timeout=seconds)
        seen: Seen = json.loads(done.stdout)
    except ValueError:
        told = (done.stdout + done.stderr)[-2000:]
        raise TrialError(f"{attack.name}: root's side told nothing: {told}") from None
    except subprocess.TimeoutExpired:
        raise TrialError(f"{attack.name}: the guest did not answer in {seconds} s") from None
    return seen


@contextmanager
def attacking(host: Host, program: str) -> Iterator[None]:
    """Let the attacker log in and run a program for the length of a ``with`` block."""
    text = f"import sys\nsys.path.insert(0, '/opt/hostile')\nfrom tricks import *\n{program}\n"
    packed = base64.b64encode(text.encode()).decode()
    command = f"echo {packed} | base64 -d > ~/attack.py; exec python3 ~/attack.py {ROOM}"
    child = subprocess.Popen(
        [*host.ssh_command(USER), command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    timer = threading.Timer(_READY_SECONDS, child.kill)
    timer.start()
    try:
        _wait_until_ready(child)
        timer.cancel()
        yield
    finally:
        timer.cancel()
        child.kill()
        child.wait()


def _wait_until_ready(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    said = []
    for line in child.stdout:
        if line == "READY\n":
            # What it says from now on must not fill the pipe.
            threading.Thread(target=child.stdout.read, daemon=True).start()
            return
        said.append(line)
    text = "".join(said)[-2000:]
    if "Host key verification failed" in text or "onnection" in text or not text:
        raise UnreachableError(f"the attacker could not log in: {text}")
    raise TrialError(f"the attacker did not get ready: {text}")
