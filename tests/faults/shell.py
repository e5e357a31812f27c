# SPDX-License-Identifier: GPL-3.0-or-later
"""A root shell on a guest, through which a fault is made, looked for and mended."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.host.cache import HostError
from tests.host.connection import Host
from tests.host.control import Control

from .fault import Policy

SECONDS = 150
CHECK = (
    "cd /opt && PYTHONPATH=/opt python3 -m mlhost_limits.cli check --json"
    " --profile {profile} --policy /opt/policy.json"
)


class TrialError(RuntimeError):
    """A trial could not be carried out, so that it shows nothing."""


class Output(NamedTuple):
    """How a command on the guest ended, and what it printed."""

    status: int
    text: str


class Look(NamedTuple):
    """What a check returned: its findings, and the lines that a person would read."""

    findings: list[dict[str, Any]]
    report: list[str]


class Shell:
    """One login of root that stays open, so that what locks logins can still be taken back."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def run(self, words: Sequence[str]) -> Output:
        """Run a command to its end, however it ends.

        :raises HostError: If the guest is gone.
        """
        command = shlex.join(["timeout", str(SECONDS), *words])
        text = self._control.run(f"{command} 2>&1; status=$?; echo; echo $status")
        said, _, status = text.rstrip("\n").rpartition("\n")
        if not status:
            raise HostError(f"the guest is gone; {command} was its last command")
        return Output(int(status), said)

    def do(self, script: str) -> str:
        """Run a script that must succeed.

        :raises TrialError: If it does not: then the test is wrong, not what it tests.
        """
        done = self.run(["bash", "-ec", script])
        if done.status:
            raise TrialError(f"{script!r} ended with {done.status}: {done.text.strip()}")
        return done.text

    def check(self, policy: Policy, profile: str = "training", through: str = "") -> Look:
        """Check the host against a policy, as a person would on it.

        :param through: The words of a program that runs the check.
        :raises TrialError: If it prints no findings.
        """
        script = f"cat > /opt/policy.json <<'END'\n{json.dumps(policy)}\nEND\n"
        command = CHECK.format(profile=profile)
        if through:
            command = f"{through} {shlex.quote(command)}"
        said = self.run(["bash", "-c", script + command]).text
        try:
            result: Mapping[str, Any] = json.loads(said)
        except ValueError:
            raise TrialError(f"the check printed no findings: {said}") from None
        return Look([*result["findings"], *_read_notes(result)], result["report"])

    def say(self, policy: Policy) -> str:
        """Return what a check prints for people; without a policy, of the profile alone."""
        words = "cd /opt && PYTHONPATH=/opt python3 -m mlhost_limits.cli check"
        if policy:
            write = f"cat > /opt/policy.json <<'END'\n{json.dumps(policy)}\nEND\n"
            words = f"{write}{words} --policy /opt/policy.json"
        return self.run(["bash", "-c", words]).text


def _read_notes(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is said of the connection that checked, as a finding is: it is to be judged too."""
    causes = result["connection_causes"]
    later = dict.fromkeys(("next_session", "next_restart", "after_boot", "reason"), "")
    note = {"place": "connection", "item": "limits", "bound": "", "status": "fail", **later}
    return [{**note, "causes": causes}] if causes else []


@contextmanager
def opened(host: Host) -> Iterator[Shell]:
    """Log in for the length of a ``with`` block."""
    control = Control(host)
    try:
        yield Shell(control)
    finally:
        control.close()
