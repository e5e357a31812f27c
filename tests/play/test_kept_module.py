# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible sends to a host runs a verb from a kept library, and imports nothing on its way."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.plugin_utils.library import read_arguments, read_digest, read_finder, read_packed

MODULE = Path(__file__).parents[2] / "plugins" / "modules" / "kept.py"
PLACE = "<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"
OF_ANSIBLE = {
    "_ansible_check_mode": True,
    "_ansible_no_log": True,
    "_ansible_syslog_facility": "LOG_USER",
    "_ansible_tmpdir": None,
}
ANSWER = {"changed": False, "absent": True}


@pytest.fixture
def words(tmp_path: Path) -> dict[str, Any]:
    """What the action sends, and Ansible adds, for a check of an image that holds nothing."""
    folder = str(tmp_path)
    spec = read_arguments(folder, "check")
    given = {name: one.get("default") for name, one in spec.items()}
    given |= {"policy": {"kernel": {"fs.file-max": 1}}, "profile": "none", "root": str(tmp_path)}
    finder = f"{read_finder()}\ndef name_folder(): return '{folder}/none'\n"
    own = {"verb": "check", "digest": "0" * 64, "keep": True, "finder": finder, "arguments": given}
    return {**own, "detached": False, "prefix": "", **OF_ANSIBLE}


def run(words: dict[str, Any], folder: Path, *options: str) -> tuple[dict[str, Any], str]:
    """Run the module as Ansible does, over the standard input, and return its answer."""
    source = MODULE.read_text(encoding="ascii").replace(PLACE, json.dumps(words))
    done = subprocess.run(
        [sys.executable, *options, "-"], input=source, cwd=folder, capture_output=True, text=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(answer.get("failed"))
    return answer, done.stderr


def test_who_has_no_library_says_so(words: dict[str, Any], tmp_path: Path) -> None:
    assert run(words, tmp_path) == (ANSWER, "")


def test_the_library_that_is_brought_is_run(words: dict[str, Any], tmp_path: Path) -> None:
    words["digest"], words["archive"] = read_packed(str(tmp_path))
    answer, said = run(words, tmp_path)
    assert (answer["summary"]["unknown"], said) == (1, "")
    assert answer["invocation"]["module_args"] == words["arguments"]


def test_what_nobody_waits_for_says_its_warnings_itself(
    words: dict[str, Any], tmp_path: Path
) -> None:
    words["digest"], words["archive"] = read_packed(str(tmp_path))
    waited, _said = run(words, tmp_path)
    detached, _said = run({**words, "detached": True}, tmp_path)
    assert detached["warnings"] == waited["said"]
    assert "said" not in detached


def test_what_is_sent_is_what_the_document_says(words: dict[str, Any]) -> None:
    [text] = [
        node.value
        for node in ast.parse(MODULE.read_text(encoding="ascii")).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION"
    ]
    documented = set(yaml.safe_load(ast.literal_eval(text))["options"])
    assert {name for name in words if not name.startswith("_")} == documented - {"archive"}


@pytest.mark.parametrize(
    "name",
    sorted({"gc", "json", "importlib", "syslog", "types", "marshal", "re", "stat", "typing"}),
)
def test_nothing_is_imported_from_the_folder_that_it_starts_in(
    name: str, words: dict[str, Any], tmp_path: Path
) -> None:
    """It may be a user's, from which root has come by sudo."""
    for one in (name, "__future__", "hashlib", "tempfile", "traceback", "mlhost_limits"):
        (tmp_path / f"{one}.py").write_text(f"import os; os.write(2, b'{one} of a user\\n')\n")
    assert run(words, tmp_path) == (ANSWER, "")
    words["digest"], words["archive"] = read_packed(str(tmp_path))
    assert run(words, tmp_path)[1] == ""


def test_a_fault_of_its_own_is_one_sentence(words: dict[str, Any], tmp_path: Path) -> None:
    words["finder"] = "raise KeyError('nothing like it')"
    answer, said = run(words, tmp_path)
    assert (answer["msg"], said) == ("the run ended with KeyError: 'nothing like it'", "")
    assert "Traceback" in answer["exception"]


def test_an_older_python_is_told(words: dict[str, Any], tmp_path: Path) -> None:
    source = MODULE.read_text(encoding="ascii").replace(PLACE, json.dumps(words))
    older = source.replace("OLDEST = (3, 8)", "OLDEST = (9, 9)")
    done = subprocess.run(
        [sys.executable, "-"], input=older, cwd=tmp_path, capture_output=True, text=True
    )
    answer = json.loads(done.stdout)
    assert answer["msg"].startswith("Python 3.8 or later is needed on this host; it has 3.")


def test_what_did_not_arrive_whole_is_not_run(words: dict[str, Any], tmp_path: Path) -> None:
    words["archive"] = read_packed(str(tmp_path))[1][:-9]
    answer, said = run(words, tmp_path)
    assert (answer["msg"], said) == ("the library did not arrive whole", "")


def test_texts_that_would_end_a_text_of_python_arrive(
    words: dict[str, Any], tmp_path: Path
) -> None:
    odd = ['"""', "\\", '\\"""', "'''", "\n", "\0", "\udc80", "ü", "", '"'] * 2
    words["finder"] = "def name_folder(): raise ValueError(repr(WORDS))\n"
    words["finder"] += f"WORDS = {odd!r}\ndef find_library(*_): pass\n"
    words["arguments"] = dict.fromkeys(odd, odd)
    answer, _said = run(words, tmp_path)
    assert answer["msg"] == repr(odd)


def test_a_path_is_one_of_the_host(words: dict[str, Any], tmp_path: Path) -> None:
    words["digest"], words["archive"] = read_packed(str(tmp_path))
    words["arguments"]["root"] = "~/no-such-image"
    answer, _said = run(words, tmp_path)
    assert answer["invocation"]["module_args"]["root"] == os.path.expanduser("~/no-such-image")


def test_arguments_are_listed_once_for_all_hosts(tmp_path: Path) -> None:
    first = read_arguments(str(tmp_path), "check")
    assert first["root"]["type"] == "str"
    place = tmp_path / "mlhost-limits-arguments"
    assert place.read_text(encoding="ascii").startswith(read_digest(str(tmp_path)))
    place.write_text(f"{'0' * 64} " + json.dumps({"check": {}}), encoding="ascii")
    assert read_arguments(str(tmp_path), "check") == {}
