# SPDX-License-Identifier: GPL-3.0-or-later
"""Every block of the documents says what it is, and is that: policy, playbook, settings, output."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlhost_limits.schema import load_policy

from tests.reference.sections import list_sections

from .markdown import PROMPT, SHELL, Block, find_indented
from .plan import TOP, find_documents, read_blocks
from .table import PROGRAMS

LANGUAGES = {*SHELL, "ini", "json", "python", "text", "yaml"}
DOCUMENTS = find_documents()
BLOCKS = [(path, block) for path in DOCUMENTS for block in read_blocks(path)]
MODULES = sorted((TOP / "plugins/modules").glob("*.py"))


def name(value: object) -> str | None:
    if isinstance(value, Block):
        return str(value.line)
    return value.name if isinstance(value, Path) else None


def blocks_of(language: str) -> pytest.MarkDecorator:
    found = [(path, block) for path, block in BLOCKS if block.language == language]
    return pytest.mark.parametrize(("path", "block"), found, ids=name)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_block_says_what_it_is(path: str) -> None:
    blocks = read_blocks(path)
    unsaid = [
        f"{path}:{block.line} is {block.language!r}; accepted are {', '.join(sorted(LANGUAGES))}"
        for block in blocks
        if block.language not in LANGUAGES and not re.fullmatch(r"\{[\w-]+\}.*", block.language)
    ]
    assert not unsaid
    assert not find_indented((TOP / path).read_text("utf-8")), f"{path} has indented blocks"


@blocks_of("text")
def test_output_holds_nothing_that_is_typed(path: str, block: Block) -> None:
    lines = block.text.splitlines()
    typed = [line for line in lines if line.startswith(PROMPT) or line.split(" ")[0] in PROGRAMS]
    assert not typed, f"{path}:{block.line} is of console or sh"


@blocks_of("json")
def test_json_is_json(path: str, block: Block) -> None:
    assert json.loads(block.text) is not None


@blocks_of("ini")
def test_settings_have_names_and_values(path: str, block: Block) -> None:
    parser = configparser.ConfigParser(allow_no_value=True, strict=False, interpolation=None)
    parser.read_string(block.text if block.text.startswith("[") else f"[all]\n{block.text}")
    assert any(parser[section] for section in parser)


@blocks_of("python")
def test_python_is_python(path: str, block: Block) -> None:
    assert ast.parse(block.text).body


@blocks_of("yaml")
def test_a_policy_is_accepted(path: str, block: Block) -> None:
    """Playbooks and tasks are for Ansible to judge; whatever else a block is, it is a policy."""
    data = yaml.safe_load(block.text)
    if is_play(data) or is_task(data):
        return
    policy = data.get("mlhost_limits_policy", data)
    known = {*list_sections(), "profile"}
    assert set(policy) <= known, f"{path}:{block.line} is not a policy, play or task"
    if "/" not in str(policy.get("profile")):  # A file of a site's own.
        load_policy(policy, "training")


def is_play(data: Any) -> bool:
    return isinstance(data, list) and all("hosts" in entry for entry in data)


def is_task(data: Any) -> bool:
    return isinstance(data, list) and all("." in "".join(entry) for entry in data)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("- hosts: all\n  roles: [a.b.c]", (True, False)),
        ("- name: a\n  a.b.c:\n", (False, True)),
        ("mlhost_limits_policy: {}", (False, False)),
        ("- a: b", (False, False)),
    ],
)
def test_plays_and_tasks_are_told_from_policies(text: str, kind: tuple[bool, bool]) -> None:
    data = yaml.safe_load(text)
    assert (is_play(data), is_task(data)) == kind


def test_ansible_takes_every_playbook_and_task(tmp_path: Path) -> None:
    """Those of documents, and the examples of modules; a run of its own for each is too slow."""
    texts = {
        f"{path.replace('/', '-')}-{block.line}.yml": block.text
        for path, block in BLOCKS
        if block.language == "yaml"
    }
    texts.update({f"{path.stem}.yml": read_examples(path) for path in MODULES})
    files = []
    for file, text in texts.items():
        data = yaml.safe_load(text)
        if is_play(data) or is_task(data):
            plays = data if is_play(data) else [{"name": "A", "hosts": "all", "tasks": data}]
            (tmp_path / file).write_text(yaml.safe_dump(plays, sort_keys=False))
            files.append(file)
    installed = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(TOP / "build/collections")
    done = subprocess.run(
        ["ansible-playbook", "--syntax-check", "-i", "localhost,", *files],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": installed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [file for file in files if f"playbook: {file}\n" not in done.stdout] == []


def read_examples(path: Path) -> str:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXAMPLES":
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{path.name} has no examples")
