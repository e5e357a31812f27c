# SPDX-License-Identifier: GPL-3.0-or-later
"""A line of a Compose file is the very line, or none is given."""

from __future__ import annotations

import pytest
from mlhost_limits.docker.compose import find_line

# As the documentation of Compose has it, with what people add.
FILE = """\
# Training stack
---
x-limits: &limits
  nofile: 1024

services:
  web:
    image: "nginx:1"
    command: ["a", 'b', c]   # [
    ports:
    - "80:80"
    - target: 443
      ulimits:
    - |
       ulimits: "x
    -
      - nofile: >-
          y: 'z
    environment:
      NOTE: |
        shm_size: 1g

          'deeper
      TEXT: 'one line'  # it's
  "train":
    <<: {restart: always}
    ulimits: &own   # of its own
      nofile:
        soft: 1024
        hard: 4096
      'memlock': -1
    shm_size: 1gb
    entrypoint: echo it's "a [ text
      that goes on
  other: *limits
"""
TRAIN = ("services", "train")


@pytest.mark.parametrize(
    ("path", "number"),
    [
        (TRAIN, 25),
        ((*TRAIN, "ulimits", "nofile"), 28),
        ((*TRAIN, "ulimits", "nofile", "soft"), 29),
        ((*TRAIN, "ulimits", "nofile", "hard"), 30),
        ((*TRAIN, "ulimits", "memlock"), 31),
        ((*TRAIN, "shm_size"), 32),
        (("services", "web", "image"), 8),
        (("services", "web", "ulimits"), 0),
        (("services", "web", "shm_size"), 0),
        (("services", "none"), 0),
        (("services", "web", "environment", "TEXT"), 24),
        (("services", "web", "image", "x"), None),  # It is not a mapping.
        (("services", "web", "ports", "target"), None),  # It is a list.
        ((*TRAIN, "environment"), None),  # It may come with the merge key.
        (("services", "other"), None),  # An alias.
        ((*TRAIN, "ulimits", "memlock", "soft"), None),
    ],
)
def test_a_line_is_found_by_its_keys(path: tuple[str, ...], number: int | None) -> None:
    """0 stands for a key that nobody states, None for one of which that is not sure."""
    if number is None:
        with pytest.raises(ValueError, match=r"^line [0-9]+: "):
            find_line(FILE, path)
        return
    line = find_line(FILE, path)
    assert (line.number if line else 0) == number
    assert line is None or path[-1] in line.text


@pytest.mark.parametrize("end", ["\n", "  \n", "\r\n"])
def test_lines_end_as_they_do(end: str) -> None:
    line = find_line(FILE.replace("\n", end), (*TRAIN, "shm_size"))
    assert line is not None
    assert (line.number, line.value) == (32, "1gb")


UNSURE = [
    ("services:\n\tweb:\n", "has a character that may end a line"),
    ("a: \u2028\nservices:\n", "has a character that may end a line"),
    ("services: {web: {shm_size: 1}}\n", "line 1: is not a mapping in block style"),
    ("services:\n  - web\n", "line 2: is not a mapping in block style"),
    ("services:\n- web\n", "line 2: is not a mapping in block style"),
    ("services:\n  web:\n    shm_size: 1\n    shm_size: 2\n", "line 4: states a key again"),
    ("services:\n    web:\n        shm_size: 1\n  a: 1\n", "line 4: cannot be understood"),
    ('a: "x\nservices:\n  web: y"\n', "line 1: may go on below"),
    ("a: 'x\n", "line 1: may go on below"),
    ("a: [x,\n", "line 1: may go on below"),
    ("a: {x: 'y}\n", "line 1: may go on below"),
    ("- - [\n", "line 1: may go on below"),
    ('two words: "x\n', "line 1: may go on below"),
    ("b:\n  two words: &x |\n", "line 2: may go on below"),
    ("services:\n  web:\n    'it''s': 1\n    shm_size: 1\n", "line 3: may go on below"),
    ("services:\n  web:\n    x: 1\n    two words: 1\n", "line 4: cannot be understood"),
    ("a: [it's, [b's]\n", "line 1: may go on below"),
    ("a: [it's, # ']\n", "line 1: may go on below"),
    ("? services\n", "line 1: cannot be understood"),
    ("?\n", "line 1: cannot be understood"),
    ("%YAML 1.1\n---\n", "line 1: cannot be understood"),
    ("a: 1\n---\nservices:\n", "line 2: cannot be understood"),
    ("include: [b.yml]\nservices:\n  a:\n    x: 1\n", "line 1: takes keys from elsewhere"),
    ("services:\n  web:\n    extends: a\n", "line 3: takes keys from elsewhere"),
    ("services:\n  web: !override\n    shm_size: 1\n", "line 2: has an alias or a tag"),
    ("services:\n  web: &a !x\n    shm_size: 1\n", "line 2: has an alias or a tag"),
]


@pytest.mark.parametrize(("text", "reason"), UNSURE)
def test_what_is_not_sure_has_no_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        find_line(text, ("services", "web", "shm_size"))


@pytest.mark.parametrize("text", ["", "\n", "services:\n", "services:\n  a:\n", "x: 1\n"])
def test_what_is_not_there_is_absent(text: str) -> None:
    assert find_line(text, ("services", "web", "shm_size")) is None
