# SPDX-License-Identifier: GPL-3.0-or-later
"""What has a say in a sysctl at boot has it in the order in which a host starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Requirement
from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.model import (
    Forecast,
    find_defaults,
    find_module,
    find_start,
    foresee_start,
    is_in_range,
    judge_forecast,
    predict_boot,
)
from mlhost_limits.kernel.remedies import list_read_lines, list_unread_lines
from mlhost_limits.kernel.sysctl_conf import FILE_MAX_OF_SYSTEMD, NR_OPEN_OF_SYSTEMD
from mlhost_limits.kernel.tuned_profile import Tuned

from tests.worlds.kernel_world import MAPS, PROFILE, World

D, LIB = "/etc/sysctl.d", "/usr/lib/sysctl.d"
FILE_MAX, NR_OPEN = str(FILE_MAX_OF_SYSTEMD), str(NR_OPEN_OF_SYSTEMD)
NEEDED = Requirement("kernel", MAPS, "value", 100)
RC = "/etc/rc.local"


@pytest.mark.parametrize(
    ("key", "running", "raises_nr_open", "raises_file_max", "expected"),
    [
        ("fs.file-max", 5, None, True, (FILE_MAX,)),
        ("fs.file-max", FILE_MAX_OF_SYSTEMD, None, False, (FILE_MAX,)),
        ("fs.file-max", 5, None, False, ()),
        ("fs.nr_open", 5, False, True, ("1048576",)),
        ("fs.nr_open", NR_OPEN_OF_SYSTEMD, False, True, ("1048576",)),
        ("fs.nr_open", 5, True, True, (NR_OPEN,)),
        ("fs.nr_open", 5, None, True, ("1048576", NR_OPEN)),
        ("fs.nr_open", NR_OPEN_OF_SYSTEMD, None, True, (NR_OPEN,)),
        (MAPS, 5, None, False, ("65530",)),
        ("net.core.somaxconn", 5, None, False, ("128", "4096")),
        ("vm.overcommit_memory", 5, None, False, ()),
    ],
)
def test_where_nobody_states_a_key(
    key: str,
    running: int,
    raises_nr_open: bool | None,
    raises_file_max: bool,
    expected: tuple[str, ...],
) -> None:
    assert find_defaults(key, running, raises_nr_open, raises_file_max) == expected


@pytest.mark.parametrize(
    ("key", "line", "defaults", "expected"),
    [
        (MAPS, "quiet", ("65530",), "65530"),
        (MAPS, f"a sysctl.{MAPS}=7 b sysctl.{MAPS}=8", ("65530",), "8"),
        (MAPS, "sysctl.vm/max_map_count=0x10", ("65530",), "16"),
        (MAPS, f"{MAPS}=7", ("65530",), "65530"),
        (MAPS, f"sysctlx{MAPS}=7", ("65530",), "65530"),
        (MAPS, f"sysctl.{MAPS}=many", ("65530",), "65530"),
        ("fs.file-max", "sysctl.fs.file-max=7", (FILE_MAX,), FILE_MAX),
        ("fs.file-max", "sysctl.fs.file-max=7", (), "7"),
        ("fs.nr_open", "sysctl.fs.nr_open=70", (NR_OPEN,), NR_OPEN),
        ("fs.nr_open", "sysctl.fs.nr_open=2000000000", (NR_OPEN,), "2000000000"),
        ("fs.nr_open", "sysctl.fs.nr_open=70", ("1048576",), "70"),
    ],
)
def test_the_command_line_counts_where_systemd_does_not_raise_the_key(
    key: str, line: str, defaults: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    facts = World(tmp_path, {}, "1", key, command_line=line, defaults=defaults).gather()
    assert find_start(facts).values == (expected,)


@pytest.mark.parametrize(("number", "at"), [(NR_OPEN_OF_SYSTEMD, 0), (NR_OPEN_OF_SYSTEMD + 64, 1)])
def test_the_command_line_decides_a_value_that_systemd_does_not_set_anyhow(
    number: int, at: int, tmp_path: Path
) -> None:
    line = f"sysctl.fs.nr_open={number}"
    world = World(tmp_path, {}, "1", "fs.nr_open", command_line=line, defaults=(NR_OPEN,))
    by = find_start(world.gather()).by
    assert (by.text if by else "") == line * at


@pytest.mark.parametrize(
    ("key", "raises_nr_open", "least"),
    [
        (MAPS, None, "65530"),
        ("net.core.somaxconn", None, "128"),
        ("fs.nr_open", None, "1048576"),
        ("fs.nr_open", True, NR_OPEN),
        ("vm.overcommit_memory", None, "0"),
    ],
)
def test_the_least_that_an_image_starts_with(
    key: str, raises_nr_open: bool | None, least: str
) -> None:
    assert foresee_start(key, raises_nr_open, False) == least


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("7", ("7", "65530")),
        ("65530", ("65530",)),
        ("0xfffa", ("65530",)),
        ("many", ("65530",)),
    ],
)
def test_what_a_boot_loader_says_is_possible_as_well(
    given: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    word = Declaration("/etc/default/grub", 6, f"sysctl.{MAPS}={given}", given)
    facts = World(tmp_path, {}, "65530", MAPS, loader=(word,), defaults=("65530",)).gather()
    assert find_start(facts).values == expected
    stated = {"/etc/sysctl.d/9.conf": f"{MAPS} = 262144\n"}
    world = World(tmp_path / "b", stated, "65530", MAPS, loader=(word,), defaults=("65530",))
    assert predict_boot(world.gather()).values == ("262144",)


@pytest.mark.parametrize(
    ("profile", "defaults", "expected"),
    [
        ("= 7", ("5",), ("7",)),
        ("= >7", ("5",), ("7",)),
        ("= >7", ("9",), ("9",)),
        ("= <7", ("9",), ("7",)),
        ("= >7", ("9", "5"), ("9", "7")),
        ("= >7", (), ()),
        ("= ${x}", ("5",), ()),
        ("= >many", ("5",), ()),
    ],
)
def test_tuned_may_only_raise_or_only_lower(
    profile: str, defaults: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    world = World(tmp_path, {PROFILE: f"[sysctl]\n{MAPS} {profile}\n"}, "1", defaults=defaults)
    assert predict_boot(world.gather()).values == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{D}/a.conf": "7", f"{LIB}/z.conf": "8"}, "7"),  # It leaves those of packages alone.
        ({f"{D}/a.conf": "7", "/run/sysctl.d/a.conf": "8"}, "8"),  # /run comes first for it.
        ({f"{D}/a.conf": "7", "/run/sysctl.d/b.conf": "8"}, "8"),
        ({f"{D}/z.conf": "7", "/etc/sysctl.conf": "8"}, "8"),
        ({f"{LIB}/z.conf": "8"}, "5"),
    ],
)
def test_tuned_reads_files_in_an_order_of_its_own(
    files: dict[str, str], expected: str, tmp_path: Path
) -> None:
    texts = {path: f"{MAPS} = {value}\n" for path, value in files.items()}
    world = World(tmp_path, {**texts, PROFILE: f"[sysctl]\n{MAPS} = 5\n"}, "1")
    assert predict_boot(world.gather()).values == (expected,)


@pytest.mark.parametrize(
    ("script", "defaults", "expected"),
    [
        (f"sysctl -w {MAPS}=7\nsysctl -w {MAPS}=0x8", ("5",), ("8",)),
        (f"sysctl -w {MAPS}=$N", ("5",), ()),
        (f"sysctl -w {MAPS}=99999999999", ("5",), ("5",)),
        ("sysctl -p", ("5",), ("5", "9")),
        ("sysctl -p", ("9",), ("9",)),
        ("sysctl -p", (), ()),
        ("sysctl -p\nsysctl --system", ("9",), ("9",)),
        (f"[ -e /x ] && sysctl -w {MAPS}=7", ("5",), ("5", "7")),
        (f"[ -e /x ] && sysctl -w {MAPS}=7", ("7",), ("7",)),
        (f"[ -e /x ] && sysctl -w {MAPS}=7", (), ()),
    ],
)
def test_scripts_have_the_last_word(
    script: str, defaults: tuple[str, ...], expected: tuple[str, ...], tmp_path: Path
) -> None:
    files = {RC: f"#!/bin/sh\n{script}\n", "/etc/sysctl.conf": f"{MAPS} = 9\n"}
    assert predict_boot(World(tmp_path, files, "1", defaults=defaults).gather()).values == expected


@pytest.mark.parametrize(
    ("running", "text", "taken", "shown"),
    [
        ("1", "7", True, "7"),
        ("1", "0x10 # hex", True, "16"),
        ("1", "-7", False, "-7"),
        ("1", "7k", False, "7k"),
        ("1", "2147483648", False, "2147483648"),
        ("1 2", "a\tb", True, "a b"),
        (None, "7k", True, "7k"),
    ],
)
def test_what_the_kernel_takes(
    running: str | None, text: str, taken: bool, shown: str, tmp_path: Path
) -> None:
    facts = World(tmp_path, {}, "").gather()._replace(running=running)
    assert facts.is_taken(MAPS, text) is taken
    assert facts.normalize(text) == shown


def test_a_key_that_may_be_negative(tmp_path: Path) -> None:
    facts = World(tmp_path, {}, "2", "kernel.perf_event_paranoid").gather()
    assert facts.is_taken("", "-1")


# Constants of the kernel's source, which systemd and machines of other kinds may have otherwise.
SOCKET = 256 * (256 + 576)  # SKB_TRUESIZE(256) times 256, on 64 bits.
CONSTANTS = {
    MAPS: [2**16 - 1 - 5],  # USHRT_MAX - MAPCOUNT_ELF_CORE_MARGIN
    "fs.aio-max-nr": [0x10000],
    "fs.inotify.max_queued_events": [16384],
    "fs.inotify.max_user_instances": [128],
    "fs.inotify.max_user_watches": [8192, 1048576],
    "kernel.pid_max": [0x8000, 4 * 1024 * 1024],
    "kernel.shmmni": [4096],
    "net.core.netdev_max_backlog": [1000],
    "net.core.rmem_default": [SOCKET],
    "net.core.rmem_max": [SOCKET, 4 << 20],
    "net.core.somaxconn": [128, 4096],
    "net.core.wmem_default": [SOCKET],
    "net.core.wmem_max": [SOCKET, 4 << 20],
    "vm.dirty_background_ratio": [10],
    "vm.dirty_ratio": [20],
    "vm.swappiness": [60],
}


@pytest.mark.parametrize("key", CONSTANTS)
def test_what_a_kernel_starts_with(key: str) -> None:
    assert [int(one) for one in find_defaults(key, None, None, False)] == CONSTANTS[key]


INT_MAX = 2**31 - 1


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [
        ("fs.nr_open", 64, INT_MAX & -64),  # sysctl_nr_open_min and _max, on 64 bits.
        ("fs.file-max", 0, 2**63 - 1),
        (MAPS, 0, INT_MAX),
        ("kernel.pid_max", 300 + 1, 4 * 1024 * 1024),  # RESERVED_PIDS + 1, PID_MAX_LIMIT
    ],
)
def test_what_a_kernel_takes(key: str, least: int, most: int) -> None:
    assert [is_in_range(key, str(one)) for one in (least, most)] == [True, True]
    assert [is_in_range(key, str(one)) for one in (least - 1, most + 1)] == [False, False]


def test_what_systemd_starts_with() -> None:
    assert FILE_MAX_OF_SYSTEMD == 2**63 - 1  # LONG_MAX
    assert NR_OPEN_OF_SYSTEMD == 0x3FFFFFF8


@pytest.mark.parametrize(
    ("number", "taken"),
    [(2**64 - 1, True), (2**64, False), (-(2**63), True), (-(2**63) - 1, False)],
)
def test_no_key_holds_more_than_64_bits(number: int, taken: bool) -> None:
    assert is_in_range("kernel.x", str(number)) is taken


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["7"], ("5", "7")),
        (["5"], ("5",)),
        (["5", "7", "8"], ("5", "7", "8")),
        (["7", "${x}"], ()),
        ([], ("5",)),
    ],
)
def test_any_profile_that_a_machine_may_be_given_counts(
    given: list[str], expected: tuple[str, ...], tmp_path: Path
) -> None:
    lines = [{MAPS: Declaration("/t", 1, f"{MAPS}={one}", one)} for one in given]
    recommended = tuple(Tuned(one) for one in lines)
    world = World(tmp_path, {}, "1", recommended=recommended, defaults=("5",))
    assert predict_boot(world.gather()).values == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [((), UNKNOWN), (("99", "100"), UNKNOWN), (("99", "7"), FAIL), (("100", "101"), PASS)],
)
def test_every_possible_value_must_agree(values: tuple[str, ...], expected: str) -> None:
    assert judge_forecast(NEEDED, Forecast(values)) == expected


@pytest.mark.parametrize(
    "wanted", [NEEDED._replace(maximum=200), Requirement("kernel", MAPS, "value", exact="5")]
)
def test_between_two_values_there_are_others(wanted: Requirement) -> None:
    assert judge_forecast(wanted, Forecast(("1", "9"))) == UNKNOWN
    assert judge_forecast(wanted, Forecast(("1",))) == FAIL


@pytest.mark.parametrize(
    ("key", "module"),
    [("net.bridge.bridge-nf-call-iptables", "br_netfilter"), ("net.core.somaxconn", "")],
)
def test_keys_of_modules(key: str, module: str) -> None:
    assert find_module(key) == module


def test_a_key_of_a_module_is_only_known_once_that_is_loaded_early(tmp_path: Path) -> None:
    key = "net.nf_conntrack_max"
    world = World(tmp_path, {f"{D}/a.conf": f"{key} = 7\n"}, "1", key)
    assert predict_boot(world.gather()).values == ()
    world.write("/etc/modules-load.d/nf_conntrack.conf", "nf_conntrack\n")
    assert predict_boot(world.gather()).values == ("7",)


def test_lines_in_the_order_of_reading_and_those_that_are_not_read(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        f"{D}/20-b.conf": f"{MAPS} = 2\nvm.max_map_coun? = 3\nvm.x = 1\n",
        f"{LIB}/10-a.conf": f"{MAPS} = 1\n",
        f"{LIB}/20-b.conf": f"{MAPS} = 9\n",
        "/etc/sysctl.conf": f"vm.x = 1\n{MAPS} = 8\n",
    }
    facts = World(tmp_path, files, "1").gather()
    assert [line.place for line in list_read_lines(facts)] == [
        f"{LIB}/10-a.conf:1", f"{D}/20-b.conf:1", f"{D}/20-b.conf:2",
    ]  # fmt: skip
    assert [line.place for line in list_unread_lines(facts)] == [
        f"{LIB}/20-b.conf:1", "/etc/sysctl.conf:2",
    ]  # fmt: skip
