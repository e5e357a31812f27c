# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that runs by itself brings the library, and starts as safely as one that is waited for.

What asks how far it is (``async_status``) is Ansible's own, and with pipelining imports from the
folder that it starts in; so none is on here, but where nothing asks.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .plays import check, play, run

PLANTED = ("__future__", "json", "hashlib", "tempfile", "traceback", "runpy", "zipfile", "ansible")
COMMON = {"async": 60, "poll": 1}


@pytest.fixture(autouse=True)
def _planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of somebody's in the folder that all starts in; each tells of itself."""
    monkeypatch.setenv("ANSIBLE_PIPELINING", "0")
    for name in PLANTED:
        text = f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n"
        (tmp_path / f"{name}.py").write_text(text)


def imported(folder: Path) -> bool:
    return os.path.exists(folder / "imported")


def test_a_task_with_async_imports_nothing_from_where_it_starts(tmp_path: Path) -> None:
    done = play(tmp_path, [{**check(), **COMMON}])
    assert done.returncode == 2
    assert "vm.max_map_count" in done.stdout
    assert "Traceback" not in done.stdout
    assert not imported(tmp_path)


def test_a_job_that_nobody_waits_for_gives_its_result_later(tmp_path: Path) -> None:
    late = [
        {**check(), "async": 60, "poll": 0, "register": "job"},
        {
            "ansible.builtin.async_status": {"jid": "{{ job.ansible_job_id }}"},
            "register": "end",
            "until": "end is finished",
            "retries": 60,
            "delay": 1,
            "failed_when": False,
        },
        {"ansible.builtin.debug": {"msg": "found={{ end.summary.fail }}."}},
    ]
    done = play(tmp_path, late)
    assert "found=1." in done.stdout, done.stdout
    assert not imported(tmp_path)


def test_with_pipelining_too_the_task_itself_imports_nothing(tmp_path: Path) -> None:
    wait = {"ansible.builtin.pause": {"seconds": 3}}
    play(tmp_path, [{**check(), "async": 60, "poll": 0}, wait], ANSIBLE_PIPELINING="1")
    assert not imported(tmp_path)


def test_it_is_so_from_a_command_line_too(tmp_path: Path) -> None:
    told = json.dumps({"profile": "none", "policy": {"kernel": {"vm.max_map_count": 1}}})
    words = ("ansible", "all", "-m", "mlhost.limits.check", "-a", told, "-B", "60", "-P", "1")
    done = run(tmp_path, *words)
    assert "1 of 1 requirement is met" in done.stdout, done.stdout
    assert not imported(tmp_path)
