# SPDX-License-Identifier: BSD-2-Clause
"""See what a new service gets: start one that sleeps, look at its process, and stop it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from ..core.values import NamedTuple, Rlimit
from ..host.as_user import Errand, find_person, run_as_user
from ..host.booted import is_booted
from ..host.look import Process, read_limits, read_process
from ..host.program import NEVER_RAN, last_line, run_program
from ..systemd.tasks import Level
from ..systemd.tasks_read import read_levels

UNIT = "mlhost-canary-{}.service"
_TIME_LIMIT = 20.0
_SLEEP = "30"
_MOST = 65536
_PROGRAM = ("/usr/bin/sleep", "/bin/sleep")


class NewService(NamedTuple):
    """What a service got that was just started; ``reason`` says why none could be."""

    process: Process | None = None
    limits: Mapping[str, Rlimit] = {}
    levels: tuple[Level, ...] = ()
    reason: str = ""


def start_service(uid: int | None = None) -> NewService:
    """Start a service in the system's manager, or in that of a user, and look at it.

    It is gone when this returns; should we be killed, it ends by itself.
    """
    if not is_booted():
        return NewService(reason="systemd does not run here, so no service can be started")
    unit = UNIT.format(os.getpid())
    program = next((path for path in _PROGRAM if os.path.exists(path)), "sleep")
    words = ["--quiet", "--collect", f"--unit={unit}", "--description=mlhost-limits check"]
    code, text = run_systemd("systemd-run", [*words, program, _SLEEP], uid)
    if code:
        return NewService(reason=f"no service could be started: {last_line(text)}")
    try:
        return _look(unit, uid)
    finally:
        run_systemd("systemctl", ["stop", unit], uid)


def _look(unit: str, uid: int | None) -> NewService:
    """Return what the process of the service has, once it is the program that was asked for."""
    deadline = time.monotonic() + _TIME_LIMIT
    while time.monotonic() < deadline:
        text = run_systemd("systemctl", ["show", "-p", "MainPID", unit], uid)[1]
        match = re.search(r"^MainPID=([1-9][0-9]*)$", text, re.MULTILINE)
        try:
            process = read_process(int(match[1])) if match else None
            # Until it is that program, it is a copy of the manager with limits on their way.
            if process and process.comm == "sleep" and _is_of(process, unit, uid):
                levels = tuple(read_levels(process.cgroup))
                return NewService(process, read_limits(process.pid), levels)
        except OSError:
            pass
        time.sleep(0.02)
    return NewService(reason=f"a service that was started did not show up as {unit}")


def _is_of(process: Process, unit: str, uid: int | None) -> bool:
    """Tell whether a process is of a unit of the system's, or of that user's manager."""
    place = "/system.slice/" if uid is None else f"/user@{uid}.service/"
    whose = 0 if uid is None else uid
    lines = process.cgroup.splitlines()
    return process.uid == whose and any(
        place in line and line.endswith(f"/{unit}") for line in lines
    )


def run_systemd(
    program: str, words: Sequence[str], uid: int | None = None, time_limit: float = _TIME_LIMIT
) -> tuple[int, str]:
    """Run systemctl or systemd-run, for a user's manager as that user; return status and text."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    command = [f"/usr/bin/{program}", *words]
    if uid is None:
        return run_program(command, time_limit, environment=environment)
    environment["XDG_RUNTIME_DIR"] = f"/run/user/{uid}"
    bus = f"/run/user/{uid}/bus"
    if os.path.exists(bus):
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"
    command.insert(1, "--user")
    errand = Errand(
        find_person(uid), words=command, environment=environment, seconds=time_limit, most=_MOST
    )
    try:
        done = run_as_user(errand)
    except OSError as error:
        return NEVER_RAN, str(error)
    if done.late:
        return NEVER_RAN, f"{command[0]} did not end within {time_limit:.0f} s"
    return done.status, done.said
