# SPDX-License-Identifier: GPL-3.0-or-later
"""What the first boot enables, and what links of other names start, counts as what may run."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.kernel.boot_presets import (
    Rule,
    find_preset_starts,
    is_first_boot,
    parse_presets,
)
from mlhost_limits.kernel.boot_scripts_read import read_boot_scripts
from mlhost_limits.kernel.boot_units import is_doubtful
from mlhost_limits.kernel.boot_units_read import find_started

OWN, OF_PACKAGES = "/etc/systemd/system", "/usr/lib/systemd/system"
PRESETS = "/usr/lib/systemd/system-preset"
WANTS = f"{OWN}/multi-user.target.wants"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"
LOWERS = "[Service]\nExecStart=/sbin/sysctl -w vm.max_map_count=1\n"
X, FIRST = f"{OF_PACKAGES}/x.service", "uninitialized\n"


def lay_out(tree: Path, files: dict[str, str | None]) -> dict[str, str]:
    """Return what a boot runs; a file that begins with an arrow is a link."""
    for path, text in files.items():
        if text is None:
            continue
        file = tree / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            file.symlink_to(text[2:])
        else:
            file.write_text(text)
    found: dict[str, str] = read_boot_scripts(str(tree), of_packages=True)
    return found


@pytest.mark.parametrize(
    ("text", "is_first"),
    [(None, True), (FIRST, True), ("", False), ("\n", False), ("a" * 32 + "\n", False)],
)
def test_an_empty_machine_id_is_no_first_boot(text: str | None, is_first: bool) -> None:
    assert is_first_boot(text) is is_first


def test_the_first_rule_that_matches_counts() -> None:
    texts = ["# no\nenable a.service\n\nignore c.*\n", "disable a.*\nenable b@.service x y\nodd\n"]
    rules = parse_presets(texts)
    assert rules == [
        Rule(True, "a.service"),
        Rule(False, "c.*"),
        Rule(False, "a.*"),
        Rule(True, "b@.service", ("x", "y")),
    ]
    units = dict.fromkeys(("a.service", "b@.service", "c.service", "d.service"), INSTALL)
    names = {"a.service", "b@x.service", "b@y.service", "d.service"}
    assert find_preset_starts(units, rules) == {
        "multi-user.target": {(name, False) for name in names}
    }


def test_a_line_of_one_word_is_no_rule() -> None:
    assert parse_presets(["enable\n# enable a\n", "disable a b\n"]) == [Rule(False, "a", ("b",))]


def test_aliases_instances_and_units_beside_are_enabled_as_well() -> None:
    units = {
        "a.service": "[Install]\nAlias=z.service\nAlso=b.timer a.service\n",
        "b.timer": "[Install]\nWantedBy=timers.target\n",
        "c@.service": f"{INSTALL}DefaultInstance=one\n",
    }
    rules = [Rule(True, "a.service"), Rule(True, "c@.service"), Rule(False, "*")]
    assert find_preset_starts(units, rules) == {
        "z.service": {("a.service", False)},
        "timers.target": {("b.timer", False)},
        "multi-user.target": {("c@one.service", False)},
    }


@pytest.mark.parametrize(
    ("files", "is_seen"),
    [
        ({}, True),
        ({f"{PRESETS}/90-a.preset": "enable x.service\ndisable *\n"}, True),
        ({f"{PRESETS}/90-a.preset": "disable *\n"}, False),
        (
            {f"{PRESETS}/90-a.preset": "enable *\n", f"{PRESETS}/10-a.preset": "disable x.*\n"},
            False,
        ),
        (
            {
                f"{PRESETS}/90-a.preset": "disable *\n",
                "/etc/systemd/system-preset/90-a.preset": "enable x.service\n",
            },
            True,
        ),
        ({f"{PRESETS}/90-a": "disable *\n"}, True),
        ({"/etc/machine-id": "a" * 32}, False),
        ({"/etc/machine-id": None}, True),
        ({"/etc/machine-id": ""}, False),
        ({X: LOWERS}, False),
        ({f"{OWN}/x.service": "->/dev/null"}, False),
        ({f"{OWN}/x.service": f"[Service]\nExecStart=/bin/true\n{INSTALL}"}, False),
    ],
)
def test_what_a_preset_enables_may_run(
    files: dict[str, str | None], is_seen: bool, tmp_path: Path
) -> None:
    base: dict[str, str | None] = {"/etc/machine-id": FIRST, X: f"{LOWERS}{INSTALL}"}
    found = lay_out(tmp_path, {**base, **files})
    assert list(found) == ([X] if is_seen else [])
    assert all(is_doubtful(text) for text in found.values())


@pytest.mark.parametrize(
    ("links", "path", "is_sure"),
    [
        ({f"{WANTS}/x.service": "->/opt/x.service"}, "/opt/x.service", False),
        ({f"{WANTS}/y.service": "->/opt/x.service"}, "/opt/x.service", False),
        (
            {f"{OWN}/x.service": "->/opt/x.service", f"{WANTS}/x.service": "->/opt/x.service"},
            f"{OWN}/x.service",
            True,
        ),
        (
            {f"{OWN}/y.service": "->/opt/x.service", f"{WANTS}/y.service": "->../y.service"},
            f"{OWN}/y.service",
            True,
        ),
        (
            {X: LOWERS, f"{OWN}/y.service": f"->{X}", f"{WANTS}/y.service": "->../y.service"},
            X,
            True,
        ),
        ({X: LOWERS, f"{WANTS}/y.service": f"->{X}"}, X, False),
        ({f"{OWN}/x.service": "->/opt/x.service"}, "", False),
        ({f"{WANTS}/x.service": "->/opt/gone.service"}, "", False),
        ({f"{WANTS}/x.service": "->x.service"}, "", False),
    ],
)
def test_links_of_other_names_and_out_of_the_folders_start_units(
    links: dict[str, str | None], path: str, is_sure: bool, tmp_path: Path
) -> None:
    found = lay_out(tmp_path, {"/etc/machine-id": "", "/opt/x.service": LOWERS, **links})
    assert list(found) == ([path] if path else [])
    assert all(is_doubtful(text) is not is_sure for text in found.values())


def test_instances_of_templates_are_no_units_of_another_name(tmp_path: Path) -> None:
    template = f"{OF_PACKAGES}/getty@.service"
    wants = f"{OWN}/getty.target.wants/getty@tty1.service"
    lay_out(tmp_path, {"/etc/machine-id": "", template: INSTALL, wants: f"->{template}"})
    assert "getty@tty1.service" in find_started(str(tmp_path))
    assert "getty@.service" not in find_started(str(tmp_path))
