# SPDX-License-Identifier: GPL-3.0-or-later
"""Time commands over files of up to 100,000 lines, and say how their cost grows with the lines."""

from __future__ import annotations

import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .crowd import LIBRARY

SIZES = (12_500, 25_000, 50_000, 100_000)
_PAM = "session required pam_limits.so\nsession required pam_unix.so\n"
_PASSWD = "root:x:0:0::/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/bash\n"
_GROUP = "root:x:0:\nalice:x:1000:\n"
_SSHD = "etc/ssh/sshd_config"
_UNIT = "etc/systemd/system/trainer.service"


def _fill(line: Callable[[int], str], count: int, first: str = "") -> str:
    return first + "".join(line(number) for number in range(count))


FILES: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "limits.conf": (
        "etc/security/limits.conf",
        lambda count: _fill(lambda n: f"user{n} soft nofile {1024 + n}\n", count),
    ),
    "limits.conf, one user": (
        "etc/security/limits.conf",
        lambda count: _fill(lambda n: f"alice soft nofile {1024 + n}\n", count),
    ),
    "limits.conf, ranges": (
        "etc/security/limits.conf",
        lambda count: _fill(lambda n: f"{1 + n % 999}: soft nofile {1024 + n}\n", count),
    ),
    "limits.conf, everyone": (
        "etc/security/limits.conf",
        lambda count: _fill(lambda n: f"* - memlock {1024 + n}\n", count),
    ),
    "cron.d, commands": (
        "etc/cron.d/many",
        lambda count: _fill(lambda n: f"@daily root /usr/bin/x{n}\n", count),
    ),
    "cron.d, sysctls": (
        "etc/cron.d/many",
        lambda count: _fill(lambda n: f"@daily root sysctl -w vm.max_map_count={n}\n", count),
    ),
    "tuned, active profiles": (
        "etc/tuned/active_profile",
        lambda count: _fill(lambda n: f"profile-{n}\n", count),
    ),
    "sysctl.d": (
        "etc/sysctl.d/50-many.conf",
        lambda count: _fill(lambda n: f"net.ipv4.conf.eth{n}.rp_filter = 1\n", count),
    ),
    "sysctl.d, one name": (
        "etc/sysctl.d/50-many.conf",
        lambda count: _fill(lambda n: f"vm.max_map_count = {65530 + n}\n", count),
    ),
    "sysctl.d, near patterns": (
        "etc/sysctl.d/50-many.conf",
        lambda count: _fill(lambda n: f"vm.m*{n}*t = 1\n", count),
    ),
    "sysctl.d, patterns": (
        "etc/sysctl.d/50-many.conf",
        lambda count: _fill(lambda n: f"net.*.conf.eth{n}.rp_filter = 1\n", count),
    ),
    "sshd_config": (
        _SSHD,
        lambda count: (
            _fill(lambda n: f"Match User user{n}\n", count // 2, "UsePAM yes\n")
            + _fill(lambda n: f"AcceptEnv NAME{n}\n", count - count // 2)
        ),
    ),
    "sshd_config, blocks": (
        _SSHD,
        lambda count: _fill(
            lambda n: f"Match User u{n}\n  UsePAM no\n", count // 2, "UsePAM yes\n"
        ),
    ),
    "sshd_config, includes": (
        _SSHD,
        lambda count: _fill(lambda n: f"Include /etc/ssh/x{n}\n", count, "UsePAM yes\n"),
    ),
    "a PAM stack, one module": (
        "etc/pam.d/sshd",
        lambda count: _fill(lambda _n: "session required pam_limits.so\n", count),
    ),
    "daemon.json": (
        "etc/docker/daemon.json",
        lambda count: (
            _fill(
                lambda n: f'"k{n}": {{"Name": "nofile", "Hard": {n + 9}, "Soft": 9}},\n',
                count,
                '{"default-ulimits": {\n',
            )
            + '"last": {"Name": "core", "Hard": 0, "Soft": 0}}}\n'
        ),
    ),
    "system.conf, one default": (
        "etc/systemd/system.conf",
        lambda count: _fill(
            lambda n: f"DefaultLimitNOFILE={1024 + n % 1000}\n", count, "[Manager]\n"
        ),
    ),
    "a unit": (
        _UNIT,
        lambda count: _fill(
            lambda n: f"Environment=NAME{n}=x\n", count, "[Service]\nExecStart=/bin/true\n"
        ),
    ),
    "a unit, one setting": (
        _UNIT,
        lambda count: _fill(
            lambda n: f"LimitNOFILE={1024 + n}\n", count, "[Service]\nExecStart=/bin/true\n"
        ),
    ),
    "a unit, continued": (
        _UNIT,
        lambda count: (
            _fill(lambda n: f" -o{n} \\\n", count, "[Service]\nExecStart=/bin/true \\\n")
            + "\nLimitNOFILE=5\n"
        ),
    ),
}
COMMANDS = (
    ("resolve", "--user", "alice", "--service", "sshd"),
    ("resolve", "--unit", "trainer.service"),
    ("check", "--profile", "training"),
    ("adopt",),
)


class Cost(NamedTuple):
    """Processor time in seconds and peak resident size in MB."""

    seconds: float
    megabytes: float


def main() -> None:
    """Print a line for each subject: the dearest of the commands at each size, and the fit."""
    print(f"{'lines of':24}{''.join(f'{size:>14,}' for size in SIZES)}   growth")
    for name, (path, make) in FILES.items():
        costs = [measure(path, make(size)) for size in SIZES]
        told = "".join(f"{cost.seconds:7.2f} s{cost.megabytes:4.0f}M" for cost in costs)
        print(f"{name:24}{told}   lines^{fit(costs):.2f}", flush=True)


def fit(costs: list[Cost]) -> float:
    """Return the exponent with which the time above that of an empty file grows."""
    empty = measure("etc/motd", "").seconds
    points = [
        (math.log(size), math.log(max(cost.seconds - empty, 0.01)))
        for size, cost in zip(SIZES, costs, strict=True)
    ]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def measure(path: str, text: str) -> Cost:
    """Return the cost of the dearest command on a tree with this file in it."""
    with tempfile.TemporaryDirectory(prefix="mlhost-lines-") as folder:
        tree = make_tree(Path(folder) / "tree", path, text)
        (Path(folder) / "mlhost_limits").symlink_to(LIBRARY)
        return max(_run([*words, "--root", str(tree)], folder) for words in COMMANDS)


def make_tree(tree: Path, path: str, text: str) -> Path:
    """Make a small host of files, with this one among them."""
    files = {"etc/passwd": _PASSWD, "etc/group": _GROUP, _SSHD: "UsePAM yes\n"}
    files.update({f"etc/pam.d/{name}": _PAM for name in ("sshd", "su", "login", "sudo", "cron")})
    files[_UNIT] = "[Service]\nExecStart=/bin/true\n"
    for name, content in {**files, path: text}.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return tree


def _run(words: list[str], folder: str) -> Cost:
    child = os.fork()
    if not child:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            environment = {**os.environ, "PYTHONPATH": folder}
            command = [sys.executable, "-m", "mlhost_limits.cli", *words]
            os.execve(sys.executable, command, environment)
        finally:
            os._exit(127)
    _pid, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1, 2):
        raise RuntimeError(f"mlhost-limits {' '.join(words)} ended with {code}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
