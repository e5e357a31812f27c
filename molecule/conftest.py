# SPDX-License-Identifier: GPL-3.0-or-later
"""Real logins, jobs and containers of the scenario's host, and what each of them got."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import testinfra
import yaml
from testinfra.host import Host

IMAGE = "mlhost-test"
SHOW = "cat /proc/self/limits"


class Pair(NamedTuple):
    """A limit as /proc/PID/limits shows it."""

    soft: str
    hard: str


class Seen(NamedTuple):
    """What one process has."""

    nofile: Pair
    memlock: Pair


class Way(NamedTuple):
    """A way into the host: who logs in by ssh, and the command that then shows the limits."""

    login: str
    command: str


JOB_FILES = {"root": "/root/limits-of-cron", "bob": "/home/bob/limits-of-cron"}
WAYS = {
    "root@sshd": Way("root", SHOW),
    "bob@sshd": Way("bob", SHOW),
    "root@su": Way("root", f"su root -c '{SHOW}'"),
    "bob@su": Way("root", f"su - bob -c '{SHOW}'"),
    "root@sudo": Way("bob", f"sudo -n {SHOW}"),
    "bob@sudo": Way("root", f"sudo -n -u bob {SHOW}"),
    # The jobs are there from the start; cron looks at its tables once a minute.
    "root@cron": Way(
        "root", f"timeout 100 sh -c 'until cat {JOB_FILES['root']}; do sleep 1; done'"
    ),
    "bob@cron": Way("root", f"timeout 100 sh -c 'until cat {JOB_FILES['bob']}; do sleep 1; done'"),
}


@pytest.fixture(scope="session")
def reach() -> Callable[..., Host]:
    """Return what makes a connection to the host, as a user."""
    instance = yaml.safe_load(Path(os.environ["MOLECULE_INSTANCE_CONFIG"]).read_text())[0]
    config = str(Path(instance["identity_file"]).with_name("ssh_config"))

    def reach(user: str, **options: object) -> Host:
        name = f"ssh://{user}@{instance['instance']}"
        return testinfra.get_host(name, ssh_config=config, timeout=60, **options)

    return reach


@pytest.fixture(scope="session")
def log_in(reach: Callable[..., Host]) -> Callable[[str], Host]:
    """Return what logs a user in by ssh, with a new connection and session for each command."""
    return functools.cache(lambda user: reach(user, controlpersist=0))


@pytest.fixture(scope="session")
def root(reach: Callable[..., Host]) -> Iterator[Host]:
    """Return root of the host, over one connection: a login takes an emulated host two seconds.

    What root is to measure of a new session needs a new one: ``log_in``.
    """
    with tempfile.TemporaryDirectory() as folder:  # Of a socket the path must be short.
        yield reach("root", controlpersist=60, controlpath=f"{folder}/root")


@pytest.fixture(scope="session")
def ansible() -> Host:
    """Return the host as Ansible reaches it."""
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    return testinfra.get_host(f"ansible://host?ansible_inventory={inventory}")


@pytest.fixture(scope="session")
def cron_jobs(root: Host) -> Iterator[None]:
    """Hold a job of root in cron.d and one in bob's own crontab, each writing down its limits."""
    line = "{} > {file}.new && mv {file}.new {file}"
    tables = {user: line.format(SHOW, file=file) for user, file in JOB_FILES.items()}
    root.check_output(
        f"rm -f {' '.join(JOB_FILES.values())}"
        f" && echo '* * * * * root {tables['root']}' > /etc/cron.d/limits-of-cron"
        f" && echo '* * * * * {tables['bob']}' | crontab -u bob -"
    )
    yield
    root.run("crontab -r -u bob; rm -f /etc/cron.d/limits-of-cron")


@pytest.fixture(scope="session")
def measure(log_in: Callable[[str], Host], cron_jobs: None) -> Callable[[str], Seen]:  # noqa: ARG001
    """Return what goes one of the ways in and reads the limits at its end."""

    @functools.cache
    def measure(name: str) -> Seen:
        way = WAYS[name]
        return parse_limits(log_in(way.login).check_output(way.command))

    return measure


@pytest.fixture(scope="session")
def container(root: Host) -> Iterator[str]:
    """Run a container of busybox that waits; the image is made here, no registry is asked."""
    root.check_output(
        f"docker rm -f {IMAGE}; tar -C /bin -c busybox | docker import - {IMAGE}"
        f" && docker run -d --name {IMAGE} --network none {IMAGE} /busybox sleep 3600"
    )
    yield IMAGE
    root.run(f"docker rm -f {IMAGE}")


@pytest.fixture(scope="session")
def kernel(root: Host) -> dict[str, int]:
    """Return the running values that the policy names."""
    lines = root.check_output("sysctl fs.file-max fs.nr_open vm.max_map_count").splitlines()
    return {key: int(value) for key, value in (line.split(" = ") for line in lines)}


@pytest.fixture(scope="session")
def contained(root: Host, container: str) -> Seen:
    """Return what the first process of the container has."""
    pid = root.check_output("docker inspect -f '{{.State.Pid}}' %s", container)
    return parse_limits(root.check_output("cat /proc/%s/limits", pid))


@pytest.fixture(scope="session")
def read_limits() -> Callable[[str], Seen]:
    """Return what reads /proc/PID/limits."""
    return parse_limits


def parse_limits(text: str) -> Seen:
    rows = re.findall(r"Max ([a-z ]+?) {2,}(\S+) +(\S+)", text)
    pairs = {name: Pair(soft, hard) for name, soft, hard in rows}
    return Seen(pairs["open files"], pairs["locked memory"])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "look(command): what to show of the host when the test fails"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show, under a failed test, what a person would look at next."""
    report = yield
    if report.failed and "root" in item.funcargs:
        for marker in item.iter_markers("look"):
            report.sections += [
                (command, _look(item.funcargs["root"], command)) for command in marker.args
            ]
    return report


def _look(root: Host, command: str) -> str:
    try:
        done = root.run(f"{{ {command}; }} 2>&1")
    except RuntimeError as error:
        return f"the host does not answer: {error}"
    return done.stdout_bytes.decode(errors="backslashreplace")
