# SPDX-License-Identifier: GPL-3.0-or-later
"""A profile of tuned is read as tuned 2.20 reads it."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.tuned_profile import (
    find_includes,
    find_recommended,
    list_excluded,
    merge_profiles,
    read_exclude,
    read_reapply,
)

# From /usr/lib/tuned/throughput-performance/tuned.conf of Debian 12, shortened.
THROUGHPUT = """#
# tuned configuration
#

[main]
summary=Broadly applicable tuning
include = base; -other,third

[cpu]
governor=performance

[sysctl]
# If a workload mostly uses anonymous memory
vm.dirty_ratio = 40
vm.swappiness=10  # low
net.core.somaxconn=>2048

[sysctl.thunderx]
type=sysctl
uname_regex=aarch64
kernel.numa_balancing=0
"""


def values(*texts: str) -> dict[str, object]:
    found = merge_profiles([(f"/{number}", text) for number, text in enumerate(texts)])
    return {key: at.value for key, at in found.items()}


def test_a_profile_of_a_package() -> None:
    assert values(THROUGHPUT) == {
        "vm.dirty_ratio": "40",
        "vm.swappiness": "10",
        "net.core.somaxconn": ">2048",
        "kernel.numa_balancing": "${}",
    }
    assert find_includes(THROUGHPUT) == ["base", "other", "third"]
    assert find_includes("[sysctl]\nvm.x = 1\n") == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["[sysctl]\nvm.a=1\nvm.a=2\n"], {"vm.a": "2"}),
        (['[sysctl]\nvm/a = "1"\n'], {"vm.a": "1"}),
        (["[sysctl]\nvm.a=1\n vm.b=2\n;vm.c=3\n#vm.d=4\nvm.e\n"], {"vm.a": "1"}),
        (["vm.a=1\n[vm]\nvm.b=2\n"], {}),
        (["[sysctl]\nenabled=false\nvm.a=1\n"], {}),
        (["[mine]\ntype=sysctl\nvm.a=1\n"], {"vm.a": "1"}),
        (["[sysctl]\nvm.a=1\nvm.b=1\n", "[sysctl]\nvm.a=2\n"], {"vm.a": "2", "vm.b": "1"}),
        (["[sysctl]\nvm.a=1\n", "[sysctl]\nreplace=1\nvm.b=2\n"], {"vm.b": "2"}),
        (["[sysctl]\nvm.a=1\nvm.b=1\n", "[sysctl]\ndrop=vm.a, vm.c\n"], {"vm.b": "1"}),
    ],
)
def test_sections_and_inheritance(texts: list[str], expected: dict[str, str]) -> None:
    assert values(*texts) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("reapply_sysctl = 0\n", 1),
        ("daemon=1\nreapply_sysctl=False # no\n", 2),
        ("reapply_sysctl = 1\n", None),
        ("#reapply_sysctl = 0\n", None),
        ("", None),
    ],
)
def test_the_switch_that_keeps_files_from_being_read_again(text: str, line: int | None) -> None:
    at = read_reapply(text)
    assert (at.line if at else None) == line


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("reapply_sysctl_exclude = vm.a,vm/b\n", ["vm.a", "vm.b"]),
        ("reapply_sysctl_exclude=vm.a; net.* # two\n", ["vm.a", "net.*"]),
        ("reapply_sysctl_exclude =\n", []),
        ("daemon = 1\nreapply_sysctl_exclude = vm.a\n", ["vm.a"]),
        ("#reapply_sysctl_exclude = vm.a\n", []),
    ],
)
def test_the_keys_that_files_do_not_give_again(text: str, keys: list[str]) -> None:
    assert list_excluded(read_exclude(text)) == keys


def test_profiles_that_a_machine_may_be_given() -> None:
    texts = ["# [no]\n[hpc-compute,2]\nvirt=\n[a]\n", "[a]\nsystem=.*(x).*\n"]
    assert find_recommended(texts) == ["hpc-compute", "a", "balanced"]
    assert find_recommended([]) == ["balanced"]
