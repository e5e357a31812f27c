# SPDX-License-Identifier: BSD-2-Clause
"""What a policy says of the kernel: sysctls by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.finding import Requirement
from ..core.reader import Key, UnknownKey, join_names, name_kind, read_quantity, refuse_unknown
from ..core.values import UNLIMITED, NamedTuple

SYSCTL = {
    "min": Key("number", "the least value that passes; a lower one is raised; of several, a list"),
    "max": Key("number", "the highest value that passes; only checked"),
    "exact": Key("line", "the text that it must have, alone"),
}
KEYS = {
    "SYSCTL": Key("number or mapping", "the least that passes; of several, a list", below=SYSCTL)
}
_LINE = r"[ \t]*[!-~][ -~\t]*"  # The kernel's values are ASCII.
_MOST_FIELDS = 16
_SYSCTL_KEY = re.compile(r"[A-Za-z0-9_-]+([./][A-Za-z0-9_:-]+)+")


class KernelValue(NamedTuple):
    """A sysctl: a minimum and a maximum, the exact text it must have, or the least of each number
    that it holds."""

    minimum: int | None = None
    maximum: int | None = None
    exact: str | None = None
    fields: tuple[int, ...] = ()


def read_kernel(raw: object, problems: list[str]) -> dict[str, KernelValue]:
    """Read the section ``kernel``; every violation is added to *problems*."""
    if not isinstance(raw, dict):
        problems.append(f"kernel: {name_kind(raw)} was given; a mapping is accepted")
        return {}
    values: dict[str, KernelValue] = {}
    for key, value in raw.items():
        path = f"kernel.{key}"
        if not isinstance(key, str) or not _SYSCTL_KEY.fullmatch(key):
            told = f"{path}: {key!r} is not a sysctl; accepted are names as fs.file-max"
            problems.append(UnknownKey(told))
        elif isinstance(value, list):
            values[normal_key(key)] = _read_fields(path, value, problems)
        elif isinstance(value, dict):
            values[normal_key(key)] = _read_kernel_bounds(path, value, problems)
        else:
            minimum = read_quantity(path, value, "bytes", problems)
            values[normal_key(key)] = KernelValue(minimum=minimum)
        if values.get(normal_key(str(key)), KernelValue()).minimum == UNLIMITED:
            problems.append(f"{path}: a sysctl has no 'unlimited'; a whole number is accepted")
    return values


def _read_fields(path: str, raw: list[object], problems: list[str]) -> KernelValue:
    """Read the least of each number of a sysctl that holds several, as kernel.sem."""
    read = [read_quantity(f"{path}[{at}]", one, "bytes", problems) for at, one in enumerate(raw)]
    fields = tuple(number for number in read if number is not None)
    if not 2 <= len(raw) <= _MOST_FIELDS:
        problems.append(f"{path}: {len(raw)} numbers were given; 2 to {_MOST_FIELDS} are accepted")
    elif UNLIMITED in fields:
        problems.append(f"{path}: a sysctl has no 'unlimited'; whole numbers are accepted")
    return KernelValue(fields=fields)


def normal_key(key: str) -> str:
    """Return a sysctl's name with dots, as sysctl(8) prints it.

    The first separator decides (sysctl.d(5)): after a slash, slashes separate and dots are
    part of a name, as in ``net/ipv4/conf/eth0.100/forwarding``.
    """
    first = re.search(r"[./]", key)
    if first is None or first[0] == ".":
        return key
    return key.lstrip("/").translate(str.maketrans("./", "/."))


def _read_kernel_bounds(path: str, raw: Mapping[str, object], problems: list[str]) -> KernelValue:
    refuse_unknown(path, raw, SYSCTL, problems)
    if "exact" in raw:
        exact = raw["exact"]
        text = "" if isinstance(exact, bool) else str(exact)
        if len(raw) > 1 or not isinstance(exact, (int, str)) or not re.fullmatch(_LINE, text):
            problems.append(f"{path}: 'exact' stands alone and takes a number or one line of ASCII")
        return KernelValue(exact=" ".join(text.split()))
    fields = raw.get("min")
    if isinstance(fields, list):
        if len(raw) > 1:
            problems.append(f"{path}: a 'min' of several numbers stands alone")
        return _read_fields(f"{path}.min", fields, problems)
    if not raw:
        problems.append(f"{path}: is empty; accepted are {join_names(SYSCTL)}")
    bounds = {name: read_quantity(f"{path}.{name}", raw[name], "bytes", problems) for name in raw}
    low, high = bounds.get("min"), bounds.get("max")
    if low is not None and high is not None and low > high:
        problems.append(f"{path}: min {low} is above max {high}")
    return KernelValue(low, high)


def find_second_names(kernel: object) -> Iterator[str]:
    """Yield the sysctls that are stated under two spellings: one value would be lost."""
    names: dict[object, object] = {}
    for key in kernel if isinstance(kernel, dict) else ():
        first = names.setdefault(_normal(key), key)
        if first != key:
            yield f"kernel.{key}: states the same as kernel.{first}; one of them is accepted"


def with_normal_keys(kernel: object) -> object:
    """Spell the names of sysctls in one way, so that they meet those of a profile."""
    if not isinstance(kernel, dict):
        return kernel
    return {_normal(key): value for key, value in kernel.items()}


def _normal(key: object) -> object:
    return normal_key(key) if isinstance(key, str) else key


def require_kernel(key: str, value: KernelValue) -> Requirement:
    """Return what a policy demands of one sysctl."""
    bounds = (value.minimum, value.maximum, value.exact)
    return Requirement("kernel", key, "value", *bounds, fields=value.fields)
