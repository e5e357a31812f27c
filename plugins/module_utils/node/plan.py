# SPDX-License-Identifier: BSD-2-Clause
"""Plan the files that let a node check itself: the program, its policy, its timer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.edit import HEADER, Edit
from ..core.option_names import name_option
from ..core.plan import SectionPlan
from ..core.values import NamedTuple
from .paths import INTERVAL, POLICY

FOLDER = "/usr/local/lib/mlhost-limits"
PROGRAM = f"{FOLDER}/mlhost-limits.pyz"
HEALTH = f"{FOLDER}/node-health"
NAME = "mlhost-limits-monitor"
SERVICE = f"/etc/systemd/system/{NAME}.service"
TIMER = f"/etc/systemd/system/{NAME}.timer"
FIRST_BOOT = "/etc/systemd/system/mlhost-limits-first-boot.service"
BLACK_BOX = "/etc/systemd/system/mlhost-limits-black-box.service"
METRICS = "mlhost-limits.prom"
BOX_METRICS = "mlhost-limits-black-box.prom"

RESULTS = "/var/lib/mlhost-limits"

_SPAN = re.compile(r"(?:[0-9]+(?:s|sec|min|m|h))+")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._][A-Za-z0-9._-]*)+")


class Monitor(NamedTuple):
    """What is wanted. ``textfiles`` is the folder that node_exporter reads, empty for none.

    ``policy`` is the text of the policy, ``uses_net`` whether it names sysctls of the network,
    which each network namespace has its own of. ``first_boot`` is for a check that runs once.
    ``black_box`` is for a service that watches all that runs.
    ``drain_on_error`` tells whether Slurm drains a node that could not be checked.
    """

    policy: str = ""
    textfiles: str = ""
    interval: str = INTERVAL
    canary: str = "never"
    python: str = "/usr/bin/python3"
    uses_net: bool = False
    first_boot: bool = False
    black_box: bool = False
    drain_on_error: bool = False
    absent: bool = False


def plan_monitor(wanted: Monitor, program: bytes, files: Mapping[str, bytes]) -> SectionPlan:
    """Return the edits that let a node check itself, or that take it back.

    :param program: The archive that runs.
    :param files: The content of each of our files that is there, by path.
    """
    problems = tuple(_find_problems(wanted, files))
    if problems:
        return SectionPlan(problems=problems)
    after: dict[str, bytes | None] = dict.fromkeys(files) if wanted.absent else {}
    if not wanted.absent:
        after = {
            PROGRAM: program,
            HEALTH: _write_health(wanted).encode(),
            POLICY: wanted.policy.encode(),
            SERVICE: _write_service(wanted).encode(),
            TIMER: _write_timer(wanted).encode(),
        }
    for path, is_wanted, write in (
        (FIRST_BOOT, wanted.first_boot, _write_first_boot),
        (BLACK_BOX, wanted.black_box, _write_black_box),
    ):
        if is_wanted or path in files:
            shall = is_wanted and not wanted.absent
            after[path] = write(wanted).encode() if shall else None
    edits = tuple(
        Edit(
            path,
            files.get(path),
            content,
            mode=0o755 if path in (PROGRAM, HEALTH) else 0o644,
            hidden=path == PROGRAM,
            with_folder=content is None and path in (PROGRAM, HEALTH, POLICY),
        )
        for path, content in after.items()
        if files.get(path) != content
    )
    return SectionPlan(edits)


def _find_problems(wanted: Monitor, files: Mapping[str, bytes]) -> Iterator[str]:
    checks = (
        (name_option("interval"), wanted.interval, _SPAN, "a time such as 5min"),
        (
            name_option("textfile_directory"),
            wanted.textfiles or "/x",
            _PATH,
            "an absolute path",
        ),
        ("python", wanted.python, _PATH, "the absolute path of an interpreter"),
    )
    for name, value, pattern, accepted in checks:
        if not pattern.fullmatch(value):
            yield f"{name}: {value!r} was given; accepted is {accepted}"
    for path in (SERVICE, TIMER, FIRST_BOOT, BLACK_BOX):
        if not files.get(path, HEADER.encode()).startswith(HEADER.encode()):
            yield f"{path}: is of somebody else; move it out of the way first"


def _write_health(wanted: Monitor) -> str:
    """Return the program that Slurm starts, which it gives no arguments."""
    return (
        f"#!{wanted.python} -I\n{HEADER}\n"
        "# HealthCheckProgram and Prolog of Slurm: drains this node where it falls short.\n"
        "# What goes wrong here says nothing of the node: a prolog that fails would drain it.\n"
        f'import os\nimport sys\n\nsys.path.insert(0, "{PROGRAM}")\n'
        "try:\n    from mlhost_limits.node_health import main\n\n"
        f"    status = main(drain_on_error={wanted.drain_on_error})\n"
        "except BaseException as exc:\n"
        '    sys.stderr.write(f"mlhost-limits: the check failed: {exc!r}\\n")\n'
        '    status = 0 if "SLURM_JOB_ID" in os.environ else 2\n'
        "raise SystemExit(status)\n"
    )


def _write_timer(wanted: Monitor) -> str:
    """Return the timer. It counts from the boot and the last run, so a clock that is set wrong
    neither holds it back nor makes it run all the time."""
    return (
        f"{HEADER}\n[Unit]\nDescription=Check the limits of this host every {wanted.interval}\n\n"
        f"[Timer]\nOnBootSec=1min\nOnUnitActiveSec={wanted.interval}\nAccuracySec=10s\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )


_SHUT = """\
RestrictAddressFamilies=AF_UNIX AF_NETLINK
IPAddressDeny=any
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
NoNewPrivileges=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
KeyringMode=private
UMask=0077
"""
_CONFINED = f"""\
# /proc/sys is not made read-only: to the check that would look like a container.
# It reads all of the host and writes its own directory of /run and the one of the metrics.
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
# Control groups stay writable: what runs as a user has one of its own below that user's slice.
{_SHUT}PrivateMounts=yes
# Sessions are opened as their users and with limits above ours; files of all users are read.
CapabilityBoundingSet=CAP_SYS_RESOURCE CAP_SETUID CAP_SETGID CAP_SYS_PTRACE CAP_DAC_OVERRIDE
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_KILL CAP_AUDIT_WRITE
"""


def _write_service(wanted: Monitor) -> str:
    metrics = f" --metrics {wanted.textfiles}/{METRICS}" if wanted.textfiles else ""
    canary = "" if wanted.canary == "never" else f" --canary {wanted.canary}"
    # -S: the library needs nothing that is installed beside Python.
    words = f"{wanted.python} -IS {PROGRAM} monitor --exit-zero --policy {POLICY}{metrics}{canary}"
    writes = f"ReadWritePaths={wanted.textfiles}\n" if wanted.textfiles else ""
    # The policy asks for sysctls of the network, of which a namespace has its own.
    network = "no" if wanted.uses_net else "yes"
    return (
        f"{HEADER}\n[Unit]\nDescription=Check the limits of this host\n\n"
        f"[Service]\nType=oneshot\nExecStart={words}\n"
        "# That the host falls short is told by the metrics. The unit fails where nobody could\n"
        "# look; where memory runs out, what looks is ended, and the metrics still say so.\n"
        "OOMPolicy=continue\nTimeoutStartSec=120\nNice=10\n"
        "RuntimeDirectory=mlhost-limits\nRuntimeDirectoryPreserve=yes\n"
        f"{_CONFINED}{writes}PrivateNetwork={network}\n"
    )


def _write_first_boot(wanted: Monitor) -> str:
    """Return the unit that checks once what an image could only foretell, and keeps the result."""
    check = f"{wanted.python} -IS {PROGRAM} check --policy {POLICY} --profile none --json"
    steps = f"{check} > first-boot.new; found=$?; mv first-boot.new first-boot.json; exit $found"
    return (
        f"{HEADER}\n[Unit]\nDescription=Check the limits of this host once, at its first boot\n"
        f"ConditionPathExists=!{RESULTS}/first-boot.json\nAfter=multi-user.target\n\n"
        f"[Service]\nType=oneshot\nStateDirectory=mlhost-limits\nWorkingDirectory={RESULTS}\n"
        f"ExecStart=/bin/sh -c '{steps}'\nTimeoutStartSec=300\nUMask=0077\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _write_black_box(wanted: Monitor) -> str:
    """Return the unit that tells of limits before runs reach them, and keeps what they died of."""
    path = f"{wanted.textfiles}/{BOX_METRICS}"
    metrics = f" --metrics {path}" if wanted.textfiles else ""
    writes = f"ReadWritePaths=-{wanted.textfiles}\n" if wanted.textfiles else ""
    return (
        f"{HEADER}\n[Unit]\nDescription=Watch the limits of all that runs on this host\n\n"
        f"[Service]\nExecStart={wanted.python} -IS {PROGRAM} watch --host{metrics}\n"
        "Restart=on-failure\nRestartSec=30s\nSyslogLevelPrefix=no\n"
        "# It tells what memory ran out of, so it is not what goes first; nor does it take much.\n"
        "OOMScoreAdjust=-900\nMemoryMax=256M\n"
        "StateDirectory=mlhost-limits/ends\nStateDirectoryMode=0700\n"
        f"{_WATCHING}{writes}\n[Install]\nWantedBy=multi-user.target\n"
    )


_WATCHING = f"""\
# It reads /proc, control groups and the kernel's log, and writes its own directory and the one of
# the metrics. The kernel tells of ends by netlink, in the host's own network namespace alone.
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
DevicePolicy=closed
DeviceAllow=/dev/kmsg r
ProtectClock=yes
ProtectHostname=yes
ProtectKernelModules=yes
{_SHUT}CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH
CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYSLOG CAP_SYS_RESOURCE
"""
