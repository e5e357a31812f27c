# SPDX-License-Identifier: GPL-3.0-or-later
"""Put something in the place of what a module of the library has."""

from __future__ import annotations

import importlib
import sys
from typing import Any

PACKAGE = "mlhost_limits"


def find_module(name: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.{name}")


def replace(module: str, name: str, value: Any) -> None:
    """Put something in the place of what a module has, and of what others took from there.

    :raises AttributeError: If it has nothing of that name: a guard that moved stands as it did.
    """
    found = find_module(module)
    old = getattr(found, name)
    setattr(found, name, value)
    for other in [one for key, one in sys.modules.items() if key.startswith(PACKAGE)]:
        if getattr(other, name, None) is old:
            setattr(other, name, value)
