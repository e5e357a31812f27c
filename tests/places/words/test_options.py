# SPDX-License-Identifier: GPL-3.0-or-later
"""Options are told from their values and from the words that are not options."""

from __future__ import annotations

import pytest
from mlhost_limits.words.options import (
    Option,
    find_library,
    read_arguments,
    split_all,
    split_before,
)


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("--a 1 --b=2 c=3 d", [("--a", "1"), ("--b", "2"), ("c", "3")], ["d"]),
        ("--a --b", [("--a", None), ("--b", None)], []),
        ("--a -1 --b -0.5", [("--a", "-1"), ("--b", "-0.5")], []),
        ("--a -x", [("--a", None), ("-x", None)], []),
        ("-b4 -j=8 -c 2", [("-b", "4"), ("-j", "8"), ("-c", "2")], []),
        ("--bc 4", [("--bc", "4")], []),
        ("--a=b=c", [("--a", "b=c")], []),
        ("--a=", [("--a", "")], []),
        ("+x.y=1 ~z=2 1=3", [("+x.y", "1"), ("~z", "2")], ["1=3"]),
        ("--cfg-options data.num_workers=4", [("--cfg-options", None), ("data.num_workers", "4")], []),
        ("--name other=4", [("--name", "other=4")], []),
        ("one two", [], ["one", "two"]),
        ("--a train.py", [("--a", "train.py")], []),
        ("", [], []),
    ],
)  # fmt: skip
def test_options_are_read_wherever_they_stand(
    line: str, options: list[tuple[str, str | None]], rest: list[str]
) -> None:
    found = split_all(line.split())
    assert list(found.options) == [Option(*one) for one in options]
    assert list(found.rest) == rest


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("--a 1 train.py --b 2", [("--a", "1")], ["train.py", "--b", "2"]),
        ("--a train.py --b 2", [("--a", None)], ["train.py", "--b", "2"]),
        ("--flag x --b 2", [("--flag", None)], ["x", "--b", "2"]),
        ("--flag --b 2 x", [("--flag", None), ("--b", "2")], ["x"]),
        ("--a -m pkg.train --b 2", [("--a", None)], ["-m", "pkg.train", "--b", "2"]),
        ("--module pkg", [], ["--module", "pkg"]),
        ("- --a 1", [], ["-", "--a", "1"]),
        ("--a=1 run.sh", [("--a", "1")], ["run.sh"]),
        ("--a", [("--a", None)], []),
        ("", [], []),
    ],
)
def test_options_before_a_program_end_at_it(
    line: str, options: list[tuple[str, str | None]], rest: list[str]
) -> None:
    found = split_before(line.split(), ("--flag",))
    assert list(found.options) == [Option(*one) for one in options]
    assert list(found.rest) == rest


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("train.json", ["train.json"]),
        ("a.yaml b.yml", ["a.yaml", "b.yml"]),
        ("my_config_7b.py train.py a.txt", ["my_config_7b.py"]),
        ("json", []),
    ],
)
def test_files_of_configuration_are_wanted(line: str, wanted: list[str]) -> None:
    found = read_arguments(line.split(), "job.sh:3", 1)
    assert [one.path for one in found.wanted] == wanted


def test_where_an_argument_stands_is_told() -> None:
    (fact,) = read_arguments(["--resume"], "job.sh:3", 8).facts
    assert (fact.key, fact.value, fact.where) == ("resume", True, "job.sh:3")
    (fact,) = read_arguments(["--resume"], "", 8).facts
    assert fact.where == "--resume"
    (wanted,) = read_arguments(["a.json"], "job.sh:3", 8).wanted
    assert wanted.where == "job.sh:3"
    (wanted,) = read_arguments(["a.json"], "", 8).wanted
    assert wanted.where == "command line"
    assert not read_arguments(["--verbose"], "job.sh:3", 8).facts
    assert find_library(["--per_device_train_batch_size"]) == "transformers"
    assert find_library(["--batch-size"]) == ""
