# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is promised of a Podman that does not do what its files say."""

from __future__ import annotations

import pytest
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.host.look import Look
from mlhost_limits.podman import diagnose as explain_podman
from mlhost_limits.podman.causes import PodmanFacts
from mlhost_limits.podman.containers_conf import read_conf
from mlhost_limits.podman.policy import PodmanPolicy

SIZE = 2**30
WANTED = Requirement("new-container:podman", "shm_size", "value", SIZE, unit="bytes")
CONF = "/etc/containers/containers.conf.d/90-mlhost.conf"


@pytest.mark.parametrize(
    ("stated", "codes", "after_boot"),
    [(SIZE, [], "unknown"), (SIZE // 2, ["podman-conf-line"], "fail")],
)
def test_what_a_boot_gives_is_unknown_where_files_do_not_count(
    stated: int, codes: list[str], after_boot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain_podman, "find_nr_open_at_boot", lambda _look: 1048576)
    text = f'[containers]\nshm_size = "{stated}"\n'
    facts = PodmanFacts((read_conf(CONF, text),), 1048576)
    seen = judge(WANTED, Observation(65536000, "canary container"))
    (told,) = explain_podman.explain_podman([seen], PodmanPolicy({}, SIZE), facts, Look())
    assert [cause.code for cause in told.causes] == codes
    assert told.outlook.after_boot == after_boot
