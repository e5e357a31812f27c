# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy that is given to Ansible as a text of JSON loses no key before anybody looks."""

from __future__ import annotations

import pytest

from plugins.plugin_utils.kept_action import find_second_keys


@pytest.mark.parametrize(
    ("policy", "problems"),
    [
        (
            '{"kernel": {"a.b": 1, "a.b": 2}}',
            ["policy:1: kernel.a.b is stated a second time; the first is in line 1"],
        ),
        ("[" * 5000, ["policy: is nested deeper than 20 levels"]),
        ('{"kernel": {"a.b": 1}}', []),
        ("kernel=1", []),
        ({"kernel": {"a.b": 1}}, []),
        (None, []),
    ],
)
def test_a_second_key_is_told(policy: object, problems: list[str]) -> None:
    assert find_second_keys(policy) == problems
