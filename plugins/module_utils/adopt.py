# SPDX-License-Identifier: BSD-2-Clause
"""Read what a site's own files state on a host, or in a tree, and make a policy of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .core.adopted import Adopted, LeftOut
from .core.policy_text import format_policy
from .places import PLACES


def adopt_tree(root: str) -> list[str]:
    """Return the policy that the site's files amount to, as lines of YAML.

    :param root: The tree; ``/`` for this host, whose kernel is asked as well.
    :raises ValueError: If it is no folder, or a file cannot be parsed.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is no folder")
    sections = adopt_sections(root)
    return format_policy((one.section for one in sections), _gather(sections))


def _gather(sections: list[Adopted]) -> Iterator[LeftOut]:
    for one in sections:
        yield from one.left


def adopt_sections(root: str) -> list[Adopted]:
    """Return what each section of the policy holds, and what is not in it."""
    adopted = (place.adopt(root) for place in PLACES)
    return [one for one in adopted if one is not None]
