# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the scenarios on hosts of each Debian release, and read what those hosts are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.host import guest
from tests.run import Step, run_step

RELEASES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13"}
SCENARIOS = ("default", "services", "monitor", "podman", "slurm", "workspace")

_VERSION = "dpkg-query -W -f '${Version}' %s | sed 's/^[0-9]*://; s/[-+].*//'"
_VERSIONS = {
    "kernel": "uname -r | cut -d- -f1",
    "Python": "python3 -c 'import platform; print(platform.python_version())'",
    "systemd": _VERSION % "systemd",
    "libpam": _VERSION % "libpam-modules",
    "sshd": _VERSION % "openssh-server",
    "Docker": "docker version --format '{{.Server.Version}}' | sed 's/[-+].*//'",
}


def run_releases(
    releases: Sequence[str], scenarios: Sequence[str]
) -> Iterator[tuple[bool, dict[str, str]]]:
    """Yield for each release whether every scenario passed, and its row of the table."""
    for release in releases:
        row = {"release": RELEASES[release], **read_versions(release)}
        passed = [run_scenario(release, scenario) for scenario in scenarios]
        words = ["passed" if one else "failed" for one in passed]
        yield all(passed), {**row, **dict(zip(scenarios, words, strict=True))}


def read_versions(release: str) -> dict[str, str]:
    """Return the versions of what decides limits, as a fresh host of a release tells them."""
    with guest.running(release) as host:
        script = "\n".join(f"echo $({command})" for command in _VERSIONS.values())
        told = host.ssh(script).stdout.splitlines()
    return dict(zip(_VERSIONS, told, strict=True))


def run_scenario(release: str, scenario: str) -> bool:
    words = ["molecule", "test", "--scenario-name", scenario]
    return run_step(
        Step(f"{release} {scenario}", words, environment={"MLHOST_RELEASE": release})
    ).passed
