# SPDX-License-Identifier: BSD-2-Clause
"""Prepare the sections whose daemons must be told; what a policy does not ask for is not loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .host.place import Place
from .places import PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.plan import Section
    from .core.policy import Policy
    from .core.provision_options import Options

FIRST = ("kernel", "sessions")
"""What :mod:`provision` plans itself: all others depend on them."""


def list_folders(policy: Policy) -> list[str]:
    """Return the folders in which files of these sections may be replaced."""
    stated = (place for place in _list_others() if place.name in policy.asked)
    return [folder for place in stated for folder in place.list_folders()]


def prepare_others(policy: Policy, options: Options, nr_open: int | None) -> Iterator[Section]:
    """Yield what the sections need; what an earlier run made and nobody asks for is taken back.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    for place in _list_others():
        if not options.wants(place.name):
            continue
        if place.name in policy.asked:
            yield place.prepare(policy, options, nr_open)
        elif place.is_made("/"):
            gone = place.prepare(policy, options._replace(absent=True), nr_open)
            yield gone._replace(in_effect=())


def _list_others() -> Iterator[Place[Any]]:
    return (place for place in PLACES if place.is_provisioned and place.name not in FIRST)


def find_foretold(policy: Policy) -> list[str]:
    """Return the sections of a policy of which files say what a boot will give."""
    written = [place for place in PLACES if place.is_provisioned and place.name in policy.asked]
    return [place.name for place in written if type(place).foresee is not Place.foresee]
