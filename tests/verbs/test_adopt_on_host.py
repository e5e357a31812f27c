# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy that is adopted from a real host is green there, and asks for what is in effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.host import guest, library

pytestmark = pytest.mark.host

SITE = """
printf '* soft nofile 65536\\n* hard nofile 1048576\\n' > /etc/security/limits.d/90-peers.conf
printf 'root - nofile 131072\\nalice hard nproc 3000\\n' >> /etc/security/limits.d/90-peers.conf
echo 'vm.max_map_count = 300000' > /etc/sysctl.d/90-peers.conf
sysctl --quiet --load /etc/sysctl.d/90-peers.conf
"""
ADOPT = """
export PYTHONPATH=/opt
python3 -m mlhost_limits.cli adopt > /root/policy.yml && cat /root/policy.yml
"""
CHECK = (
    "PYTHONPATH=/opt python3 -m mlhost_limits.cli check --profile none --policy /root/policy.yml"
)


def test_what_a_site_has_set_is_adopted_and_green() -> None:
    with guest.running() as host:
        library.carry(host, {"yaml": Path(yaml.__file__).parent})
        host.run(SITE)
        adopted = yaml.safe_load(host.run(ADOPT).stdout)
        assert adopted["kernel"] == {"vm.max_map_count": {"exact": 300000}}
        asked = {name: rule["limits"] for rule in adopted["sessions"] for name in rule["users"]}
        assert asked["*"] == {"nofile": {"soft": 65536, "hard": 1048576}}
        assert asked["root"] == {"nofile": 131072}
        assert asked["alice"] == {"nproc": {"hard": 3000}}
        done = host.run(CHECK, check=False)
        assert done.returncode == 0, done.stdout
        assert re.match(r"([0-9]+) of \1 requirements? (?:is|are) met\n", done.stdout), done.stdout
