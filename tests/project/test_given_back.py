# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits and sysctl files: provisioning twice is once, and removing gives back every byte."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.edit import Edit
from mlhost_limits.core.reader import Limit
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.kernel.policy import KernelValue
from mlhost_limits.sessions.pam_limits import DROP_IN, LIMITS_CONF
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions
from mlhost_limits.sessions.policy import SessionRule

from tests.worlds.limits_files import LIMITS, SYSCTLS

Files = dict[str, str]

WORDS = st.lists(
    st.sampled_from(
        [
            *("* soft nofile 10", "* hard nofile 20", "root - nofile 5", "@hpc hard nofile 7"),
            *("alice -", "* - core 0", "* soft nofile 10 # why", "#", "", " ", "# END", "\x00"),
            *("vm.max_map_count = 1", "fs.file-max=2", "-kernel.x", "vm/max_map_count=3", "\xe9"),
            *("y" * 1100, "\x0c* soft nofile 3", "* soft nofile 4\x0b", "* soft nofile 6\x85x"),
        ]
    ),
    max_size=6,
)
TEXTS = st.builds(
    lambda lines, end, last: end.join(lines) + last,
    WORDS,
    st.sampled_from(["\n", "\r\n", "\n\n", "\r"]),
    st.sampled_from(["", "\n", "\r\n", "\r"]),
)


def trees(corpus: dict[str, tuple[str, ...]]) -> st.SearchStrategy[Files]:
    """Return files: of each path none, one that is known, or anything."""
    absent = st.none()
    return st.fixed_dictionaries(
        {path: absent | st.sampled_from(texts) | TEXTS for path, texts in corpus.items()}
    ).map(lambda files: {path: text for path, text in files.items() if text is not None})


def apply(files: Files, edits: Iterable[Edit]) -> Files:
    after = dict(files)
    for edit in edits:
        assert edit.before == (files[edit.path].encode("latin-1") if edit.path in files else None)
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after.decode("latin-1")
    return after


RULES = st.lists(
    st.builds(
        SessionRule,
        st.sampled_from([("*",), ("*", "root"), ("alice", "@hpc"), ("1000:",)]),
        st.dictionaries(
            st.sampled_from(["nofile", "nproc", "core"]),
            st.integers(1, 60).map(lambda value: Limit(1024 * value, 2048 * value)),
            min_size=1,
        ),
    ),
    min_size=1,
    max_size=2,
).map(tuple)
SESSIONS = st.builds(SessionsOptions, st.sampled_from([DROP_IN, LIMITS_CONF]), st.booleans())
DIALECTS = st.builds(Dialect, wildcard_root=st.booleans(), line_length=st.sampled_from([0, 1024]))


@settings(max_examples=300)
@given(trees(LIMITS), RULES, RULES, SESSIONS, SESSIONS, DIALECTS)
@pytest.mark.slow
def test_limits_files_come_back(
    files: Files,
    earlier: tuple[SessionRule, ...],
    rules: tuple[SessionRule, ...],
    earlier_options: SessionsOptions,
    options: SessionsOptions,
    dialect: Dialect,
) -> None:
    """In a drop-in or a block, with lines of others made ineffective or not, after one run or two."""

    def run(files: Files, rules: tuple[SessionRule, ...], options: SessionsOptions) -> Files:
        plan = plan_sessions(rules, files, dialect, 1048576, options)
        assert plan.problems == ()
        return apply(files, plan.edits)

    once = run(files, rules, options)
    assert run(once, rules, options) == once
    left = run(once, rules, options._replace(absent=True))
    assert left == files or is_all_but_empty(left, files, dialect)
    both = run(run(files, earlier, earlier_options), rules, options)
    assert both == once or is_all_but_empty(both, once, dialect)
    left = run(both, (), SessionsOptions(absent=True))
    assert left == files or is_all_but_empty(left, files, dialect)


def is_all_but_empty(left: Files, files: Files, dialect: Dialect) -> bool:
    """Tell whether all that is left is an empty limits.conf, which older PAMs cannot do without."""
    missing = LIMITS_CONF not in files and dialect.line_length > 0
    return missing and left == {LIMITS_CONF: "", **files}


VALUES = st.dictionaries(
    st.sampled_from(["vm.max_map_count", "fs.file-max", "fs.nr_open", "kernel.pid_max"]),
    st.integers(1, 2**31 - 1).map(lambda value: KernelValue(minimum=value))
    | st.integers(1, 99).map(lambda value: KernelValue(exact=str(value))),
    min_size=1,
)
KERNEL = st.builds(
    KernelOptions, st.sampled_from([KernelOptions().target, "/etc/sysctl.d/a.conf"]), st.booleans()
)
RUNNING = st.fixed_dictionaries(
    {
        key: st.integers(1, 2**31 - 1).map(str)
        for key in ("vm.max_map_count", "fs.file-max", "fs.nr_open", "kernel.pid_max")
    }
)


@settings(max_examples=300)
@given(trees(SYSCTLS), VALUES, VALUES, RUNNING, KERNEL, KERNEL)
@pytest.mark.slow
def test_sysctl_files_come_back(
    files: Files,
    earlier: dict[str, KernelValue],
    wanted: dict[str, KernelValue],
    running: dict[str, str],
    earlier_options: KernelOptions,
    options: KernelOptions,
) -> None:
    """With lines of others made ineffective or not, after one policy or two."""

    def run(
        files: Files, values: dict[str, KernelValue], now: dict[str, str], options: KernelOptions
    ) -> tuple[Files, dict[str, str]]:
        plan = plan_kernel(values, files, now, options)
        assume(not plan.section.problems)
        return apply(files, plan.section.edits), {**now, **dict(plan.writes)}

    once, now = run(files, wanted, running, options)
    assert run(once, wanted, now, options) == (once, now)
    assert run(once, wanted, now, options._replace(absent=True))[0] == files
    first = run(files, earlier, running, earlier_options)
    both, now = run(first[0], wanted, first[1], options)
    assert run(both, wanted, now, options) == (both, now)
    assert run(both, {}, now, KernelOptions(absent=True))[0] == files
