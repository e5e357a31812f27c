# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a code says what the docs say of it, and shows what a check printed, or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.cause_codes import CODES

from tests.faults.every import FAULTS
from tests.faults.examples import find_examples, keep, read_examples
from tests.faults.runs import RUNS
from tests.faults.shell import Look
from tests.reference.cause_pages import (
    DOCS,
    Fix,
    Section,
    find_fixes,
    format_cause,
    link_sections,
    read_sections,
    write_pages,
)

EXAMPLES = read_examples()
SECTIONS = read_sections()
NAMES = {*(fault.name for fault in FAULTS), *(run.name for run in RUNS)}
REPORT = [
    "ok   kernel: fs.nr_open 1048576",
    "FAIL session:alice@sshd,su: nofile soft 1024, required 65536; nofile hard 4096,",
    "     required 1048576",
    "     why  /etc/one:3 states too little, which is the first of the things that",
    "          are wrong",
    "     fix  make it",
    '          "65536"; then log in again',
    "     run  sed -i 3d /etc/one",
    "     why  the second thing is wrong",
    "     who  a package writes the second thing",
    "     fix  mend it",
    "     next session: fail",
    "late session:bob@sshd: nofile 65536 now, not enough after the next boot",
    "     why  the second thing is wrong",
    "     fix  mend it",
    "note this connection is old, and the",
    "     third thing is wrong",
    "     fix  connect again,",
    "          and look",
    "1 pass, 2 fail, 0 unknown",
]
FIRST = "/etc/one:3 states too little, which is the first of the things that are wrong"
SECOND, THIRD = "the second thing is wrong", "this connection is old, and the third thing is wrong"


def finding(status: str = "fail", after_boot: str = "", **causes: str) -> dict[str, Any]:
    """Return what a check says of something, with these sentences by their codes."""
    named = [{"code": code, "text": text} for code, text in causes.items()]
    later = {"next_session": "", "next_restart": "", "after_boot": after_boot}
    return {"status": status, "causes": named, **later}


def test_the_block_of_a_cause_is_found_where_it_comes_first() -> None:
    findings = [
        finding(one=FIRST, two=SECOND),
        finding("pass", "fail", two=SECOND),
        finding(three=THIRD),
        finding(four="what was not printed"),
    ]
    assert find_examples(Look(findings, REPORT)) == {
        "one": {"cause": 0, "lines": REPORT[1:12]},
        "two": {"cause": 0, "lines": REPORT[12:15]},
        "three": {"cause": 0, "lines": REPORT[15:19]},
    }
    alone = find_examples(Look(findings[:1], REPORT[:12]))
    assert alone["two"] == {"cause": 1, "lines": REPORT[1:12]}
    assert find_fixes(REPORT[1:12]) == [
        Fix('make it "65536"; then log in again', has_commands=True),
        Fix("mend it"),
    ]


def test_what_is_said_of_who_writes_a_file_is_no_cause() -> None:
    look = Look([finding(two="a package writes the second thing")], REPORT)
    assert find_examples(look) == {}


def test_an_example_is_of_the_fault_that_the_docs_name_first() -> None:
    code = "pam-user-beats-wildcard"
    first, second = "limits: a user's line beats the wildcard", "limits: a range of user ids"
    block = {"cause": 0, "lines": ["FAIL"]}

    def run(name: str, line: str = "FAIL") -> dict[str, Any]:
        return {"name": name, "examples": {code: {**block, "lines": [line]}}}

    assert keep([run(second)], {})[code] == {"fault": second, **block}
    assert keep([run("another"), run(first), run(second)], {})[code]["fault"] == first
    kept = keep([run(first)], {})
    assert keep([run(second), run("another"), {"name": "of old"}], kept) == kept
    assert keep([run(first, "late")], kept)[code]["lines"] == ["late"]


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_is_a_block_of_a_report(code: str) -> None:
    fault, lines = EXAMPLES[code]["fault"], EXAMPLES[code]["lines"]
    assert code in CODES
    assert fault in NAMES
    assert lines[0][:5] in ("FAIL ", "???  ", "late ", "note ")
    assert all(line.startswith("     ") for line in lines[1:])
    assert EXAMPLES[code]["cause"] < len(find_fixes(lines))


@pytest.mark.parametrize("code", CODES)
def test_a_page_shows_what_was_printed_and_makes_nothing_up(code: str) -> None:
    page = format_cause(code, SECTIONS[code], EXAMPLES.get(code))
    assert f"# {code}\n" in page
    assert SECTIONS[code].text.split("\n")[0].split("](")[0] in page
    assert "Shown by" not in page
    shown = "\n".join(["```text", *EXAMPLES[code]["lines"], "```"]) if code in EXAMPLES else ""
    assert shown in page
    assert page.count("```") == (2 if shown else 0)
    assert ("No check of ours on a host has printed it yet." in page) != bool(shown)


def test_a_fix_is_told_with_its_commands_and_what_comes_after_it() -> None:
    example = {"fault": "shell: ~/.bashrc lowers it", "cause": 0, "lines": REPORT[1:12]}
    section = SECTIONS["shell-lowers"]
    first = format_cause("shell-lowers", section, example)
    assert first.endswith(
        'Make it "65536"; then log in again. Run what stands behind `run` as root.'
        " Then go on with the causes below it.\n"
    )
    assert "with the fault `shell: ~/.bashrc lowers it`" in first
    second = format_cause("shell-lowers", section, {**example, "cause": 1})
    assert second.endswith("Mend it. No command does that.\n")
    starred = [line.replace("mend it", "state * there") for line in REPORT[1:12]]
    page = format_cause("shell-lowers", section, {**example, "cause": 1, "lines": starred})
    assert "State \\* there." in page


def test_links_and_reasons_of_a_section_hold_one_folder_below() -> None:
    text = "See [jobs](slurm.md#jobs) and [here](#pam-dash-wins).\n\nNot shown on a host: no disk\nbreaks."
    page = format_cause("pam-dash-wins", Section("causes.md", text), None)
    assert "[jobs](../slurm.md#jobs) and [here](../causes.md#pam-dash-wins)." in page
    assert page.endswith("No check of ours on a host has printed it yet. no disk breaks.\n")


def test_the_docs_get_a_link_for_each_code_and_no_other_change(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    write_pages(tmp_path / "docs")
    made = {path.stem for path in (tmp_path / "docs" / "causes").glob("*.md")}
    assert made == {*CODES, "index"}
    for path in DOCS.glob("causes*.md"):
        before, after = (
            one.read_text(encoding="utf-8") for one in (path, tmp_path / "docs" / path.name)
        )
        kept = [
            line for line in after.split("\n") if not line.startswith("[An example and the fix]")
        ]
        assert [line for line in kept if line] == [line for line in before.split("\n") if line]
        assert after == link_sections(before)
        assert after.count("[An example and the fix](causes/") == before.count("### <a id=")
