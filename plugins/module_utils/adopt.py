# SPDX-License-Identifier: BSD-2-Clause
"""Read what a site's own files state on a host, or in a tree, and make a policy of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from .core.adopted import Adopted, LeftOut, Stated
from .core.cause import cite
from .core.quote import one_line
from .core.values import Declaration
from .places import PLACES

_PLAIN = re.compile(r"[A-Za-z_@][A-Za-z0-9_.@/-]*|[0-9]+(B|s|[KMGT]iB)")
_WORDS = frozenset(("y", "yes", "n", "no", "true", "false", "on", "off", "null"))
"""What YAML takes for something else than a text."""

_HEAD = (
    "---",
    "# What this site states in its own files, as a policy of mlhost.limits. It stands alone:",
    "# check it with --profile none. Sysctls are asked for exactly; NAME: NUMBER is a minimum.",
)


def format_policy(sections: Iterable[Mapping[str, object]], left: Iterable[LeftOut]) -> list[str]:
    """Return the lines of a file that holds these sections, and of what is left out of them."""
    rows = [row for section in sections for row in _write_mapping(section, "")]
    rest = [row for one in left for row in (f"# - {cite(one.at)}", f"#     {one_line(one.reason)}")]
    rows = [*_HEAD, *rows] if rows else ["# The files of this site state nothing for a policy."]
    return [*rows, *(["#", "# Left out, or not quite as it was:", *rest] if rest else [])]


def plain(node: object) -> object:
    """Return a policy as plain data, without its places."""
    if isinstance(node, Stated):
        return node.value
    if isinstance(node, list):
        return [plain(one) for one in node]
    return {key: plain(one) for key, one in node.items()} if isinstance(node, dict) else node


def _write_mapping(section: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, node in section.items():
        start = f"{indent}{_write_text(key)}:"
        if isinstance(node, Stated):
            yield f"{start} {_write_flow(node.value)}{_write_places(node.at)}"
            continue
        yield start
        if isinstance(node, list):
            for entry in node:
                rows = _write_mapping(entry, f"{indent}    ")
                for number, row in enumerate(rows):
                    yield row if number else f"{indent}  - {row.lstrip()}"
        else:
            yield from _write_mapping(node, f"{indent}  ")  # type: ignore[arg-type]


def _write_flow(value: object) -> str:
    if isinstance(value, dict):
        inner = (f"{key}: {_write_flow(one)}" for key, one in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_write_flow(one) for one in value) + "]"
    return _write_text(value) if isinstance(value, str) else json.dumps(value)


def _write_text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.startswith("@"):
        return text
    return json.dumps(text, ensure_ascii=False)


def _write_places(at: Iterable[Declaration]) -> str:
    """Return a comment with every place; of one file only the first names it."""
    words: list[str] = []
    last = ""
    for one in dict.fromkeys(at):
        words.append(f":{one.line}" if one.path == last else one_line(one.place))
        last = one.path
    return f"  # {', '.join(words)}" if words else ""


def adopt_tree(root: str) -> list[str]:
    """Return the policy that the site's files amount to, as lines of YAML.

    :param root: The tree; ``/`` for this host, whose kernel is asked as well.
    :raises ValueError: If it is not a directory, a file cannot be parsed, or a policy cannot hold
        all.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is not a directory")
    sections = adopt_sections(root)
    return format_policy((one.section for one in sections), _gather(sections))


def list_left(root: str) -> list[LeftOut]:
    """Return what a policy cannot hold of a tree.

    :raises ValueError: As :func:`adopt_tree`.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is not a directory")
    return list(_gather(adopt_sections(root)))


def _gather(sections: list[Adopted]) -> Iterator[LeftOut]:
    for one in sections:
        yield from one.left


def adopt_sections(root: str) -> list[Adopted]:
    """Return what each section of the policy holds, and what is not in it."""
    adopted = (place.adopt(root) for place in PLACES)
    return [one for one in adopted if one is not None]
