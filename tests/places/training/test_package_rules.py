# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages are judged by their pins, and a development version is no release."""

from __future__ import annotations

import pytest
from mlhost_limits.training.packages_check import judge_packages


@pytest.mark.parametrize(
    ("specifier", "version", "expected"),
    [
        ("", "4.49.0", "pass"),
        (">=4.40,<5", "4.49.0", "pass"),
        (">=4.40,<5", "5.23.0", "fail package-version"),
        ("", "4.49.0.dev0", "fail package-development"),
        (">=4.40", "4.49.0.dev0", "fail package-development"),
        ("==4.49.0.dev0", "4.49.0.dev0", "pass"),
        ("===4.49.0.dev0", "4.49.0.dev0", "pass"),
        ("", "2.13.0+cpu", "pass"),
        ("==2.13.0", "2.13.0+cpu", "pass"),
        ("", None, "fail package-absent"),
        ("4.40", "4.49.0", "unknown"),
        ("", "main", "unknown"),
    ],
)
def test_an_installed_version_is_judged(specifier: str, version: str | None, expected: str) -> None:
    versions = {} if version is None else {"transformers": version}
    (finding,) = judge_packages("/opt/venv/bin/python", {"transformers": specifier}, versions)
    told = " ".join([finding.status, *(cause.code for cause in finding.causes)])
    assert told == expected
    assert finding.requirement.place == "path:/opt/venv/bin/python"


def test_what_is_wrong_is_said() -> None:
    wanted = {"trl": ">= 1", "torch": "", "accelerate": ""}
    versions = {"trl": "0.9", "torch": "2.14.0.dev20260101+cu130"}
    found = list(judge_packages("/p", wanted, versions))
    assert [one.causes[0].text for one in found] == [
        "/p has no accelerate",
        "torch 2.14.0.dev20260101+cu130 is a development version",
        "trl 0.9 is installed, and >= 1 is asked for",
    ]
    assert found[2].causes[0].remedy.text == "install trl>=1 for that interpreter"


def test_an_interpreter_that_was_not_asked_leaves_all_unknown() -> None:
    (finding,) = judge_packages("/p", {"trl": ""}, None, "/p: No such file or directory")
    assert (finding.status, finding.observation.reason) == (
        "unknown",
        "/p: No such file or directory",
    )
