# SPDX-License-Identifier: GPL-3.0-or-later
"""What srun prints is heard to its end, and kept as far as anybody reads: a user may write it."""

from __future__ import annotations

import subprocess

import pytest
from mlhost_limits.slurm import measure as slurm_job


def start(script: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe)


def test_both_streams_are_kept() -> None:
    with start("read x; echo out; echo bad >&2; echo more") as process:
        assert slurm_job._hear(process) == (b"out\nmore\n", b"bad\n")
        assert process.poll() == 0


@pytest.mark.slow
def test_no_more_is_kept_than_is_read() -> None:
    script = "head -c 100000000 /dev/zero; head -c 100000000 /dev/zero >&2"
    with start(script) as process:
        out, errors = slurm_job._hear(process)
    assert (len(out), len(errors)) == (slurm_job._MOST_OUTPUT,) * 2


@pytest.mark.slow
def test_who_prints_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_job, "WAIT", 0)
    monkeypatch.setattr(slurm_job, "_SLACK", 0.5)
    for program in (slurm_job._hear, lambda one: slurm_job._watch(one, lambda: None)):
        with start("exec yes") as process:
            if program is slurm_job._hear:
                with pytest.raises(TimeoutError):
                    program(process)
            else:
                assert len(program(process)) <= slurm_job._MOST_OUTPUT + slurm_job._AT_ONCE
            process.kill()
