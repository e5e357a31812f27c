# SPDX-License-Identifier: BSD-2-Clause
"""Show the chain from the kernel to a process, link by link, even where nothing is wrong."""

from __future__ import annotations

from .core.cause import Link
from .places import EXPLAINED, PLACES, look_at_host

FORMAT, VERSION = "mlhost.limits/explain", 1
"""The version grows when a reader of the one before would be wrong; keys may be added without."""


def explain(place: str, item: str) -> list[Link]:
    """Return every link that can set one limit of one place, in the order of their words.

    :param item: A limit, or a sysctl where the place is ``kernel``.
    :raises ValueError: If there is no such place or item here.
    """
    look = look_at_host()
    kind, _colon, name = place.partition(":")
    for one in PLACES:
        links = one.explain(kind, name, item, look)
        if links is not None:
            return list(links)
    accepted = ", ".join(EXPLAINED)
    raise ValueError(f"{place!r} is not a place to explain; accepted are {accepted}")


def describe_links(place: str, item: str, links: list[Link]) -> dict[str, object]:
    """Return a chain as docs/explain.schema.json has it."""
    told = [link._asdict() for link in links]
    return {"format": FORMAT, "version": VERSION, "place": place, "item": item, "links": told}
