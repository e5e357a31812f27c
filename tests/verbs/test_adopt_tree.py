# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy of a tree is accepted, and provisioning it changes nothing that the tree gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from mlhost_limits.cli import COMPLIES, REFUSED, main
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.policy import Policy
from mlhost_limits.docker.plan import DockerState, plan_docker
from mlhost_limits.kernel.host_read import read_sysctl_files
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.resolve import resolve_tree
from mlhost_limits.schema import load_policy
from mlhost_limits.services.plan import ServicesState, plan_services
from mlhost_limits.sessions.dialect_read import read_dialect
from mlhost_limits.sessions.limits_read import read_limits_files
from mlhost_limits.sessions.pam_limits import LIMITS_CONF
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_read import read_manager_files, read_unit_files

UNITS = ("docker.service", "slurmd.service", "user-.slice", "own.service")
FILES = {
    "/etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nalice:x:1001:2001::/:/bin/sh\nbob:x:1002:5555::/:/bin/sh\n",
    "/etc/group": "root:x:0:\nml:x:2001:bob\n",
    "/etc/security/limits.conf": "# stock\n@ml - rtprio 95\n1000: soft nproc 4096\n* soft core 0\n",
    "/etc/security/limits.d/90-peers.conf": "root soft nofile 65536\nroot hard nofile 1048576\n"
    "* soft nofile 65536\n* hard nofile 1048576\n* - memlock unlimited\nalice - nice -5\n",
    "/etc/sysctl.conf": "vm.x = 5\n",
    "/etc/sysctl.d/90-peers.conf": "fs.file-max=2097152\nfs.nr_open=1048576\nkernel.x=a b\n",
    "/usr/lib/sysctl.d/50-vendor.conf": "fs.file-max=100\nkernel.sysrq=1\n",
    "/etc/systemd/system.conf.d/10-site.conf": "[Manager]\nDefaultLimitNOFILE=1024:524288\n",
    "/etc/systemd/system/docker.service.d/limits.conf": "[Service]\nLimitNOFILE=1048576\n",
    "/etc/systemd/system/slurmd.service.d/a.conf": "[Service]\nLimitMEMLOCK=infinity\nTasksMax=900\n",
    "/etc/systemd/system/user-.slice.d/a.conf": "[Slice]\nTasksMax=9000\n",
    "/etc/systemd/system/own.service": "[Service]\nExecStart=/bin/x\nLimitCORE=0\n",
    "/usr/lib/systemd/system/docker.service": "[Service]\nExecStart=/bin/x\nLimitCORE=infinity\n",
    "/usr/lib/systemd/system/slurmd.service": "[Service]\nExecStart=/bin/x\n",
    "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "x"}}, "default-ulimits":\n'
    '{"nofile": {"Name": "nofile", "Soft": 65536, "Hard": 1048576}}, "default-shm-size": "8G"}\n',
}
RUNNING = {"fs.file-max": "2097152", "fs.nr_open": "1048576", "kernel.x": "a\tb", "vm.x": "5"}


def write(tree: Path, path: str, text: str) -> None:
    target = tree / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        write(tmp_path, path, text)
    return tmp_path


def adopt(tree: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["adopt", "--root", str(tree)]) == COMPLIES
    return capsys.readouterr().out


def plan(policy: Policy, tree: Path) -> list[SectionPlan]:
    """Return what the roles would do, had they this tree for their host."""
    root = str(tree)
    managers = {
        name: read_manager_files(root, name) for name in ("system.conf", "user.conf", "logind.conf")
    }
    units = {name: read_unit_files(name, root) for name in UNITS}
    files = {name: Files(None, (), one.main, tuple(one.dropins)) for name, one in managers.items()}
    files.update({name: Files(one.main, tuple(one.dropins)) for name, one in units.items()})
    texts = {
        f"/{path.relative_to(tree)}": path.read_text()
        for path in tree.glob("etc/systemd/**/*.conf")
    }
    assert policy.get("services")
    return [
        plan_sessions(
            policy.get("sessions"),
            read_limits_files(root),
            read_dialect(root),
            1048576,
            SessionsOptions(),
        ),
        plan_kernel(
            policy.get("kernel") or {}, read_sysctl_files(root), RUNNING, KernelOptions()
        ).section,
        plan_services(policy.get("services"), ServicesState(texts, files), 1048576),
        plan_docker(
            policy.get("docker"),
            DockerState((tree / "etc/docker/daemon.json").read_bytes()),
            1048576,
            absent=False,
        ),
    ]


def resolve(tree: Path) -> dict[tuple[str, ...], object]:
    """Return every value that the tree gives root, two users, systemd's units and Docker."""
    stated = [
        entry
        for user in (None, "root", "alice", "bob")
        for unit in ("system.conf", *UNITS)
        for entry in resolve_tree(str(tree), user, None, unit)
    ]
    return {
        tuple(str(entry.get(key)) for key in ("place", "item", "bound")): entry.get(
            "value", entry.get("reason")
        )
        for entry in stated
    }


def test_what_a_tree_gives_stays_when_its_policy_is_provisioned(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resolve(tree)
    policy = load_policy(yaml.safe_load(adopt(tree, capsys)), "none")
    for section in plan(policy, tree):
        assert not section.problems
        assert not section.shortfalls
        for edit in section.edits:
            assert edit.after is not None
            write(tree, edit.path, edit.after.decode())
    late = {("kernel", "vm.x", "by_procps"): "5"}  # It stood in a file that no boot reads.
    expected = {key: value for key, value in before.items() if key not in late}
    assert resolve(tree) == {**expected, ("kernel", "vm.x", "value"): "5"}
    assert late.items() <= before.items()


def test_our_own_files_are_not_the_site_s(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = adopt(tree, capsys)
    for path, text in {
        "/etc/security/limits.d/95-mlhost.conf": "* - nofile 5000\n",
        "/etc/sysctl.d/95-mlhost.conf": "fs.file-max = 7\n",
        "/etc/systemd/system.conf.d/90-mlhost.conf": "[Manager]\nDefaultLimitNOFILE=7\n",
    }.items():
        write(tree, path, f"{HEADER}\n{text}")
    block = "# BEGIN mlhost.limits\n* hard core 7\n# END mlhost.limits\n"
    write(tree, LIMITS_CONF, FILES[LIMITS_CONF] + block)
    assert adopt(tree, capsys) == first


def test_a_service_of_an_alias_is_named_once(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "/usr/lib/systemd/system/ssh.service", "[Service]\nExecStart=/bin/x\n")
    (tree / "etc/systemd/system/sshd.service").symlink_to("/usr/lib/systemd/system/ssh.service")
    for name in ("ssh", "sshd"):
        write(tree, f"/etc/systemd/system/{name}.service.d/a.conf", "[Service]\nLimitNOFILE=900\n")
    units = yaml.safe_load(adopt(tree, capsys))["services"]["units"]
    assert [name for name in units if name.startswith("ssh")] == ["ssh.service"]


def test_a_tree_without_a_word_of_the_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "/etc/security/limits.d/a.txt", "* - nofile 5\n")
    assert adopt(tmp_path, capsys).splitlines() == [
        "# The files of this site state nothing for a policy.",
        "#",
        "# Left out, or not quite as it was:",
        '# - /etc/security/limits.d/a.txt:1 "* - nofile 5"',
        "#     has no effect: pam_limits reads files named *.conf alone",
    ]


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("/etc/docker/daemon.json", "{", "/etc/docker/daemon.json:1"),
        (
            "/etc/security/limits.conf",
            "# BEGIN mlhost.limits\n",
            "/etc/security/limits.conf: '# BEGIN mlhost.limits' and",
        ),
    ],
)
def test_a_file_that_cannot_be_parsed_is_said_in_one_sentence(
    path: str, text: str, message: str, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, path, text)
    assert main(["adopt", "--root", str(tree)]) == REFUSED
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"mlhost-limits: {message}")


def test_a_tree_that_is_no_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adopt", "--root", "/no/such"]) == REFUSED
    assert capsys.readouterr().err == "mlhost-limits: /no/such: is not a directory\n"


def test_this_host_is_read_without_harm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adopt"]) == COMPLIES
    policy = yaml.safe_load(capsys.readouterr().out)
    assert policy is None or load_policy(policy, "none")
