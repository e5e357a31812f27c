# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of limits is what setrlimit(2), limits.conf(5) and /proc/PID/limits have."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
from mlhost_limits.core import values
from mlhost_limits.core.values import (
    RLIMITS,
    UNLIMITED,
    Declaration,
    Rlimit,
    format_pair,
    format_quantity,
    parse_proc_limits,
    parse_quantity,
)

# Of limits.conf(5): sizes in KB, CPU time in minutes; all others count.
SCALES = {
    "cpu": 60,
    "fsize": 1024,
    "data": 1024,
    "stack": 1024,
    "core": 1024,
    "rss": 1024,
    "memlock": 1024,
    "as": 1024,
}
HEADER = Path("/usr/include/asm-generic/resource.h")


def test_each_item_has_the_number_and_the_scale_of_its_man_page() -> None:
    numbers = (
        "cpu fsize data stack core rss nproc nofile memlock as locks sigpending msgqueue nice"
        " rtprio rttime"
    )
    assert list(RLIMITS) == numbers.split()
    assert [values.ITEMS[name].resource for name in RLIMITS] == list(range(16))
    assert {name: values.ITEMS[name].scale for name in RLIMITS} == {
        name: SCALES.get(name, 1) for name in RLIMITS
    }
    others = set(values.ITEMS) - set(RLIMITS)
    assert others == {"priority", "maxlogins", "maxsyslogins", "nonewprivs", "chroot"}
    assert {values.ITEMS[name].scale for name in others} == {1}


@pytest.mark.parametrize("name", RLIMITS)
def test_a_number_is_the_kernel_s(name: str) -> None:
    known = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if known is not None:
        assert values.ITEMS[name].resource == known
    if HEADER.exists():
        found = re.search(rf"# ?define RLIMIT_{name.upper()}\s+([0-9]+)", HEADER.read_text())
        assert found
        assert values.ITEMS[name].resource == int(found[1])


def test_each_row_of_this_process_is_its_limit() -> None:
    """The kernel's own words, through getrlimit(2)."""
    read = parse_proc_limits(Path("/proc/self/limits").read_text("ascii"))
    for name, pair in read.items():
        number = values.ITEMS[name].resource
        assert number is not None
        assert pair == tuple(bound % 2**64 for bound in resource.getrlimit(number))


@pytest.mark.parametrize(
    ("value", "unit", "number"),
    [
        *((f"1{unit}", "bytes", 2 ** (10 * power)) for power, unit in enumerate(
            ("B", "KiB", "MiB", "GiB", "TiB"))),
        *(("1s", "seconds", 1), ("1min", "seconds", 60), ("1h", "seconds", 3600)),
        *((1, "seconds", 1), (1, "bytes", 1), (1, "", 1)),
    ],
)  # fmt: skip
def test_one_of_each_unit(value: object, unit: str, number: int) -> None:
    assert parse_quantity(value, unit) == number


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1023, "1023B"),
        (1024, "1KiB"),
        (1025, "1025B"),
        (2**20, "1MiB"),
        (2**30, "1GiB"),
        (2**40, "1TiB"),
        (1, "1B"),
    ],
)
def test_a_size_is_told_in_the_largest_unit_that_holds_it(number: int, told: str) -> None:
    assert format_quantity(number, "bytes") == told


def test_a_number_of_forty_digits_is_read_and_refused_for_its_size() -> None:
    for digits, said in ((40, "the largest number is"), (41, "accepted are")):
        with pytest.raises(ValueError, match=said):
            parse_quantity("9" * digits, "")


def test_a_pair_is_told_in_the_unit_of_its_item() -> None:
    assert format_pair("memlock", Rlimit(1024, UNLIMITED)) == "1KiB:unlimited"
    assert format_pair("nofile", Rlimit(1024, 4096)) == "1024:4096"


@pytest.mark.parametrize(("line", "place"), [(7, "/f:7"), (1, "/f:1"), (0, "/f"), (-1, "/f")])
def test_a_place_has_a_line_where_it_is_one(line: int, place: str) -> None:
    assert Declaration("/f", line, "", "").place == place
