# SPDX-License-Identifier: GPL-3.0-or-later
"""An option is named as whoever reads a message has to write it."""

from __future__ import annotations

import pytest
from mlhost_limits.core.option_names import FLAG, NamedWith, name_option, switch_on


@pytest.mark.parametrize(
    ("prefix", "name", "switch"),
    [
        ("", "slurm_conf", "slurm_conf: true"),
        ("mlhost_limits_", "mlhost_limits_slurm_conf", "mlhost_limits_slurm_conf: true"),
        (FLAG, "--slurm-conf", "--slurm-conf"),
    ],
)
def test_an_option_has_the_name_that_its_reader_writes(prefix: str, name: str, switch: str) -> None:
    with NamedWith(prefix):
        assert (name_option("slurm_conf"), switch_on("slurm_conf")) == (name, switch)


def test_a_prefix_holds_within_its_block_alone() -> None:
    with pytest.raises(ValueError, match="x"), NamedWith(FLAG):
        raise ValueError("x")
    assert name_option("override") == "override"
