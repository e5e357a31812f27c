# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers.conf and its drop-ins give is what Podman 4.3.1 and 5.4.2 were seen to give."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.podman.containers_conf import (
    _LONGEST_NUMBER,
    DROP_INS,
    MAIN,
    OWN,
    VENDOR,
    ConfError,
    find_tasks,
    find_unread_keys,
    order_files,
    read_conf,
    resolve,
)

C = "[containers]\n"


def given(*texts: str) -> dict[str, tuple[int, int]]:
    """Return the limits that files give, one after the other."""
    stated = [read_conf(f"{DROP_INS}/{index}.conf", text) for index, text in enumerate(texts)]
    return {item: tuple(one.limit) for item, one in resolve(stated).ulimits.items()}


def test_files_are_read_in_podmans_order() -> None:
    home = "/root/.config/containers/containers.conf"
    paths = [
        f"{home}.d/1.conf",
        f"{DROP_INS}/a.conf",
        home,
        f"{DROP_INS}/B.conf",
        MAIN,
        OWN,
        VENDOR,
    ]
    assert order_files([*paths, f"{DROP_INS}/a.conf.bak", "/etc/x.conf"]) == [
        VENDOR, MAIN, OWN, f"{DROP_INS}/B.conf", f"{DROP_INS}/a.conf", home, f"{home}.d/1.conf",
    ]  # fmt: skip


def test_a_users_own_files_come_last_wherever_the_home_is() -> None:
    own = ".config/containers/containers.conf"
    ordered = [f"{DROP_INS}/z.conf", f"/a/{own}", f"/Z/{own}.d/1.conf"]
    assert order_files(ordered[::-1]) == ordered
    assert order_files(
        [f"/Z/{own}.d/1.conf", f"/Z/{own}.d/1.conf.bak", f"/Z/{own}.d/x/1.conf"]
    ) == [f"/Z/{own}.d/1.conf"]


@pytest.mark.parametrize(
    ("texts", "limits"),
    [
        ([""], {}),
        ([C + 'default_ulimits = ["nofile=65536:65537","memlock=-1:-1"]'],
         {"nofile": (65536, 65537), "memlock": (UNLIMITED, UNLIMITED)}),
        ([C + 'default_ulimits = ["nofile=65"]'], {"nofile": (65, 65)}),
        ([C + 'default_ulimits = ["nofile=5:-1", "core=+10:010"]'],
         {"nofile": (5, UNLIMITED), "core": (10, 10)}),
        ([C + 'default_ulimits = ["nofile=65:66","nofile=67:68"]'], {"nofile": (67, 68)}),
        (['containers = {default_ulimits = ["nofile=65"]}'], {"nofile": (65, 65)}),
        (['containers.default_ulimits = ["nofile=65"]'], {"nofile": (65, 65)}),
        (['[engine]\ndefault_ulimits = ["nofile=65"]'], {}),
        ([C + 'default_ulimit = ["nofile=65"]'], {}),
        ([C + 'default_ulimits = ["core=0","nofile=7"]', C + 'default_ulimits = ["nofile=65"]'],
         {"nofile": (65, 65)}),
        ([C + 'default_ulimits = ["core=0"]', C + "default_ulimits = []"], {}),
        ([C + 'default_ulimits = ["core=0"]', C + 'default_ulimits = ["nofile=65",{append=true}]'],
         {"core": (0, 0), "nofile": (65, 65)}),
        ([C + 'default_ulimits = ["core=0",{append=true}]', C + 'default_ulimits = ["nofile=65"]'],
         {"core": (0, 0), "nofile": (65, 65)}),
        ([C + 'default_ulimits = ["core=0",{append=true}]',
          C + 'default_ulimits = ["nofile=65",{append=false}]'], {"nofile": (65, 65)}),
    ],
)  # fmt: skip
def test_limits(texts: list[str], limits: dict[str, tuple[int, int]]) -> None:
    assert given(*texts) == limits


@pytest.mark.parametrize(
    ("size", "read"),
    [
        ("65536k", 65536000),
        ("8589934592", 8589934592),
        ("1GiB", 10**9),
        ("1.5g", 1500000000),
        ("8 g", 8 * 10**9),
        ("9007199254740993", 2**53 + 1),
        ("1t", 10**12),
        ("1p", 10**15),
        ("0", 0),
    ],
)
def test_a_size_is_counted_by_the_thousand(size: str, read: int) -> None:
    stated = read_conf(MAIN, f'{C}shm_size = "{size}"')
    assert stated.shm
    assert stated.shm.value == read
    assert resolve([stated, read_conf(OWN, "")]).shm == stated.shm


@pytest.mark.parametrize(
    ("texts", "tasks"),
    [
        ([], 2048),
        (["pids_limit = 9"], 9),
        (["pids_limit = 9", "shm_size = '1g'"], 9),
        (["pids_limit = 9", "pids_limit = 4_096"], 4096),
        (["pids_limit = -1"], UNLIMITED),
        (["pids_limit = 0x10"], 16),
        ([f"pids_limit = 0x{'9'.rjust(_LONGEST_NUMBER - 2, '0')}"], 9),
        (["pids_limit = 9", "pids_limit = 0"], None),
    ],
)
def test_the_last_file_that_states_tasks_counts(texts: list[str], tasks: int | None) -> None:
    assert find_tasks(resolve(read_conf(MAIN, C + text) for text in texts).tasks) == tasks


def test_an_entry_knows_its_line() -> None:
    stated = read_conf(MAIN, f'{C}default_ulimits = [\r\n  "core=0",\r\n  "nofile=65"\r\n]\r\n')
    assert stated.block
    assert (stated.block.at.line, stated.block.end) == (2, 5)
    assert [one.at.place for one in stated.block.ulimits] == [f"{MAIN}:3", f"{MAIN}:4"]
    assert stated.block.ulimits[1].at.text == '  "nofile=65"\r'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = ", f"{MAIN}:1: no value"),
        ("x = 'caf\xe9'", f"{MAIN}: is not UTF-8"),
        (C + 'default_ulimits = "nofile=65"', f"{MAIN}:2: default_ulimits takes a list of texts"),
        (C + "default_ulimits = [65]",
         f"{MAIN}:2: Scalar(text='65') is not a limit; accepted is item=soft:hard"),
        (C + 'default_ulimits = [\n"as=1"]',
         f"{MAIN}:3: 'as=1' is not a limit; accepted is item=soft:hard"),
        (C + 'default_ulimits = ["memlock=unlimited"]',
         f"{MAIN}:2: 'memlock=unlimited' is not a limit; accepted is item=soft:hard"),
        (C + 'default_ulimits = ["nofile=66:65"]', f"{MAIN}:2: 'nofile=66:65': soft is above hard"),
        (C + 'default_ulimits = ["nofile=-1:5"]', f"{MAIN}:2: 'nofile=-1:5': soft is above hard"),
        (C + 'default_ulimits = ["core=9223372036854775808"]',
         f"{MAIN}:2: 'core=9223372036854775808' is beyond every number"),
        (C + 'default_ulimits = [{append=1}]',
         f"{MAIN}:2: default_ulimits knows only {{append=true}} or false"),
        (C + 'default_ulimits = [{more=true}]',
         f"{MAIN}:2: default_ulimits knows only {{append=true}} or false"),
        (C + "shm_size = 65536", f"{MAIN}:2: shm_size takes a size as a text"),
        (C + "shm_size = ''", f"{MAIN}:2: shm_size takes a size as a text"),
        (C + 'pids_limit = "9"', f"{MAIN}:2: pids_limit takes a whole number"),
        (C + 'default_ulimits = ["core=-9223372036854775809"]',
         f"{MAIN}:2: 'core=-9223372036854775809' is beyond every number"),
        (C + "pids_limit = -9223372036854775809", f"{MAIN}:2: pids_limit is beyond every number"),
        (C + f"pids_limit = 0x{'9'.rjust(_LONGEST_NUMBER - 1, '0')}",
         f"{MAIN}:2: pids_limit takes a whole number"),
        (C + "pids_limit = 9223372036854775808", f"{MAIN}:2: pids_limit is beyond every number"),
        (C + "pids_limit = 1.5", f"{MAIN}:2: pids_limit takes a whole number"),
        (C + "pids_limit = true", f"{MAIN}:2: pids_limit takes a whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(ConfError) as caught:
        read_conf(MAIN, text)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (C + 'default_ulimits = ["nofile=65"]\nshm_size = "1g"', []),
        (
            C + 'default_ulimit = ["nofile=65"]',
            [(2, "default_ulimit is not a key that Podman knows")],
        ),
        (C + "shm-size = '1g'", [(2, "shm-size is not a key that Podman knows")]),
        (C + "shm_sizes = '1g'", []),
        (C + "pids_limit = 5", []),
        (C + "pids-limit = 5", [(2, "pids-limit is not a key that Podman knows")]),
        (C + "tasks_max = 5", [(2, "tasks_max is not a key that Podman knows")]),
        ("[engine]\npids_limit = 5", [(2, "it stands in [engine], not in [containers]")]),
        ("[engine]\nshm_size = '1g'", [(2, "it stands in [engine], not in [containers]")]),
        ('default_ulimits = ["nofile=65"]', [(1, "it stands in no table, not in [containers]")]),
    ],
)
def test_keys_that_podman_passes_over(text: str, found: list[tuple[int, str]]) -> None:
    assert list(find_unread_keys(text)) == found
