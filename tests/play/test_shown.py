# SPDX-License-Identifier: GPL-3.0-or-later
"""What people see of a check by Ansible is its report; what programs get is its data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugins.plugin_utils.shown import Audience, format_block

from .plays import ASKED, LATE, SHORT, check, include, play, provision, run

HEAD = "here: 1 of 1 requirement falls short, for one reason\n1    kernel: vm.max_map_count "
ADHOC = ("ansible", "all", "-m", "mlhost.limits.check", "-a")
WORDS = json.dumps({"profile": "none", "policy": SHORT})


def test_an_adhoc_check_is_a_report_and_a_screen_of_data(tmp_path: Path) -> None:
    done = run(tmp_path, *ADHOC, WORDS)
    assert done.returncode == 2
    assert HEAD in done.stdout
    fix = "     fix  ansible-playbook mlhost.limits.provision, or role mlhost.limits.kernel\n"
    assert fix in done.stdout
    result = json.loads(done.stdout[done.stdout.index(" => {") + 4 :])
    head = {"format", "version", "host", "policy"}
    assert set(result) == {*head, "changed", "measured", "msg", "reasons", "summary"}
    assert len(done.stdout.splitlines()) < 40
    report = done.stdout[: done.stdout.index("[ERROR]")].splitlines()
    assert max(map(len, report)) <= 80


@pytest.mark.parametrize("words", [("--one-line",), ("--tree", "left")])
def test_programs_get_all_data_and_no_report(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, *ADHOC, WORDS, *words)
    assert "here: 1 of 1" not in done.stdout
    assert '"findings": ' in done.stdout


def test_a_play_shows_what_nobody_keeps_and_keeps_what_is_registered(tmp_path: Path) -> None:
    kept = "found.findings | length == 1 and found.report and found.brief and not never.changed"
    done = play(
        tmp_path,
        [
            {**check(fail_on="never"), "name": "shown"},
            {**check(fail_on="never"), "name": "kept", "register": "found"},
            {**check(fail_on="never", display="always"), "name": "both", "register": "found"},
            {**check(fail_on="never", display="never"), "name": "never", "register": "never"},
            {"ansible.builtin.assert": {"that": kept}, "name": "data"},
            {**check(policy={"kernel": {"fs.file-max": 1}}), "name": "met"},
            {**check(), "name": "failed", "register": "found"},
        ],
    )
    told = dict(part.split("]", 1) for part in done.stdout.split("TASK [")[1:])
    assert "failed=1" in told["failed"], done.stdout + done.stderr
    shown = [name for name, text in told.items() if "requirement" in text.split("fatal:")[0]]
    assert shown == ["shown", "both", "failed"]
    assert HEAD in told["failed"]


def test_a_failed_task_nobody_registers_is_short_in_yaml_too(tmp_path: Path) -> None:
    done = play(tmp_path, [check()], ANSIBLE_CALLBACK_RESULT_FORMAT="yaml")
    assert HEAD in done.stdout
    after = done.stdout[done.stdout.index("fatal:") : done.stdout.index("PLAY RECAP")]
    assert "msg: '1 of 1 requirement falls short" in after
    assert len(after.splitlines()) < 20


def test_no_log_shows_nothing(tmp_path: Path) -> None:
    told = [{**check(), "no_log": "{{ true }}", "ignore_errors": True}, {**check(), "no_log": True}]
    for words in ({}, {"ANSIBLE_NO_LOG": "1"}):
        tasks = told if not words else [check()]
        done = play(tmp_path, tasks, **words)
        assert "censored" in done.stdout
        assert "     why  " not in done.stdout


def test_each_item_of_a_loop_shows_its_report(tmp_path: Path) -> None:
    done = play(tmp_path, [{**check(fail_on="never"), "loop": [1, 2]}])
    assert done.stdout.count(HEAD) == 2


def test_verbose_shows_every_finding(tmp_path: Path) -> None:
    policy = {"kernel": {"fs.file-max": 1}}
    done = run(tmp_path, *ADHOC, json.dumps({"profile": "none", "policy": policy}), "-v")
    assert "\n1 pass, 0 fail, 0 unknown\n" in done.stdout


@pytest.mark.parametrize("callback", ["json", "ansible.posix.jsonl", "null", "oneline"])
def test_a_callback_for_programs_displays_nothing(callback: str) -> None:
    audience = Audience({}, callback, False, "auto")
    assert audience.pick_lines({"failed": True, "brief": ["a"], "findings": [], "report": []}) == ()
    assert audience.keeps_data()


@pytest.mark.parametrize("callback", ["default", "minimal", "yaml", "awx_display"])
def test_a_callback_for_people_displays_the_report(callback: str) -> None:
    audience = Audience({}, callback, False, "auto")
    done = {"failed": True, "brief": ["a"], "findings": [], "report": []}
    assert list(audience.pick_lines(done)) == ["a"]
    assert not audience.keeps_data()


def test_a_host_steers_no_terminal() -> None:
    assert format_block("a", ["b\x1b[2J", "c\rd"]) == "a: b?[2J\nc?d"
    assert format_block("a" * 60, ["b" * 30]) == "a" * 60 + ":\n" + "b" * 30


def test_a_role_says_what_check_mode_cannot_know_and_measures_where_it_can(tmp_path: Path) -> None:
    role = include("kernel", profile="none", policy=ASKED)
    first = play(tmp_path, [role], "--check", before=LATE)
    assert "skipping: [here]" in first.stdout, first.stdout + first.stderr
    said = " ".join((first.stdout + first.stderr).split())
    beats = 'here: /etc/sysctl.d/99-late.conf:1 "vm.max_map_count = 60000" beats our'
    assert f"[WARNING]: {beats}" in said
    assert "[WARNING]: here: check mode wrote nothing" in said
    called = {**role["ansible.builtin.include_role"], "apply": {"check_mode": True}}
    asks = {**role, "ansible.builtin.include_role": called}
    again = play(tmp_path, [role, asks], before=LATE)
    assert "skipping" not in again.stdout, again.stdout + again.stderr
    report = "here: 1 of 1 requirement is met; 1 will fall short after a boot, for one reason"
    assert again.stdout.count(report) == 2
    assert "ansible-playbook mlhost.limits.provision" not in again.stdout
    assert "check mode wrote nothing" not in again.stderr + again.stdout


def test_provision_says_in_a_line_what_it_did(tmp_path: Path) -> None:
    done = play(
        tmp_path,
        [
            {**provision(policy=ASKED, sections=["kernel"]), "register": "made"},
            {"ansible.builtin.debug": {"var": "made.msg"}},
        ],
        before=LATE,
    )
    assert '"made.msg": "changed 1 file; one line of others beats ours"' in done.stdout, (
        done.stdout + done.stderr
    )
