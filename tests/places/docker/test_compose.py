# SPDX-License-Identifier: GPL-3.0-or-later
"""A container of Compose is blamed on its file: the line where it is sure, and never the daemon."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cause import Cause
from mlhost_limits.docker.compose import Compose, blame_shm, blame_ulimit

FILE = """\
services:
  train:
    shm_size: 1g
    ulimits:
      nofile:
        soft: 700
        hard: 800
      memlock: "8192"   # bytes
      core: 5 # none
"""
FLOW = "services:\n  train:\n    ulimits: {nofile: 700}\n"
BOTH = "services:\n  train:\n    ulimits:\n      nofile: {soft: 700, hard: 800}\n"
HALF = "services:\n  train:\n    ulimits:\n      nofile:\n        soft: 700\n"
NONE = "services:\n  train:\n    image: x\n"
STATES, CHANGED = "docker-compose-states", "docker-compose-not-applied"
ASKED = "{soft: 65536, hard: 1048576}"


def blame(*texts: str | None, item: str = "nofile", bound: str = "soft", value: int = 700) -> Cause:
    compose = Compose("train", tuple((f"/srv/{n}.yml", text) for n, text in enumerate(texts)))
    return blame_ulimit(compose, "job", item, bound, "700:800", value, ASKED)


@pytest.mark.parametrize(
    ("cause", "code", "place"),
    [
        (blame(FILE), STATES, "/srv/0.yml:6"),
        (blame(FILE, bound="hard", value=800), STATES, "/srv/0.yml:7"),
        (blame(FILE, item="memlock", value=8192), STATES, "/srv/0.yml:8"),
        (blame(FILE, item="core", value=5), STATES, "/srv/0.yml:9"),
        (blame(FILE, value=600), CHANGED, "/srv/0.yml:6"),
        (blame(HALF, bound="hard"), STATES, "/srv/0.yml:4"),
        (blame(BOTH), STATES, "/srv/0.yml:4"),
        (blame(FILE, NONE), STATES, "/srv/0.yml:6"),
        (blame(NONE, FILE), STATES, "/srv/1.yml:6"),
        (blame(FILE, FLOW), STATES, ""),
        (blame(FILE, None), STATES, ""),
        (blame(NONE), CHANGED, ""),
    ],
)
def test_the_file_that_counts_is_named(cause: Cause, code: str, place: str) -> None:
    """The last file that states it counts; where one of them is unclear no line is named."""
    assert cause.code == code
    assert (cause.at.place if cause.at else "") == place
    assert (place or "/srv/") in cause.text
    assert cause.remedy.commands == ()
    assert "docker compose up -d train" in (cause.remedy.then, cause.remedy.text[-26:])


def test_the_words() -> None:
    found, old = blame(FILE), blame(FILE, value=9)
    assert found.text == (
        "job was created with nofile 700:800, which beats every default, by"
        ' /srv/0.yml:6 "soft: 700"'
    )
    assert found.remedy.text == f'make it "nofile" {ASKED} there'
    says = 'and /srv/0.yml:6 "soft: 700" says otherwise now'
    assert old.text == f"job was created with nofile 700:800, {says}"
    gone = Compose("a\nb", (("/x", "services:\n  q: 1\n"),))
    said = blame_ulimit(gone, "job", "nofile", "soft", "1", 1, "")
    assert said.text.endswith("and /x says nothing of it now")
    assert "\n" not in said.remedy.text
    unsure = blame_ulimit(Compose("a", (("/x", None),)), "job", "nofile", "soft", "1", 1, "")
    assert unsure.remedy.text == "take it out there"
    assert unsure.text.endswith("by service a of /x")


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        (FILE, "/x:3", "make it shm_size: 8G there"),
        (NONE, "", "state shm_size: 8G for train there"),
        (None, "", "make it shm_size: 8G there"),
    ],
)
def test_a_size_may_be_stated_or_not(text: str | None, place: str, fix: str) -> None:
    cause = blame_shm(Compose("train", (("/x", text),)), "job", "1GiB", "8G")
    assert (cause.code, cause.at.place if cause.at else "") == (STATES, place)
    assert (cause.remedy.text, cause.remedy.then) == (fix, "docker compose up -d train")
    assert "/x" in cause.text
