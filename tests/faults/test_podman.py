# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of containers.conf is named by its line, and its remedy works, on a host with Podman."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.host.snapshot import Snapshot

from .base import saved_host
from .fault import Fault
from .of_podman import FAULTS, POLICY, RELEASE
from .trial import try_fault

PROVISION = f"""
import json
from mlhost_limits.policy.schema import load_policy
from mlhost_limits.provision import Options, provision
policy = load_policy(json.loads({json.dumps(POLICY)!r}), "none")
provision(policy, Options(sections=("podman",)))
"""


@pytest.fixture(scope="module")
def saved() -> Iterator[Snapshot]:
    with saved_host(RELEASE, f"PYTHONPATH=/opt python3 -c {shlex.quote(PROVISION)}") as host:
        yield host


@pytest.mark.host
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_named_and_mended(saved: Snapshot, fault: Fault) -> None:
    result = try_fault(saved, fault, RELEASE)
    assert (result.named, result.remedied) == (True, True), "\n".join(result.wrong + result.report)
