# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops dockerd is put right in thought as its remedy says: the words, and what becomes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.causes import find_docker_causes
from mlhost_limits.docker.daemon_json import DockerDefaults
from mlhost_limits.docker.merge import find_unstated
from mlhost_limits.docker.model import find_obstacles
from mlhost_limits.docker.obstacles import blame_obstacle
from mlhost_limits.docker.remedies import (
    count_met,
    drop_entry,
    keep_lines,
    rename_key,
    state,
    state_in_file,
)
from mlhost_limits.docker.site import Tools

from tests.worlds.docker_scene import (
    HEALTHY,
    PATH,
    POLICY,
    RESTART,
    SOFT,
    collect,
    flag,
    limit_flag,
    make_site,
    make_world,
)

if TYPE_CHECKING:
    from mlhost_limits.core.cause import Remedy

NOFILE = '"nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536}'
MEMLOCK = '"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}'
STATED = json.loads(HEALTHY)
STRANGER = HEALTHY.replace(MEMLOCK, '"cpus": {"Name": "cpus", "Hard": 1, "Soft": 1}')
WITHOUT_MEMLOCK = {**STATED, "default-ulimits": {"nofile": STATED["default-ulimits"]["nofile"]}}
ALONE = {"default-shm-size": "8G"}


@pytest.mark.parametrize(
    ("text", "line", "remedy", "after"),
    [
        (HEALTHY.replace(': 65536', ': 2000000'), 3,
         f"in {PATH}: default-ulimits.nofile 65536:1048576", STATED),
        (HEALTHY.replace('"Name": "memlock", ', ""), 4, f"in {PATH}: default-ulimits.memlock -1", STATED),
        (HEALTHY.replace('"8G"', "8"), 6, f"in {PATH}: default-shm-size 8G", STATED),
        (STRANGER, 4, "take that entry out", WITHOUT_MEMLOCK),
        (HEALTHY.replace("default-ulimits", "default-ulimit"), 2, "call that key default-ulimits", STATED),
        (HEALTHY.replace("default-shm-size", "SHM-size"), 6, "call that key default-shm-size", STATED),
        (HEALTHY.replace('"default-shm', '"ulimits": 1, "default-shm'), 6,
         f'take "ulimits" out of {PATH}', STATED),
        (HEALTHY.replace('"default-shm', '"open-files": 5, "default-shm'), 6,
         f'take "open-files" out of {PATH}', STATED),
        ('{"default-ulimits": [],\n"default-shm-size": "8G"}', 1, f'take "default-ulimits" out of {PATH}', ALONE),
        (HEALTHY.replace('"Soft": -1}\n', '"Soft": -1},\n'), 5, "take the comma off the end of line 4", STATED),
        (HEALTHY.replace("  },\n", "  }\n"), 6, "put a comma at the end of line 5", STATED),
        (HEALTHY.replace("  },\n", "  }\n\n\n"), 8, "put a comma at the end of line 5", STATED),
        (" \n", 0, "write {} there", {}),
        ("\ufeff" + HEALTHY, 1, "take that mark out", STATED),
    ],
)  # fmt: skip
def test_the_words_of_a_remedy_and_what_it_makes(
    text: str, line: int, remedy: str, after: object
) -> None:
    world = make_world(text)
    cause, changed = blame_obstacle(find_obstacles(world), world, make_site())
    assert cause.at
    assert (cause.at.path, cause.at.line) == (PATH, line)
    assert cause.remedy.text == f"{remedy}, then restart docker"
    assert cause.remedy.commands[-1] == RESTART
    assert len(cause.remedy.commands) == 2
    assert changed
    assert json.loads(changed.text or "") == after
    assert (find_obstacles(changed), changed.path) == ([], PATH)


def test_a_size_of_which_the_policy_says_nothing_is_taken_out() -> None:
    text = HEALTHY.replace('"8G"', "8")
    site = make_site(ContainerPolicy({}, None))
    cause, changed = blame_obstacle(find_obstacles(make_world(text)), make_world(text), site)
    assert cause.remedy.text == f'take "default-shm-size" out of {PATH}, then restart docker'
    assert changed
    assert "default-shm-size" not in json.loads(changed.text or "")


def test_only_a_line_that_lacks_a_comma_gets_one() -> None:
    """The line before the last that says something is too far away."""
    text = HEALTHY.replace('"Soft": 65536},', '"Soft": 65536} ')
    world = make_world(text)
    cause, changed = blame_obstacle(find_obstacles(world), world, make_site())
    assert cause.remedy.text == "put a comma at the end of line 3, then restart docker"
    assert "'3s/[[:space:]]*$/,/'" in cause.remedy.commands[0][-1]
    for odd in (text.replace('"memlock"', "\n\n,"), '{"a" 1}', '{\n"a": 1\n{\n\n"b": }'):
        world = make_world(odd)
        cause, changed = blame_obstacle(find_obstacles(world), world, make_site())
        assert (cause.remedy.text, cause.remedy.commands, changed) == ("correct it there", (), None)


def run(remedy: Remedy, text: str) -> object:
    """Return what the program of a remedy makes of a file, without running what is around it."""
    program = remedy.commands[0][-1].split("; ")
    steps = [one for one in program if one.startswith(("assert d.", "assert (d.", "d.", "d["))]
    inner = next(number for number, one in enumerate(program) if one.startswith("d = "))
    space: dict[str, object] = {"d": json.loads(text)}
    assert program[inner + 1 : inner + 1 + len(steps)] == steps
    exec("\n".join(steps), space)
    return space["d"]


@pytest.mark.parametrize(
    ("text", "item", "after"),
    [
        ("{}", "nofile", {"default-ulimits": {"nofile": 0}}),
        ('{"default-ulimits": null}', "nofile", {"default-ulimits": {"nofile": 0}}),
        ('{"default-ulimits": {}}', "nofile", {"default-ulimits": {"nofile": 0}}),
        (
            '{"default-ulimits": {"files": {"Name": "nofile", "Hard": 1, "Soft": 1}}}',
            "nofile",
            {"default-ulimits": {"nofile": 0}},
        ),
        ('{"default-shm-size": "1G", "a": 1}', "shm_size", {"default-shm-size": "5", "a": 1}),
        ('{"default-ulimits": {"core": 1}, "a": 1}', "shm_size",
         {"default-ulimits": {"core": 1}, "a": 1, "default-shm-size": "5"}),
    ],
)  # fmt: skip
def test_the_program_and_the_thought_agree(text: str, item: str, after: object) -> None:
    change = state_in_file(item, Rlimit(5, 5), make_world(text), Tools())
    wanted = json.dumps(after).replace(
        '"nofile": 0', '"nofile": {"Name":"nofile","Hard":5,"Soft":5}'
    )
    for _time in range(2):
        assert run(change.remedy, text) == json.loads(wanted) == json.loads(change.world.text or "")
        text = wanted
    other = '{"default-shm-size": "3G", "default-ulimits": {"nofile": 3}}'
    with pytest.raises(AssertionError):
        run(change.remedy, other)


def test_an_entry_goes_only_where_it_is_what_was_seen() -> None:
    text = '{"default-ulimits": {"core": {"Hard": 1}, "cpu": 2}}'
    change = drop_entry("core", make_world(text), Tools())
    assert run(change.remedy, text) == {"default-ulimits": {"cpu": 2}}
    with pytest.raises(AssertionError):
        run(change.remedy, text.replace("1", "3"))


def test_a_key_gets_its_right_name_with_all_that_it_holds() -> None:
    text = '{"debug": true, "ulimits" : {"ulimits": 2}}'
    change = rename_key("ulimits", "default-ulimits", make_world(text), Tools())
    after = {"debug": True, "default-ulimits": {"ulimits": 2}}
    assert run(change.remedy, text) == json.loads(change.world.text or "") == after
    with pytest.raises(AssertionError):
        run(change.remedy, text.replace("2", "3"))


def test_what_stands_below_a_renamed_key_keeps_its_line() -> None:
    text = HEALTHY.replace("default-ulimits", "ulimits").replace("65536", "1024")
    causes = find_docker_causes(SOFT, make_world(text), make_site())
    assert collect(causes) == [
        ("docker-dockerd-refuses", f"{PATH}:2"),
        ("docker-stated-too-low", f"{PATH}:3"),
    ]


@pytest.mark.parametrize("row", ['"open-files": 5,\n', '"open-files": {"files":\n5},\n'])
def test_what_stands_below_a_key_that_goes_keeps_its_line(row: str) -> None:
    text = HEALTHY.replace("{\n", f"{{\n{row}", 1).replace("65536", "1024")
    first, then = collect(find_docker_causes(SOFT, make_world(text), make_site()))
    assert first == ("docker-dockerd-refuses", f"{PATH}:2")
    assert then == ("docker-stated-too-low", f"{PATH}:{3 + row.count(chr(10))}")


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ('{"a": 1,\n"b": 2}', '{"a": 1,\n"b": 3}', '{"a": 1,\n"b": 3}'),
        ("{}", '{\n"a": 1\n}', '{ "a": 1 }'),
        ("[1,\n2,\n3]", "[1,\n2,\n3]", "[1,\n2,\n3]"),
        ('{"a": 1,\n"b": 2,\n"c": 3}', '{"a": 1,\n"c": 3}', '{"a": 1\n,\n"c": 3}'),
        ('{\n"a": 1,\n"b": 2\n}', '{\n"b": 2\n}', '{\n\n"b": 2\n}'),
        ("{}\n", "{}", "{}\n"),
        ("[1,\n1]", "[1,\n1,\n1]", "[1, 1,\n1]"),
        ('{"a": 1,\n"b": 2}', '{"b": 2}', '{\n"b": 2}'),
        ('{\n"a": 1\n}', '{\n"a": 1,\n"b": 12\n}', '{\n"a": 1, "b": 12\n}'),
        ('{\n"a": ["b"\n, "x,}c"]}', '{\n"a": ["q,}c"]}', '{\n"a": ["q,}c"]\n}'),
        ('{\n"a": ["b",\n"x\\",c"]}', '{\n"a": ["q\\",c"]}', '{\n"a": ["q\\",c"]\n}'),
        ('{"a": {"b": 1},\n"c": 2}', '{"a": {},\n"c": 2}', '{"a": {},\n"c": 2}'),
    ],
)
def test_an_edit_keeps_the_lines_behind_it(before: str, after: str, kept: str) -> None:
    assert keep_lines(before, after) == kept
    assert keep_lines(before, after).count("\n") == before.count("\n")


def test_defaults_that_are_met_are_counted() -> None:
    """Both bounds of each; a world in which nothing starts meets none."""
    assert count_met(make_world(), POLICY) == 3
    assert count_met(make_world(HEALTHY.replace("65536", "9")), POLICY) == 2
    assert count_met(make_world(HEALTHY.replace("1048576", "70000")), POLICY) == 2
    assert count_met(make_world(HEALTHY.replace('"8G"', "8")), POLICY) == 0
    assert count_met(make_world(), ContainerPolicy({}, None)) == 0
    assert count_met(make_world(nr_open=UNLIMITED), POLICY) == 3
    bounded = ContainerPolicy({"core": Limit(max=5)}, None)
    assert count_met(make_world("{}", base={"core": (Rlimit(0, 0),)}), bounded) == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"default-shm-size": "1G", "default-shm-size": "8G"}', None),
        ('{"default-shm-size": "8G", "default-shm-size": "1G"}', 8 * 2**30),
        ('{"default-shm-size": 5, "default-shm-size": "8G"}', 8 * 2**30),
    ],
)
def test_of_two_sizes_the_last_is_stated(text: str, left: int | None) -> None:
    """Where dockerd refuses one of them, none is."""
    assert find_unstated(text, DockerDefaults({}, 8 * 2**30)) == DockerDefaults({}, left)


def test_an_entry_is_stated_only_where_dockerd_takes_all_of_its_key() -> None:
    """An earlier one of the same key that it refuses stops it all the same."""
    wanted = DockerDefaults({"nofile": Rlimit(65536, 1048576)})
    fit = f'{{"default-ulimits": {{"core": 5, {NOFILE}}}}}'
    assert find_unstated(fit, wanted).ulimits == {}
    bad = f'{{"default-ulimits": {{"nofile": 5, {NOFILE}}}}}'
    assert find_unstated(bad, wanted) == wanted


def test_a_flag_is_written_between_the_others() -> None:
    flags = [limit_flag("core=0"), limit_flag("nofile=9:9"), limit_flag("cpu=5"), flag("debug")]
    change = state("nofile", Rlimit(5, 6), make_world(None, flags), Tools())
    values = [one.value for one in change.world.flags]
    assert values == ["core=0", "nofile=5:6", "cpu=5", ""]
    change = state("memlock", Rlimit(5, 6), make_world(None, flags), Tools())
    values = [one.value for one in change.world.flags]
    assert values == ["core=0", "nofile=9:9", "cpu=5", "memlock=5:6", ""]


def test_the_directory_of_a_file_that_is_not_there_is_made() -> None:
    change = state("nofile", Rlimit(5, 6), make_world(None), Tools())
    assert change.remedy.commands[0] == ("mkdir", "-p", "/etc/docker")
    assert change.remedy.commands[1][-1].endswith(f"|| echo '{{}}' > {PATH}")
