# SPDX-License-Identifier: BSD-2-Clause
"""Let dockerd judge a configuration before it is written, and restart it with a way back."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..core.cgroup import find_home
from ..core.values import NamedTuple
from ..host.program import last_line, run_program
from ..host.scratch import make_scratch, remove_scratch
from ..systemd.unit_read import read_unit_files
from .api_read import Daemon, ask
from .dockerd_flags import Flag
from .unit_read import UNIT, Service, find_dockerd

_TIME_LIMIT = 120.0


class Verdict(NamedTuple):
    """What dockerd says of a daemon.json; ``trouble`` is why it could not be asked."""

    refusal: str = ""
    trouble: str = ""


def ask_dockerd(content: bytes, flags: Iterable[Flag]) -> Verdict:
    """Return why dockerd would not start with this daemon.json, if it would not.

    A dockerd before 23.0 has no way to be asked, and says nothing.
    """
    program = find_dockerd()
    if program is None:
        return Verdict()
    others = [flag.text for flag in flags if flag.name not in ("config-file", "validate")]
    folder = make_scratch()
    path = f"{folder}/daemon.json"
    try:
        with open(path, "wb") as file:
            file.write(content)
        code, text = run_program(
            [program, "--validate", "--config-file", path, *others], _TIME_LIMIT
        )
    finally:
        remove_scratch(folder)
    text = text.replace(path, "daemon.json")
    if code == 0 or "unknown flag: --validate" in text:
        return Verdict()
    if code < 0:
        return Verdict(trouble=last_line(text))
    from ..core.redaction import redact_message  # Long, and seldom needed.

    told = redact_message(last_line(text), content.decode("utf-8", "replace"))
    return Verdict(f"dockerd refuses the new daemon.json: {told}")


def find_trouble() -> str:
    """Return why the program of dockerd cannot be run; empty where it can, or is absent."""
    program = find_dockerd()
    code, text = run_program([program, "--version"], _TIME_LIMIT) if program else (0, "")
    return last_line(text) if code < 0 else ""


def read_service(daemon: Daemon | None) -> Service:
    """Return how dockerd is had here, which may be in part, or not at all.

    :param daemon: The one that runs, whose program is not tried.
    """
    unit = UNIT
    if daemon:
        home = find_home(daemon.process.cgroup)
        unit = home.unit if home.uid is None else ""
    main = read_unit_files(unit).main if unit else None
    return Service(
        unit,
        find_dockerd() is not None,
        "" if daemon else find_trouble(),
        main is not None,
        main is not None and not main.text,
        daemon.process.pid if daemon else 0,
    )


def restart_docker(address: str, unit: str = UNIT) -> str:
    """Restart the daemon and wait until it answers; return why it did not, or nothing."""
    run_program(["systemctl", "reset-failed", unit], _TIME_LIMIT)
    code, text = run_program(["systemctl", "restart", unit], _TIME_LIMIT)
    if code:
        return f"{unit} did not restart: {last_line(text)}; see journalctl -u {unit}"
    deadline = time.monotonic() + _TIME_LIMIT
    while time.monotonic() < deadline:
        try:
            ask("GET", "/version", address=address)
        except (OSError, ValueError):
            time.sleep(0.1)
        else:
            return ""
    return f"{unit} did not answer within {_TIME_LIMIT:.0f} s of its restart"
