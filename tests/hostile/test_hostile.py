# SPDX-License-Identifier: GPL-3.0-or-later
"""A share of the attacks, one of each kind: none does anything; and the judge sees what it must."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.cache import HostError
from tests.host.connection import Host
from tests.host.snapshot import Snapshot

from .__main__ import read_shown
from .base import TOP, saved_host
from .every import ATTACKS
from .judge import TOTALS, judge
from .on_guest.beside import MARKS
from .on_guest.eyes import UID, Files, compare
from .on_guest.guards import GUARDS
from .strains import find_writes, list_strains
from .trial import IDLE, look_beside
from .verbs import VERBS

BY_NAME = {attack.name: attack for attack in ATTACKS}
SHARE = (
    "links in the folder of Podman's canary",
    "dockerd: an answer that never ends",
    "one line of a start file drains the node",
)


@pytest.fixture(scope="module")
def saved() -> Iterator[Snapshot]:
    with saved_host() as base:
        yield base


@pytest.mark.host
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Its log is open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", SHARE)
def test_an_attack_does_nothing(saved: Snapshot, name: str) -> None:
    attack = BY_NAME[name]
    calm = look_beside(saved, attack._replace(program=IDLE, rounds=1, after=""))
    harms = judge(look_beside(saved, attack), calm).harms
    assert not any(harms.values()), {name: lines for name, lines in harms.items() if lines}


def run(**more: Any) -> dict[str, Any]:
    return {"status": 0, "seconds": 1.0, "hung": False, "stdout": "", "stderr": "", **more}


def seen(*runs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return what root's side saw of a command that went well."""
    names = ("files", "strays", "helpers", "marks", "opens", "loot")
    nothing: dict[str, Any] = {name: [] for name in names}
    return {"runs": list(runs or [run()]), **nothing, "owners": {}, "slurm": "idle|none", **more}


def findings(*places: str, status: str = "pass") -> dict[str, Any]:
    one = {"item": "nofile", "bound": "soft", "status": status, "causes": []}
    return run(stdout=json.dumps({"findings": [{"place": place, **one} for place in places]}))


OWN = f"session:mallory@sshd process:{UID}"


@pytest.mark.parametrize(
    ("total", "found"),
    [
        ("became_root", seen(helpers=["pid 7, ids 0 0 0 0, runs /home/mallory/x"])),
        ("became_root wrote_or_deleted", seen(files=["given to the user /etc/x: (0, 0)"])),
        ("became_root", seen(loot=[{"Uid": "1001 0 0 0"}])),
        ("became_root", seen(loot=[{"Uid": "1001", "Gid": "1001", "Groups": "0 1001"}])),
        ("read_secrets", seen(marks=["key in /home/mallory/loot/ran-1"])),
        ("read_secrets", seen(opens=["python3 opened /etc/shadow"])),
        ("read_secrets", seen(run(stdout=f"x {MARKS['shadow']}"))),
        ("wrote_or_deleted", seen(files=["changed /etc/passwd: a -> b"])),
        ("ran_as_root", seen(strays=["sleep (7) as 1001 in 0::/system.slice"])),
        ("ran_as_root", seen(loot=[{"loginuid": "0"}])),
        ("ran_as_root", seen(loot=[{"cgroup": "0::/user.slice/user-0.slice/session-1.scope"}])),
        ("hung", seen(run(hung=True))),
        ("crashed", seen(run(stderr="Traceback (most recent call last):\nRecursionError: x"))),
        ("crashed", seen(run(status=-9))),
        ("drained", seen(slurm="drained|mlhost-limits: x")),
        ("wrong_finding_of_others", seen(run(stdout="a \x1b]0;x\x07"))),
        ("wrong_finding_of_others", seen(findings("kernel", "session:alice@sshd", status="fail"))),
        ("wrong_finding_of_others", seen(findings("kernel"))),
        ("wrong_finding_of_others", seen(run(status=2, stderr="refused"))),
    ],
)
def test_each_harm_is_seen(total: str, found: dict[str, Any]) -> None:
    is_report = "wrong" in total
    calm = seen(findings("kernel", "session:alice@sshd") if is_report else run())
    assert [name for name, lines in judge(found, calm).harms.items() if lines] == total.split()


@pytest.mark.parametrize("name", GUARDS)
def test_each_guard_is_there_to_be_taken_out(name: str) -> None:
    """In a process of its own, which is without it from then on."""
    script = (
        "from tests.conftest import load_library; load_library()\n"
        f"from tests.hostile.on_guest.guards import GUARDS; GUARDS[{name!r}]()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_root_of_a_user_namespace_is_no_root() -> None:
    inside = {"Uid": "0 0 0 0", "Gid": "0", "map": "0 1001 1 1 400000 65536"}
    assert judge(seen(loot=[inside]), seen()).harms["became_root"] == []
    outside = {**inside, "map": "0 0 4294967295"}
    assert len(judge(seen(loot=[outside]), seen()).harms["became_root"]) == 2


def test_what_is_the_attackers_own_is_no_harm() -> None:
    own = ("session:mallory@sshd", "container:podman/mallory/x", "process:7 (x)")
    calm = seen(findings("kernel", *own), files=["made /etc/x-17: 1"])
    told = seen(
        findings("kernel", status="pass"), files=["made /etc/x-18: 2"], owners={"7": "1001"}
    )
    assert judge(told, {**calm, "owners": {"7": "1001"}}).worked is False


def entry(owner: int, digest: str = "a") -> tuple[int, int, int, str, int, str]:
    return owner, 0, 0o644, "0o100000", 1, digest


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"/r": (1, entry(0))}, []),
        ({"/r": (1, entry(0, "b"))}, ["changed /r"]),
        ({"/r": (2, entry(0, "b"))}, ["changed /r"]),
        ({"/moved": (1, entry(0))}, ["moved /r"]),
        ({"/r": (3, entry(UID)), "/own/moved": (1, entry(0))}, ["moved /r"]),
        ({"/r": (1, entry(0)), "/own/moved": (8, entry(0))}, []),
        ({"/r": (1, entry(0)), "/own/b": (3, entry(UID)), "/own/moved": (8, entry(0))}, []),
        ({"/r": (3, entry(UID))}, ["deleted /r"]),
        ({"/r": (1, entry(UID))}, ["given to the user /r"]),
        ({"/moved": (1, entry(UID))}, ["given to the user /r"]),
        ({}, ["deleted /r"]),
        ({"/r": (1, entry(0)), "/new": (9, entry(0))}, ["made /new"]),
        ({"/r": (1, entry(0)), "/new": (9, entry(UID))}, []),
    ],
)
def test_a_file_is_known_by_its_inode(after: Files, told: list[str]) -> None:
    theirs: Files = {"/own/b": (8, entry(0))}
    before = {"/r": (1, entry(0)), "/own": (5, entry(UID)), **theirs}
    is_told_of = any(inode == 8 for inode, _entry in after.values())
    lines = compare(before, after if is_told_of else {**theirs, **after})
    assert [line.partition(":")[0] for line in lines] == told


def test_a_write_is_found_in_a_trace() -> None:
    trace = (
        '12 openat(AT_FDCWD, "/etc/x", O_RDONLY|O_CLOEXEC) = 3\n'
        '12 openat(AT_FDCWD, "/etc/y", O_WRONLY|O_CREAT, 0600) = 3\n'
        '12 unlink("/etc/z") = -1 ENOENT (No such file)\n'
        '12 rename("/etc/a", "/etc/b") = 0\n'
    )
    assert list(find_writes(trace)) == ["open /etc/y", "rename /etc/a"]


def test_a_strain_on_a_guest_that_is_gone_is_a_problem() -> None:
    gone = Host("gone", 1, Path("/nonexistent"))
    strains = list_strains()
    assert len(strains) >= 15
    for strain in strains.values():
        with pytest.raises((HostError, OSError)):
            strain(gone)


def test_every_attack_can_be_made() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(names) >= 60
    assert len(set(names)) == len(names)
    assert {attack.verb for attack in ATTACKS} <= set(VERBS)
    assert set(SHARE) <= set(names)
    assert {name for attack in ATTACKS for name in attack.guard.split()} <= {*GUARDS}
    assert len(TOTALS) == 8


def test_every_attack_was_shown_to_work() -> None:
    """An attack that never did any harm proves nothing: it is made stronger, or goes."""
    shown = read_shown()
    assert set(shown) == {attack.name for attack in ATTACKS}
    for attack in ATTACKS:
        row = shown[attack.name]
        assert row["verb"] == attack.verb
        assert row["did"]
        assert all(lines and name in TOTALS for name, lines in row["did"].items())
        assert row["against"] or row["guard_out"] == attack.guard != ""
