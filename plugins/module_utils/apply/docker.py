# SPDX-License-Identifier: BSD-2-Clause
"""Let dockerd judge a configuration before it is written, and restart it with a way back."""

from __future__ import annotations

import os
import tempfile
import time

from ..probe.docker import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..policy.dockerd_flags import Flag

_PROGRAMS = ("/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd")
_TIME_LIMIT = 120.0


def find_dockerd() -> str | None:
    """Return the daemon's program, or ``None`` where Docker is not installed."""
    return next((path for path in _PROGRAMS if os.access(path, os.X_OK)), None)


def find_refusal(content: bytes, flags: Iterable[Flag]) -> str:
    """Return why dockerd would not start with this daemon.json; empty if it would.

    Empty as well for a dockerd before 23.0, which has no way to ask.
    """
    program = find_dockerd()
    if program is None:
        return ""
    with tempfile.NamedTemporaryFile(prefix="mlhost-", suffix=".json") as file:
        file.write(content)
        file.flush()
        others = [_format(flag) for flag in flags if flag.name not in ("config-file", "validate")]
        code, text = run([program, "--validate", "--config-file", file.name, *others])
        text = text.replace(file.name, "daemon.json")
    if code == 0 or "unknown flag: --validate" in text:
        return ""
    return f"dockerd refuses the new daemon.json: {_last_line(text)}"


def restart_docker(address: str, unit: str = "docker.service") -> str:
    """Restart the daemon and wait until it answers; return why it did not, or nothing."""
    run(["systemctl", "reset-failed", unit])
    code, text = run(["systemctl", "restart", unit])
    if code:
        return f"{unit} did not restart: {_last_line(text)}; see journalctl -u {unit}"
    deadline = time.monotonic() + _TIME_LIMIT
    while time.monotonic() < deadline:
        try:
            ask("GET", "/version", address=address)
        except (OSError, ValueError):
            time.sleep(0.1)
        else:
            return ""
    return f"{unit} did not answer within {_TIME_LIMIT:.0f} s of its restart"


def _format(flag: Flag) -> str:
    return f"--{flag.name}={flag.value}" if flag.value else f"--{flag.name}"


def run(words: list[str]) -> tuple[int, str]:
    """Run a program to its end; return its exit status and all that it said."""
    import subprocess  # Needed only where something changes; it is slow to import.

    try:
        done = subprocess.run(  # noqa: S603 - no shell, and the program is named by its path
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"{words[0]} did not end within {_TIME_LIMIT:.0f} s"
    except OSError as exc:
        return 1, f"{words[0]}: {exc.strerror}"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
