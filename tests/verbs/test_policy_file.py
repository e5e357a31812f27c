# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a policy is read whole and as it stands, or refused in one sentence; nothing that is
written in it is lost, no reading of it is without an end."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits import cli
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.host.policy_file import read_policy_file
from mlhost_limits.policy_file import read_policy
from mlhost_limits.schema import load_policy

ALICE = "sessions:\n- users: [alice]\n  limits: "
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghijk", "bcdefghijkl")
)
MERGES = f"a: &a {{{', '.join(f'k{number}: 1' for number in range(5000))}}}\n" + "".join(
    f"b{number}: {{<<: *a}}\n" for number in range(5000)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy"


def load(path: Path, content: str | bytes) -> Any:
    """Read a policy as the command does; the folder's name is left out of what is refused."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        tree = read_policy(str(path))
        load_policy(tree.root, "none", told=tree.problems)
    except ValueError as exc:
        told = exc.problems if isinstance(exc, PolicyError) else [str(exc)]
        assert all(one.isprintable() and len(one) <= 1001 for one in told)
        return [one.replace(str(path), "F") for one in told]
    return tree.root


@pytest.mark.parametrize(
    ("content", "refusals"),
    [
        (
            '{"kernel": {"fs.nr_open": 1,\n"fs.nr_open": 2}}',
            ["F:2: kernel.fs.nr_open is stated a second time; the first is in line 1"],
        ),
        (
            '{"kernel": {"fs.nr_open": 1,\n\n"fs\\u002enr_open": null}}',
            ["F:3: kernel.fs.nr_open is stated a second time; the first is in line 1"],
        ),
        (
            "kernel:\n  fs.nr_open: 1\n  'fs.nr_open': 2\nkernel: {fs.file-max: 3}\n",
            [
                "F:3: kernel.fs.nr_open is stated a second time; the first is in line 2",
                "F:4: kernel is stated a second time; the first is in line 1",
            ],
        ),
        (
            ALICE + "{nofile: 5, nofile: {soft: 1,\n     soft: 2}}\n",
            [
                "F:3: sessions[0].limits.nofile is stated a second time; the first is in line 3",
                "F:4: sessions[0].limits.nofile.soft is stated a second time; the first is in"
                " line 3",
            ],
        ),
        (
            "kernel: {fs.nr_open: 1,\n  fs.nr_open: 2, x: 1}",
            [
                "F:2: kernel.fs.nr_open is stated a second time; the first is in line 1",
                "kernel.x: 'x' is not a sysctl; accepted are names as fs.file-max",
            ],
        ),
        (
            "kernel: {fs.nr_open: 1, fs/nr_open: 2}",
            ["kernel.fs/nr_open: states the same as kernel.fs.nr_open; one of them is accepted"],
        ),
        (
            "kernel:\n  vm.max_map_count: &a {min: 1}\n  fs.nr_open:\n    <<: *a\n    <<: *a\n",
            ["F:5: kernel.fs.nr_open.<< is stated a second time; the first is in line 4"],
        ),
    ],
)
def test_a_key_that_is_stated_twice_is_named_with_both_lines(
    path: Path, content: str, refusals: list[str]
) -> None:
    assert load(path, content) == refusals


def test_no_more_than_a_hundred_second_keys_are_told(path: Path) -> None:
    told = load(path, "{" + ", ".join(['"a": 1'] * 5000) + "}")
    assert isinstance(told, list)
    assert len([one for one in told if "second time" in one]) == 100


@pytest.mark.parametrize(
    "content",
    [
        *("{a: " * 5000, "[" * 5000, "- " * 5000, '{"a":' * 5000 + "1" + "}" * 5000),
        "".join("  " * depth + "a:\n" for depth in range(500)),
        "[" * 100_000 + "]" * 100_000,
        '{"a": ' + "[" * 21 + "]" * 21 + "}",
        "a: &a [[[[[[[[[[1]]]]]]]]]]\nb: [[[[[[[[[[*a]]]]]]]]]]",
    ],
    ids=lambda content: content[:12],
)
def test_what_is_nested_without_end_is_refused(path: Path, content: str) -> None:
    (told,) = load(path, content)
    assert told.partition(": ")[2] == "is nested deeper than 20 levels"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (LAUGHS, 1),
        (MERGES, 1),
        ("[" + "1," * 200_000 + "1]", 1),
        ("- a\n" * 150_000, 100_000),
        ("a: &a [" + "x, " * 1000 + "]\n" + "b: [" + "*a, " * 1000 + "]", 1),
    ],
    ids=["laughs", "merges", "json", "yaml", "aliases"],
)
@pytest.mark.slow
def test_what_holds_values_without_end_is_refused(path: Path, content: str, line: int) -> None:
    (told,) = load(path, content)
    assert told == f"F:{line}: holds more than 100000 values"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("5", 5), ("-3", -3), ("+3", 3), ("0", 0), ("true", True), ("False", False)),
        *(("null", None), ("~", None), ("", None), ("TRUE", True), ("tRUE", "tRUE")),
        *((one, one) for one in ("1:30:00", "010", "0o10", "0x1F", "0b1", "1_000", "1.50", "7e9")),
        *((one, one) for one in ("yes", "No", "on", "off", "y", "2026-12-31", ".inf", ".nan", "=")),
        *(("'5'", "5"), ('"true"', "true"), ("'<<'", "<<"), ("<<", "<<"), ('"\\x41"', "A")),
        ("|\n      a\n      b\n", "a\nb\n"),
    ],
)
def test_a_scalar_is_what_stands_there(path: Path, written: str, value: object) -> None:
    path.write_text(f"kernel:\n  a.b:\n    exact: {written}\n")
    assert read_policy(str(path)).root == {"kernel": {"a.b": {"exact": value}}}


@pytest.mark.parametrize(
    ("written", "item"),
    [
        *(("1:30:00", "cpu"), ("010", "nofile"), ("0o10", "nproc"), ("1_000", "core")),
        *(("yes", "memlock"), ("2026-12-31", "stack"), ("0x10", "as"), (".inf", "data")),
        ("9" * 39, "nofile"),
    ],
)
def test_a_number_that_is_two_things_to_two_readers_is_refused(
    path: Path, written: str, item: str
) -> None:
    """YAML 1.1 has 5400 and 8 for the first two."""
    (told,) = load(path, f"{ALICE}{{{item}: {written}}}")
    assert told.startswith(f"sessions[0].limits.{item}: ")
    assert "is not a limit" in told


def test_what_an_alias_names_and_a_merge_adds_is_read(path: Path) -> None:
    path.write_text(
        "kernel:\n  a.b: &low {min: 1, max: 9}\n  c.d: &high {max: 5}\n  e.f: *low\n"
        "  g.h:\n    <<: [*high, *low]\n    min: 2\n"
    )
    root: Any = read_policy(str(path)).root
    kernel = root["kernel"]
    assert kernel["e.f"] == {"min": 1, "max": 9}
    assert kernel["g.h"] == {"min": 2, "max": 5}


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ("a: &a [*a]", "F:1: *a names nothing that is whole before it"),
        ("a: 1\nb: *c", "F:2: *c names nothing that is whole before it"),
        ("a: {<<: 5}", "F: a.<<: a mapping is accepted"),
        ("a: !!python/object/apply:os.system [x]", "F:1: the tag 'tag:yaml.org,2002:python/object/"
         "apply:os.system' is not accepted"),
        ("a: !!binary aGk=", "F:1: the tag 'tag:yaml.org,2002:binary' is not accepted"),
        ("a: 1\nb: !mine {}", "F:2: the tag '!mine' is not accepted"),
        ("a: 1\n---\nb: 2", "F:2: begins a second document; one is accepted"),
        ("%YAML 1." + "9" * 10**5 + "\n---\na: 1", "F:1: a directive is not accepted"),
        ("? [a]\n: 5", "F:1: policy: has a key that is not a text"),
        ("kernel:\n  ? {a: 1}\n  : 5", "F:2: kernel: has a key that is not a text"),
        ("a: 1\nb: \0", "F:2: holds the character U+0000"),
        ("a: 1\n\nb: '\x1b[31m'", "F:3: holds the character U+001B"),
        ("a: \x85", "F:1: holds the character U+0085"),
        ("a: \u202e", "F:1: holds the character U+202E"),
        ("\ufeffa: 1", "F:1: begins with a byte order mark; save it without"),
        (b"a: 1\nb: \xe9", "F:2: 0xe9 is not UTF-8 there"),
        ("a: 1".encode("utf-16"), "F:1: 0xff is not UTF-8 there"),
        ('{"kernel": {"fs.nr_open":\n ' + "9" * 10**5 + "}}",
         "F:2: a number has 100000 digits; at most 40 are accepted"),
        ("kernel: {fs.nr_open: " + "9" * 10**5 + "}",
         "F:1: a number has 100000 digits; at most 40 are accepted"),
        ('a: "\\UFFFFFFFF"', "F: is neither JSON nor YAML: Python int too large to convert to C int"),
        ("a:\n\tb: 1", "F:2: is neither JSON nor YAML: while scanning for the next token found"
         " character '\\t' that cannot start any token"),
        ("a: 1\nb: 'x", "F:2: is neither JSON nor YAML: while scanning a quoted scalar found"
         " unexpected end of stream"),
        ('{"a": 1} b', "F:1: is neither JSON nor YAML: expected '<document start>', but found"
         " '<scalar>'"),
        *((blank, "F: is empty, so nothing would be required") for blank in ("", " \n", "# x\n")),
        *((blank, "F: is empty, so nothing would be required") for blank in ("null", "---\n~\n")),
        ("- a", "policy: a list was given; a mapping is accepted"),
        ("hello", "policy: a text was given; a mapping is accepted"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_refused_in_one_sentence(
    path: Path, content: str | bytes, refusal: str
) -> None:
    assert load(path, content) == [refusal]


@pytest.mark.root
def test_a_file_that_is_none_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fifo, link, large = tmp_path / "fifo", tmp_path / "link", tmp_path / "large"
    os.mkfifo(fifo)
    link.symlink_to("/dev/zero")
    large.write_bytes(b" " * (2**20 + 1))
    for path in (fifo, link, tmp_path, "/dev/zero"):
        for command in ("check", "preflight", "monitor"):
            assert cli.main([command, "--policy", str(path)]) == 2
            before = "the check failed: " if command == "monitor" else ""
            told = f"mlhost-limits: {before}{path}: is not a regular file\n"
            assert capsys.readouterr().err == told
    assert cli.main(["check", "--policy", str(large)]) == 2
    assert capsys.readouterr().err == f"mlhost-limits: {large}: is larger than 1 MiB\n"


@pytest.mark.parametrize("command", ["check", "preflight"])
def test_a_file_on_a_disk_that_hangs_is_given_up(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setattr("mlhost_limits.policy_file.read_policy_file", lambda _path: time.sleep(60))
    started = time.monotonic()
    assert cli.main([command, "--policy", str(path), "--time-limit", "1"]) == cli.REFUSED
    assert time.monotonic() - started < 10
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"mlhost-limits: {path}: could not be read: ")


def test_what_cannot_be_opened_is_told_by_its_name(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["preflight", "--policy", str(path)]) == cli.REFUSED
    assert capsys.readouterr().err == f"mlhost-limits: {path}: No such file or directory\n"


@pytest.mark.root
def test_the_policy_of_a_node_is_read_as_strictly(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text('{"kernel": {"vm.max_map_count": 1,\n"vm.max_map_count": 2}, "x": 1}')
    assert cli.main(["monitor", "--policy", str(path)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "2: kernel.vm.max_map_count is stated a second time; the first is in line 1" in told
    assert "policy.x: is unknown" in told


def test_without_pyyaml_json_is_read_and_yaml_is_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    policy = {"kernel": {"vm.max_map_count": 1, "a.b": {"exact": "x\u00e9"}}}
    path.write_text(json.dumps(policy))
    assert read_policy(str(path)).root == policy
    (told,) = load(path, "kernel: {a.b: 1}")
    assert told.endswith(", and PyYAML is not installed to read YAML")
    assert load(path, '{"a": NaN}') == [
        "F: is not JSON (NaN is not a JSON number), and PyYAML is not installed to read YAML"
    ]


def test_a_tree_without_proc_has_its_policy_read_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a chroot; what takes its name meanwhile is not read."""
    path, other = tmp_path / "policy.json", tmp_path / "other.json"
    path.write_text('{"kernel": {"fs.nr_open": 5}}')
    other.write_text("{}")
    really, swaps = os.open, False

    def open_without_proc(name: str, *flags: int) -> int:
        if str(name).startswith("/proc/"):
            if swaps:
                os.replace(other, path)
            raise FileNotFoundError(2, "No such file or directory", name)
        return really(name, *flags)

    monkeypatch.setattr(os, "open", open_without_proc)
    assert read_policy_file(str(path)) == b'{"kernel": {"fs.nr_open": 5}}'
    swaps = True
    with pytest.raises(OSError, match=r"policy.json: became another file while it was opened"):
        read_policy_file(str(path))


def test_a_file_of_json_is_told_what_json_lacks(tmp_path: Path) -> None:
    """And the line is one that the file has, though its end is behind the last."""
    path = tmp_path / "q.json"
    path.write_text("{\n")
    with pytest.raises(ValueError, match=r"q\.json:1: is not JSON: Expecting property name"):
        read_policy(str(path))
    path.rename(tmp_path / "q.yml")
    with pytest.raises(ValueError, match=r"q\.yml:1: is neither .* but found the end of the file"):
        read_policy(str(tmp_path / "q.yml"))
