# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages, docstrings and pages keep to the word list of CONTRIBUTING."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
import yaml

from .messages import PLUGINS, TOP, Text, find_docstrings, find_documents, find_messages

FILES = sorted(PLUGINS.rglob("*.py"))
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "roles/*/README.md", "changelogs/fragments/*.yml")
    for path in TOP.glob(pattern)
    if path.name != "CONTRIBUTING.md"
)
PAGES += sorted([*TOP.glob("roles/*/meta/argument_specs.yml"), *TOP.glob("playbooks/*.yml")])
_TYPED = re.compile(r"`[^`]*`|\{[^}]*\}|\]\([^)]*\)|<[^>]*>|\w*[-_./]\w[-\w./]*")
"""Code, what is filled in, links, and names with a hyphen or a dot: they are what they are called."""
_MARKED = re.compile(r"[A-Z]+\([^)]*\)|^ *\w+:", re.MULTILINE)
"""What is code or a key in the documentation of a module."""
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_NOT_A_NOUN = r"(?<!there )\bis no (?!business|concern|harm|longer|more|other|reason|such)"


@lru_cache(maxsize=None)
def read_list() -> dict[bool, dict[str, str]]:
    """Return what is not written and what is instead: in every text, and in those people read."""
    page = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for row in re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", page, re.MULTILINE):
        for word in re.findall("`([^`]+)`", row[1]):
            found[row[2] == "what users read"][word] = row[0]
    return found


def find_faults(text: str, is_read: bool) -> Iterator[str]:
    """Yield each word of a text that the list does not want, and what it wants."""
    plain = " ".join(_TYPED.sub("-", _FENCE.sub("", text)).split())
    if re.search(_NOT_A_NOUN, plain, re.IGNORECASE):
        yield "is no: is not a"
    for kind in {False, is_read}:
        for word, better in read_list()[kind].items():
            if re.search(rf"\b{re.escape(word)}", plain, re.IGNORECASE):
                yield f"{word}: {better}"


def judge(texts: Iterator[Text], is_read: bool) -> list[str]:
    return [
        f"{one.place}: {fault}; {one.text[:120]}"
        for one in texts
        for fault in find_faults(one.text, is_read)
    ]


def test_messages_keep_to_the_list() -> None:
    assert judge((one for path in FILES for one in find_messages(path)), True) == []


def test_docstrings_keep_to_the_list() -> None:
    assert judge((one for path in FILES for one in find_docstrings(path)), False) == []


def test_what_ansible_doc_shows_keeps_to_the_list() -> None:
    files = [*PLUGINS.glob("modules/*.py"), *PLUGINS.glob("doc_fragments/*.py")]
    texts = (one for path in files for one in find_documents(path))
    assert judge((one._replace(text=_MARKED.sub("-", one.text)) for one in texts), True) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_pages_keep_to_the_list(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert judge(iter([Text(path, 1, text)]), True) == []


@pytest.mark.parametrize("word", sorted({*read_list()[False], *read_list()[True]}))
def test_every_word_of_the_list_is_found(word: str) -> None:
    assert [fault for fault in find_faults(f"a {word} here", True) if fault.startswith(word)]
    assert list(find_faults(f"a `{word}` here", True)) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [("F: is no JSON", 1), ("there is no JSON", 0), ("it is no longer JSON", 0)],
)
def test_what_something_is_not_is_said_plainly(text: str, faults: int) -> None:
    assert len(list(find_faults(text, True))) == faults


def test_the_command_prints_every_error() -> None:
    words = [sys.executable, "-m", "tests.project.messages", "--errors"]
    done = subprocess.run(words, cwd=TOP, capture_output=True, check=True, text=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.endswith(": {root}: is not a directory")]
    assert len(lines) > 200
    assert not [line for line in lines if "\t" in line]


def test_both_change_logs_say_the_same() -> None:
    page = re.sub(r"\\(.)", r"\1", (TOP / "CHANGELOG.md").read_text(encoding="utf-8"))
    told = re.findall(r"^\* (.*)$", re.sub("</?code>", "``", page), re.MULTILINE)
    stated = yaml.safe_load((TOP / "changelogs" / "changelog.yaml").read_text(encoding="utf-8"))
    for release in stated["releases"].values():
        assert [one for one in release["changes"]["minor_changes"] if one not in told] == []
