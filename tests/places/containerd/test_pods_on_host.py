# SPDX-License-Identifier: GPL-3.0-or-later
"""Real pods of containerd's CRI are found by their cgroups, judged, blamed, and mended as printed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.host import guest
from tests.host.connection import Host
from tests.host.cri import PREPARE, Cri, reach
from tests.host.library import carry

pytestmark = pytest.mark.host

NOFILE = {"soft": 65536, "hard": 1048576}
POLICY = {"containers": {"containerd": {"limits": {"nofile": NOFILE, "memlock": "unlimited"}}}}
OLD, NEW = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with guest.running("bookworm") as fresh:
        carry(fresh)
        fresh.run(PREPARE, timeout=600)
        yield fresh


@pytest.fixture(scope="module")
def cri(host: Host) -> Iterator[Cri]:
    with reach(host) as opened:
        yield opened


def look(host: Host) -> list[dict[str, Any]]:
    text = shlex.quote(json.dumps(POLICY))
    words = "check --profile none --policy /root/policy.json --json"
    done = host.run(
        f"echo {text} > /root/policy.json; cd /opt; PYTHONPATH=/opt python3 -m mlhost_limits.cli {words}",
        check=False,
    )
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return [one for one in findings if one["item"] == "memlock"]


def at(findings: list[dict[str, Any]], uid: str) -> list[dict[str, Any]]:
    return [one for one in findings if one["place"].startswith(f"container:kubernetes/{uid}/")]


def test_a_pod_is_judged_blamed_and_mended_by_containerds_unit(host: Host, cri: Cri) -> None:
    cri.run_pod("old", OLD)
    pods = at(look(host), OLD)
    assert len(pods) == 4  # The container and the pause beside it, soft and hard.
    for pod in pods:
        assert (pod["status"], pod["observed"]) == ("fail", "8MiB")
        assert pod["causes"][0]["code"] == "unit-not-stated"
    commands = pods[0]["causes"][0]["remedy"]["commands"]
    host.run("\n".join(shlex.join(command) for command in commands), timeout=300)
    cri.run_pod("new", NEW)
    found = look(host)
    assert {one["status"] for one in at(found, NEW)} == {"pass"}
    old = at(found, OLD)
    assert {one["status"] for one in old} == {"fail"}
    codes = [[cause["code"] for cause in one["causes"]] for one in old]
    assert codes == [["containerd-container-older"]] * 4
    (new,) = {one["status"] for one in found if one["place"] == "new-container:containerd"}
    assert new == "pass"


def test_a_process_of_a_pod_is_traced_to_its_container(host: Host, cri: Cri) -> None:
    container = cri.run_pod("traced", "33333333-2222-3333-4444-555555555555")
    pid = f"$(pgrep -f 'sleep 99999' | while read p; do grep -q {container} /proc/$p/cgroup && echo $p; done)"
    command = f"cd /opt; PYTHONPATH=/opt python3 -m mlhost_limits.cli explain process:{pid} nofile"
    told = "".join(host.run(command).stdout.split())
    assert f"kubernetes/33333333-2222-3333-4444-555555555555/{container[:12]}" in told
