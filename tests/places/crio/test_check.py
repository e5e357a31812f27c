# SPDX-License-Identifier: GPL-3.0-or-later
"""What crio says of itself is judged, and compared with its files; an image by its files alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlhost_limits.containerd.measure import describe_absence
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.crio import check as check_crio
from mlhost_limits.crio.crio_conf import DROP_INS, MAIN, read_conf
from mlhost_limits.crio.place import Crio
from mlhost_limits.crio.read import TOLD, find_crio, read_conf_files, read_options
from mlhost_limits.host.image import Tree
from mlhost_limits.host.look import Look, Process, read_process

R = "[crio.runtime]\n"
POLICY = ContainerPolicy({"nofile": Limit(900, 1000)}, tasks=500)
UNIT_PATH = "/usr/lib/systemd/system/crio.service"
ENOUGH = f'{R}default_ulimits = ["nofile=900:1000"]\n'


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """A host whose crio is this process, and has run since before its files were written."""
    me = read_process(os.getpid())
    monkeypatch.setattr(check_crio, "find_crio", lambda _processes: me)
    monkeypatch.setattr(check_crio, "find_running", lambda _processes, _engines: [])
    monkeypatch.setattr(check_crio, "read_ceilings", lambda _process: {})
    monkeypatch.setattr(check_crio, "read_limits", lambda _pid: {"nofile": Rlimit(4096, 4096)})
    tell(monkeypatch, "")
    return Look()


def tell(monkeypatch: pytest.MonkeyPatch, answer: str, files: str = ENOUGH) -> None:
    monkeypatch.setattr(check_crio, "ask_crio", lambda: read_conf(TOLD, R + answer))
    monkeypatch.setattr(check_crio, "read_conf_files", lambda: {MAIN: files})


def check(look: Look) -> dict[str, Finding]:
    found = check_crio.check_crio(POLICY, look)
    return {f"{one.requirement.item} {one.requirement.bound}": one for one in found}


def test_a_crio_that_is_to_be_restarted(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, 'default_ulimits = ["nofile=5:1000"]\npids_limit = 0')
    found = check(look)
    soft, hard, tasks = found["nofile soft"], found["nofile hard"], found["tasks value"]
    assert [one.code for one in soft.causes] == ["crio-not-restarted"]
    assert (soft.status, soft.observation.how) == ("fail", "crio's own answer")
    assert tuple(soft.outlook) == ("", "pass", "pass")
    assert (hard.status, hard.causes, tasks.status) == ("pass", (), "unknown")


def test_what_nobody_states_is_crios_own(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, "", R)
    found = check(look)
    assert found["nofile soft"].status == "unknown"
    assert "Go hides" in found["nofile soft"].observation.reason
    assert (found["nofile hard"].status, found["nofile hard"].observation.value) == ("pass", 4096)
    monkeypatch.setattr(check_crio, "read_limits", lambda _pid: {"nofile": Rlimit(5, 5)})
    assert [one.code for one in check(look)["nofile soft"].causes] == ["crio-not-stated"]


def test_files_that_end_what_crio_still_gives(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, 'default_ulimits = ["nofile=900:1000"]', f"{R}default_ulimits = [1]")
    hard = check(look)["nofile hard"]
    assert (hard.status, hard.outlook[1:]) == ("pass", ("fail", "fail"))
    assert [one.code for one in hard.causes] == ["crio-conf-unreadable"]


def test_a_crio_that_starts_no_container(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'default_ulimits = ["nofile=-1"]'
    tell(monkeypatch, text, R + text)
    (found,) = check(look).values()
    assert (found.status, found.requirement.item) == ("fail", "start")
    assert [one.code for one in found.causes] == ["crio-above-ceiling"]


def test_a_host_without_crio_and_one_that_gives_no_answer(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(check_crio, "ask_crio", refuse)
    assert {(one.status, one.observation.reason) for one in check(look).values()} == {
        ("unknown", "no answer")
    }
    monkeypatch.setattr(check_crio, "find_crio", find_crio)
    reasons = {one.observation.reason for one in check(look).values()}
    assert reasons == {"no crio of crio.service is running on this host"}


def test_a_node_of_crio_is_told_from_one_without_containers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mlhost_limits.containerd.measure.find_running", lambda *_words: [1])
    assert "ask for containers.crio" in describe_absence([])


def test_only_the_crio_of_its_unit_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name proves nothing."""
    own = Process(os.getpid(), "crio", 0, "0::/system.slice/crio.service", 1)
    assert find_crio([own]) is None  # It is a Python.
    monkeypatch.setattr("mlhost_limits.crio.read.is_daemon", lambda *_words: True)
    inside = own._replace(cgroup="0::/user.slice/user-1000.slice/crio.service")
    assert find_crio([inside, own._replace(uid=7), own]) == own
    assert find_crio([inside]) is None


def test_options_and_variables_of_crio(tmp_path: Path) -> None:
    words = [
        "/usr/bin/crio",
        "-d",
        "/opt/d",
        "--pids-limit=5",
        "--root",
        "/x",
        "--log-level",
        "info",
    ]
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "cmdline").write_text("\0".join(words) + "\0")
    rows = [
        "CONTAINER_PIDS_LIMIT=9",
        "CONTAINER_DEFAULT_ULIMITS=nofile=5",
        "CONTAINER_ROOT=/x",
        "A=b",
    ]
    (folder / "environ").write_text("\0".join(rows) + "\0")
    assert read_options(7, str(tmp_path)) == {
        "pids-limit": "--pids-limit=5",
        "default-ulimits": "CONTAINER_DEFAULT_ULIMITS=nofile=5",
        "config-dir": "--config-dir=/opt/d",
    }
    assert read_options(8, str(tmp_path)) == {}


def test_an_option_that_counts_is_named_with_its_place(tmp_path: Path) -> None:
    unit = "[Service]\nEnvironmentFile=-/etc/sysconfig/crio\nExecStart=/usr/bin/crio $A\n"
    given = {"/etc/sysconfig/crio": "#\nA=--default-ulimits nofile=5\n", UNIT_PATH: unit}
    tree = make_tree(tmp_path, {"/usr/bin/crio": "", MAIN: ENOUGH, **given})
    found = list(Crio().foresee(POLICY, CheckOptions(), tree) or ())
    told = "crio is started with --default-ulimits=nofile=5 of /etc/sysconfig/crio:2, which counts"
    assert [one.reason.startswith(told) for _wanted, one in found] == [True, True, False]


def make_tree(folder: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        (folder / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (folder / path.lstrip("/")).write_text(text)
        (folder / path.lstrip("/")).chmod(0o755)
    return Tree(str(folder))


def test_files_of_folders_below_are_read(tmp_path: Path) -> None:
    files = {f"{DROP_INS}/{name}": name for name in ("a/b/c", "d~", ".e")}
    tree = make_tree(tmp_path, {**files, "/etc/crio/x": ""})
    found = read_conf_files(tree.root)
    assert {path: text for path, text in found.items() if text} == files
    assert MAIN not in found


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"/usr/bin/crio": "", MAIN: ENOUGH}, {"pass": ""}),
        ({"/usr/bin/crio": "", MAIN: f"{ENOUGH}pids_limit = 9\n"},
         {"pass": "", "fail": "crio-conf-line"}),
        ({"/usr/bin/crio": "", MAIN: f'{R}default_ulimits = ["nofile=-1"]'},
         {"fail": "crio-above-ceiling"}),
        ({"/usr/bin/crio": "", MAIN: "x = ["}, {"fail": "crio-conf-unreadable"}),
        ({"/usr/bin/crio": ""}, {"unknown": "", "pass": ""}),
        ({MAIN: "x = ["}, {"unknown": ""}),
        # What its unit gives crio counts more than all files; a key that it does not give does not.
        *(
            ({"/usr/bin/crio": "", MAIN: ENOUGH, UNIT_PATH: f"[Service]\n{unit}\n",
              "/etc/sysconfig/crio": "A=--default-ulimits nofile=1:1\nCONTAINER_PIDS_LIMIT=5\n"}, told)
            for unit, told in (
                ("ExecStart=/usr/bin/crio $A", {"pass": ""}),
                ("ExecStart=/usr/bin/crio --root /x -c /etc/crio/crio.conf", {"pass": ""}),
                ("ExecStart=/usr/bin/crio --default-ulimits=nofile=1:1", {"unknown": "", "pass": ""}),
                ("ExecStart=/usr/bin/crio -c /etc/other.conf", {"unknown": ""}),
                ("EnvironmentFile=-/etc/sysconfig/crio\nExecStart=/usr/bin/crio $A", {"unknown": ""}),
                ("Environment=CONTAINER_PIDS_LIMIT=5\nExecStart=/usr/bin/crio", {"unknown": "", "pass": ""}),
                ("ExecStart=/opt/wrapper", {"unknown": ""}),
            )
        ),
    ],
)  # fmt: skip
def test_an_image(tmp_path: Path, files: dict[str, str], told: dict[str, str]) -> None:
    tree = make_tree(tmp_path, files)
    found = list(Crio().foresee(POLICY, CheckOptions(), tree) or ())
    assert len(found) == 3
    assert {one.status: one.causes[0].code if one.causes else "" for _wanted, one in found} == told
