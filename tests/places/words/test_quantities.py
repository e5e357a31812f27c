# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers are read as people write them, with the meaning that each program gives a unit."""

from __future__ import annotations

import pytest
from mlhost_limits.words.quantities import (
    find_parameters,
    parse_count,
    parse_pod_quantity,
    parse_size,
    parse_switch,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("3", 3), ("3b", 3), ("1k", 1024), ("2m", 2 * 1024**2), ("3G", 3 * 1024**3)),
        *(("1TiB", 1024**4), ("1.5g", 3 * 2**29), ("0.5 kb", 512), ("8388607t", 2**63 - 2**40)),
    ],
)
def test_a_size_is_of_the_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_a_number_without_a_unit_has_that_of_the_program() -> None:
    assert parse_size("3", 2**20) == 3 * 2**20
    assert parse_size("3b", 2**20) == 3


@pytest.mark.parametrize("text", ["8388608t", "x", "-1", "1.2.3", ""])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("2", 2), ("500m", 0.5), ("3k", 3e3), ("3M", 3e6), ("3G", 3e9), ("3T", 3e12)),
        *(("3Ki", 3 * 2**10), ("3Mi", 3 * 2**20), ("3Gi", 3 * 2**30), ("1.5Ti", 3 * 2**39)),
    ],
)
def test_a_pod_has_units_of_both_kinds(text: str, number: float) -> None:
    assert parse_pod_quantity(text) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(("7K", 7000), ("7M", 7 * 10**6), ("7B", 7 * 10**9), ("1.5T", 15 * 10**11)),
        *(("1_000", 1000), ("1e3", 1000), (8.0, 8), (2**63 - 1, 2**63 - 1), (0, 0)),
    ],
)
def test_a_whole_number_may_have_a_letter(value: object, number: int) -> None:
    assert parse_count(value) == number


@pytest.mark.parametrize("value", ["9.3e18", "1.5", "1.00001K", 2**63, -1, True, None, "x"])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_count(value)


@pytest.mark.parametrize(
    ("name", "number"),
    [("Llama-2-7b-hf", 7 * 10**9), ("x/pythia-160m", 160 * 10**6), ("a-1.5B-7b", 7 * 10**9)],
)
def test_a_models_name_tells_its_parameters(name: str, number: int) -> None:
    assert find_parameters(name) == number
    assert find_parameters("gpt2") is None


@pytest.mark.parametrize("text", ["true", "Yes", " on ", "1", "y", "T", True, 1])
def test_what_is_on(text: object) -> None:
    assert parse_switch(text) is True


@pytest.mark.parametrize("text", ["false", "No", " off ", "0", "n", "F", False, 0])
def test_what_is_off(text: object) -> None:
    assert parse_switch(text) is False


@pytest.mark.parametrize("text", ["", "2", "maybe", None])
def test_what_is_neither_on_nor_off_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="true or false is accepted"):
        parse_switch(text)


def test_the_largest_numbers_are_read() -> None:
    assert parse_size(" 8388607.5t ") == 2**63 - 2**39
    assert parse_count(" 12 ") == 12
    assert parse_count(float(2**62)) == 2**62
    assert parse_count("9E18") == 9 * 10**18
    for text in ("1.5k8", "1x", "-1"):
        with pytest.raises(ValueError, match="is not a quantity of Kubernetes"):
            parse_pod_quantity(text)
