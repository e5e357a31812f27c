# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of Compose files against PyYAML's: on generated files no line is ever a wrong one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
import yaml
from mlhost_limits.docker.compose import find_line

from tests.oracle.record import SEED, choose, record

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where there is one, from which Compose's own reader was translated."""

SERVICES = ("a", "train", "web.1")
KEYS = ("image", "command", "ulimits", "shm_size", "environment", "nofile", "soft", "services", "a")
PATHS = [
    ("services", name, *rest)
    for name in SERVICES
    for rest in (
        (),
        ("shm_size",),
        ("ulimits", "nofile"),
        ("ulimits", "nofile", "soft"),
        ("ulimits", "memlock"),
    )
]


class Writer:
    """Writes YAML in every style that comes to people's minds, and some that do not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.strange = self.random.random() < 0.5
        self.lines: list[str] = []

    def chance(self, of: float) -> bool:
        return self.strange and self.random.random() < of

    def write(self) -> str:
        for opening in ("# a file\n", "---\n", "\n", "%YAML 1.1\n---\n"):
            if self.random.random() < 0.1:
                self.lines.append(opening.rstrip("\n"))
        base = 2 if self.chance(0.05) else 0
        keys = ["version", "services", "x-common", "volumes"]
        self.random.shuffle(keys)
        for key in keys:
            self.put(base, key)
            if key == "services":
                self.mapping(base, 3, self.pick(SERVICES))
            else:
                self.value(base, 2)
        end = self.random.choice(("\n", "\r\n")) if self.chance(0.1) else "\n"
        return end.join(self.lines) + self.random.choice(("", end))

    def pick(self, names: Sequence[str]) -> list[str]:
        many = self.random.randint(1, min(4, len(names)))
        chosen = self.random.sample(list(names), many)
        return [*chosen, chosen[0]] if self.chance(0.02) else chosen

    def put(self, indent: int, key: str) -> None:
        if self.chance(0.2):
            key = self.random.choice((f'"{key}"', f"'{key}'", f"{key} "))
        elif self.chance(0.02):
            key = self.random.choice(("'it''s'", '"q\\"uote"', "two words", "? x", "b:c"))
        self.lines.append(f"{' ' * indent}{key}:")

    def mapping(self, indent: int, depth: int, keys: Sequence[str]) -> None:
        step = self.random.choice((1, 2, 4)) if self.strange else 2
        if self.chance(0.05):
            self.lines[-1] += self.random.choice((" &anchor", " # note", " !!map"))
        for key in keys:
            if self.chance(0.1):
                self.lines.append(self.random.choice(("", "  ", "# ulimits:", "        # x: 'y")))
            if self.chance(0.02):
                self.lines.append(f"{' ' * (indent + step)}<<: {{shm_size: 1g}}")
            self.put(indent + step, key)
            self.value(indent + step, depth)

    def value(self, indent: int, depth: int) -> None:
        kind = self.random.random()
        if depth and kind < 0.6:
            self.mapping(indent, depth - 1, self.pick([*KEYS, "memlock", "hard"]))
        elif kind < 0.7:
            self.items(indent, depth)
        elif self.chance(0.4):
            self.odd(indent)
        else:
            self.lines[-1] += self.random.choice((" 1024", " 8gb", " yes", " ${N:-5}", ' "64"', ""))

    def items(self, indent: int, depth: int) -> None:
        pad = " " * (indent + self.random.choice((0, 2)))
        for _number in range(self.random.randint(1, 3)):
            choice = self.random.random()
            if choice < 0.3 and depth:
                self.lines.append(f"{pad}- soft: 1")
                self.lines.append(f"{pad}  nofile: {self.random.choice(('2', '|'))}")
                self.lines.append(f"{pad}     x: 'y")
                if "|" not in self.lines[-2]:
                    self.lines.pop()
            else:
                texts = ("- x", '- "80:80"', "- a=b", "- - y", "-  |", "- [1, 'b']", "- it's")
                self.lines.append(pad + self.random.choice(texts))
                if self.lines[-1].endswith("|"):
                    self.lines.append(f"{pad} nofile: 'x")

    def odd(self, indent: int) -> None:
        pad = " " * indent
        self.lines[-1] += self.random.choice(
            (
                f" |\n{pad} ulimits:\n\n{pad}   nofile: 'x",
                f" >-  # folded\n{pad}  a: |\n{pad}    b",
                f" |2\n{pad}   shm_size: 1\n{pad}  services:",
                ' "goes\n  on\n\n shm_size: 1"',
                f" 'goes\n{pad}  ulimits: on'",
                f" 'goes\n{pad}shm_size: 1\n{pad}ulimits:\n{pad}  nofile: on'",
                f" [goes,\n{pad}shm_size: 1,\n{pad}a: {{nofile: 5\n{pad}}} ]",
                f" |\n{pad} ulimits:\n{pad}\n{pad} shm_size: 1",
                f" goes\n{pad}  on 'and\n{pad} on",
                f" [1,\n{pad}  2,\n services]",
                " {nofile: 1024, soft: {a: 1}}",
                " [it's, [b's],\nservices]",
                f" [it's, # ']\n{pad}shm_size: ']', 'a # b' ] # [",
                f" {{nofile: 3,\n{pad} soft: 5}}",
                " *anchor",
                " &other 5",
                ' !!str "x"',
                f" &text |\n{pad}   nofile: 1",
                " echo \"it's [\" # and 'so",
                f"\n{pad}   plain\n{pad}   - text",
                " null",
                " ~",
                "\t5",
            )
        )


def find_true_line(root: yaml.Node | None, path: Sequence[str]) -> int:
    """Return the line that PyYAML has the key on; 0 where there is none.

    It is -1, which is no line, where the key stands there twice or may come from elsewhere.
    """
    node, line = root, 0
    for key in path:
        if not isinstance(node, yaml.MappingNode):
            return 0
        found = [(name, value) for name, value in node.value if name.value == key]
        if len(found) > 1 or (not found and any(name.value == "<<" for name, _ in node.value)):
            return -1
        if not found:
            return 0
        line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line


def compare(text: str) -> Iterator[str]:
    """Yield how each path of a file that YAML can read went."""
    try:
        root = yaml.compose(text, Loader=LOADER)
    except yaml.YAMLError:
        return
    for path in PATHS:
        try:
            found = find_line(text, path)
        except ValueError:
            yield "unknown"
            continue
        ours, true = found.number if found else 0, find_true_line(root, path)
        if ours != true:
            yield f"{path}: ours is {ours}, PyYAML's {true}\n{text}"
        else:
            yield "found" if ours else "absent"


def test_no_line_is_a_wrong_one() -> None:
    counts = {"found": 0, "absent": 0, "unknown": 0}
    files = choose(400, 40000)
    for number in range(files):
        for said in compare(Writer(SEED * 1_000_000 + number).write()):
            if said not in counts:
                pytest.fail(said)
            counts[said] += 1
    print(counts)
    # Of half of the files YAML itself can make nothing.
    cases, least = sum(counts.values()), files * len(PATHS) // 2
    record("compose", "PyYAML", cases, 0, counts["unknown"], of=least, most_unknown=0.7)
    assert counts["found"] > 300
