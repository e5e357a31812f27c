# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's values are at least what the policy promises, and none was lowered."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/sysctl.d/*.conf",
    "systemctl status --no-pager systemd-sysctl",
)

MINIMA = {"fs.file-max": 2097152, "fs.nr_open": 1048576, "vm.max_map_count": 262144}


@pytest.fixture(scope="module")
def before(root):
    """Return the values of the same keys before anything was provisioned."""
    files = " ".join(f"/root/proc/sys/{key.replace('.', '/')}" for key in MINIMA)
    return dict(zip(MINIMA, map(int, root.check_output(f"cat {files}").split())))


@pytest.mark.parametrize("key", MINIMA)
def test_a_value_is_high_enough(key, kernel):
    assert kernel[key] >= MINIMA[key]


@pytest.mark.parametrize("key", MINIMA)
def test_a_value_is_not_below_what_it_was(key, kernel, before):
    assert kernel[key] >= before[key]
