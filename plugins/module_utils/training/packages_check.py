# SPDX-License-Identifier: BSD-2-Clause
"""Judge the packages that a run would import."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from ..core.cause import Cause
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement
from .cache_check import find_user
from .folder_rules import blame
from .packages_read import read_versions
from .pep440 import Clause, Version, parse_specifier, parse_version, satisfies
from .policy import Training

_ANY = "any release"


def place_of_python(python: str) -> str:
    return f"path:{python}"


def judge_packages(
    python: str, wanted: Mapping[str, str], versions: Mapping[str, str] | None, reason: str = ""
) -> Iterator[Finding]:
    """Yield whether each package is there in a version that was asked for.

    :param wanted: The specifier by the name; an empty one takes every release.
    :param versions: What is installed; ``None`` where *reason* says why that is not known.
    """
    for name, specifier in sorted(wanted.items()):
        asked = specifier.strip() or _ANY
        requirement = Requirement(place_of_python(python), name, "value", exact=asked)
        how = f"metadata of {python}"
        if versions is None:
            yield Finding(UNKNOWN, requirement, Observation(None, how, reason))
            continue
        try:
            clauses = parse_specifier(specifier)
        except ValueError as exc:
            yield Finding(UNKNOWN, requirement, Observation(None, how, str(exc)))
            continue
        text = versions.get(name)
        if text is None:
            text, said = "absent", f"{python} has no {name}"
            cause: Cause | None = blame("package-absent", said, _install(name, specifier))
        else:
            version = parse_version(text)
            if version is None:
                said = f"{name} has the version {text!r}, which is not a version"
                yield Finding(UNKNOWN, requirement, Observation(None, how, said))
                continue
            cause = _blame(name, specifier, text, version, clauses)
        seen = Observation(text, how)
        yield Finding(FAIL if cause else PASS, requirement, seen, (cause,) if cause else ())


def _blame(
    name: str, specifier: str, text: str, version: Version, clauses: list[Clause]
) -> Cause | None:
    """Return what is wrong with an installed version, if anything is."""
    if not satisfies(version, text, clauses):
        said = f"{name} {text} is installed, and {specifier.strip()} is asked for"
        return blame("package-version", said, _install(name, specifier))
    named = any(one.operator in ("==", "===") and "dev" in one.text for one in clauses)
    if version.is_development and not named:
        said = f"{name} {text} is a development version"
        return blame("package-development", said, "install a release of it")
    return None


def _install(name: str, specifier: str) -> str:
    return f"install {name}{''.join(specifier.split())} for that interpreter"


def check_packages(training: Training) -> Iterator[Finding]:
    """Yield whether the interpreter of the run has each package in a version asked for."""
    if not training.packages:
        return
    python = training.python or sys.executable
    versions, reason = None, ""
    if "container:" in training.place:
        reason = f"{python} of {training.place} is seen only from inside: run the check there"
    else:
        try:
            versions = read_versions(python, find_user(training), training.packages)
        except OSError as exc:
            reason = str(exc)
        except KeyError:
            reason = f"this host has no user {find_user(training)}"
    yield from judge_packages(python, training.packages, versions, reason)
