# SPDX-License-Identifier: GPL-3.0-or-later
"""What was restarted and does not stay up is restarted again once the files are back."""

from __future__ import annotations

import pytest
from mlhost_limits.services import settle as services
from mlhost_limits.services.settle import Settling


class Systemd:
    """A systemd that notes what it is asked, and in which some units break."""

    def __init__(self, broken: set[str], version: int = 252) -> None:
        self.broken = broken
        self.version = version
        self.asked: list[str] = []
        self.looks = 0

    def __call__(self, _program: str, words: list[str], *_: object) -> tuple[int, str]:
        self.asked.append(" ".join(words))
        unit = words[-1]
        if words[0] == "--version":
            return 0, f"systemd {self.version} (x)\n+PAM"
        if words[0] == "restart" and f"{unit}!" in self.broken:
            return 1, "Job failed\nmore"
        if words[0] == "daemon-reload" and "reload" in self.broken:
            return 1, "no bus\n"
        if words[0] == "show":
            self.looks += 1
            ended = unit in self.broken and self.looks > 3
            state = "failed" if ended else "active"
            return 0, f"ActiveState={state}\nSubState={'failed' if ended else 'running'}\n"
        return 0, ""


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd(set())
    monkeypatch.setattr(services, "run_systemd", fake)
    monkeypatch.setattr(services, "_SETTLED", 0.3)
    return fake


def restarts(systemd: Systemd) -> list[str]:
    return [words.split()[1] for words in systemd.asked if words.startswith("restart ")]


def test_everything_comes_back(systemd: Systemd) -> None:
    settle = Settling(True, [1000], True, ["a.service", "b.service"])
    assert settle() == ""
    assert restarts(systemd) == ["a.service", "b.service"]
    assert [words for words in systemd.asked if "reload" in words] == ["daemon-reload"] * 2
    assert "kill --kill-who=main -s HUP systemd-logind" in systemd.asked


def test_an_older_manager_is_executed_anew(systemd: Systemd) -> None:
    systemd.version = 239
    assert Settling(True, [], False, [])() == ""
    assert systemd.asked == ["--version", "daemon-reexec"]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("b.service!", "b.service did not restart: Job failed; see journalctl -u b.service"),
        ("b.service", "b.service does not stay up after its restart (failed); see journalctl -u b.service"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_one_that_breaks_ends_the_run_and_is_restarted_with_the_old_files(
    systemd: Systemd, broken: str, told: str
) -> None:
    systemd.broken = {broken}
    settle = Settling(True, [], False, ["a.service", "b.service", "c.service"])
    assert settle() == told
    systemd.broken = set()
    assert settle() == ""
    assert restarts(systemd) == ["a.service", "b.service"] * 2


def test_a_manager_that_does_not_read_its_files_restarts_nothing(systemd: Systemd) -> None:
    systemd.broken = {"reload"}
    assert Settling(True, [], False, ["a.service"])() == "systemd did not read its files: no bus"
    assert restarts(systemd) == []
