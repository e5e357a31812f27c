# SPDX-License-Identifier: GPL-3.0-or-later
"""A small fleet as a check finds it: new hosts, a vendor's line, old daemons, one without a fix."""

from __future__ import annotations

from collections.abc import Iterator

from plugins.module_utils.fleet import HostResult, read_host

WRITTEN = "2026-11-30T12:00:00Z"
OURS = {"file": "/etc/security/limits.d/90-mlhost.conf", "line": 2, "text": "* soft nofile 65536"}
VENDOR = {"file": "/etc/security/limits.d/95-vendor.conf", "line": 3, "text": "* soft nofile 1024"}
PLACES = (
    *(("kernel", key, "value") for key in ("fs.file-max", "fs.nr_open", "vm.max_map_count")),
    *(
        (f"session:alice@{way}", item, bound)
        for way in ("sshd", "su", "cron")
        for item in ("nofile", "memlock")
        for bound in ("soft", "hard")
    ),
    ("service:docker.service", "memlock", "soft"),
    ("new-container:docker", "nofile", "soft"),
    ("container:docker/trainer", "nofile", "soft"),
)


def blame(
    code: str, text: str, fix: str, then: str = "", at: object = None, *commands: list[str]
) -> dict[str, object]:
    remedy = {"text": fix, "then": then, "commands": list(commands)}
    return {"code": code, "text": text, "at": at, "shadows": [], "writer": "", "remedy": remedy}


MAPS = blame(
    "sysctl-not-stated", "no file states vm.max_map_count: a boot gives 65530",
    'state it: "vm.max_map_count = 262144" in /etc/sysctl.d/95-site.conf', "", None,
    ["sysctl", "-w", "vm.max_map_count=262144"],
)  # fmt: skip
NOFILE = blame(
    "pam-not-stated", "no line states nofile soft for *", "state it", "log in again", None
)
DOCKER = blame(
    "docker-not-stated", "neither daemon.json nor a flag of dockerd states nofile", "state it",
    "restart dockerd",
)  # fmt: skip
BEATS = blame(
    "pam-user-beats-wildcard",
    f'{VENDOR["file"]}:3 "{VENDOR["text"]}" comes after {OURS["file"]}:2',
    "comment that line out, or set override: true", "log in again", VENDOR,
    ["sh", "-c", f"sed -i '3s/^/# /' {VENDOR['file']}"],
)  # fmt: skip
OLD_DOCKER = blame(
    "unit-process-older", "docker.service (pid 812) has run since before memlock was stated",
    "restart docker.service, which ends what its containers do", "", None,
    ["systemctl", "restart", "docker.service"],
)  # fmt: skip
KERNEL = blame(
    "sysctl-at-boot", "the kernel's command line states nr_open lower", "take it out of GRUB",
    "restart the host", {"file": "/etc/default/grub", "line": 6, "text": "sysctl.fs.nr_open=1024"},
)  # fmt: skip


def find_all(short: dict[tuple[str, str], object], unseen: str = "") -> list[dict[str, object]]:
    """Return all findings of a host; those of the places and items in ``short`` fail."""
    found: list[dict[str, object]] = []
    for place, item, bound in PLACES:
        cause = short.get((place, item)) or short.get((place.partition(":")[0], item))
        status = "unknown" if place.startswith(unseen or " ") else "fail" if cause else "pass"
        found.append(
            {
                "status": status,
                "place": place,
                "item": item,
                "bound": bound,
                "required": "65536",
                "observed": None if status == "unknown" else "1024" if cause else "65536",
                "how": "/proc",
                "reason": "Docker does not answer" if status == "unknown" else "",
                "causes": [cause] if cause else [],
            }
        )
    return found


def list_kinds() -> Iterator[tuple[str, int, dict[tuple[str, str], object]]]:
    """Yield the beginning of the hosts' names, how many they are, and what falls short there."""
    new: dict[tuple[str, str], object] = {
        ("kernel", "vm.max_map_count"): MAPS,
        ("session", "nofile"): NOFILE,
    }
    vendor: dict[tuple[str, str], object] = {("session", "nofile"): BEATS}
    old: dict[tuple[str, str], object] = {("service", "memlock"): OLD_DOCKER}
    yield "new", 6, {**new, ("new-container", "nofile"): DOCKER, ("container", "nofile"): DOCKER}
    yield "gpu", 5, vendor
    yield "dgx", 4, old
    yield "both", 1, {**vendor, **old}
    yield "boot", 1, {("kernel", "fs.nr_open"): KERNEL}
    yield "good", 8, {}


def list_hosts(day: int = 2) -> Iterator[HostResult]:
    """Yield the fleet; on the day before, the boot host was well and the good ones were not."""
    for start, count, short in list_kinds():
        if day == 1 and start in ("boot", "good"):
            short = {} if start == "boot" else {("session", "nofile"): BEATS}
        for number in range(count):
            findings = find_all(short)
            result = {"findings": findings, "measured": "2026-11-30T11:58:00Z"}
            groups = ("fresh",) if start == "new" else ("gpu", f"rack{number % 3}")
            yield read_host(f"{start}{number + 1:02d}", result, groups, WRITTEN)
    yield read_host("gone01", {"unreachable": True, "msg": "Failed to connect to gone01 port 22"})
