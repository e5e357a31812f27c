# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stated is not told as effective where something else counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.resolved import format_resolved
from mlhost_limits.resolve import resolve_tree

UNIT, MAPS = "/etc/systemd/system/a.service", "/etc/sysctl.d/90-a.conf"
APPLIER = "/etc/systemd/system/systemd-sysctl.service"
SSHD, SSHD_CONFIG = "/etc/pam.d/sshd", "/etc/ssh/sshd_config"
CALL = "session required pam_limits.so\n"
FILES = {
    "/etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nalice:x:1001:2001::/:/bin/sh\n",
    "/etc/security/limits.conf": "alice - nofile 5000\n",
    SSHD: CALL,
    "/usr/lib/systemd/systemd-sysctl": "",
    MAPS: "vm.max_map_count = 262144\n",
}


def unit(*lines: str) -> dict[str, str]:
    return {UNIT: "\n".join(["[Service]", *lines, ""])}


def rc_local(line: str) -> dict[str, str]:
    return {"/etc/rc.local": f"#!/bin/sh\n{line}\n"}


FSTAB, CONF = "/etc/fstab", "/etc/containers/containers.conf"
DAEMON, DOCKER_UNIT = "/etc/docker/daemon.json", "/etc/systemd/system/docker.service"

CASES: dict[str, tuple[dict[str, str], str]] = {
    "a unit above fs.nr_open": (
        unit("LimitNOFILE=2000000"),
        "1048576 counts: the kernel refuses more than 1048576, fs.nr_open: systemd gives what it has"
        " itself",
    ),
    "a unit that opens a session": (
        unit("LimitNOFILE=200", "PAMName=x"),
        f'{UNIT}:3 "PAMName=x" opens a session, and PAM can change it',
    ),
    "a unit that changes to a user": (
        unit("LimitNOFILE=200", "ExecStart=/bin/su - alice -c x"),
        f'{UNIT}:3 "ExecStart=/bin/su - alice -c x" opens a session, and PAM can change it',
    ),
    "a unit whose shell lowers it": (
        unit("LimitNOFILE=200", "ExecStart=/bin/sh -c 'ulimit -n 10; exec x'"),
        f"{UNIT}:3 \"ExecStart=/bin/sh -c 'ulimit -n 10; exec x'\" may set it after systemd has",
    ),
    "a sysctl that nothing applies": (
        {APPLIER: ""}, f'{APPLIER} "an empty file" keeps systemd-sysctl from applying any file',
    ),
    "a sysctl that a script sets": (
        rc_local("sysctl -w vm.max_map_count=5"),
        '5 counts: /etc/rc.local:2 "sysctl -w vm.max_map_count=5" sets it after that',
    ),
    "a sysctl that a script computes": (
        rc_local("sysctl -w vm.max_map_count=$N"),
        '/etc/rc.local:2 "sysctl -w vm.max_map_count=$N" may set it after that',
    ),
    "a size of /dev/shm that a unit mounts anew": (
        {FSTAB: "none /dev/shm tmpfs size=64m 0 0\n",
         "/etc/rc.local": "#!/bin/sh\nmount -o remount,size=1m /dev/shm\n"},
        '/etc/rc.local:2 "mount -o remount,size=1m /dev/shm" mounts it anew',
    ),
    "a limit of containers.conf above fs.nr_open": (
        {CONF: '[containers]\ndefault_ulimits = ["nofile=2000000:2000000"]\n'},
        "no container starts with more than 1048576, fs.nr_open",
    ),
    "a daemon.json that nothing reads": (
        {DAEMON: '{"default-shm-size": "1g"}', DOCKER_UNIT: ""},
        "docker.service is masked, or starts nothing",
    ),
}  # fmt: skip
REASONS: dict[str, tuple[dict[str, str], str]] = {
    "sshd without PAM": (
        {SSHD_CONFIG: "UsePAM no\n"},
        f'{SSHD_CONFIG}:1 "UsePAM no" keeps PAM, and with it every limits file, out of sshd\'s sessions',
    ),
    "an end of the stack before it": (
        {SSHD: f"session sufficient pam_permit.so\n{CALL}"},
        f'{SSHD}:1 "session sufficient pam_permit.so" ends the stack or jumps before {SSHD}:2 calls'
        " pam_limits",
    ),
    "a line that refuses the user": (
        {SSHD: f"account required pam_access.so\n{CALL}",
         "/etc/security/access.conf": "-:ALL:ALL\n"},
        '/etc/security/access.conf:1 "-:ALL:ALL" keeps alice out, by '
        f'{SSHD}:1 "account required pam_access.so"',
    ),
    "another file": (
        {SSHD: "session required pam_limits.so conf=/etc/security/limits.conf\n"},
        f'{SSHD}:1 "session required pam_limits.so conf=/etc/security/limits.conf" reads '
        "/etc/security/limits.conf and no file of limits.d",
    ),
}  # fmt: skip


def tell(tree: Path, files: dict[str, str], **words: str) -> list[str]:
    for path, text in {**FILES, **files}.items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755)
    user, service = words.pop("user", None), words.pop("service", None)
    return list(format_resolved(resolve_tree(str(tree), user, service, **words)))


@pytest.mark.parametrize(("files", "but"), CASES.values(), ids=CASES)
def test_what_counts_is_told_beside_what_is_stated(
    files: dict[str, str], but: str, tmp_path: Path
) -> None:
    told = tell(tmp_path, files, **({"unit": "a.service"} if UNIT in files else {}))
    assert f"     but     {but}" in told


@pytest.mark.parametrize("words", [{"unit": "a.service"}, {}])
def test_what_is_effective_has_no_but(words: dict[str, str], tmp_path: Path) -> None:
    told = tell(tmp_path, unit("LimitNOFILE=200", "ExecStart=/bin/a"), **words)
    assert not [line for line in told if line.startswith("     but")]


@pytest.mark.parametrize(("files", "reason"), REASONS.values(), ids=REASONS)
def test_why_no_limits_file_counts_is_told(
    files: dict[str, str], reason: str, tmp_path: Path
) -> None:
    told = tell(tmp_path, files, user="alice", service="sshd")
    assert told[0] == f"session:alice@sshd: {reason}"


def test_what_shared_memory_and_podman_are_given_is_told(tmp_path: Path) -> None:
    files = {
        FSTAB: "none /dev/shm tmpfs size=64m 0 0\nnone /dev/shm tmpfs size=50% 0 0\n",
        CONF: '[containers]\ndefault_ulimits = ["nofile=5:-1"]\nshm_size = "1g"\n',
        f"{CONF}.d/a.conf": '[containers]\ndefault_ulimits = ["nofile=7:9"]\npids_limit = 5\n',
    }
    told = "\n".join([*tell(tmp_path, files), ""])
    line = 'default_ulimits = ["nofile={}"]'
    assert (
        f"""\
path:/dev/shm size = 64MiB
     by      {FSTAB}:1 "none /dev/shm tmpfs size=64m 0 0"
     shadows {FSTAB}:2 "none /dev/shm tmpfs size=50% 0 0"
"""
        in told
    )
    assert (
        f'''\
new-container:podman nofile hard = 9
     by      {CONF}.d/a.conf:2 "{line.format("7:9")}"
     shadows {CONF}:2 "{line.format("5:-1")}"
'''
        in told
    )
    assert (
        f'new-container:podman tasks = 5\n     by      {CONF}.d/a.conf:3 "pids_limit = 5"' in told
    )
    assert "     but" not in told


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({CONF: "[containers]\npids_limit = x\n"}, f"new-container:podman: {CONF}:2"),
        ({FSTAB: "none /dev/shm tmpfs size=50% 0 0\n"}, "size = a share of the host's memory"),
        ({FSTAB: "none /dev/shm tmpfs size=0 0 0\n"}, "path:/dev/shm size = unlimited"),
    ],
)
def test_what_has_no_number_is_said(tmp_path: Path, files: dict[str, str], told: str) -> None:
    assert told in "\n".join(tell(tmp_path, files))
