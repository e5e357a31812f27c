# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the command: each has help, people's commands come first, slips are sentences."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mlhost_limits import cli, verbs
from mlhost_limits.command_line import (
    INTERNAL,
    describe,
    list_commands,
    list_options,
    make_parser,
    parse_words,
)
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.places import PLACES
from mlhost_limits.provision_options import read_provision
from mlhost_limits.version import VERSION

LIBRARY = Path(cli.__file__).parent.resolve()
TOP = Path(__file__).parents[2]
COMMANDS = list_commands(make_parser())
OPTIONS = [(name, one) for name, _text, parser in COMMANDS for one in list_options(parser)]


@pytest.mark.parametrize(
    ("command", "option"), OPTIONS, ids=[f"{name}-{one.dest}" for name, one in OPTIONS]
)
def test_every_option_says_what_it_is(command: str, option: argparse.Action) -> None:
    text = describe(option)
    assert len(text.split()) > 1, f"{command} {option.dest} has no words"
    assert not text.endswith(".")


def test_people_come_first_and_every_command_runs() -> None:
    names = [name for name, _text, _parser in COMMANDS]
    people = ["check", "provision", "preflight", "watch", "why", "heal", "explain"]
    people += ["cause", "resolve", "adopt", "report", "plan"]
    assert names == [*people, "completion", *INTERNAL]
    assert set(names) == set(cli._COMMANDS)


def test_without_words_it_says_what_it_is_and_what_to_type(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main([]) == 2
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith("Check, set and explain the resource limits")
    for words in ("mlhost-limits check", "sudo mlhost-limits provision", "mlhost-limits --help"):
        assert words in told.out
    for name in ("preflight", "why"):
        assert f"\n  mlhost-limits {name} " in told.out
    assert max(map(len, told.out.splitlines())) <= 90


def test_the_version_is_that_of_the_package_and_of_the_collection(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mlhost-limits {VERSION}\n"
    stated = re.findall(r'(?m)^version = "(.*)"', (TOP / "pyproject.toml").read_text())
    assert stated == [VERSION]
    assert yaml.safe_load((TOP / "galaxy.yml").read_text())["version"] == VERSION


@pytest.mark.parametrize("name", [name for name, _text, _parser in COMMANDS])
def test_a_command_loads_no_options_of_others(name: str) -> None:
    assert [one for one, _text, _parser in list_commands(make_parser(name))] == [name]


def test_every_switch_of_a_place_is_an_option_of_provision() -> None:
    switches = {name for place in PLACES for name in place.switches}
    (parser,) = (parser for name, _text, parser in COMMANDS if name == "provision")
    assert switches < {one.dest for one in list_options(parser)}
    given = {*verbs.PROVISION_ARGUMENTS, "check", "diff", "json", "no_verify", "only", "absent"}
    assert {one.dest for one in list_options(parser)} == given - {"sections", "state", "display"}


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("", {"sections": None, "absent": False, "override": False, "check_mode": False}),
        ("--only kernel", {"sections": ("kernel",)}),
        ("--only kernel,docker --only sessions", {"sections": ("kernel", "docker", "sessions")}),
        ("--absent --override --check", {"absent": True, "override": True, "check_mode": True}),
    ],
)
def test_provision_is_asked_for_what_its_words_say(line: str, asked: dict[str, object]) -> None:
    options = read_provision(parse_words(["provision", *line.split()]))._asdict()
    assert {key: options[key] for key in asked} == asked


def test_switches_have_the_values_of_the_module() -> None:
    words = "--services-restart a.service b.service --services-restart c --docker-restart"
    switches = read_provision(parse_words(["provision", *words.split()])).switches
    assert switches["services_restart"] == ["a.service", "b.service", "c"]
    assert switches["docker_restart"] is True
    bare = read_provision(parse_words(["provision"])).switches
    assert bare == {name: one.default for place in PLACES for name, one in place.switches.items()}


def test_every_unknown_section_is_named_once() -> None:
    with pytest.raises(PolicyError) as refused:
        read_provision(parse_words(["provision", "--only", "a,kernel,b", "--only", "a"]))
    told = refused.value.problems
    assert [one.partition(";")[0] for one in told] == [
        "--only: 'a' is not a section",
        "--only: 'b' is not a section",
    ]
    assert "accepted are kernel, sessions" in told[0]


ROOT = "must run as root: it writes files of the whole host (sudo; in Ansible, become: true)"


@pytest.mark.parametrize("words", [["provision"], ["provision", "--check"]])
def test_provision_needs_root_and_says_so(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main(words) == 2
    assert capsys.readouterr().err == f"mlhost-limits: {ROOT}\n"


def test_the_module_says_the_same_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    given = {name: one.get("default") for name, one in verbs.PROVISION_ARGUMENTS.items()}
    told = verbs.run_provision(given, False)
    assert told == {"changed": False, "failed": True, "msg": ROOT, "problems": [ROOT]}


def test_json_of_a_check_says_its_format_and_its_host(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "--json", "--canary", "never", "--probe", "predict"])
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["version"]) == ("mlhost.limits/check", 1)
    assert told["host"] == os.uname().nodename


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("check --root=", "--root"),
        ("check --policy=", "--policy"),
        ("check --user=", "--user"),
        ("report a.json --output=", "--output"),
        ("preflight --policy=", "--policy"),
    ],
)
def test_an_empty_word_is_refused(
    words: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set would have the whole host judged, or another file written."""
    with contextlib.suppress(SystemExit):
        assert cli.main(words.split()) == cli.REFUSED
    assert capsys.readouterr().err.startswith(f"mlhost-limits: {name}: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["explain", "kernel", ""], "the word after 'kernel': is empty"),
        (["--bogus"], "--bogus: is not an option of mlhost-limits itself; a command comes first"),
        (["--json", "check"], "--json: is not an option of mlhost-limits itself"),
        (["heal", "--pid", "x"], "argument --pid: 'x' was given; the number of a process is acc"),
        (["why", "--pid", "-1"], "argument --pid: '-1' was given; the number of a process is acc"),
        (["plan", "a", "--at-once", "x"], "argument --at-once: 'x' was given; a number of hosts"),
        (["resolve", "--unit", "foo"], "unit foo.service: has no file in /; one that has"),
    ],
)
def test_a_word_that_is_not_accepted_is_told_where_it_stands(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        assert cli.main(words) == cli.REFUSED
    written = capsys.readouterr()
    assert written.err.startswith(f"mlhost-limits: {told}")
    assert written.out == ""


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "0", "1e9", "soon"])
@pytest.mark.parametrize("verb", ["check", "preflight"])
def test_a_time_limit_is_a_time(verb: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main([verb, f"--time-limit={text}"])
    assert f"{text!r} was given; a number of seconds above 0" in capsys.readouterr().err


RUNS = "import sys; from mlhost_limits.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("words", ["", "--help", "--version", "cause pam-not-stated", "nonsense"])
@pytest.mark.parametrize("redirected", [">/dev/full", "2>/dev/full >/dev/full", ">&- 2>&- <&-"])
def test_what_cannot_be_said_is_no_crash(words: str, redirected: str, tmp_path: Path) -> None:
    """A full disk under an answer ends with 2, and nothing is said by the interpreter."""
    (tmp_path / "mlhost_limits").symlink_to(LIBRARY)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {words} {redirected}', sys.executable, RUNS],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    is_closed = "&-" in redirected
    can_be_good = is_closed and words not in ("", "nonsense")
    assert (done.returncode, done.stdout) == (0 if can_be_good else 2, "")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert len(done.stderr.splitlines()) == (redirected == ">/dev/full")


@pytest.mark.parametrize("verb", ["check", "resolve", "why", "preflight", "provision"])
def test_an_option_that_a_command_has_not_names_the_help_of_that_command(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_words([verb, "--of-none"])
    assert caught.value.code == 2
    told = "mlhost-limits: unrecognized arguments: --of-none"
    assert capsys.readouterr().err == f"{told}; see mlhost-limits {verb} --help\n"
