# SPDX-License-Identifier: GPL-3.0-or-later
"""What a whole run of the tests says of its own length."""

from __future__ import annotations

import pytest

from tests import run


def test_a_whole_that_takes_too_long_fails_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "list_steps", lambda *_given: [run.Step("nothing", ["true"])])
    assert run.main(["--minutes", "45"]) == 0
    assert run.main(["--minutes", "0"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("the whole took 0 minutes, and may take 0: a step above has to")
    assert said[-1] == "1 passed, 0 failed"


def test_a_part_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "list_steps", lambda *_given: [run.Step("nothing", ["true"])])
    assert run.main(["unit", "--minutes", "0"]) == 0


def test_the_limit_is_that_of_the_file() -> None:
    assert run.describe_lateness(60 * 45, 45) == ""
    assert "took 46 minutes, and may take 45" in run.describe_lateness(60 * 45 + 50, 45)
