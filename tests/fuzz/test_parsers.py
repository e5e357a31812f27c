# SPDX-License-Identifier: GPL-3.0-or-later
"""Every parser takes any text: it reads it, or refuses it in one sentence, in linear time."""

from __future__ import annotations

import os
import resource
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .targets import FRAGMENTS, TARGETS, feed

TEXTS = st.one_of(
    st.lists(st.sampled_from(list(FRAGMENTS)), max_size=30).map("".join),
    st.lists(st.one_of(st.sampled_from(list(FRAGMENTS)), st.text(max_size=5)), max_size=20).map(
        "".join
    ),
    st.text(max_size=200),
    st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")),
)


@pytest.mark.parametrize("name", TARGETS)
def test_any_text_is_read_or_refused_in_one_sentence(name: str) -> None:
    @settings(max_examples=300)
    @given(text=TEXTS)
    def run(text: str) -> None:
        feed(name, text)

    run()


LARGEST = 2**15
CPU_SECONDS = 10
MEMORY = 500 * 2**20


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=repr)
def test_much_of_anything_ends(fragment: str) -> None:
    """A parser whose time grows with the square of its input does not end in time for this."""
    text = (fragment * (LARGEST // len(fragment) + 1))[:LARGEST]
    pid = os.fork()
    if pid == 0:
        run_limited(text)
    status = os.waitpid(pid, 0)[1]
    assert not os.WIFSIGNALED(status), f"ended by signal {os.WTERMSIG(status)}"
    assert os.WEXITSTATUS(status) == 0


def run_limited(text: str) -> None:
    """Feed every parser, killed by the kernel when it takes too much. Runs in a child."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    status = 1
    try:
        for name in TARGETS:
            os.write(2, f"{name}\n".encode())
            feed(name, text)
        status = 0
    except BaseException as exc:
        os.write(2, f"{type(exc).__name__}: {str(exc)[:500]}\n".encode())
    finally:
        os._exit(status)
