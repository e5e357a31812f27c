# SPDX-License-Identifier: GPL-3.0-or-later
"""What sudoers(5) states of limits and of PAM is read as sudo reads it."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.sessions.sudoers import MAIN_FILE, SudoSetting, find_sudo_settings


def find(text: str) -> list[SudoSetting]:
    found: list[SudoSetting] = find_sudo_settings({MAIN_FILE: text})
    return found


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        ("0", Rlimit(0, 0)),
        ("5", Rlimit(5, 5)),
        ('"5,7"', Rlimit(5, 7)),
        ('"5, infinity"', Rlimit(5, UNLIMITED)),
        ('"5,7,9"', None),
        ("user", None),
        ('"5,user"', None),
    ],
)
def test_the_numbers_of_a_limit(value: str, limit: Rlimit | None) -> None:
    (found,) = find(f"Defaults rlimit_nofile={value}")
    assert (found.item, found.limit) == ("nofile", limit)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Defaults !pam_session", [""]),
        ("Defaults !!pam_session", []),
        ("Defaults !!!pam_session", [""]),
        ("Defaults !rlimit_nofile", []),
        ("Defaults !!rlimit_nofile=5", ["nofile"]),
        ("Defaults !!!rlimit_nofile=5", []),
    ],
)
def test_each_mark_turns_the_meaning_round(text: str, items: list[str]) -> None:
    assert [one.item for one in find(text)] == items


def test_a_backslash_takes_nothing_but_itself() -> None:
    (found,) = find("# a\nDefaults rlimit_nofile=57\\\n\nDefaults env_reset\n")
    assert (found.limit, found.at.line) == (Rlimit(57, 57), 2)
