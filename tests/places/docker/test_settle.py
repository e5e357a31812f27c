# SPDX-License-Identifier: GPL-3.0-or-later
"""dockerd judges a daemon.json; one that cannot be run judges nothing, and no run ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.docker import settle as docker
from mlhost_limits.docker import unit_read
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.settle import Verdict, ask_dockerd, find_dockerd, find_trouble
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

FLAGS = [
    Flag("debug", "", "/u", 3),
    Flag("config-file", "/x", "/u", 3),
    Flag("group", "g", "/u", 3),
]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "dockerd"
    monkeypatch.setattr(unit_read, "PROGRAMS", (str(path),))
    monkeypatch.setattr(docker, "_TIME_LIMIT", 5.0)
    return path


def install(program: Path, text: str) -> None:
    program.write_text(text)
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("lines", "refusal"),
    [
        ("echo configuration OK", ""),
        ("echo 'unknown flag: --validate' >&2; exit 125", ""),
        ("echo; echo 'unable to configure: EOF' >&2; exit 1", "unable to configure: EOF"),
        ("exit 1", "no message"),
        ('echo "$*" | sed "s/ .*json / FILE /"; exit 1', "--validate FILE --debug --group=g"),
    ],
)
@pytest.mark.root
def test_what_dockerd_says_is_its_verdict(program: Path, lines: str, refusal: str) -> None:
    install(program, f"#!/bin/sh\n{lines}\n")
    said = f"dockerd refuses the new daemon.json: {refusal}" if refusal else ""
    assert ask_dockerd(b"{}", FLAGS) == Verdict(said)
    assert find_trouble() == ""


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("\x7fELF half of it", "Exec format error"),
        ("#!/nowhere/sh\n", "No such file or directory"),
        ("#!/bin/sh\nkill -SEGV $$\n", "was ended by signal 11"),
        ("#!/bin/sh\nexec sleep 60\n", "did not end within 0 s"),
    ],
)
@pytest.mark.root
def test_a_program_that_does_not_run_has_no_verdict(
    program: Path, monkeypatch: pytest.MonkeyPatch, text: str, trouble: str
) -> None:
    """Neither a refusal nor a pass: why it could not be asked."""
    if "sleep" in text:
        monkeypatch.setattr(docker, "_TIME_LIMIT", 0.2)
    install(program, text)
    said = ask_dockerd(b"{}", ())
    assert said.refusal == ""
    assert said.trouble.endswith(trouble)
    assert find_trouble() == said.trouble


def test_without_a_program_nothing_is_asked(program: Path) -> None:
    assert (ask_dockerd(b"{}", ()), find_trouble()) == (Verdict(), "")
    program.mkdir()
    assert find_dockerd() is None


@pytest.mark.parametrize(
    ("main", "loads", "masked"),
    [
        (None, False, False),
        (Source("/etc/systemd/system/docker.service", ""), True, True),
        (Source("/lib/systemd/system/docker.service", "[Service]\n"), True, False),
    ],
)
def test_a_unit_without_a_file_does_not_load_and_an_empty_one_masks(
    monkeypatch: pytest.MonkeyPatch, main: Source | None, loads: bool, masked: bool
) -> None:
    monkeypatch.setattr(docker, "find_dockerd", lambda: None)
    monkeypatch.setattr(docker, "read_unit_files", lambda _unit: Files(main))
    service = docker.read_service(None)
    assert (service.unit, service.program, service.pid) == ("docker.service", False, 0)
    assert (service.loads, service.masked) == (loads, masked)
