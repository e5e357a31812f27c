# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages and GPUs of a run are looked at, and what is not there never ends the check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.training import gpus_check as module
from mlhost_limits.training.gpus_check import check_gpus, read_gpus
from mlhost_limits.training.packages_check import check_packages
from mlhost_limits.training.policy import Gpus, Training

TWO = """0, GPU-a, NVIDIA A100, 81920, 4, Enabled, Disabled
1, GPU-b, NVIDIA A100, 81920, 4, Enabled, Disabled"""


def look(**stated: Any) -> list[tuple[str, str]]:
    training = Training(packages={"pytest": "", "no-such-thing": ""}, **stated)
    found = check_packages(training)
    return [(one.status, one.observation.reason) for one in found]


def test_the_interpreter_of_this_process_is_asked_where_none_is_named() -> None:
    assert [status for status, _reason in look()] == ["fail", "pass"]
    assert not list(check_packages(Training()))


def test_an_interpreter_that_is_not_there_is_unknown() -> None:
    reason = "/none/python could not be asked: /none/python: No such file or directory"
    assert look(python="/none/python") == [("unknown", reason)] * 2
    assert look(user="no-such-user") == [("unknown", "this host has no user no-such-user")] * 2
    assert look(place="container:docker/x")[0][1].endswith("run the check there")


def make_program(folder: Path, gpus: str, apps: str = "", status: int = 0) -> tuple[str, ...]:
    """Make a program that answers as nvidia-smi does."""
    program = folder / "nvidia-smi"
    program.write_text(
        f"#!/bin/sh\ncase $1 in --query-gpu=*) cat <<'X'\n{gpus}\nX\n;; *) cat <<'X'\n{apps}\nX\n;;"
        f" esac\nexit {status}\n"
    )
    program.chmod(0o755)
    return ("/none/nvidia-smi", str(program))


def test_the_driver_is_asked(tmp_path: Path) -> None:
    gpus, processes = read_gpus(make_program(tmp_path, TWO, "GPU-a, 17, python, 400"))
    assert [one.number for one in gpus] == [0, 1]
    assert [one.pid for one in processes] == [17]


@pytest.mark.parametrize(
    ("text", "status", "error"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate",
            9,
            "nvidia-smi: NVIDIA-SMI has failed",
        ),
        ("", 3, "nvidia-smi: ended with status 3"),
        ("No devices were found", 0, "nvidia-smi says: No devices were found"),
    ],
)
def test_a_driver_that_does_not_answer_is_said(
    tmp_path: Path, text: str, status: int, error: str
) -> None:
    with pytest.raises((OSError, ValueError), match=error):
        read_gpus(make_program(tmp_path, text, status=status))


def test_a_driver_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    with pytest.raises(OSError, match="did not end within"):
        read_gpus((str(program),), seconds=0.3)


def test_no_driver_is_unknown_and_none_is_asked_where_none_is_needed() -> None:
    (finding,) = check_gpus(Training(gpus=Gpus(1, None)))
    assert finding.status == "unknown"
    assert finding.observation.reason.startswith("nvidia-smi ")
    assert not list(check_gpus(Training()))


def test_the_variable_of_this_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = make_program(tmp_path, TWO)
    monkeypatch.setattr(module, "read_gpus", lambda: read_gpus(programs))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    here = Training(gpus=Gpus(2, 2**30))
    assert [one.status for one in check_gpus(here)][:2] == ["fail", "pass"]
    elsewhere = here._replace(place="session:root@sshd")
    assert {one.status for one in check_gpus(elsewhere)} == {"pass"}
