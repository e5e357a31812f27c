# SPDX-License-Identifier: GPL-3.0-or-later
"""daemon.json: what it states, how ours is merged in and out, what would stop Docker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlhost_limits.core.json_text import find_members
from mlhost_limits.core.redaction_json import redact_json
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Declaration, Rlimit
from mlhost_limits.docker import daemon_json
from mlhost_limits.docker.daemon_json import (
    DockerDefaults,
    Entry,
    StatedDefault,
    decode_daemon_json,
    make_entry,
    read_defaults,
)
from mlhost_limits.docker.dockerd_flags import (
    Flag,
    find_config_path,
    find_flags,
    find_socket,
    parse_flags,
)
from mlhost_limits.docker.flags import declare_flag
from mlhost_limits.docker.merge import merge_daemon_json
from mlhost_limits.docker.problems import find_daemon_json_problems
from mlhost_limits.systemd.unit_file import Setting, parse_environment_file, parse_unit

from tests.worlds.docker_defaults import collect_defaults

QUIET = settings(deadline=None)  # A busy machine is not a failure.

NVIDIA = """\
{
    "runtimes": {
        "nvidia": {
            "args": [],
            "path": "nvidia-container-runtime"
        }
    },
    "log-opts" : {"max-size": "10m"}
}
"""  # As nvidia-ctk runtime configure writes it, with one line by hand.

NOTHING = DockerDefaults({})


def find_problems(
    text: str,
    wanted: DockerDefaults = NOTHING,
    flags: Iterable[Flag] = (),
    nr_open: int = UNLIMITED,
    version: str = "",
) -> list[str]:
    """Return the sentences; what they stop is a table of its own."""
    found = find_daemon_json_problems(text, PATH, wanted, flags, nr_open, version)
    return [problem.text for problem in found]


WANTED = DockerDefaults(
    {"nofile": Rlimit(65536, 1048576), "memlock": Rlimit(UNLIMITED, UNLIMITED)}, 8 * 2**30
)
NOFILE = '"nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536}'
MEMLOCK = '"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}'
PATH = "/etc/docker/daemon.json"


def ulimit(name: str, hard: object, soft: object, key: str = "") -> str:
    return f'"{key or name}": {json.dumps({"Name": name, "Hard": hard, "Soft": soft})}'


def ulimits(*entries: str) -> str:
    return f'{{"default-ulimits": {{{", ".join(entries)}}}}}'


READ = {
    "as we write it": (ulimits(NOFILE, MEMLOCK), WANTED.ulimits),
    "Name decides": (ulimits(ulimit("core", 2, 1, "x")), {"core": Rlimit(1, 2)}),
    "any case": (
        '{"default-ulimits": {"x": {"NAME": "NoFile", "hARD": 80, "soft": 70}}}',
        {"nofile": Rlimit(70, 80)},
    ),
    "the last field": (
        '{"default-ulimits": {"x": {"Name": "a", "name": "core","Hard": 1, "Soft": 1, "Hard": 2}}}',
        {"core": Rlimit(1, 2)},
    ),
    "the last field that is not null": (
        '{"default-ulimits": {"x": {"Name": "core", "Hard": 2, "Soft": 1, "Hard": null}}}',
        {"core": Rlimit(1, 2)},
    ),
    "the last entry": (ulimits(ulimit("core", 2, 2), ulimit("core", 1, 1)), {"core": Rlimit(1, 1)}),
    "two objects are merged": (  # Measured on 20.10 and 26.1: Go decodes both into one map.
        f'{{"default-ulimits": {{{NOFILE}, {ulimit("core", 9, 9)}}}, '
        f'"default-ulimits": {{{ulimit("core", 1, 1)}}}}}',
        {"nofile": WANTED.ulimits["nofile"], "core": Rlimit(1, 1)},
    ),
    "faulty": (
        ulimits(ulimit("nofile", 1, 2), ulimit("core", 2, 1.0), ulimit("x", 1, 1), '"cpu": null'),
        {},
    ),
    "other keys": ('{"Default-Ulimits": {}, "nofile": 1}', {}),
    "no object": ('{"default-ulimits": []}', {}),
    "null": ('{"default-ulimits": null}', {}),
    "empty file": ("", {}),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ.keys())
def test_read_ulimits(text: str, expected: dict[str, Rlimit]) -> None:
    """A limit is read as dockerd would take it; one that it would not take states nothing."""
    assert collect_defaults(read_defaults(text, PATH)) == DockerDefaults(expected)


def test_read_names_the_line() -> None:
    """Each default has the line where its entry begins."""
    text = merge_daemon_json(NVIDIA, WANTED)
    assert read_defaults(text) == [
        StatedDefault(
            "nofile",
            WANTED.ulimits["nofile"],
            Declaration(PATH, 10, NOFILE, "65536:1048576"),
        ),
        StatedDefault(
            "memlock",
            WANTED.ulimits["memlock"],
            Declaration(PATH, 11, MEMLOCK, "unlimited:unlimited"),
        ),
        StatedDefault(
            "shm_size",
            Rlimit(8 * 2**30, 8 * 2**30),
            Declaration(PATH, 13, '"default-shm-size": "8G"', 8 * 2**30),
        ),
    ]


def test_merge_keeps_the_nvidia_runtime() -> None:
    """Other keys stay byte for byte; ours follow in the file's own layout."""
    assert merge_daemon_json(NVIDIA, WANTED) == (
        NVIDIA[: -len("\n}\n")]
        + f',\n    "default-ulimits": {{\n        {NOFILE},\n        {MEMLOCK}\n    }},\n'
        '    "default-shm-size": "8G"\n}\n'
    )


MERGED = {
    "empty file": ("", f'{{\n  "default-ulimits": {{\n    {NOFILE}\n  }}\n}}\n'),
    "beside another": (
        ulimits(ulimit("core", 0, 0)),
        ulimits(ulimit("core", 0, 0), NOFILE),
    ),
    "in place": (
        ulimits(ulimit("nofile", 5, 5), ulimit("core", 0, 0)),
        ulimits(NOFILE, ulimit("core", 0, 0)),
    ),
    "a broken one": (
        ulimits('"nofile": {"Hard": 5}', '"core": 1'),
        ulimits(NOFILE, '"core": 1'),
    ),
    "another key": (ulimits(ulimit("nofile", 5, 5, "x"), '"a": 1'), ulimits('"a": 1', NOFILE)),
    "stated twice": (ulimits(NOFILE, ulimit("nofile", 5, 5, "x")), ulimits(NOFILE)),
    "a broken one before it": (  # dockerd refuses the first, though the second replaces it.
        ulimits('"x": 5', ulimit("nofile", 1048576, 65536, "x"), '"a": 1'),
        ulimits('"a": 1', NOFILE),
    ),
    "no name": (ulimits('"nofile": {"Hard": 1048576, "Soft": 65536}'), ulimits(NOFILE)),
    "no entries": ('{"default-ulimits": {}}', ulimits(NOFILE)),
    "null": ('{"default-ulimits": null}', ulimits(NOFILE)),
    "null entry": ('{"default-ulimits": {"nofile": null}}', ulimits(NOFILE)),
    "floats": (ulimits(ulimit("nofile", 1048576.0, 65536.0)), ulimits(NOFILE)),
}


@pytest.mark.parametrize(("text", "expected"), MERGED.values(), ids=MERGED.keys())
def test_merge_ulimits(text: str, expected: str) -> None:
    """A wanted limit stands once afterwards, and other entries are kept, even faulty ones."""
    wanted = DockerDefaults({"nofile": Rlimit(65536, 1048576)})
    merged = merge_daemon_json(text, wanted)
    assert merged == expected
    assert merge_daemon_json(merged, wanted) == merged


ALREADY = {
    "other order": '{"default-ulimits": {"nofile": {"Soft": 65536, "Hard": 1048576,'
    f'"name": "nofile"}}, {MEMLOCK}}}, "default-shm-size": "8g"}}',
    "other key": f'{{"default-ulimits": {{{ulimit("nofile", 1048576, 65536, "x")},{MEMLOCK}}},'
    '"default-shm-size": "8589934592"}',
    "others too": f'{{"default-ulimits": {{{NOFILE}, {MEMLOCK}, {ulimit("core", 0, 0)}}},'
    '"default-shm-size": "8192 MiB"}',
}


@pytest.mark.parametrize("text", ALREADY.values(), ids=ALREADY.keys())
def test_what_is_stated_is_left_alone(text: str) -> None:
    """A file that states all that is wanted, in whatever spelling, is not changed."""
    assert merge_daemon_json(text, WANTED) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"default-ulimits": [1]}', "default-ulimits is a list, dockerd takes an object"),
        (
            ulimits(ulimit("core", 1, 1, "nofile")),
            "default-ulimits.nofile limits core: rename that key",
        ),
        (
            '{"default-ulimits": {"a": 1}, "default-ulimits": {"b": 1}}',
            "default-ulimits stands there more than once: state it once",
        ),
        (
            ulimits('"nofile": 5', '"nofile": 6'),
            "default-ulimits.nofile stands there more than once: state it once",
        ),
        (
            f'{{{ulimits(NOFILE, MEMLOCK)[1:-1]}, "default-shm-size": 5, "default-shm-size": "8G"}}',
            "default-shm-size stands there more than once: state it once",
        ),
        ("[]", "JSON:1:1: Expecting an object"),
    ],
)
def test_merge_refuses(text: str, message: str) -> None:
    """Where ours has no place, nothing is written."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        merge_daemon_json(text, WANTED)


LIMITS = st.tuples(st.integers(7, 2**40) | st.just(UNLIMITED), st.integers(7, 2**40)).map(
    lambda pair: Rlimit(min(pair), max(pair))
)
DEFAULTS = st.builds(
    DockerDefaults,
    st.dictionaries(st.sampled_from(RLIMITS), LIMITS, max_size=4),
    st.none() | st.integers(1, 2**45),
)
FILES = st.sampled_from(
    [
        *("{}", "{}\n", "{ }", "{\n}\n", '{"a":1}', '{ "b" : [ ], "a":{} }', NVIDIA),
        NVIDIA.replace("\n", "\r\n"),
        NVIDIA.replace("    ", "\t"),
        '{\n  "default-ulimits": {\n    "x": {"Name": "x", "Soft": 1}\n  },\n  "a": "\u00e9"\n}',
        '{"default-ulimits":{"y":1}}\n\n',
    ]
)


@QUIET
@given(FILES, DEFAULTS, DEFAULTS)
def test_merge_states_what_is_wanted(
    text: str, earlier: DockerDefaults, wanted: DockerDefaults
) -> None:
    """After a merge over another all is stated, the earlier too; a second changes nothing."""
    before = merge_daemon_json(text, earlier)
    after = merge_daemon_json(before, wanted)
    size = earlier.shm_size if wanted.shm_size is None else wanted.shm_size
    stated = DockerDefaults({**earlier.ulimits, **wanted.ulimits}, size)
    assert collect_defaults(read_defaults(after)) == stated
    assert merge_daemon_json(after, wanted) == after
    assert foreign(after) == foreign(text)
    told = [
        [re.sub(":[0-9]+:", ":", one) for one in find_problems(text, wanted)]
        for text in (before, after)
    ]
    assert told[0] == told[1]


def foreign(text: str) -> list[str]:
    return [
        text[member.start : member.end]
        for member in find_members(text)
        if not member.key.startswith("default-")
    ]


HOLDS = "default-ulimits.nofile"
UNKNOWN_NAME = f"runc knows {', '.join(RLIMITS)}: no container starts"
AS_ZERO = "which dockerd reads as 0"
INTEGERS = "dockerd takes whole numbers (-1: unlimited)"
PROBLEMS = {
    "sound": (NVIDIA, []),
    "trailing comma": (
        '{\n  "a": 1,\n}',
        [f"{PATH}:3:1: Expecting a property name in double quotes"],
    ),
    "list": ("[]", [f"{PATH}:1:1: Expecting an object"]),
    "empty file": ("\n", [f"{PATH}: dockerd before 23.0 refuses an empty file, {{}} is accepted"]),
    "byte order mark": ("\ufeff{}", [f"{PATH}:1: dockerd before 23.0 refuses a byte order mark"]),
    "list form": (
        '{\n"default-ulimits": ["nofile=1:2"]}',
        [f"{PATH}:2: default-ulimits: dockerd takes an object, not a list"],
    ),
    "text": (
        '{"default-ulimits": "x"}',
        [f"{PATH}:1: default-ulimits: dockerd takes an object, not 'x'"],
    ),
    "null": ('{"default-ulimits": null}', []),
    "null entry": (
        '{"default-ulimits": {"nofile": null}}',
        [f"{PATH}:1: {HOLDS}: is null, over which dockerd stumbles: no container starts"],
    ),
    "words": (
        '{"default-ulimits":\n{"nofile": "unlimited"}}',
        [f"{PATH}:2: {HOLDS}: dockerd takes an object with Name, Soft and Hard"],
    ),
    "no name": (
        '{"default-ulimits": {"nofile": {"Hard": 2, "Soft": 1}}}',
        [f"{PATH}:1: {HOLDS}: Name is missing: no container starts"],
    ),
    "unknown name": (
        ulimits(ulimit("nofiles", 2, 1)),
        [f"{PATH}:1: default-ulimits.nofiles: Name is 'nofiles', {UNKNOWN_NAME}"],
    ),
    "name is a number": (
        '{"default-ulimits": {"nofile": {"Name": 5, "Hard": 2, "Soft": 1}}}',
        [f"{PATH}:1: {HOLDS}: Name is 5, dockerd takes a string"],
    ),
    "nothing but a name": (
        '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": null}}}',
        [
            f"{PATH}:1: {HOLDS}: soft 0 is too low (Soft and Hard missing, {AS_ZERO}):"
            " no container starts"
        ],
    ),
    "no soft": (
        '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 2}}}',
        [f"{PATH}:1: {HOLDS}: soft 0 is too low (Soft missing, {AS_ZERO}): no container starts"],
    ),
    "no hard": (
        '{"default-ulimits": {"nofile": {"Name": "nofile", "Soft": 2}}}',
        [
            f"{PATH}:1: {HOLDS}: soft 2 is above hard 0 (Hard missing, {AS_ZERO}):"
            " no container starts"
        ],
    ),
    "a value that a later one replaces": (
        ulimits('"nofile": 5', ulimit("nofile", 99, 99)),
        [f"{PATH}:1: {HOLDS}: dockerd takes an object with Name, Soft and Hard"],
    ),
    "a field that a later one replaces": (
        '{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 1.5, "Soft": 99, "hard": 99}}}',
        [f"{PATH}:1: {HOLDS}: Hard is 1.5, {INTEGERS}"],
    ),
    "a null drops what stands before": (
        f'{{{ulimits(ulimit("core", 1, 2))[1:-1]}, "default-ulimits": null}}',
        [],
    ),
    "missing bounds that do no harm": ('{"default-ulimits": {"x": {"Name": "core"}}}', []),
    "stated twice alike": (ulimits(NOFILE, ulimit("nofile", 1048576, 65536, "x")), []),
    "too low, perhaps": (
        ulimits(ulimit("nofile", 7, 7)),
        [f"{PATH}:1: {HOLDS}: soft 7 may be too low for a container to start"],
    ),
    "too low": (
        ulimits(ulimit("nofile", 7, 6)),
        [f"{PATH}:1: {HOLDS}: soft 6 is too low: no container starts"],
    ),
    "too low, if it wins": (
        ulimits(ulimit("nofile", 1024, 64), ulimit("NoFile", 1024, 5, "x")),
        [
            f"{PATH}:1: default-ulimits.x: soft 5 may be too low for a container to start",
            f"{PATH}:1: default-ulimits.x: nofile is stated twice, which one wins is not defined",
        ],
    ),
    "a number beyond all": (
        '{"mtu": 1e999}',
        [f"{PATH}:1:9: 1e999 is beyond every number that Go reads"],
    ),
    "a huge number": (
        f'{{"mtu": {"9" * 400}}}',
        [f"{PATH}:1:9: a number of 400 digits is beyond every number that Go reads"],
    ),
    "a letter that Go takes for an s": (
        '{"default-ulimits": {"x": {"Name": "\u017ftack", "Hard": -1, "\u017foft": "x"}}}',
        [f"{PATH}:1: default-ulimits.x: Soft is 'x', {INTEGERS}"],
    ),
    "nothing but null": ("null", []),
    "floats and words": (
        ulimits(ulimit("nofile", 65536.0, "65536")),
        [
            f"{PATH}:1: {HOLDS}: Hard is 65536.0, {INTEGERS}",
            f"{PATH}:1: {HOLDS}: Soft is '65536', {INTEGERS}",
        ],
    ),
    "truth and lists": (
        ulimits(ulimit("nofile", True, [1])),
        [
            f"{PATH}:1: {HOLDS}: Hard is True, {INTEGERS}",
            f"{PATH}:1: {HOLDS}: Soft is a list, {INTEGERS}",
        ],
    ),
    "too large for Go": (
        ulimits(ulimit("core", 2**63, 1)),
        [f"{PATH}:1: default-ulimits.core: Hard is {2**63}, {INTEGERS}"],
    ),
    "soft above hard": (
        ulimits(ulimit("nofile", 1, -1), ulimit("memlock", 1, 2)),
        [
            f"{PATH}:1: {HOLDS}: soft unlimited is above hard 1: no container starts",
            f"{PATH}:1: {HOLDS}: unlimited is above fs.nr_open, 1048576: no container starts",
            f"{PATH}:1: default-ulimits.memlock: soft 2 is above hard 1: no container starts",
        ],
    ),
    "above nr_open": (
        ulimits(ulimit("nofile", 1048577, 24)),
        [f"{PATH}:1: {HOLDS}: 1048577 is above fs.nr_open, 1048576: no container starts"],
    ),
    "stated twice": (
        ulimits(NOFILE, ulimit("nofile", 65, 65, "x")),
        [f"{PATH}:1: default-ulimits.x: nofile is stated twice, which one wins is not defined"],
    ),
    "misspelled": (
        '{"default-ulimit": {"nofile": 1},\n"Default-Shm_Size": "1g", "ulimits": 1,'
        '"default-limits": {}}',
        [
            f"{PATH}:1: default-ulimit: dockerd does not know this key, default-ulimits is meant",
            f"{PATH}:2: Default-Shm_Size: dockerd does not know this key, "
            "default-shm-size is meant",
            f"{PATH}:2: ulimits: dockerd does not know this key, default-ulimits is meant",
        ],
    ),
    "unknown keys": (
        '{"max-open-files": 5, "debug": true,\n"x": {"mtu": 1, "memory": 2}, "y": {}}',
        [
            f"{PATH}:1: max-open-files: dockerd does not know this key",
            f"{PATH}:2: x.memory: dockerd does not know this key",
        ],
    ),
    "values of other types": (
        '{"debug": "true", "mtu": "1450", "dns": "9.9.9.9", "data-root": 5,'
        ' "log-opts": {"max-file": 3}}',
        [
            f"{PATH}:1: debug: dockerd takes true or false, not a string",
            f"{PATH}:1: mtu: dockerd takes a whole number, not a string",
            f"{PATH}:1: dns: dockerd takes a list, not a string",
            f"{PATH}:1: data-root: dockerd takes a string, not a whole number",
            f"{PATH}:1: log-opts: dockerd takes strings alone in it, numbers in quotes too",
        ],
    ),
    "keys that are known": (
        '{"debug": null, "iptables": false, "mtu": 1450, "dns": ["9.9.9.9"], "bip": "10.0.0.1/8",'
        ' "log-opts": {"max-file": "3"}, "features": {"x": true}, "builder": {"gc": {}},'
        ' "proxies": {"http-proxy": "x"}, "runtimes": {"nvidia": {"path": "x", "args": []}},'
        ' "default-address-pools": [{"base": "10.0.0.0/8", "size": 24}], "graph": "/x"}',
        [],
    ),
    "a size that is too large": (
        '{"default-shm-size": "99999999999g"}',
        [f"{PATH}:1: default-shm-size: '99999999999g' is too large: no container starts"],
    ),
    "a size that is replaced": (
        '{"default-shm-size": "99999999999g", "default-shm-size": "1g"}',
        [],
    ),
    "size": (
        '{"default-shm-size": 8589934592}',
        [
            f"{PATH}:1: default-shm-size: 8589934592 is not a size, dockerd takes a string such as '8G'"
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problems(text: str, expected: list[str]) -> None:
    """Whatever stops dockerd or every container is named with file and line, all at once."""
    assert find_problems(text, nr_open=1048576) == expected


@pytest.mark.parametrize(
    ("text", "version", "count"),
    [
        *(("", "20.10.24+dfsg1", 1), ("", "23.0.0", 0), ("", "dev", 1), ("", "9", 1)),
        *(("\ufeff{}", "20.10.24", 1), ("\ufeff{}", "26.1.5+dfsg1", 0), ("\ufeff", "", 2)),
    ],
)
def test_old_daemons_refuse_more(text: str, version: str, count: int) -> None:
    """An empty file and a byte order mark stop dockerd before 23.0; unknown counts as old."""
    assert len(find_problems(text, version=version)) == count


def test_old_daemons_stop_reading_behind_the_object() -> None:
    """What follows the object is no problem before 23.0, and always one since."""
    assert find_problems("{} x", version="20.10.24") == []
    problem = f"{PATH}:1:4: Expecting nothing after the object"
    assert find_problems("{} x", version="26.1.5") == find_problems("{} x") == [problem]
    assert read_defaults('{"default-shm-size": "1g"} x', PATH, "20.10.5")


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("{", "dockerd"),
        ('{"default-ulimits": 5}', "dockerd"),
        ('{"default-shm-size": 5}', "dockerd"),
        ('{"default-shm-size": "9999999p"}', "containers"),
        ('{"default-ulimit": 5}', "dockerd"),
        (ulimits(ulimit("core", 0, 1.5)), "dockerd"),
        (ulimits(ulimit("core", 0, 1)), "containers"),
        (ulimits(ulimit("nofile", 0, 0)), "containers"),
        (ulimits(ulimit("nofile", 9, 9)), ""),
        (ulimits('"x": null'), "containers"),
        (ulimits(ulimit("core", 0, 0), ulimit("core", 1, 1, "x")), ""),
    ],
)
def test_a_problem_says_what_it_stops(text: str, stops: str) -> None:
    """dockerd itself does not start, or it starts and no container does, or it is a doubt."""
    problems = find_daemon_json_problems(text, PATH, NOTHING)
    assert [problem.stops for problem in problems] == [stops]


@pytest.mark.parametrize(
    ("name", "least"),
    [("nofile", 24), ("cpu", 2), ("stack", 2**17), ("data", 2**28), ("as", 2**32), ("core", 0)],
)
def test_below_what_a_limit_may_keep_a_container_from_its_start(name: str, least: int) -> None:
    enough = ulimits(ulimit(name, UNLIMITED // 2, least))
    assert find_problems(enough) == []
    if least:
        (problem,) = find_problems(ulimits(ulimit(name, UNLIMITED // 2, least - 1)))
        assert "may be too low for a container to start" in problem


def test_of_two_entries_for_one_limit_none_is_judged_alone() -> None:
    """Which of them counts is not defined, so that one that is too low may do no harm."""
    few = ulimit("nofile", 0, 0)
    assert read_defaults(ulimits(few)) == []
    stated = read_defaults(ulimits(few, ulimit("nofile", 99, 99, "x")))
    assert [one.limit for one in stated] == [Rlimit(0, 0), Rlimit(99, 99)]


def test_members_of_an_unknown_object_count_as_options() -> None:
    """dockerd looks for conflicts one level down, but for the objects that are one option."""
    flags = [Flag("default-shm-size", "1g", "u", 1), Flag("log-opt", "a=b", "u", 1)]
    text = '{"x": {"default-shm-size": "1g"}, "log-opts": {"max-size": "x"}}'
    both = [conflict("u:1", "default-shm-size", "default-shm-size")]
    others = [conflict("u:1", "log-opt", "log-opts")]
    assert find_problems(text, NOTHING, flags) == [*both, *others]


def test_a_newer_daemon_may_know_more_keys() -> None:
    assert find_problems('{"max-open-files": 5}', version="30.0.1") == []
    assert len(find_problems('{"max-open-files": 5}', version="29.1.0")) == 1


def test_text_that_is_no_utf_8_is_refused() -> None:
    assert decode_daemon_json(b"\xc3\xa9") == "\u00e9"
    with pytest.raises(ValueError, match=f"^{PATH}: byte 1 is not UTF-8: write it as UTF-8$"):
        decode_daemon_json(b"a\xff")


def test_a_text_of_megabytes_is_refused() -> None:
    assert decode_daemon_json(b" " * 2**20)
    refused = f"^{PATH}: has 1048577 bytes; at most 1048576 are accepted$"
    with pytest.raises(ValueError, match=refused):
        decode_daemon_json(b" " * (2**20 + 1))


def test_what_will_be_replaced_is_no_problem() -> None:
    """Judged is the file after the merge: what ours replaces is cured, the rest is not."""
    broken = ulimits('"nofile": 5', ulimit("core", 1, 2))[:-1] + ', "default-shm-size": 5}'
    assert find_problems(broken, WANTED) == [
        f"{PATH}:1: default-ulimits.core: soft 2 is above hard 1: no container starts"
    ]
    assert find_problems("", WANTED) == []


def test_wanted_values_are_judged() -> None:
    """What the policy wants is judged before it is written, beside a file that is broken."""
    wanted = DockerDefaults(
        {"nofile": Rlimit(100, UNLIMITED), "core": Rlimit(2, 1), "x": Rlimit(1, 1)}
    )
    assert find_problems("{", wanted, nr_open=1048576) == [
        "default-ulimits.nofile: unlimited is above fs.nr_open, 1048576: no container starts",
        "default-ulimits.core: soft 2 is above hard 1: no container starts",
        f"default-ulimits.x: Name is 'x', {UNKNOWN_NAME}",
        f"{PATH}:1:2: Expecting a property name in double quotes",
    ]


def conflict(place: str, flag: str, key: str) -> str:
    both = f"--{flag} and {key} in {PATH}"
    return f"{place}: {both} exclude each other, dockerd does not start with both"


def test_flags_and_keys_exclude_each_other() -> None:
    """A flag and the key of the same thing stop dockerd; the flag is named with file and line."""
    flags = [
        Flag("default-ulimit", "nofile=100:200", "/etc/default/docker", 3),
        Flag("default-shm-size", "1g", "/proc/7/cmdline", 0),
        Flag("host", "fd://", "/u/docker.service", 4),
        Flag("add-runtime", "x=y", "/u/docker.service", 4),
    ]
    text = '{"hosts": [], "runtimes": {}, "default-ulimits": {}}'
    assert find_problems(text, NOTHING, flags) == [
        conflict("/etc/default/docker:3", "default-ulimit", "default-ulimits"),
        conflict("/u/docker.service:4", "host", "hosts"),
    ]
    assert find_problems("{}", NOTHING, flags) == []
    assert find_problems("{}", WANTED, flags) == [
        conflict("/etc/default/docker:3", "default-ulimit", "default-ulimits"),
        conflict("/proc/7/cmdline", "default-shm-size", "default-shm-size"),
    ]


def test_flags_are_read_like_dockerd() -> None:
    """Long and short flags are read in each of their spellings."""
    line = (
        "x --debug --label=a=b --default-ulimit nofile=1:2 -H fd:// -Hunix:///s -D -s=overlay2 -?"
    )
    flags = parse_flags((word, "p", 1) for word in line.split())
    assert [flag[:2] for flag in flags] == [
        *(("debug", ""), ("label", "a=b"), ("default-ulimit", "nofile=1:2"), ("host", "fd://")),
        *(("host", "unix:///s"), ("debug", ""), ("storage-driver", "overlay2")),
    ]
    flags = parse_flags((word, "p", 1) for word in ["-DH", "unix:///s", "-D=false"])
    assert [flag[:2] for flag in flags] == [
        *(("debug", ""), ("host", "unix:///s"), ("debug", "false")),
    ]


def test_flags_of_a_unit_have_their_places() -> None:
    """A flag has the place of the line it comes from: the unit, or the variable's file."""
    unit = (
        "[Service]\nExecStart=/old --x\nExecStart=/usr/sbin/dockerd -H fd:// \\\n"
        " ${ONE} $OPTS --debug $NONE"
    )
    environment = parse_environment_file("\nOPTS='--label a --icc=false'\n", "/etc/default/docker")
    variables = {setting.key: setting for setting in environment}
    variables["ONE"] = Setting("Service", "ONE", "--ip=1", "/e/d.conf", 7)
    flags = find_flags(parse_unit(unit, "/u/docker.service"), variables)
    assert [(flag.name, flag.value, declare_flag(flag).place) for flag in flags] == [
        ("host", "fd://", "/u/docker.service:3"),
        ("ip", "1", "/e/d.conf:7"),
        ("label", "a", "/etc/default/docker:2"),
        ("icc", "false", "/etc/default/docker:2"),
        ("debug", "", "/u/docker.service:3"),
    ]
    assert find_flags([], {}) == []


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([], "/var/run/docker.sock"),
        (["fd://"], "/var/run/docker.sock"),
        (["tcp://0.0.0.0:2376", "unix:///run/a.sock", "unix:///run/b.sock"], "/run/a.sock"),
        (["unix://"], "/var/run/docker.sock"),
    ],
)
def test_socket(hosts: list[str], expected: str) -> None:
    """The socket is that of the first -H, or the default."""
    flags = [Flag("host", host, "u", 1) for host in hosts]
    assert find_socket(flags) == expected


def test_config_path() -> None:
    """The last --config-file counts."""
    flags = [Flag("config-file", name, "u", 1) for name in ("/a", "/b")]
    assert find_config_path(flags) == "/b"
    assert find_config_path([]) == PATH


@QUIET
@given(FILES, DEFAULTS)
def test_our_keys_stay_readable(text: str, wanted: DockerDefaults) -> None:
    """Nothing of ours, and nothing of an ordinary file, is hidden."""
    merged = merge_daemon_json(text.replace("\u00e9", ""), wanted)
    assert redact_json(merged) == merged


def test_an_entry_is_read_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(key: str, *words: Any) -> Entry:
        read.append(key)
        return make_entry(key, *words)

    monkeypatch.setattr(daemon_json, "make_entry", count)
    entries = ", ".join(f'"{key}": {{"Name": "nofile", "Hard": 99}}' for key in "abc")
    text = f'{{"default-ulimits": {{{entries}}}}}'
    find_problems(text)
    read_defaults(text, PATH)
    assert read == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('"key-{}": 1', 40_000),
        ('"default-shm-size": "1G"', 40_000),
        ('"default-shm-siz": "{}G"', 40_000),
        ('"default-ulimits": {{"n{}": {{"Name": "nofile", "Hard": 5, "Soft": 5}}}}', 5_000),
    ],
)
def test_what_a_file_costs_grows_with_its_lines(line: str, count: int) -> None:
    """Each line is counted once, and not once for each line after it."""
    lines = ",\n".join(line.format(number) for number in range(count))
    begun = time.process_time()
    list(find_daemon_json_problems(f"{{\n{lines}\n}}", PATH, DockerDefaults({}, None)))
    assert time.process_time() - begun < 4


CURRENT, OLD = "27.5.1", "20.10.24+dfsg1"


@pytest.mark.parametrize(
    ("text", "version", "said"),
    [
        (
            '{"dns": ["8.8.8.8", "nonsense"]}',
            CURRENT,
            "1: dns: dockerd takes addresses alone in it",
        ),
        ('{"dns": [""]}', OLD, "1: dns: dockerd takes addresses alone in it"),
        ('{"dns": ["", "fe80::1"]}', CURRENT, ""),
        ('{"labels": ["a=b", "a=c"]}', "", "1: labels: dockerd refuses it beside another label"),
        ('{"labels": ["a=b", "a=b", "c="]}', "", ""),
        ('{"icc": false, "iptables": false}', "", "1: icc: dockerd refuses it beside iptables of"),
        ('{"icc": false}', "", ""),
        (
            '{"bip": "10.1.0.1/24",\n"bridge": "br0"}',
            "",
            "1: bip: dockerd refuses it beside bridge",
        ),
        ('{"bip": "10.1.0.1"}', "", "1: bip: dockerd takes an address with the length"),
        ('{"mtu": -1}', "", "1: mtu: dockerd takes 0 or more"),
        ('{"mtu": -1}', OLD, ""),
        ('{"runtimes": {"x": {}}}', CURRENT, "1: runtimes: dockerd takes a path or a runtimeType"),
        ('{"runtimes": {"x": {}}}', OLD, ""),
        ('{"log-opts": {"max-sise": "1m"}}', "", "1: log-opts: dockerd takes options of json-file"),
        ('{"log-driver": "gelf", "log-opts": {"gelf-address": "udp://x:1"}}', "", ""),
    ],
)
def test_a_value_that_dockerd_refuses_is_named(text: str, version: str, said: str) -> None:
    problems = find_daemon_json_problems(text, PATH, NOTHING, (), UNLIMITED, version)
    assert [one.text[: len(PATH) + 1 + len(said)] for one in problems] == (
        [f"{PATH}:{said}"] if said else []
    )
    assert all(one.stops == "dockerd" for one in problems)
