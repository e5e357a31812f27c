# SPDX-License-Identifier: BSD-2-Clause
"""The command that raises a sysctl and never lowers it, whatever was raised before it."""

from __future__ import annotations

from ..core.cause import RAISES


def raise_now(key: str, value: int) -> tuple[str, ...]:
    """Return a command that gives a sysctl a value at least.

    Of several findings each may ask for another: whoever runs all that is printed, in whatever
    order, ends with the highest.
    """
    script = f'{RAISES}{key.replace(".", "/")})" -ge {value} ] || sysctl -w {key}={value}'
    return ("sh", "-c", script)
