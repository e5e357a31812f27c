# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of hosts that do not exist: 40 requirements each, in the proportions of a real fleet."""

from __future__ import annotations

import random
from collections.abc import Iterator

WAYS = ("sshd", "su", "sudo", "cron", "login")
KERNEL = ("fs.file-max", "fs.nr_open", "vm.max_map_count", "kernel.pid_max")
VENDOR = {
    "file": "/etc/security/limits.d/95-vendor.conf",
    "line": 3,
    "text": "alice soft nofile 1024",
}
EDIT = (
    f'f=$(readlink -f {VENDOR["file"]} | grep ^/etc/) && [ -f "$f" ]'
    f" && [ \"$(sed -n '3l 0' \"$f\")\" = '{VENDOR['text']}$' ] && sed -i '3s/^/# /' \"$f\""
    f" || ! echo {VENDOR['file']}:3 has changed since the check, or cannot be written:"
    " nothing was done. Check again. >&2"
)
OURS = {"file": "/etc/security/limits.d/90-mlhost.conf", "line": 2, "text": "* soft nofile 65536"}


def simulate(hosts: int, seed: int = 7) -> Iterator[tuple[str, object]]:
    """Yield hosts with what their check returned; some of them were not reached, or crashed."""
    dice = random.Random(seed)
    for number in range(hosts):
        name = f"gpu{number:05d}"
        if number % 211 == 17:
            yield name, {"unreachable": True, "msg": f"Failed to connect to {name} port 22"}
        elif number % 307 == 29:
            yield name, {"failed": True, "msg": "MODULE FAILURE", "module_stderr": "Killed"}
        else:
            findings = list(_find(dice, dice.random() < 0.25))
            yield name, {"findings": findings, "measured": "2026-01-02T03:04:05Z"}


def _find(dice: random.Random, bad: bool) -> Iterator[dict[str, object]]:
    """Yield 40 findings, of which about one in ten falls short on a bad host."""
    for key in KERNEL:
        short = bad and dice.random() < 0.1
        seen = "65530" if short else "1048576"
        yield _describe("kernel", key, "value", "1048576", seen, "/proc/sys")
    for user, ways in (("root", WAYS), ("alice", WAYS[:3])):
        for way in ways:
            pid = dice.randrange(400, 90000)
            how = f"libpam session of {way}, inherited from {way} (pid {pid})"
            short = user == "alice" and bad and dice.random() < 0.5
            seen = "1024" if short else "65536"
            yield _describe(f"session:{user}@{way}", "nofile", "soft", "65536", seen, how, VENDOR)
            yield _describe(f"session:{user}@{way}", "nofile", "hard", "65536", "1048576", how)
            yield _describe(
                f"session:{user}@{way}", "memlock", "soft", "unlimited", "unlimited", how
            )
    for service in ("docker", "slurmd", "ssh", "containerd"):
        pid = dice.randrange(400, 90000)
        short = bad and dice.random() < 0.2
        seen = "8388608" if short else "unlimited"
        how = f"/proc/{pid}/limits"
        yield _describe(f"service:{service}.service", "memlock", "soft", "unlimited", seen, how)
        yield _describe(f"service:{service}.service", "nofile", "hard", "65536", "524288", how)
    yield from _find_containers(dice, bad)


def _find_containers(dice: random.Random, bad: bool) -> Iterator[dict[str, object]]:
    yield _describe("new-container:docker", "nofile", "soft", "65536", "65536", "a new container")
    for name in dice.sample(range(10**6), 3):
        place = f"container:docker/job-{name}"
        seen = "1024" if bad and dice.random() < 0.2 else "65536"
        how = f"/proc/{dice.randrange(400, 90000)}/limits"
        yield _describe(place, "nofile", "soft", "65536", seen, how)


def _describe(
    place: str, item: str, bound: str, required: str, seen: str, how: str, at: object = None
) -> dict[str, object]:
    met = seen == required or (seen.isdigit() and required.isdigit() and int(seen) >= int(required))
    finding: dict[str, object] = {
        "status": "pass" if met else "fail",
        "place": place,
        "item": item,
        "bound": bound,
        "required": required,
        "observed": seen,
        "how": how,
        "reason": "",
        "waiver": "",
        "causes": [] if met else [_blame(place, item, how, at)],
        "next_session": "" if met else "fail",
        "next_restart": "",
        "after_boot": "" if met else "fail",
    }
    return finding


def _blame(place: str, item: str, how: str, at: object) -> dict[str, object]:
    if at:
        text = f'{VENDOR["file"]}:3 "{VENDOR["text"]}" (user) beats {OURS["file"]}:2 (wildcard)'
    else:
        text = f"{place.partition('/')[0]} has had its {item} since before the change ({how})"
    fix = "comment out 95-vendor.conf:3, or provision with override"
    edit = (fix, ["sh", "-c", EDIT], "log in again")
    daemon = "docker" if place.startswith("container") else place.partition(":")[2].split(".")[0]
    restart = (f"restart {daemon}", ["systemctl", "restart", daemon], "")
    raised = ("raise it, now and at boot", ["sysctl", "-w", f"{item}=1048576"], "")
    text_of_fix, command, then = edit if at else raised if place == "kernel" else restart
    remedy = {"text": text_of_fix, "commands": [command], "then": then}
    return {
        "code": "pam-user-beats-wildcard" if at else "process-older",
        "text": text,
        "at": at,
        "shadows": [OURS] if at else [],
        "writer": "",
        "remedy": remedy,
    }
