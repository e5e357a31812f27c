# SPDX-License-Identifier: BSD-2-Clause
"""Let Slurm judge a slurm.conf before it is written, and let its daemons run with what was."""

from __future__ import annotations

import os
import time

from ..write.systemctl import reload_units, systemctl
from .read import Output, ask, find_program, find_slurmd

_TIME_LIMIT = 60.0
_SETTLED = 1.0  # Seconds that a daemon must live to count as started.


def find_conf_refusal(path: str, before: bytes, after: bytes) -> str:
    """Return why no program of Slurm would start with a changed slurm.conf; empty if they would.

    One that does not start with the old text either has said nothing about the new one.
    """
    if find_program("scontrol") is None or _read(path, before):
        return ""
    refusal = _read(path, after)
    return f"Slurm refuses the new {path}: {refusal}" if refusal else ""


def _read(path: str, content: bytes) -> str:
    """Let scontrol read a text beside the real file, where relative includes are found."""
    trial = f"{path.rpartition('/')[0]}/.mlhost-{os.getpid()}-{os.urandom(4).hex()}.conf"
    descriptor = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        done = ask("scontrol", "show", "hostnames", "localhost", extra={"SLURM_CONF": trial})
    finally:
        os.unlink(trial)
    return _last_line(done).replace(trial, path) if done.status else ""


def settle_slurm(unit: str, reload: bool, restart: bool, reconfigure: bool) -> str:
    """Let systemd, slurmd and the controller know of what was written; say why one does not.

    :param reload: systemd reads its files anew; a later start would have the old ones otherwise.
    :param restart: slurmd is restarted; the steps that run belong to slurmstepd, and go on.
    :param reconfigure: All daemons of Slurm read slurm.conf anew.
    """
    if reload or restart:
        refused = reload_units()
        if refused:
            return refused
    if restart:
        trouble = _restart(unit)
        if trouble:
            return trouble
    if reconfigure:
        done = ask("scontrol", "reconfigure", seconds=_TIME_LIMIT)
        if done.status != 0:
            return f"scontrol reconfigure failed: {_last_line(done)}"
        if restart and not _wait_for_slurmd():
            return f"{unit} ended when it read slurm.conf; see journalctl -u {unit}"
    return ""


def _restart(unit: str) -> str:
    systemctl("reset-failed", unit)
    refused = systemctl("restart", unit)
    if refused:
        return f"{unit} did not restart: {refused}; see journalctl -u {unit}"
    if _wait_for_slurmd():
        return ""
    return f"{unit} did not answer after its restart; see journalctl -u {unit}"


def _wait_for_slurmd() -> bool:
    """Wait until slurmd answers, and is still the same process a moment later."""
    deadline = time.monotonic() + _TIME_LIMIT
    while time.monotonic() < deadline:
        first = find_slurmd()
        if first and (find_program("scontrol") is None or _answers()):
            time.sleep(_SETTLED)
            if find_slurmd() == first:
                return True
        time.sleep(0.2)
    return False


def _answers() -> bool:
    done = ask("scontrol", "show", "slurmd")
    return done.status == 0 and "Slurmd PID" in done.text


def _last_line(done: Output) -> str:
    lines = [line.strip() for line in (done.errors or done.text).splitlines() if line.strip()]
    wrong = [line for line in lines if "error:" in line]
    return (wrong or lines or ["no message"])[0]
