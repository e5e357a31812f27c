# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that keeps Podman's containers from what is asked is named, with a remedy that works."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.spec import Started
from mlhost_limits.core.cause import Cause
from mlhost_limits.core.finding import Finding, Observation, Requirement, judge
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.podman.causes import (
    PodmanFacts,
    Unread,
    find_podman_causes,
    foresee,
)
from mlhost_limits.podman.containers_conf import (
    DROP_INS,
    MAIN,
    VENDOR,
    ConfError,
    find_unread_keys,
    read_conf,
)
from mlhost_limits.podman.running import Made, explain_running, find_tasks_causes

from tests.worlds.pasted import find_scripts

C = "[containers]\n"
SITE = f"{DROP_INS}/50-site.conf"
HOME = "/home/alice/.config/containers/containers.conf"
POLICY = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}, 8 * 2**30
)
SOFT = Requirement("new-container:podman", "nofile", "soft", 65536)
HARD = Requirement("new-container:podman", "nofile", "hard", 1048576)
SHM = Requirement("new-container:podman", "shm_size", "value", 8 * 2**30, unit="bytes")
TASKS = Requirement("new-container:podman", "tasks", "value", 4096)
START = Requirement("new-container:podman", "start", "value", exact="a container that starts")
FULL = C + 'default_ulimits = ["nofile=65536:1048576", "memlock=-1:-1"]\nshm_size = "8589934592"\n'


def facts(files: dict[str, str], **others: Any) -> PodmanFacts:
    stated = tuple(read_conf(path, text) for path, text in files.items())
    unread = tuple(
        Unread(Declaration(path, line, text.split("\n")[line - 1], ""), reason)
        for path, text in files.items()
        for line, reason in find_unread_keys(text)
    )
    return PodmanFacts(stated, 1048576, unread=unread)._replace(**others)


def blame(wanted: Requirement, files: dict[str, str], **others: Any) -> list[Cause]:
    return list(find_podman_causes(wanted, facts(files, **others), POLICY))


@pytest.mark.parametrize("wanted", [SOFT, HARD, SHM, START])
def test_files_that_would_do_are_not_blamed(wanted: Requirement) -> None:
    assert blame(wanted, {SITE: FULL}) == []
    assert foresee(wanted, facts({SITE: FULL}), 1048576) == "pass"


@pytest.mark.parametrize(
    ("wanted", "files", "code", "place", "script"),
    [
        (SOFT, {SITE: C + 'default_ulimits = ["core=0", "nofile=1024:4096"]'},
         "podman-conf-line", f"{SITE}:2", "2s/nofile=1024:4096/nofile=65536:1048576/"),
        (SOFT, {SITE: C + 'default_ulimits = ["nofile=+10"]'},
         "podman-conf-line", f"{SITE}:2", "2s/nofile=\\+10/nofile=65536:1048576/"),
        (SOFT, {SITE: C + 'default_ulimits = ["n\\u006ffile=10"]'}, "podman-conf-line", f"{SITE}:2", ""),
        (SOFT, {VENDOR: C + 'default_ulimits = ["nofile=10"]'}, "podman-conf-line", f"{VENDOR}:2", ""),
        (SOFT, {SITE: FULL, HOME: C + 'default_ulimits = ["nofile=10"]'},
         "podman-conf-line", f"{HOME}:2", ""),
        (SOFT, {MAIN: FULL, SITE: C + 'default_ulimits = [\n"core=0"]'},
         "podman-list-replaced", f"{SITE}:2", '2s/\\[\\([^[]*\\)$/["nofile=65536:1048576", \\1/'),
        (SOFT, {SITE: C + 'default_ulimits = ["core=0"]'},
         "podman-not-stated", "", '2s/\\[\\([^[]*\\)$/["nofile=65536:1048576", \\1/'),
        (SOFT, {SITE: C + 'default_ulimit = ["nofile=65536:1048576"]'},
         "podman-key-unknown", f"{SITE}:2", "2s/^\\([ \\t]*\\)[^=]*=/\\1default_ulimits =/"),
        (SOFT, {SITE: C + 'default_ulimit = [\n"nofile=65536:1048576",\n]'},
         "podman-key-unknown", f"{SITE}:2", "2s/^\\([ \\t]*\\)[^=]*=/\\1default_ulimits =/"),
        (SOFT, {SITE: '[engine]\ndefault_ulimits = ["nofile=65536:1048576"]'},
         "podman-key-unknown", f"{SITE}:2", ""),
        (SOFT, {SITE: 'containers.default_ulimit = ["nofile=65536:1048576"]'},
         "podman-key-unknown", f"{SITE}:1", ""),
        (SOFT, {MAIN: C + 'default_ulimits = ["memlock=-1"]', SITE: C + "default_ulimits = [\n]"},
         "podman-not-stated", "", '2s/\\[\\([^[]*\\)$/["nofile=65536:1048576", \\1/'),
        (SHM, {SITE: C + 'shm_size = "8g"'}, "podman-conf-line", f"{SITE}:2",
         '2s/^\\([^=]*=\\).*/\\1 "8589934592"/'),
        (SHM, {SITE: 'containers = {shm_size = "8g"}'}, "podman-conf-line", f"{SITE}:1", ""),
        (SHM, {SITE: C + 'shm-size = "8589934592"'}, "podman-key-unknown", f"{SITE}:2",
         "2s/^\\([ \\t]*\\)[^=]*=/\\1shm_size =/"),
    ],
)  # fmt: skip
def test_a_line_is_blamed(
    wanted: Requirement, files: dict[str, str], code: str, place: str, script: str
) -> None:
    (cause,) = blame(wanted, files)
    assert (cause.code, cause.at.place if cause.at else "") == (code, place)
    assert find_scripts(cause.remedy.commands) == ([script] if script else [])


def test_what_nobody_states_is_put_into_a_drop_in() -> None:
    (limit,), (shm,) = blame(SOFT, {}), blame(SHM, {})
    assert limit.code == shm.code == "podman-not-stated"
    assert limit.remedy.text.startswith("state it: nofile=65536:1048576 in ")
    assert [words[0] for words in limit.remedy.commands] == ["mkdir", "sh", "sed"]
    assert [words[0] for words in shm.remedy.commands] == ["mkdir", "sh"]
    assert limit.remedy.commands[0] == shm.remedy.commands[0] == ("mkdir", "-p", DROP_INS)
    assert shm.text.endswith("states shm_size, so that Podman gives 65536000B")


@pytest.mark.parametrize(("item", "entry"), [("nofile", "500:500"), ("core", "500:500")])
def test_a_limit_that_is_only_bounded_above_is_stated_as_that_bound(item: str, entry: str) -> None:
    """Of nofile a container needs some: 0 is never stated because nothing is asked of it."""
    few = Requirement("new-container:podman", item, "hard", None, 500)
    policy = ContainerPolicy({item: Limit(max=500)})
    (cause,) = find_podman_causes(few, facts({}), policy)
    assert cause.remedy.text.startswith(f"state it: {item}={entry} in ")


def test_a_misspelled_list_is_not_blamed_for_what_it_does_not_hold() -> None:
    (cause,) = blame(SOFT, {SITE: C + 'default_ulimit = ["core=0"]'})
    assert cause.code == "podman-not-stated"


def test_what_loses_is_told() -> None:
    files = {MAIN: FULL, SITE: C + 'default_ulimits = ["nofile=10"]'}
    for wanted in (SOFT, HARD):
        (cause,) = blame(wanted, files)
        assert [one.place for one in cause.shadows] == [f"{MAIN}:2"]


@pytest.mark.parametrize(
    ("item", "hard"), [("nofile", "1048576"), ("memlock", "-1"), ("core", "-1")]
)
def test_a_hard_limit_of_which_nothing_is_asked_is_the_highest(item: str, hard: str) -> None:
    policy = ContainerPolicy({item: Limit(soft=4096)})
    wanted = Requirement("new-container:podman", item, "soft", 4096)
    (cause,) = find_podman_causes(wanted, facts({}), policy)
    assert cause.remedy.text.startswith(f"state it: {item}=4096:{hard} in ")


@pytest.mark.parametrize(
    ("user", "path", "whose"),
    [
        ("alice", HOME, " (of alice's own)"),
        ("", f"/root/.config/containers/{HOME.rpartition('/')[2]}", " (of root's own)"),
        ("", SITE, ""),
    ],
)
def test_a_file_of_a_home_is_told_by_its_user(user: str, path: str, whose: str) -> None:
    (cause,) = blame(SOFT, {path: C + 'default_ulimits = ["nofile=10"]'}, user=user)
    assert cause.text.endswith(f" gives new containers nofile=10:10{whose}")


def test_the_maximum_is_kept() -> None:
    policy = ContainerPolicy({"nofile": Limit(1024, None, 4096)})
    wanted = HARD._replace(minimum=None, maximum=4096)
    (cause,) = find_podman_causes(wanted, facts({SITE: FULL}), policy)
    assert "nofile=1024:4096" in cause.remedy.text


@pytest.mark.parametrize("line", [0, 2])
def test_a_file_that_cannot_be_read_is_blamed(line: int) -> None:
    error = ConfError(Declaration(SITE, line, "x =" if line else "", ""), "no value")
    (cause,) = blame(START, {}, broken=error)
    assert cause.code == "podman-conf-unreadable"
    assert cause.text == (f'{SITE}:2 "x =": no value' if line else f"{SITE}: no value")
    assert foresee(START, facts({}, broken=error), 1048576) == ""


def test_more_than_the_kernel_allows_starts_nothing() -> None:
    files = {SITE: C + 'default_ulimits = ["nofile=-1"]'}
    (cause,) = blame(START, files)
    assert cause.code == "podman-above-nr-open"
    assert find_scripts(cause.remedy.commands) == ["2s/nofile=-1/nofile=65536:1048576/"]
    assert foresee(START, facts(files), 1048576) == "fail"
    assert foresee(SOFT, facts(files), 1048576) == "fail"
    assert foresee(SOFT._replace(minimum=1), facts(files), 1048576) == "fail"


def test_more_than_a_session_may_have_starts_nothing() -> None:
    session = {"memlock": Rlimit(8 * 2**20, 8 * 2**20), "nofile": Rlimit(1024, 1048576)}
    (cause,) = blame(START, {SITE: FULL}, user="alice", session=session, way="sshd")
    assert cause.code == "podman-above-session"
    assert "a session of alice through sshd may have 8MiB" in cause.text


@pytest.mark.parametrize(
    ("hard", "code"), [(1048576, "podman-above-session"), (1048577, "podman-above-nr-open")]
)
def test_what_the_kernel_just_allows_is_refused_by_the_session(hard: int, code: str) -> None:
    files = {SITE: C + f'default_ulimits = ["nofile=1024:{hard}"]'}
    session = {"nofile": Rlimit(1024, 4096)}
    (cause,) = blame(START, files, user="alice", session=session, way="sshd")
    assert cause.code == code


@pytest.mark.parametrize("wanted", [SOFT, SHM])
def test_what_nobody_states_is_not_foretold(wanted: Requirement) -> None:
    assert foresee(wanted, facts({}), 1048576) == ""


def test_what_is_not_in_the_policy_keeps_its_value() -> None:
    files = {SITE: C + 'default_ulimits = ["core=5:-1"]'}
    wanted = Requirement("new-container:podman", "core", "soft", 10)
    (cause,) = blame(wanted, files)
    assert cause.remedy.text == "make it core=5:-1"


FEW = C + "pids_limit = 100\n"


@pytest.mark.parametrize(
    ("wanted", "files", "code", "place", "scripts"),
    [
        (TASKS, {SITE: FEW}, "podman-conf-line", f"{SITE}:2", ["2s/^\\([^=]*=\\).*/\\1 4096/"]),
        (TASKS._replace(minimum=UNLIMITED), {MAIN: C + "pids_limit = 5000", SITE: FEW},
         "podman-conf-line", f"{SITE}:2", ["2s/^\\([^=]*=\\).*/\\1 -1/"]),
        (TASKS, {SITE: FEW, HOME: C + "pids_limit = 5"}, "podman-conf-line", f"{HOME}:2", []),
        (TASKS, {SITE: "containers = {pids_limit = 5}"}, "podman-conf-line", f"{SITE}:1", []),
        (TASKS, {SITE: C + "pids-limit = 9000"}, "podman-key-unknown", f"{SITE}:2",
         ["2s/^\\([ \\t]*\\)[^=]*=/\\1pids_limit =/"]),
        (TASKS, {}, "podman-not-stated", "", []),
    ],
)  # fmt: skip
def test_the_line_that_bounds_tasks_is_blamed(
    wanted: Requirement, files: dict[str, str], code: str, place: str, scripts: list[str]
) -> None:
    (cause,) = blame(wanted, files)
    assert (cause.code, cause.at.place if cause.at else "") == (code, place)
    assert find_scripts(cause.remedy.commands) == scripts
    assert foresee(wanted, facts(files), 1048576) == "fail"


def test_tasks_that_nobody_states_are_podman_s_own() -> None:
    (cause,) = blame(TASKS, {})
    text = "no file of containers.conf states pids_limit, so that Podman gives 2048"
    assert (cause.text, blame(TASKS._replace(minimum=2048), {})) == (text, [])
    file = f"{DROP_INS}/95-tasks.conf"
    assert cause.remedy.text == f"state it: pids_limit = 4096 in {file}"
    assert (
        f"printf '%s\\n' '[containers]' 'pids_limit = 4096' > {file}" in cause.remedy.commands[1][2]
    )


@pytest.mark.parametrize("value", ["0", "4096", "-1"])
def test_tasks_that_would_do_are_not_blamed(value: str) -> None:
    """0 is left to systemd, so that no file of Podman's is at fault."""
    files = {SITE: f"{C}pids_limit = {value}"}
    assert blame(TASKS, files) == []
    assert foresee(TASKS, facts(files), 1048576) == ("" if value == "0" else "pass")


@pytest.mark.parametrize(
    ("own", "created", "files", "codes"),
    [
        (None, Started("web", {}, "", 9), {}, []),
        (4096, Started("web", {}, "", 4096), {SITE: FEW}, []),
        (100, Started("web", {}, "", 100), {SITE: C + "pids_limit = -1"}, ["podman-container-created"]),
        (100, Started("web", {}, "", 100), {SITE: FEW}, ["podman-conf-line", "podman-container-created"]),
        (100, Started("web"), None, ["podman-container-created"]),
        (100, Started("web", {}, "", 5000), {SITE: FEW}, ["podman-changed-inside"]),
        (100, Started("web", {}), {SITE: C + "pids_limit = 0"}, []),
    ],
)  # fmt: skip
def test_a_running_container_s_own_bound_on_tasks(
    own: int | None, created: Started, files: dict[str, str] | None, codes: list[str]
) -> None:
    known = None if files is None else facts(files)
    causes = find_tasks_causes(TASKS, own, Made("a", created), known, POLICY)
    assert [cause.code for cause in causes] == codes
    if codes[-1:] == ["podman-container-created"]:
        assert "podman update --pids-limit=4096 web" in causes[-1].remedy.text


def running(observed: int, created: Started, files: dict[str, str] | None) -> Finding:
    finding = judge(SOFT, Observation(observed, "/proc/7/limits"))
    return explain_running(
        finding, Made("", created), None if files is None else facts(files), POLICY
    )


@pytest.mark.parametrize(
    ("observed", "created", "files", "codes"),
    [
        (65536, Started("web"), {}, []),
        (1000, Started("web"), None, ["podman-container-created"]),
        (1000, Started("web", {"nofile": Rlimit(1000, 2000)}, "2026-01-01T00:00:00"), {SITE: FULL},
         ["podman-container-created"]),
        (1000, Started("web", {"nofile": Rlimit(1000, 2000)}),
         {SITE: C + 'default_ulimits = ["nofile=10"]'}, ["podman-conf-line", "podman-container-created"]),
        (1000, Started("web", {"nofile": Rlimit(65536, 1048576)}), {SITE: FULL},
         ["podman-changed-inside"]),
    ],
)  # fmt: skip
def test_a_running_container_keeps_what_it_was_created_with(
    observed: int, created: Started, files: dict[str, str] | None, codes: list[str]
) -> None:
    assert [cause.code for cause in running(observed, created, files).causes] == codes


@pytest.mark.parametrize(
    ("since", "told"), [("", "created with"), ("2026-01-01", "created on 2026-01-01 with")]
)
def test_when_a_container_was_created_is_told_where_it_is_known(since: str, told: str) -> None:
    (cause,) = running(
        1000, Started("web", {"nofile": Rlimit(1000, 2000)}, since), {SITE: FULL}
    ).causes
    assert f"web was {told} nofile 1000:2000," in cause.text
