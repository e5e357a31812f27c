# SPDX-License-Identifier: GPL-3.0-or-later
"""Start many hosts on this machine: each has a network, processes and an sshd of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .playbook import HERE

HEALTHY = "healthy"
SICK = ("mute", "stalls", "closes", "garbage")
"""Says nothing on its port, answers no command, ends it half way, or answers what is no result."""
_ENTER = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child"]
_SWITCH = """
ip link del hosts 2>/dev/null || true
ip link add hosts type bridge
ip addr add 10.77.255.1/16 dev hosts
ip link set hosts up
"""


def name_address(number: int) -> str:
    """Return the address of a host, as network_host.sh takes it."""
    return f"10.77.{number // 200}.{number % 200 + 2}"


@contextmanager
def network_hosts(tree: Path, kinds: Sequence[str]) -> Iterator[None]:
    """Hold a host of each kind, all with the files of one tree, and a switch to reach them by.

    Must run in a network namespace of its own.
    """
    subprocess.run(["sh", "-ec", _SWITCH], check=True)
    with ExitStack() as stack:
        started = [
            stack.enter_context(_start([str(tree), str(number), kind]))
            for number, kind in enumerate(kinds)
        ]
        batch = "".join(
            f"link add host{number} type veth peer name eth0 netns {_find_inner(one.pid)}\n"
            f"link set host{number} master hosts up\n"
            for number, one in enumerate(started)
        )
        subprocess.run(["ip", "-batch", "-"], input=batch.encode(), check=True)
        for one in started:
            assert one.stdin
            one.stdin.write(b"go\n")
            one.stdin.close()
        yield
    # The kernel takes down the networks of those who have ended in its own time.
    while any(name.startswith("host") and name != "hosts" for _at, name in socket.if_nameindex()):
        time.sleep(0.1)


@contextmanager
def _start(words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*_ENTER, "sh", str(HERE / "network_host.sh"), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _find_inner(pid: int) -> int:
    """Return the process in the new network: the one that unshare has forked."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while not (found := children.read_text().split()):
        pass
    return int(found[0])
