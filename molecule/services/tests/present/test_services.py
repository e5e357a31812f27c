# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs, what is started now, and what a user starts has what the policy promises."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 $(find /etc/systemd -name '*.conf' -path '*.d/*')",
    "systemctl status --no-pager trainer.service worker@1.service user@1000.service",
    "journalctl -b --no-pager -n 30 -t systemd",
)

SHOW = "cat /proc/self/limits"
AS_ALICE = "runuser -u alice -- env XDG_RUNTIME_DIR=/run/user/1000"


def read_rows(text):
    """Return soft and hard by the first words of each row."""
    found = re.findall(r"Max ([a-z ]+?) {2,}(\S+) +(\S+)", text)
    return {name: f"{soft}:{hard}" for name, soft, hard in found}


@pytest.fixture(scope="module")
def running(root):
    """Return what reads the limits of a running service's main process."""

    def read(unit):
        pid = root.check_output("systemctl show -P MainPID %s", unit)
        return read_rows(root.check_output("cat /proc/%s/limits", pid))

    return read


def test_a_running_service_has_the_limits(running):
    rows = running("trainer.service")
    assert rows["open files"] == "131072:131072"
    assert rows["locked memory"] == "unlimited:unlimited"
    assert rows["stack size"] == "unlimited:unlimited"
    assert rows["core file size"] == "0:0"


def test_an_instance_has_those_of_its_template(running):
    assert running("worker@1.service")["open files"] == "2048:4096"


@pytest.fixture(scope="module")
def fresh(root):
    return read_rows(root.check_output(f"systemd-run --quiet --pipe --wait --collect {SHOW}"))


def test_a_service_that_states_nothing_has_the_defaults(fresh):
    assert fresh["open files"] == "1024:1048576"
    assert fresh["locked memory"] == "unlimited:unlimited"


def test_a_new_service_of_a_user_has_the_defaults_for_users(root):
    file = "/run/user/1000/limits"
    root.check_output(
        f"rm -f {file}; {AS_ALICE} systemd-run --user --quiet --collect"
        f" --property=StandardOutput=file:{file} {SHOW}"
        f" && timeout 20 sh -c 'until grep -q realtime {file}; do sleep 0.2; done'"
    )
    rows = read_rows(root.file(file).content_string)
    # On Debian 13 a manager that runs keeps the hard limit that it was started with.
    written = root.file("/etc/systemd/system.conf.d/90-mlhost.conf").mtime.timestamp()
    booted = int(root.check_output("awk '/^btime/ {print $2}' /proc/stat"))
    kept = written > booted and root.system_info.release.startswith("13")
    assert rows["open files"] == ("65536:524288" if kept else "65536:1048576")


@pytest.mark.parametrize(
    ("cgroup", "most"),
    [
        ("system.slice/trainer.service", "max"),
        ("system.slice/cron.service", "6000"),
        ("user.slice/user-1000.slice", "5000"),
    ],
)
def test_a_cgroup_may_hold_as_many_tasks(cgroup, most, root):
    assert root.file(f"/sys/fs/cgroup/{cgroup}/pids.max").content_string.strip() == most


def test_shared_memory_outlives_a_login(leaves_shared_memory):
    assert leaves_shared_memory()


def test_the_file_of_somebody_else_is_as_it_was(root):
    file = root.file("/etc/systemd/system/trainer.service.d/50-site.conf")
    assert file.content == b"[Service]\nLimitNOFILE=512\nNice=1"
    assert file.mode == 0o640


def test_check_says_the_same(ansible, running, fresh):
    policy = ansible.ansible.get_variables()["mlhost_limits_policy"]
    result = ansible.ansible(
        "mlhost.limits.check", json.dumps({"profile": "none", "policy": policy}), check=False
    )
    told = {}
    for finding in result["findings"]:
        told.setdefault((finding["place"], finding["item"]), []).append(finding["observed"])
    assert (result["summary"]["fail"], result["summary"]["unknown"]) == (0, 0), result["report"]
    assert (
        ":".join(told["service:trainer.service", "nofile"])
        == running("trainer.service")["open files"]
    )
    assert ":".join(told["new-service:system", "nofile"]) == fresh["open files"]
    assert told["new-service:alice", "nofile"] == ["65536", "1048576"]
    assert told["service:user-1000.slice", "tasks"] == ["5000"]
    assert told["logind", "RemoveIPC"] == ["no"]
