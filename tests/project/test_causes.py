# SPDX-License-Identifier: GPL-3.0-or-later
"""Every cause is documented under its code."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from mlhost_limits import cli
from mlhost_limits.cause_codes import CODES

from tests.faults.codes import read_sections
from tests.faults.every import FAULTS

TOP = Path(__file__).parents[2]
LIBRARY = TOP / "plugins" / "module_utils"


def find_codes() -> dict[str, str]:
    """Return every code, with what it means."""
    codes: dict[str, str] = {}
    for path in LIBRARY.glob("*/*.py"):
        if re.search(r"^CODES\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = importlib.import_module(f"mlhost_limits.{path.parent.name}.{path.stem}")
            assert not codes.keys() & module.CODES.keys()
            codes.update(module.CODES)
    return codes


def test_every_code_has_an_anchor_and_no_anchor_lacks_a_code() -> None:
    pages = sorted((TOP / "docs").glob("causes*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    anchors = re.findall(r'^### <a id="([a-z0-9-]+)"></a>\1$', text, re.MULTILINE)
    assert sorted(anchors) == sorted(find_codes())


def test_every_code_is_used() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in LIBRARY.glob("*/*.py"))
    for code in find_codes():
        uses = text.count(f'"{code}"')
        made = any(code.startswith(start) for start in ("pam-user-", "pam-group-"))
        assert uses > 1 or made, f"{code} is never named"


def test_every_code_says_which_fault_shows_it_or_why_none_does() -> None:
    names = {fault.name for fault in FAULTS}
    sections = read_sections()
    assert len(sections) > 100
    for section in sections:
        assert bool(section.faults) != section.excused, f"{section.code}: Shown by, or Not shown"
        assert set(section.faults) <= names, f"{section.code}: there is no such fault"


def test_every_code_is_told_with_its_place() -> None:
    assert {code: text for code, (_place, text) in CODES.items()} == find_codes()
    assert all(place for place, _text in CODES.values())


@pytest.mark.slow
def test_a_code_is_explained_and_leads_on(capsys: pytest.CaptureFixture[str]) -> None:
    for code, (place, text) in CODES.items():
        assert cli.main(["cause", code]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{code}: {text}\nin {place}\n")
    assert cli.main(["cause", "pam-dash-wins"]) == 0
    assert capsys.readouterr().out.endswith("mlhost-limits explain session:USER@SERVICE ITEM\n")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("pam-dash", "near it are pam-dash-wins, pam-dash-loses-hard"),
        ("pma-dash-wins", "near it are pam-dash-wins"),
        ("nr-open", "near it are "),
        ("zzzzzzzz", "a check names them with --json"),
    ],
)
def test_a_word_that_is_no_code_is_refused_with_those_near_it(
    word: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["cause", word]) == cli.REFUSED
    assert f"{word!r} is not a code of a cause; {answer}" in capsys.readouterr().err
