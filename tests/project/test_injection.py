# SPDX-License-Identifier: GPL-3.0-or-later
"""No word of a policy, a file or a name becomes a command, another line, a path or a steering
code: it is refused, or it arrives as the very same word."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import Observation, judge, require_limits
from mlhost_limits.core.json_text import find_members
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.report import format_report
from mlhost_limits.core.values import Rlimit
from mlhost_limits.docker.daemon_json import DockerDefaults
from mlhost_limits.docker.merge import merge_daemon_json
from mlhost_limits.kernel.plan import KernelOptions, plan_kernel
from mlhost_limits.kernel.read import sysctl_path
from mlhost_limits.kernel.sysctl_conf import parse_sysctl_conf
from mlhost_limits.schema import load_policy
from mlhost_limits.sessions.limits_conf import parse_limits_conf
from mlhost_limits.sessions.pam_limits import DROP_IN
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions

PLUGINS = Path(__file__).parents[2] / "plugins"
WORDS = (
    *(
        "alice\nroot - nofile 1",
        "a\rb",
        "a b",
        "a\tb",
        "a#b",
        "a\0b",
        "\x1b[2J",
        "\u202e",
        "\u2028",
    ),
    *("$(reboot)", "`reboot`", "; reboot", "|sh", "&", "'", '"', "\\", "$HOME", "~root", "!!"),
    *("../../etc/shadow", "/etc/shadow", "-", "--help", "-rf", "*.conf", "%s%n", "{0}", "{{ 7 }}"),
    *("x" * 5000, "", " ", ".", "..", "@", "%", ":", "é", "\ud800"),
)


def accepted(policy: Mapping[str, object]) -> bool:
    try:
        load_policy(policy, "none")
    except PolicyError as exc:
        for problem in exc.problems:
            assert problem.isprintable()
            assert len(problem) <= 1001
        return False
    return True


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_domain_is_refused_or_stays_one_word(word: str) -> None:
    """What is written for it holds one line per bound, and its first word is the domain."""
    raw = {"sessions": [{"users": [word], "limits": {"nofile": {"soft": 64, "hard": 65}}}]}
    if not accepted(raw):
        return
    rules = load_policy(raw, "none").get("sessions")
    plan = plan_sessions(rules, {}, Dialect(1023), 10**6, SessionsOptions())
    assert not plan.problems
    (edit,) = plan.edits
    assert edit.path == DROP_IN
    lines = parse_limits_conf((edit.after or b"").decode("latin-1"), DROP_IN, 1023)
    assert [(line.domain, line.fields[1:]) for line in lines] == [
        (word, ("soft", "nofile", "64")),
        (word, ("hard", "nofile", "65")),
    ]


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_root_directory_of_sessions_is_refused_or_stays_one_word(word: str) -> None:
    raw = {"sessions": [{"users": ["alice"], "limits": {"chroot": word}}]}
    if accepted(raw):
        rules = load_policy(raw, "none").get("sessions")
        plan = plan_sessions(rules, {}, Dialect(1023), 10**6, SessionsOptions())
        text = (plan.edits[0].after or b"").decode("utf-8")
        assert text.split("\n")[1:] == [f"alice - chroot {word}", ""]


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_sysctl_is_refused_or_names_a_file_below_proc_sys(word: str) -> None:
    if accepted({"kernel": {word: 5}}):
        assert sysctl_path(word).startswith("/proc/sys/")
        assert ".." not in sysctl_path(word)


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_sysctl_value_is_refused_or_stays_one_value(word: str) -> None:
    raw = {"kernel": {"kernel.core_pattern": {"exact": word}}}
    if accepted(raw):
        policy = load_policy(raw, "none")
        plan = plan_kernel(
            policy.get("kernel") or {}, {}, {"kernel.core_pattern": "core"}, KernelOptions()
        )
        text = (plan.section.edits[0].after or b"").decode("ascii")
        (line,) = parse_sysctl_conf(text, "x")
        value = " ".join(word.split())  # As the kernel parts its words.
        assert (line.key, line.value) == ("kernel.core_pattern", value)
        assert plan.writes == (("kernel.core_pattern", value),)


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_file_to_write_stays_in_its_folder(word: str) -> None:
    rules = load_policy({"sessions": [{"users": ["a"], "limits": {"nofile": 64}}]}, "none").get(
        "sessions"
    )
    for target in (word, f"/etc/security/limits.d/{word}", f"/etc/security/limits.d/{word}.conf"):
        options = SessionsOptions(target)
        plan = plan_sessions(rules, {}, Dialect(1023), 10**6, options)
        for edit in plan.edits:
            assert edit.path.rpartition("/")[0] == "/etc/security/limits.d"
            assert edit.path.isprintable()


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_what_daemon_json_holds_stays_what_it_was(word: str) -> None:
    """A hostile key or value beside ours is neither changed nor read as anything else."""
    text = f"{{{ast_json(word)}: {ast_json(word)}}}"
    merged = merge_daemon_json(text, DockerDefaults({"nofile": Rlimit(64, 65)}))
    members = {member.key: member.value for member in find_members(merged)}
    assert members.pop("default-ulimits")
    assert members == {word: word}


def ast_json(word: str) -> str:
    return '"' + "".join(f"\\u{ord(char):04x}" for char in word) + '"'


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_name_in_a_finding_cannot_steer_the_terminal(word: str) -> None:
    """Users, units and containers are named as they are by their owners."""
    (requirement, *_rest) = require_limits(f"container:{word}", {"nofile": Limit(soft=5)})
    finding = judge(requirement, Observation(None, word, word))
    assert all(line.isprintable() for line in format_report([finding]))


@pytest.mark.slow
def test_no_shell_is_ever_asked() -> None:
    """Programs are started with a list of words; the shell's ways in are not used at all."""
    for path in PLUGINS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword):
                assert node.arg != "shell", path
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("system", "popen", "getoutput", "getstatusoutput"), path
