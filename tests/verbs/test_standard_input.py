# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy may come on standard input, whole and within a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from mlhost_limits import cli
from mlhost_limits.host import policy_file

POLICY = b'{"kernel": {"vm.max_map_count": 1}}'


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Let both ends of a pipe stand for standard input and who writes to it."""
    reader, writer = os.pipe()
    real = policy_file._read_stdin
    monkeypatch.setattr(policy_file, "_read_stdin", lambda _handle, seconds: real(reader, seconds))
    yield reader, writer
    os.close(reader)


def test_a_policy_is_read_to_its_end(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    def write() -> None:
        for part in (POLICY[:9], POLICY[9:]):
            os.write(pipe[1], part)
        os.close(pipe[1])

    writer = threading.Thread(target=write)
    writer.start()
    words = ["check", "--profile", "none", "--policy", "-"]
    assert cli.main(words) == 0
    writer.join()
    assert "1 of 1 requirement is met" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "-: is empty, so nothing would be required"),
        (b"{", "-:1: is neither JSON nor YAML"),
        (b" " * (2**20 + 1), "standard input: is larger than 1 MiB"),
        (None, "standard input: did not end within 0.1 s; a policy is expected there"),
    ],
    ids=["empty", "broken", "large", "endless"],
)
def test_what_is_no_policy_is_a_sentence(
    pipe: tuple[int, int],
    content: bytes | None,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_file, "PATIENCE", 10.0 if content is not None else 0.1)

    def write() -> None:
        if content is not None:
            with os.fdopen(pipe[1], "wb") as file:
                file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    assert cli.main(["check", "--policy", "-"]) == 2
    writer.join()
    error = capsys.readouterr().err
    assert error.startswith("mlhost-limits: ")
    assert told in error
