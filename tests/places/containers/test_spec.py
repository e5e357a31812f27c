# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime was given is read in its own form, or refused in one sentence."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.spec import read_spec


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"process": []}',
        '{"process": {"rlimits": [1]}}',
        '{"process": {"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1e999, "hard": 1}]}}',
        '{"process": {}, "linux": {"resources": {"pids": {"limit": 1e999}}}}',
        '{"process": {}, "linux": {"resources": {"pids": {"limit": "x"}}}}',
    ],
)
def test_what_is_no_specification_is_refused(text: str) -> None:
    """Whoever made the container may have written it, and its words end no look at others."""
    with pytest.raises(ValueError, match=r".+"):
        read_spec(text)
