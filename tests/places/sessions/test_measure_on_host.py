# SPDX-License-Identifier: GPL-3.0-or-later
"""The session probe against real logins: ssh, su, sudo, cron and a getty of a booted Debian."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.control import Control
from tests.host.library import carry
from tests.oracle.record import EVERYTHING, record
from tests.places.sessions.logins import CALLS, Real, compare, read_limits, read_sections

pytestmark = pytest.mark.host

SERVICES = ("sshd", "su", "sudo", "cron", "login")
USERS = ("root", "alice")
WANTED = [(service, user) for service in SERVICES for user in USERS]

PREPARE = r"""
cat > /opt/measure.py <<'END'
import json, sys
sys.path.insert(0, "/opt")
from mlhost_limits.sessions.measure import measure_sessions
wanted, mode = json.loads(sys.argv[1]), sys.argv[2]
print(json.dumps([one[:6] for one in measure_sessions([tuple(pair) for pair in wanted], mode)]))
END
cat > /etc/profile.d/zz-probe.sh <<'END'
case $(tty) in /dev/tty[89]) cat /proc/self/limits > /tmp/real-login-$USER ;; esac
END
for pair in tty8:root tty9:alice; do
  folder=/etc/systemd/system/getty@${pair%:*}.service.d
  mkdir -p $folder
  printf '[Service]\nExecStart=\nExecStart=-/sbin/agetty --autologin %s --noclear %%I linux\n' \
    ${pair#*:} > $folder/autologin.conf
done
printf '* * * * * %s cat /proc/self/limits > /tmp/real-cron-%s\n' root root alice alice \
  > /etc/cron.d/probe
cp -a /etc/pam.d /root/pam.d
groupadd mlusers && usermod -aG mlusers alice
systemctl daemon-reload
"""

# cron looks at the clock when it starts; both users' jobs and logins are waited for together.
DAEMONS = """
rm -f /tmp/real-*
date --set=@$(( ($(date +%s) / 60 + 1) * 60 - 6 )) >/dev/null
systemctl restart cron
systemctl restart getty@tty8 getty@tty9
for try in $(seq 40); do
  [ $(cat /tmp/real-* 2>/dev/null | wc -l) -ge 68 ] && break
  sleep 0.5
done
systemctl stop getty@tty8 getty@tty9
for service in cron login; do for user in root alice; do
  echo "== $service $user"; cat /tmp/real-$service-$user 2>/dev/null
done; done
true
"""


class Scenario(NamedTuple):
    """One state of the host, made and unmade by shell commands."""

    name: str
    make: str
    unmake: str


CONF = "/etc/security/limits.d/60-probe.conf"
NO_FILE = f"rm -f {CONF}"
SSHD_UNIT = "/etc/systemd/system/ssh.service.d"


def conf(*lines: str) -> str:
    """Return the command that states limits in a file of limits.d."""
    return f"printf '%s\\n' {' '.join(repr(line) for line in lines)} > {CONF}"


SCENARIOS = [
    Scenario("stock", "true", "true"),
    Scenario(
        "everybody", conf("* soft nofile 4096", "* hard nofile 8192", "* - memlock 65536"), NO_FILE
    ),
    Scenario("root alone", conf("root - nofile 4097", "root - core 0"), NO_FILE),
    Scenario(
        "alice alone",
        conf("alice - nofile 5000", "alice hard nproc 999", "alice - nice -5"),
        NO_FILE,
    ),
    Scenario("a group", conf("@mlusers soft nofile 6000", "@mlusers hard nofile 60000"), NO_FILE),
    Scenario(
        "soft only", conf("alice soft nofile 2000000", "root soft memlock unlimited"), NO_FILE
    ),
    Scenario(
        "above nr_open",
        conf("* - nofile 2000000", "root - nofile 2000000", "* - stack 9999"),
        NO_FILE,
    ),
    Scenario("nofile unlimited", conf("* - nofile unlimited", "root - nofile unlimited"), NO_FILE),
    Scenario("little memory", conf("alice hard as 100000", "alice hard nofile 40"), NO_FILE),
    Scenario("no logins", conf("alice - maxlogins 0"), NO_FILE),
    Scenario(
        "drop-in without restart",
        f"mkdir {SSHD_UNIT} && printf '[Service]\\nLimitNOFILE=3000:4000\\n' > {SSHD_UNIT}/x.conf"
        " && systemctl daemon-reload",
        "true",
    ),
    Scenario("drop-in with restart", "systemctl restart ssh", "true"),
    Scenario(
        "pam_limits removed from sshd and su",
        "sed -i /pam_limits/d /etc/pam.d/sshd /etc/pam.d/su",
        "cp -a /root/pam.d/* /etc/pam.d/",
    ),
    Scenario(
        "UsePAM no",
        "echo 'UsePAM=no' > /etc/ssh/sshd_config.d/x.conf && systemctl restart ssh",
        "rm /etc/ssh/sshd_config.d/x.conf && systemctl restart ssh",
    ),
    Scenario(
        "drop-in removed again",
        f"rm -r {SSHD_UNIT} && systemctl daemon-reload && systemctl restart ssh",
        "true",
    ),
    Scenario(
        "pam_limits with a file of its own",
        "printf 'alice - nofile 777\\n' > /root/own.conf"
        " && sed -i 's,pam_limits.so,& conf=/root/own.conf,' /etc/pam.d/sshd /etc/pam.d/sudo",
        "cp -a /root/pam.d/* /etc/pam.d/",
    ),
    Scenario(
        "a jump over pam_limits for alice",
        "sed -i '/pam_limits/i session [success=1 default=ignore] pam_succeed_if.so quiet"
        " user = alice' /etc/pam.d/sshd /etc/pam.d/su /etc/pam.d/cron; " + conf("* - nofile 4444"),
        f"cp -a /root/pam.d/* /etc/pam.d/; {NO_FILE}",
    ),
    Scenario(
        "a required module that is missing",
        "sed -i '$a session required pam_gone.so' /etc/pam.d/su /etc/pam.d/cron",
        "cp -a /root/pam.d/* /etc/pam.d/",
    ),
    Scenario(
        "limits.conf missing",
        "mv /etc/security/limits.conf /root/",
        "mv /root/limits.conf /etc/security/",
    ),
    Scenario("account expired", "chage -E 1 alice", "chage -E -1 alice"),
    Scenario("password to be changed", "chage -d 0 alice", "chage -d 20000 alice"),
    Scenario("no shell", "usermod -s /usr/sbin/nologin alice", "usermod -s /bin/bash alice"),
    Scenario("nologin", "touch /etc/nologin", "rm /etc/nologin"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running() as running:
        carry(running)
        running.ssh(PREPARE)
        yield running


@pytest.fixture(scope="module")
def figures() -> Iterator[list[int]]:
    """Hold the numbers of sessions, mismatches and unknowns of all states, and record them."""
    counts = [0, 0, 0]
    yield counts
    record("session states", guest.DEFAULT_RELEASE, *counts, of=len(CHOSEN) * len(WANTED))


@pytest.fixture(scope="module")
def control(host: Host) -> Iterator[Control]:
    shell = Control(host)
    yield shell
    shell.close()


def log_in(host: Host, control: Control) -> Real:
    """Return what real sessions get."""
    calls = host.ssh(f"echo '== sshd root'; cat /proc/self/limits; {CALLS}", check=False).stdout
    if not calls:  # Root is locked out; su and sudo can still be called by whoever is inside.
        calls = control.run(CALLS)
    alice = host.ssh("cat /proc/self/limits", user="alice", check=False).stdout
    real = read_sections(calls + control.run(DAEMONS))
    return {**dict.fromkeys(WANTED), **real, ("sshd", "alice"): read_limits(alice)}


# Each state takes half a minute, so `make test` sees some, `make oracle` all, in this order.
SHARE = ("stock", "everybody", "a group", "above nr_open", "UsePAM no", "account expired")
CHOSEN = [one for one in SCENARIOS if one.name in SHARE or EVERYTHING]


@pytest.mark.parametrize("scenario", CHOSEN, ids=[scenario.name for scenario in CHOSEN])
def test_the_probe_says_what_a_login_gets(
    scenario: Scenario, host: Host, control: Control, figures: list[int]
) -> None:
    """For every service and user: the same 16 limits, or no session in both."""
    control.run(scenario.make)
    try:
        real = log_in(host, control)
        predicted = json.loads(control.run(f"python3 /opt/measure.py '{json.dumps(WANTED)}' quiet"))
        left = control.run(
            "ls -d /run/mlhost-limits-* 2>/dev/null; ps -eo stat= | grep -c ^Z || true"
        )
    finally:
        control.run(scenario.unmake)
    wrong, unknown = compare(scenario.name, real, predicted)
    for index, count in enumerate((len(predicted), len(wrong), unknown)):
        figures[index] += count
    print(f"{scenario.name}: {len(predicted)} cases, {len(wrong)} mismatches", *wrong, sep="\n")
    print(
        *(
            f"{pair[1]}@{pair[0]} refused: {text}"
            for *pair, _, _, text, opens in predicted
            if opens is False
        ),
        sep="\n",
    )
    assert not wrong
    assert left == "0\n"
