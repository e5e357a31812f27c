# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages as people write them in public threads: the reason that ended them is told first.

They were known when the rules were written, so they count for no figure.
"""

from __future__ import annotations

import json

import pytest
from mlhost_limits.why.log_text import Words
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.verdict import FITS, judge_words

from tests.why.corpus import HERE

ROWS = [(row["expected"], row["text"]) for row in json.loads((HERE / "public.json").read_text())]


@pytest.mark.parametrize(("expected", "text"), ROWS)
def test_a_message_of_a_thread_is_understood(expected: str, text: str) -> None:
    verdict = judge_words(Words(text))
    assert verdict
    assert verdict.reason.code == expected
    if not REASONS[expected].is_limit:
        assert verdict.is_limit is not True


@pytest.mark.parametrize(
    "text",
    [
        "INFO setrlimit: raised nofile to 65536",
        "OSError: [Errno 28] No space left on device: '/scratch/ckpt'\nINFO namespace default",
        "ValueError: the solver stopped due to time limit",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Hardware limit: 101376",
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        "RuntimeError: HIP error: out of memory",
        "zmq.error.Again: Resource temporarily unavailable while the thread waited in recv",
        "requests.exceptions.HTTPError: 413 Client Error: file too large for this endpoint",
        "epoch 137 done; 3 jobs killed last night\nKeyError: 'x'",
    ],
)
def test_what_only_sounds_like_a_limit_is_not_blamed(text: str) -> None:
    verdict = judge_words(Words(text))
    assert verdict is None or not (verdict.sure == FITS and verdict.reason.is_limit)
    assert verdict is None or verdict.is_limit is not True


def test_nothing_is_told_of_a_run_that_says_nothing() -> None:
    for text in ("", "\n\n", "loss 0.137\n" * 50, "\0\xff\x1b[31m", "done"):
        assert judge_words(Words(text)) is None
