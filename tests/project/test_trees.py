# SPDX-License-Identifier: GPL-3.0-or-later
"""In the files of Red Hat and Ubuntu the same lines win that their own programs would choose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from mlhost_limits import cli
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.kernel.host_read import read_sysctl_files
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.schema import load_policy
from mlhost_limits.services.plan import ServicesState, plan_services
from mlhost_limits.sessions import pam_read as pam_services
from mlhost_limits.sessions.dialect_read import read_dialect
from mlhost_limits.sessions.limits_read import read_limits_files
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions
from mlhost_limits.systemd.limits import MANAGER
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_read import read_manager_files

from tests.worlds.trees import TREES, plant, write

ROLES = Path(__file__).parents[2] / "roles"
LIMITS_CONF = "/etc/security/limits.conf"
EVERYWHERE = ("sshd", "login", "su", "su-l", "sudo", "sudo-i", "runuser", "runuser-l")
SERVICES = [
    (tree, service)
    for tree in TREES
    for service in (*EVERYWHERE, "systemd-user", "cron" if "Ubuntu" in tree else "crond")
]
RED_HAT = ["Red Hat 8", "Red Hat 9", "Red Hat 10"]
UBUNTU = ["Ubuntu 22.04", "Ubuntu 24.04"]
RAISED = ["Red Hat 10", "Ubuntu 24.04"]
"""Those that ship a larger vm.max_map_count than the kernel's own."""
OLD = ["Red Hat 8", "Red Hat 9", "Ubuntu 22.04"]
"""Those whose PAM is older than 1.5.3."""


@pytest.fixture
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return plant(request.param, tmp_path / request.param)


def resolve(tree: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert cli.main(["resolve", "--root", str(tree), *words]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("tree", ["Red Hat 8", "Red Hat 9", "Ubuntu 22.04"], indirect=True)
def test_stock_files_state_nothing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resolve(tree, capsys) == ["no file in this tree states a limit"]


@pytest.mark.parametrize(
    ("tree", "folder"),
    [("Red Hat 10", "/usr/lib/sysctl.d"), ("Ubuntu 24.04", "/etc/sysctl.d")],
    indirect=["tree"],
)
def test_stock_files_raise_one_value(
    tree: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resolve(tree, capsys) == [
        "kernel vm.max_map_count = 1048576",
        f'     by      {folder}/10-map-count.conf:1 "vm.max_map_count=1048576"',
    ]


@pytest.mark.parametrize(("tree", "service"), SERVICES, indirect=["tree"])
def test_each_way_in_reads_the_limits_files(
    tree: Path, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "/etc/security/limits.d/50-site.conf", "* soft nofile 1\n@ml soft nofile 2\n")
    write(tree, "/etc/security/limits.d/10-me.conf", "alice soft nofile 3\n")
    told = resolve(tree, capsys, "--user", "alice", "--service", service)
    assert told[:4] == [
        f"session:alice@{service} nofile soft = 3",
        '     by      /etc/security/limits.d/10-me.conf:1 "alice soft nofile 3"',
        '     shadows /etc/security/limits.d/50-site.conf:1 "* soft nofile 1"',
        '     shadows /etc/security/limits.d/50-site.conf:2 "@ml soft nofile 2"',
    ]


@pytest.mark.parametrize(
    ("tree", "service"),
    [*((one, "cron") for one in RED_HAT), *((one, "crond") for one in UBUNTU)],
    indirect=["tree"],
)
def test_a_service_that_is_not_there_has_no_limits(
    tree: Path, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = resolve(tree, capsys, "--user", "alice", "--service", service)
    assert told[0] == f"session:alice@{service}: no PAM service {service!r} in this tree"


@pytest.mark.parametrize(("tree", "name"), SERVICES, indirect=["tree"])
def test_jobs_are_looked_at_under_the_name_they_have(
    tree: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for cron gets crond on Red Hat; every other name stands for itself."""
    folders = [f"{tree}{folder}" for folder in pam_services.DIRECTORIES]
    monkeypatch.setattr(pam_services, "DIRECTORIES", folders)
    assert pam_services.name_here(name) == name
    if name == "crond":
        assert pam_services.name_here("cron") == "crond"


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_everybody_means_root_on_red_hat_alone(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, LIMITS_CONF, "root soft core 1\n* soft nofile 5\n")
    told = resolve(tree, capsys, "--user", "root", "--service", "sshd")
    assert ("session:root@sshd nofile soft = 5" in told) == (tree.name in RED_HAT)
    assert "session:root@sshd core soft = 1KiB" in told


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_a_missing_limits_conf_ends_logins_before_pam_1_5_3(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / LIMITS_CONF.lstrip("/")).unlink()
    told = resolve(tree, capsys, "--service", "sshd")
    lost = f"session:root@sshd: {LIMITS_CONF} is missing, and PAM refuses every login"
    assert (lost in told) == (tree.name in OLD)


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_a_long_line_is_split_before_pam_1_6(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, LIMITS_CONF, "#" * 1023 + "alice soft nofile 5\n")
    told = resolve(tree, capsys, "--user", "alice")
    applied = "session:alice@any nofile soft = 5" in told
    assert applied == (tree.name != "Red Hat 10")


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_sysctl_conf_beats_ours_by_way_of_its_link(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "/etc/sysctl.conf", "vm.max_map_count = 65530\n")
    write(tree, "/etc/sysctl.d/90-mlhost.conf", "vm.max_map_count = 262144\n")
    told = resolve(tree, capsys)
    at = told.index("kernel vm.max_map_count = 65530")
    assert told[at + 1] == (
        '     by      /etc/sysctl.d/99-sysctl.conf:1 "vm.max_map_count = 65530"'
    )


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_the_managers_defaults_lie_in_usr_from_systemd_256_on(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "etc/systemd/system.conf").unlink(missing_ok=True)
    write(tree, "/usr/lib/systemd/system.conf", "[Manager]\nDefaultLimitNOFILE=7\n")
    unit = "crond.service" if "Red Hat" in tree.name else "cron.service"
    told = resolve(tree, capsys, "--unit", unit)
    assert (f"unit:{unit} nofile soft = 7" in told) == (tree.name == "Red Hat 10")


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_a_nofile_above_nr_open_locks_out_but_not_on_ubuntu(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So no other limit of that session is foretold to be met, however it is stated."""
    write(tree, "/etc/security/limits.conf", "* - nofile 2147483648\n* - memlock unlimited\n")
    refused = "Red Hat" in tree.name
    told = resolve(tree, capsys, "--user", "alice")
    then = "PAM then refuses the login" if refused else "leaves what the login started with"
    assert any(line.endswith(f"fs.nr_open, and {then}") for line in told)
    policy = tree / "policy.json"
    asked = {"sessions": [{"users": ["alice"], "limits": {"memlock": "unlimited"}}]}
    policy.write_text(json.dumps(asked))
    status = cli.main(["check", "--root", str(tree), "--policy", str(policy), "--json"])
    assert status == (cli.FALLS_SHORT if refused else 0)
    findings = json.loads(capsys.readouterr().out)["findings"]
    own = [one for one in findings if one["place"] == "session:alice@su"]
    assert {one["after_boot"] for one in own} == {"fail" if refused else "pass"}
    for one in own:
        codes = [cause["code"] for cause in one["causes"]]
        assert codes == (["pam-above-nr-open"] if refused else [])
        text = "".join(cause["text"] for cause in one["causes"])
        assert ('limits.conf:1 "* - nofile 2147483648"' in text) == refused


@pytest.mark.parametrize(
    ("control", "ends"),
    [
        ("required", True),
        ("[success=ok default=bad]", True),
        ("[default=ignore perm_denied=die]", True),
        ("optional", False),
        ("[default=ignore]", False),
    ],
)
@pytest.mark.parametrize("tree", ["Red Hat 8"], indirect=True)
def test_a_stack_that_does_not_mind_lets_the_session_open(
    tree: Path, control: str, ends: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "/etc/security/limits.conf", "* - nofile 2000000\n* - memlock unlimited\n")
    write(tree, "/etc/pam.d/su", f"session {control} pam_limits.so\n")
    asked = {"sessions": [{"users": ["alice"], "limits": {"memlock": "unlimited"}}]}
    (tree / "policy.json").write_text(json.dumps(asked))
    words = ["--root", str(tree), "--policy", str(tree / "policy.json"), "--json"]
    assert cli.main(["check", *words]) == cli.FALLS_SHORT  # For the other ways in.
    findings = json.loads(capsys.readouterr().out)["findings"]
    own = {one["after_boot"] for one in findings if one["place"] == "session:alice@su"}
    assert own == {"fail" if ends else "pass"}


@pytest.mark.parametrize(
    ("config", "doubted"),
    [
        ("SELINUX=enforcing\nSELINUXTYPE=targeted\n", {"cron"}),
        ("SELINUX=enforcing\n", {"cron"}),
        ("# SELINUX=disabled\nSELINUX = enforcing\nSELINUXTYPE=default\n", {"login", "cron"}),
        ("SELINUX=permissive\nSELINUXTYPE=default\n", set()),
        ("SELINUX=Enforcing\r\nSELINUXTYPE=targeted\r\n", {"cron"}),
        ("SELINUX=enforcing\nSELINUX=disabled\nSELINUXTYPE=mls\n", {"login", "cron"}),
        ("", set()),
    ],
)
@pytest.mark.parametrize("tree", ["Red Hat 9"], indirect=True)
def test_what_selinux_may_take_is_not_predicted(
    tree: Path, config: str, doubted: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of soft limits alone, and where Red Hat's own policy is not known to leave them."""
    write(tree, "/etc/security/limits.conf", "* - nofile 65536\n")
    write(tree, "/etc/selinux/config", config)
    asked = {"sessions": [{"users": ["alice"], "limits": {"nofile": 65536}}]}
    (tree / "policy.json").write_text(json.dumps(asked))
    words = ["--root", str(tree), "--policy", str(tree / "policy.json"), "--json"]
    assert cli.main(["check", *words]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    for service in ("su", "login", "cron"):
        own = {f["bound"]: f for f in findings if f["place"] == f"session:alice@{service}"}
        assert own["hard"]["after_boot"] == "pass"
        assert own["soft"]["after_boot"] == ("unknown" if service in doubted else "pass")
        assert ("may take soft limits from what" in own["soft"]["reason"]) == (service in doubted)


@pytest.mark.parametrize("tree", TREES, indirect=True)
def test_what_the_roles_write_is_what_counts(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their plans go to files that are read here, win there, and lower nothing."""
    stock = "1048576" if tree.name in RAISED else "65530"
    running = {"fs.nr_open": "1048576", "fs.file-max": "100000", "vm.max_map_count": stock}
    plans = plan_all(tree, running)
    assert not [one for plan in plans for one in (*plan.problems, *plan.shortfalls)]
    edits = [edit for plan in plans for edit in plan.edits]
    assert [edit.path for edit in edits] == [
        "/etc/sysctl.d/90-mlhost.conf",
        "/etc/security/limits.d/90-mlhost.conf",
        "/etc/systemd/system.conf.d/90-mlhost.conf",
    ]
    for edit in edits:
        write(tree, edit.path, (edit.after or b"").decode())
    told = resolve(tree, capsys, "--service", "sshd")
    for line in (
        "session:root@sshd nofile soft = 65536",
        "session:root@sshd memlock hard = unlimited",
        "session:*@sshd nofile hard = 1048576",
        "kernel fs.file-max = 2097152",
        f"kernel vm.max_map_count = {max(int(stock), 262144)}",
        "unit:system.conf nofile hard = 1048576",
    ):
        assert line in told


def plan_all(tree: Path, running: dict[str, str]) -> list[SectionPlan]:
    """Plan the kernel, sessions and services with what the role host is given by default."""
    root = str(tree)
    given = {"services": {"default": {"nofile": {"soft": 1024, "hard": 1048576}}}}
    policy = load_policy(given, "training")
    defaults = yaml.safe_load((ROLES / "host" / "defaults" / "main.yml").read_text())
    target = KernelOptions(defaults["mlhost_limits_kernel_file"])
    kernel = plan_kernel(policy.get("kernel") or {}, read_sysctl_files(root), running, target)
    sessions = plan_sessions(
        policy.get("sessions"),
        read_limits_files(root),
        read_dialect(root),
        kernel.nr_open,
        SessionsOptions(defaults["mlhost_limits_sessions_file"]),
    )
    conf, dropins = read_manager_files(root)
    state = ServicesState({}, {MANAGER: Files(None, (), conf, tuple(dropins))})
    services = plan_services(policy.get("services"), state, kernel.nr_open)
    return [kernel.section, sessions, services]


@pytest.mark.parametrize("tree", ["Red Hat 9"], indirect=True)
def test_the_stack_of_crond_is_looked_through(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tree, "/etc/security/limits.conf", "* - nofile 65536\n")
    crond = tree / "etc/pam.d/crond"
    crond.write_text(f"{crond.read_text()}session required pam_site.so\n")
    asked = {"sessions": [{"users": ["alice"], "limits": {"nofile": 65536}}]}
    (tree / "policy.json").write_text(json.dumps(asked))
    words = ["--root", str(tree), "--policy", str(tree / "policy.json"), "--json"]
    assert cli.main(["check", *words]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    told = {one["place"]: one["reason"] for one in findings if one["bound"] == "hard"}
    assert '"session required pam_site.so" may change it' in told["session:alice@cron"]
    assert "pam_site" not in told["session:alice@su"]
