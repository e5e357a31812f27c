# SPDX-License-Identifier: BSD-2-Clause
"""Read how many GPUs a container is given, which launchers then count.

Sources: the references of ``docker run --gpus`` and of CDI's ``--device``; the Compose
specification, ``gpus`` and ``deploy.resources.reservations.devices``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .facts import JOB, Fact, Words
from .tree import find, read_line, read_scalar

_DEVICE = re.compile(r"nvidia\.com/gpu=(all|[\w-]+)")
_MOST = re.compile("[0-9]{1,4}")


def read_gpus(texts: Iterable[str], where: str) -> tuple[Fact, ...]:
    """Return how many GPUs options give: ``2``, ``device=0,1``, ``nvidia.com/gpu=0``.

    Of all of them nothing is known here.
    """
    number = 0
    for text in texts:
        device = _DEVICE.fullmatch(text)
        if text.startswith("/dev/"):
            continue
        count = _count("1" if device and device[1] != "all" else text)
        if count is None:
            return ()
        number += count
    return (Fact("gpus.count", number, where, JOB),) if number else ()


def _count(text: str) -> int | None:
    """Return how many a value of ``--gpus`` names; ``None`` for all, and for what is not one."""
    text = text.strip("'\"")
    listed = re.search(r"(?:^|,)\"?device=([^\"]+)", text)
    if listed:
        return listed[1].count(",") + 1
    counted = re.search(r"(?:^|,)count=([0-9]{1,4})(?:,|$)", text)
    text = counted[1] if counted else text
    return int(text) if _MOST.fullmatch(text) else None


def read_gpus_of_service(service: object, path: str) -> Words:
    """Return how many GPUs a service of Compose is given."""
    given, at = read_scalar(find(service, "gpus"))
    if isinstance(given, int) and given > 0:
        return Words((Fact("gpus.count", given, f"{path}:{at}", JOB),))
    named = find(service, "devices")
    found = read_gpus(
        [str(read_scalar(one)[0]) for one in _listed(named)], f"{path}:{read_line(named)}"
    )
    if found:
        return Words(found)
    reserved = find(service, "deploy", "resources", "reservations", "devices")
    gpus = find(service, "gpus")
    number, line = 0, 0
    for device in [*_listed(reserved), *_listed(gpus)]:
        names = [str(read_scalar(one)[0]) for one in _listed(find(device, "capabilities"))]
        if names and not {"gpu", "compute", "nvidia"} & set(names):
            continue
        count, at = read_scalar(find(device, "count"))
        ids = find(device, "device_ids")
        if isinstance(ids, list):
            count, at = len(ids), read_line(ids)
        if not isinstance(count, int) or isinstance(count, bool):
            return Words()  # All of them.
        number, line = number + count, at
    return Words((Fact("gpus.count", number, f"{path}:{line}", JOB),)) if number else Words()


def _listed(node: object) -> list[object]:
    return node if isinstance(node, list) else []
