# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and specifiers are read as PyPI's own library reads them."""

from __future__ import annotations

import itertools

import pytest
from mlhost_limits.training.pep440 import parse_specifier, parse_version, satisfies

TEXT = (
    "0 1 1.0 1.0.0 1.0.1 1.1 1.2 1.10 2 2.0.dev0 1!1.0 1!0.5 1.0a1 1.0.a.1 1.0alpha1 1.0b2 1.0rc1 "
    "1.0c1 1.0-pre 1.0.preview3 1.0.dev1 1.0.dev0 1.0a1.dev2 1.0.post1 1.0-1 1.0.post1.dev3 1.0rev2 1.0r "
    "1.0a1.post2 1.0+local 1.0+local.2 1.0+0 1.0+1 1.0+2.a 1.0+cu121 1.0.post1+cu121 1.0.dev20240101+cu118 v1.0 1.0RC1 4.49.0.dev0 "
    "4.49.0 4.48.3 5.23.0 2.13.0+cpu 0.2.57 0.2.111 0.2.5 1.0.2 0.19.8 2.5.0a0+872d972e41.nv24.8 1.0.0.0.1 "
    "1.0.0-beta.2 1.2.3.4 1.0.post0 1.0.dev 1.1.dev1 1.1a0 0.0 "
)
VERSIONS = TEXT.split()
NONE = (
    "",
    "x",
    "1.",
    "1..0",
    "1.0+",
    "1.0+a_",
    "1.0.foo",
    "1.0-",
    "1 0",
    "1.0a1a2",
    "٣.1",
    "1.0*",
    "9" * 257,
)
OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "~=", "===")
oracle = pytest.importorskip("packaging.specifiers")
versions = pytest.importorskip("packaging.version")


@pytest.mark.parametrize("text", [*VERSIONS, *NONE])
def test_a_version_is_one_where_the_oracle_says_so(text: str) -> None:
    try:
        expected = versions.Version(text)
    except versions.InvalidVersion:
        expected = None
    found = parse_version(text)
    if len(text) > 256:
        assert found is None
        return
    assert (found is None) == (expected is None)
    if found and expected:
        assert found.is_development == expected.is_devrelease
        assert found.is_prerelease == expected.is_prerelease


def test_versions_are_ordered_as_the_oracle_orders_them() -> None:
    for left, right in itertools.product(VERSIONS, repeat=2):
        mine = parse_version(left), parse_version(right)
        theirs = versions.Version(left), versions.Version(right)
        assert (mine[0] < mine[1]) == (theirs[0] < theirs[1]), (left, right)
        assert (mine[0] == mine[1]) == (theirs[0] == theirs[1]), (left, right)


def test_specifiers_take_what_the_oracle_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Every version against every operator and version, with a wildcard too."""
    cases, wrong = 0, []
    bounds = [*VERSIONS, *(f"{one}.*" for one in VERSIONS), "1.*", "x", "1.0.*.*"]
    for operator, bound in itertools.product(OPERATORS, bounds):
        text = operator + bound
        try:
            theirs = oracle.SpecifierSet(text)
        except oracle.InvalidSpecifier:
            theirs = None
        try:
            mine = parse_specifier(text)
        except ValueError:
            mine = None
        cases += 1
        if (theirs is None) != (mine is None):
            wrong.append(text)
            continue
        if theirs is None or mine is None:
            continue
        for version in VERSIONS:
            cases += 1
            read = parse_version(version)
            assert read
            if satisfies(read, version, mine) != theirs.contains(version, prereleases=True):
                wrong.append(f"{version} {text}")
    with capsys.disabled():
        print(f"\npep440: {cases} cases, {len(wrong)} mismatches")
    assert not wrong, wrong[:40]


@pytest.mark.parametrize("text", ["", " ", ">=4.40,<5", "==1.0 , !=2", "~=4.49"])
def test_a_specifier_may_hold_several_or_none(text: str) -> None:
    assert len(parse_specifier(text)) == len([one for one in text.split(",") if one.strip()])


@pytest.mark.parametrize(
    "text", ["4.40", ">=", "=>1", ">=1,,<2", ">=1 <2", "~=1", ">1+local", "=1.0"]
)
def test_what_is_no_specifier_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version specifier; accepted are"):
        parse_specifier(text)
