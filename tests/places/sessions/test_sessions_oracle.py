# SPDX-License-Identifier: GPL-3.0-or-later
"""What the session probe says under generated limits files is what real logins get.

Each set of files is a state of the host in which ssh, su and sudo open sessions of root and of a
user. A minute of cron opens one for each of many users, who have rules of their own.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.host import guest
from tests.host.built_like import FAMILIES
from tests.host.connection import Host
from tests.host.control import Control
from tests.host.library import carry
from tests.oracle.record import SEED, record, takes_long
from tests.places.sessions.limits_files import Files
from tests.places.sessions.login_files import make_files_of_many, make_login_files
from tests.places.sessions.logins import CALLS, Real, compare, read_limits, read_sections

pytestmark = [
    pytest.mark.host,
    takes_long,
]

TOP = Path(__file__).parents[3]
CARRIED = ("limits_files", "pam_world", "pam_prediction", "pam_rig", "session_server")
STATES = 80  # Of each release.
MINUTES = 2
MANY = {f"u{number}": 3000 + number for number in range(1, 41)}
CALLED = [(service, user) for service in ("sshd", "su", "sudo") for user in ("root", "alice")]

CRON = "cd /usr/lib/systemd/system && ls crond.service cron.service 2>/dev/null | head -n 1"

# Their service managers stay, so that a login need not start one.
PREPARE = f"""
groupadd mlusers && usermod -aG mlusers alice
loginctl enable-linger root && loginctl enable-linger alice
for number in $(seq {len(MANY)}); do
  groupadd -g $((3000 + number)) u$number
  useradd -u $((3000 + number)) -g u$number -G mlusers -M -s /bin/sh u$number
  echo "* * * * * u$number cat /proc/self/limits > /tmp/cron/.u$number && cd /tmp/cron && mv .u$number u$number"
done > /etc/cron.d/many
mkdir -m 1777 /tmp/cron
systemctl stop "$({CRON})"  # Until its turn comes: so many jobs take all of a minute.
"""

# cron looks at the clock when it starts.
ONE_MINUTE = f"""
rm -f /tmp/cron/*
date --set=@$(( ($(date +%s) / 60 + 1) * 60 - 6 )) >/dev/null
systemctl restart "$({CRON})"
quiet=0 before=0
until [ $quiet -ge 90 ]; do  # Where PAM refuses a session, its job never comes.
  sleep 0.5
  now=$(cat /tmp/cron/* 2>/dev/null | wc -l)
  [ $now -ge {17 * len(MANY)} ] && break
  [ $now -eq $before ] && quiet=$((quiet + 1)) || quiet=0
  before=$now
done
for user in {" ".join(MANY)}; do echo "== cron $user"; cat /tmp/cron/$user 2>/dev/null; done; true
"""


class Prober:
    """The session probe, running on a guest and asked line by line."""

    def __init__(self, host: Host) -> None:
        """Carry the library there and start it."""
        carry(
            host,
            {
                f"tests/places/sessions/{name}.py": TOP / f"tests/places/sessions/{name}.py"
                for name in CARRIED
            },
        )
        command = "cd /opt && PYTHONPATH=/opt exec python3 -m tests.places.sessions.session_server"
        self._server = subprocess.Popen(
            [*host.ssh_command(), command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def ask(self, files: Files, wanted: list[tuple[str, str]]) -> list[list[Any]]:
        """Write files and return what the probe says of sessions under them."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({"files": files, "wanted": wanted}) + "\n")
        return list(json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._server.communicate()


class Rig:
    """A guest, its probe, and what was found so far."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.prober = Prober(host)
        self.wrong: list[str] = []
        self.cases = self.unknown = 0

    def judge(self, name: str, files: Files, real: Real, said: list[list[Any]]) -> None:
        """Compare, and print the files of a state in which the probe is wrong."""
        wrong, unknown = compare(name, real, said)
        self.cases += len(said)
        self.unknown += unknown
        self.wrong += wrong
        print(f"{name}: {len(said)} cases, {len(wrong)} mismatches", flush=True)
        if wrong:
            print(*wrong, *(f"  {path}\n    {text!r}" for path, text in files.items()), sep="\n")

    def log_in(self) -> Real:
        """Return what ssh, su and sudo get, all at once."""
        root = f"echo '== sshd root'; cat /proc/self/limits; {CALLS}"
        with ThreadPoolExecutor() as pool:
            alice = pool.submit(
                self.host.ssh, "cat /proc/self/limits", user="alice", check=False, timeout=600
            )
            calls = self.host.ssh(root, check=False, timeout=600).stdout
        found = read_sections(calls)
        return {
            **dict.fromkeys(CALLED),
            **found,
            ("sshd", "alice"): read_limits(alice.result().stdout),
        }


@pytest.fixture(params=["bookworm", "trixie", "bullseye", *FAMILIES])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def rig(release: str) -> Iterator[Rig]:
    with guest.running(release) as host:
        host.ssh(PREPARE, timeout=600)
        rig = Rig(host)
        yield rig
        rig.prober.close()


def test_the_probe_is_right_under_generated_files(release: str, rig: Rig) -> None:
    started = time.monotonic()
    for number in range(STATES):
        files = make_login_files(SEED, number)
        said = rig.prober.ask(files, CALLED)
        rig.judge(f"state {number}", files, rig.log_in(), said)
    print(f"{release}: {STATES} states in {time.monotonic() - started:.0f} s", flush=True)
    control = Control(rig.host)
    control.run(f"systemctl start $({CRON}) && until pidof cron; do sleep 1; done")
    for number in range(MINUTES):
        files = make_files_of_many(SEED, number, MANY)
        said = rig.prober.ask(files, [("cron", user) for user in MANY])
        rig.judge(f"minute {number}", files, read_sections(control.run(ONE_MINUTE)), said)
    control.close()
    expected = STATES * len(CALLED) + MINUTES * len(MANY)
    record("sessions", release, rig.cases, len(rig.wrong), rig.unknown, of=expected)
    assert not rig.wrong
