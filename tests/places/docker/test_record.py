# SPDX-License-Identifier: GPL-3.0-or-later
"""daemon.json is given back byte for byte, whatever it held and whatever we wrote into it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.json_text import find_members, set_member
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.daemon_json import read_defaults
from mlhost_limits.docker.dockerd_flags import CONFIG_PATH
from mlhost_limits.docker.plan import DockerState, plan_docker
from mlhost_limits.docker.record import Record, find_record_path, format_record, parse_record

from tests.places.docker.docker_cases import make_case
from tests.worlds.daemon_json import CORPUS
from tests.worlds.docker_defaults import collect_defaults

RECORD = find_record_path(CONFIG_PATH)
Files = dict[str, bytes]

BOUNDS = st.tuples(st.integers(24, 99), st.integers(24, 99) | st.just(UNLIMITED)).map(
    lambda pair: Limit(min(pair), max(pair))
)
POLICIES = st.builds(
    ContainerPolicy,
    st.dictionaries(st.sampled_from(["memlock", "core", "nproc"]), BOUNDS),
    st.sampled_from([2**26, 2**30, 3 * 2**20 + 1]),
)
# Values of the corpus itself are among them, so that what is asked may stand there already.
PROFILE = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}, 8 * 2**30
)
ASKED = POLICIES | st.just(PROFILE)


def write_anything(rng: random.Random) -> bytes | None:
    """Return what people and programs leave as daemon.json, right or wrong."""
    return make_case(rng).files.get(CONFIG_PATH)


CONTENTS = (
    st.sampled_from(sorted(CORPUS.values()))
    | st.none()
    | st.randoms(use_true_random=False).map(write_anything)
)


def run(files: Files, policy: ContainerPolicy, absent: bool = False) -> tuple[Files, bool]:
    """Return the files after a run, and whether it refused."""
    state = DockerState(files.get(CONFIG_PATH), record=files.get(RECORD))
    plan = plan_docker(policy, state, None, absent)
    after = dict(files)
    for edit in plan.edits:
        assert edit.before == files.get(edit.path)
        assert edit.hidden == (edit.path == RECORD)
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after
    return after, bool(plan.problems)


def start(content: bytes | None) -> Files:
    return {} if content is None else {CONFIG_PATH: content}


def states(files: Files, policy: ContainerPolicy) -> bool:
    stated = collect_defaults(read_defaults(files[CONFIG_PATH].decode()))
    items = {name: stated.ulimits.get(name) for name in policy.stated}
    return (items, stated.shm_size) == (policy.stated, policy.shm_size)


@settings(max_examples=300)
@given(CONTENTS, ASKED, ASKED)
@pytest.mark.slow
def test_what_was_there_comes_back_byte_for_byte(
    content: bytes | None, earlier: ContainerPolicy, policy: ContainerPolicy
) -> None:
    """Provisioning twice is once, and removing after one policy or two gives back the original."""
    before = start(content)
    once, refused = run(before, policy)
    if refused:
        assert once == before
        return
    assert states(once, policy)
    assert run(once, policy) == (once, False)
    assert run(once, policy, absent=True) == (before, False)
    both, refused = run(run(before, earlier)[0], policy)
    assert not refused
    assert states(both, policy)
    assert run(both, policy, absent=True) == (before, False)


@settings(max_examples=300)
@given(CONTENTS, ASKED, ASKED, st.data())
@pytest.mark.slow
def test_what_a_policy_drops_goes_back(
    content: bytes | None, earlier: ContainerPolicy, policy: ContainerPolicy, data: st.DataObject
) -> None:
    """A run after another policy leaves what it would leave without that one; a third nothing."""
    policy = data.draw(
        st.sampled_from(
            [
                policy,
                policy._replace(shm_size=None),
                policy._replace(limits={}),
                earlier._replace(shm_size=None),
                earlier._replace(limits=dict(list(earlier.limits.items())[:1])),
            ]
        )
    )
    before = start(content)
    once, refused = run(before, earlier)
    direct, refused_too = run(before, policy)
    if refused or refused_too:
        return
    twice, refused = run(once, policy)
    assert not refused
    assert read_meaning(twice) == read_meaning(direct)
    assert run(twice, policy) == (twice, False)
    assert run(twice, policy, absent=True) == (before, False)


def read_meaning(files: Files) -> object:
    """Return what daemon.json states, and what stands there besides, however it is written."""
    content = files.get(CONFIG_PATH)
    if content is None:
        return None
    others = {**read_pairs(content)}
    for key in ("default-ulimits", "default-shm-size"):
        others.pop(key, None)
    stated = collect_defaults(read_defaults(content.decode()))
    return dict(stated.ulimits), stated.shm_size, others


DROPPED = {
    "the size": (PROFILE, PROFILE._replace(shm_size=None)),
    "a limit": (PROFILE, PROFILE._replace(limits={"nofile": PROFILE.limits["nofile"]})),
    "all limits": (PROFILE, PROFILE._replace(limits={})),
    "a limit but for its maximum": (PROFILE, PROFILE._replace(limits={"nofile": Limit(max=9)})),
    "all": (PROFILE, ContainerPolicy({}, None)),
}


@pytest.mark.parametrize(("earlier", "policy"), DROPPED.values(), ids=DROPPED.keys())
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{}",
        b'{"default-shm-size": "1G", "mtu": 1}',
        b'{"default-ulimits": {"memlock": {"Name": "memlock", "Hard": 24, "Soft": 24}}}',
    ],
)
@pytest.mark.parametrize("edited", [True, False])
def test_what_is_dropped_is_what_it_was(
    content: bytes | None, earlier: ContainerPolicy, policy: ContainerPolicy, edited: bool
) -> None:
    """Also where somebody else has changed the file in between."""
    expected = read_pairs(run(start(content), policy)[0].get(CONFIG_PATH, b""))
    files = run(start(content), earlier)[0]
    if edited:
        text = files[CONFIG_PATH].decode()
        files[CONFIG_PATH] = set_member(text, "log-level", "warn").encode()
        expected["log-level"] = "warn"
    after, refused = run(files, policy)
    assert not refused
    assert after != files
    assert read_pairs(after.get(CONFIG_PATH, b"")) == expected
    assert run(after, policy) == (after, False)
    left = run(after, earlier, absent=True)[0]
    if not edited:
        assert left == start(content)
    assert RECORD not in left


def test_a_size_of_somebody_else_is_not_dropped() -> None:
    """What somebody changed after us is theirs, and stays when the policy lets go of it."""
    files = run({}, PROFILE)[0]
    files[CONFIG_PATH] = files[CONFIG_PATH].replace(b'"8G"', b'"9G"')
    assert b'"9G"' in files[CONFIG_PATH]
    after = run(files, PROFILE._replace(shm_size=None))[0]
    assert after == files
    after = run(files, ContainerPolicy({"core": Limit(1, 1)}, None))[0]
    assert read_pairs(after[CONFIG_PATH]) == {
        "default-ulimits": {"core": {"Name": "core", "Hard": 1, "Soft": 1}},
        "default-shm-size": "9G",
    }


@pytest.mark.parametrize("left", [{}, {CONFIG_PATH: b""}])
def test_a_file_that_is_gone_has_nothing_to_drop(left: Files) -> None:
    files = {**run({}, PROFILE)[0]}
    policy = PROFILE._replace(shm_size=None)
    after, refused = run({RECORD: files[RECORD], **left}, policy)
    assert not refused
    assert states(after, policy)
    assert run(after, policy) == (after, False)


def test_a_file_that_is_broken_by_now_is_named() -> None:
    files = run({}, PROFILE)[0]
    state = DockerState(b"{", record=files[RECORD])
    (problem,) = plan_docker(PROFILE._replace(shm_size=None), state, None, False).problems
    assert problem.startswith(f"{CONFIG_PATH}:1:2: Expecting")


@pytest.mark.parametrize("content", CORPUS.values(), ids=CORPUS.keys())
def test_files_of_real_hosts_come_back(content: bytes) -> None:
    """None of them is refused."""
    once, refused = run(start(content), PROFILE)
    assert not refused
    assert run(once, PROFILE, absent=True) == ({CONFIG_PATH: content}, False)


@given(st.sampled_from(sorted(CORPUS.values())) | st.none(), ASKED, st.booleans())
def test_an_edit_of_somebody_else_stays(
    content: bytes | None, policy: ContainerPolicy, again: bool
) -> None:
    """Whoever adds a key after us keeps it, and only our values go back to what they were."""
    once, refused = run(start(content), policy)
    if refused:
        assert content == CORPUS["broken limits that are replaced"]
        return
    edited = {**once, CONFIG_PATH: set_member(once[CONFIG_PATH].decode(), "mtu", 1400).encode()}
    if again:  # Nothing of ours was lost, so nothing is written.
        assert run(edited, policy) == (edited, False)
    left = run(edited, policy, absent=True)[0]
    assert RECORD not in left
    expected = {**read_pairs(content or b"{}"), "mtu": 1400}
    assert read_pairs(left[CONFIG_PATH]) == expected


def read_pairs(content: bytes) -> dict[str, object]:
    text = content.decode("utf-8")
    return {member.key: member.value for member in find_members(text)} if text.strip() else {}


def ulimit(name: str, soft: int, hard: int, key: str = "") -> str:
    return f'"{key or name}": {{"Name": "{name}", "Hard": {hard}, "Soft": {soft}}}'


CORE = ContainerPolicy({"core": Limit(1, 1)}, None)
EDITED = {
    "a value of ours that somebody changed": (
        b'{"mtu": 1}',
        lambda text: text.replace('"Soft": 1', '"Soft": 0'),
        '{"mtu": 1, "default-ulimits": {"core": {"Name": "core", "Hard": 1, "Soft": 0}}}',
    ),
    "a second statement of ours": (
        b'{"mtu": 1}',
        lambda text: text.replace("}}}", f"}}, {ulimit('core', 1, 1, 'x')}}}}}"),
        f'{{"mtu": 1, "default-ulimits": {{{ulimit("core", 1, 1)}, {ulimit("core", 1, 1, "x")}}}}}',
    ),
    "an entry beside ours": (
        b'{"mtu": 1}',
        lambda text: text.replace('{"core"', f'{{{ulimit("nproc", 1, 1)}, "core"'),
        f'{{"mtu": 1, "default-ulimits": {{{ulimit("nproc", 1, 1)}}}}}',
    ),
    "an entry that stood there": (
        f'{{"mtu": 1, "default-ulimits": {{{ulimit("core", 5, 7)}}}}}'.encode(),
        lambda text: text.replace('"mtu": 1', '"mtu": 2'),
        f'{{"mtu": 2, "default-ulimits": {{{ulimit("core", 5, 7)}}}}}',
    ),
    "an entry under another key": (
        f'{{"default-ulimits": {{{ulimit("core", 5, 7, "x")}, {ulimit("nproc", 1, 1)}}}}}'.encode(),
        lambda text: text + "\n",
        f'{{"default-ulimits": {{{ulimit("nproc", 1, 1)}, {ulimit("core", 5, 7, "x")}}}}}\n',
    ),
    "no entries, but a place for them": (
        b'{"default-ulimits": { }, "mtu": 1}',
        lambda text: text.replace('"mtu": 1', '"mtu": 2'),
        '{"default-ulimits": { }, "mtu": 2}',
    ),
    "entries of others that are gone": (
        f'{{"default-ulimits": {{{ulimit("nproc", 1, 1)}}}}}'.encode(),
        lambda text: text.replace(f"{ulimit('nproc', 1, 1)}, ", ""),
        '{"default-ulimits": {}}',
    ),
    "no file": (None, lambda text: text + "\n", None),
    "a file that somebody removed": (b'{"mtu": 1}', None, None),
    "a file that somebody emptied": (b'{"mtu": 1}', lambda text: text[:0], ""),
}


@pytest.mark.parametrize(("content", "change", "left"), EDITED.values(), ids=EDITED.keys())
def test_what_somebody_edited(
    content: bytes | None, change: Callable[[str], str] | None, left: str | None
) -> None:
    """Ours goes back where it still stands; what somebody changed is theirs from then on."""
    once = run(start(content), CORE)[0]
    text = once.pop(CONFIG_PATH).decode()
    edited = {**once, **({CONFIG_PATH: change(text).encode()} if change else {})}
    after = run(edited, CORE, absent=True)[0]
    assert after == ({} if left is None else {CONFIG_PATH: left.encode()})


def test_a_value_that_somebody_set_after_us_is_what_comes_back() -> None:
    """A later run replaces it and remembers it."""
    files = run({}, CORE)[0]
    files[CONFIG_PATH] = files[CONFIG_PATH].replace(b'"Soft": 1', b'"Soft": 0')
    changed = files[CONFIG_PATH]
    files = run(files, CORE)[0]
    assert states(files, CORE._replace(shm_size=None))
    assert run(files, CORE, absent=True)[0] == {CONFIG_PATH: changed}


def test_a_size_that_stood_there_comes_back_into_what_somebody_edited() -> None:
    policy = ContainerPolicy({}, 2**33)
    files = run(start(b'{"default-shm-size": "1G", "mtu": 1}'), policy)[0]
    files[CONFIG_PATH] = files[CONFIG_PATH].replace(b'"mtu": 1', b'"mtu": 2')
    left = run(files, policy, absent=True)[0]
    assert left == {CONFIG_PATH: b'{"default-shm-size": "1G", "mtu": 2}'}


def test_what_stood_there_before_us_is_not_ours() -> None:
    """A file that states all already is left alone, and state absent takes nothing out."""
    content = b'{"default-ulimits": {"core": {"Name": "core", "Soft": 1, "Hard": 1}}}'
    files, _ = run({CONFIG_PATH: content}, CORE)
    assert files[CONFIG_PATH] == content
    assert run(files, CORE, absent=True)[0] == {CONFIG_PATH: content}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[" * 9999, '{"original": 1, "written": "", "ours": {}}']
)
def test_what_is_no_record_is_refused(text: str) -> None:
    """A spoilt record stops the run: without it, what was there is not known."""
    problem = f"{RECORD}: is not a record of mlhost.limits; remove it to go on without"
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_record(text, RECORD)
    assert run({RECORD: text.encode()}, CORE) == ({RECORD: text.encode()}, True)


def test_a_record_is_read_as_it_was_written() -> None:
    record = Record("\u00e9\r\n", "{}", {"core": Rlimit(1, UNLIMITED)})
    assert parse_record(format_record(record), RECORD) == record
    assert json.loads(format_record(record))["original"] == "\u00e9\r\n"
