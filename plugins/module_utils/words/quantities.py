# SPDX-License-Identifier: BSD-2-Clause
"""Read the numbers that people write: ``64M``, ``1.5GiB``, ``7B``, ``8``, ``1e3``, ``yes``."""

from __future__ import annotations

import re

from ..core.quote import quote

_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"([0-9]{1,18})(\.[0-9]{1,6})? ?([kmgt]?)(i?b?)", re.IGNORECASE)
_POD = re.compile(r"([0-9]{1,18})(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti|[eE]\+?[0-9]{1,2})?")
_DECIMAL = {"m": 0.001, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_POD_UNITS = {"": 1.0, **_DECIMAL, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_COUNT = re.compile(r"([0-9]{1,18})(\.[0-9]{1,9})?([eE]\+?[0-9]{1,2})?")
_PARAMETERS = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([KMBT])")
_OF_PARAMETERS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_YES = ("true", "yes", "on", "1", "y", "t")
_NO = ("false", "no", "off", "0", "n", "f")
_MOST = 2**63 - 1


def parse_size(text: str, unit: int = 1) -> int:
    """Return the bytes of a size as people write it; ``64M``, ``64MB`` and ``64MiB`` are the same.

    So Docker, Slurm and torch's users mean them, and the larger meaning is the safe one.

    :param unit: The bytes of a number without a unit, such as 2**20 for Slurm's.
    :raises ValueError: If it is not one.

    >>> parse_size("1.5GiB") == 3 * 2**29
    True
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{quote(text)} is not a size; a number with KiB, MiB, GiB or TiB is accepted"
        )
    factor = _BINARY[match[3].lower()] if match[3] else 1 if match[4] else unit
    size = int(float(match[1] + match[2]) * factor) if match[2] else int(match[1]) * factor
    if size > _MOST:
        raise ValueError(f"{quote(text)} is not a size; the largest is 2**63 - 1 bytes")
    return size


def parse_pod_quantity(text: str) -> float:
    """Return a quantity of Kubernetes: ``500m``, ``2``, ``64Gi``, and ``64G``, which is 64e9.

    :raises ValueError: If it is not one.
    """
    match = _POD.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{quote(text)} is not a quantity of Kubernetes; such as 2, 500m, 64Gi")
    number, unit = match[1] + (match[2] or ""), match[3] or ""
    if unit[:1] in ("e", "E"):
        return float(number + unit)
    return float(number) * _POD_UNITS[unit]


def parse_count(value: object) -> int:
    """Return a whole number from 0 on; ``7e9``, ``8.0`` and ``7B`` are some.

    :raises ValueError: If it is not one.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    text = value.strip().replace("_", "") if isinstance(value, str) else ""
    match, named = _COUNT.fullmatch(text), _PARAMETERS.fullmatch(text)
    number = float(text) if match and (match[2] or match[3]) else int(text) if match else None
    if named:
        number = float(named[1]) * _OF_PARAMETERS[named[2]]
    if number is None or number != int(number) or number > _MOST:
        raise ValueError(f"{quote(value)} is not a whole number")
    return int(number)


def parse_switch(value: object) -> bool:
    """Return true or false, as scripts take them.

    :raises ValueError: If it is neither.
    """
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in (*_YES, *_NO):
        return text in _YES
    raise ValueError(f"{quote(value)} was given; true or false is accepted")


def find_parameters(name: str) -> int | None:
    """Return the number of parameters that a model's name tells: ``Llama-2-7b-hf`` has 7e9."""
    found = re.findall(
        r"(?<![A-Za-z0-9.])([0-9]{1,4}(?:\.[0-9]{1,2})?)([bBmM])(?![A-Za-z0-9])", name
    )
    if not found:
        return None
    number, unit = found[-1]
    return int(float(number) * _OF_PARAMETERS[unit.upper()])
