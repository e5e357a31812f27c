# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable by a name that nobody reads any more is told, and no host is touched for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.plugin_utils import old_words

from .plays import play, run

PLAYBOOKS = str(Path(old_words.__file__).parents[2] / "playbooks")


@pytest.mark.parametrize("playbook", ["provision", "audit", "preflight"])
def test_a_playbook_refuses_words_of_before(tmp_path: Path, playbook: str) -> None:
    words = ("-e", "target=here", "-e", '{"limits_policy": {}}')
    done = run(tmp_path, "ansible-playbook", f"mlhost.limits.{playbook}", *words)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2
    assert "-e target: nobody reads it; accepted is mlhost_limits_target" in said
    assert "-e limits_policy: nobody reads it; accepted is mlhost_limits_policy" in said
    assert not list(tmp_path.glob("*audit*"))


def test_a_site_has_such_names_for_its_own_ends(tmp_path: Path) -> None:
    task = {"mlhost.limits.check": {"profile": "none", "policy": {"kernel": {"fs.file-max": 1}}}}
    done = play(tmp_path, [task], "-e", "state=CA")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("role", "verb", "prefix"),
    [
        ("mlhost.limits.host", "provision", "mlhost_limits_"),
        ("mlhost.limits.monitor", "monitor", "mlhost_limits_monitor_"),
        ("site.base.limits", "provision", ""),
        ("", "provision", ""),
    ],
)
def test_a_role_of_ours_has_variables_with_a_prefix(role: str, verb: str, prefix: str) -> None:
    assert old_words.find_prefix(role, verb) == prefix


def test_every_name_of_before_has_one_of_now() -> None:
    told = old_words.find_old_words(["state", "strict", "mlhost_limits_state", "x"], PLAYBOOKS)
    assert told == [
        "-e state: nobody reads it; accepted is mlhost_limits_state",
        "-e strict: nobody reads it; accepted is mlhost_limits_fail_on=unknown",
    ]
    assert old_words.find_old_words(["state"], "/elsewhere") == []
