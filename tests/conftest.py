# SPDX-License-Identifier: GPL-3.0-or-later
"""Make ``import mlhost_limits`` mean the files that Ansible ships, without installing anything."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

LIBRARY = Path(__file__).parents[1] / "plugins" / "module_utils"


def load_library(name: str = "mlhost_limits") -> None:
    """Load the package under the name that its wheel gives it."""
    spec = importlib.util.spec_from_file_location(
        name, LIBRARY / "__init__.py", submodule_search_locations=[str(LIBRARY)]
    )
    assert spec
    assert spec.loader
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


load_library()
settings.register_profile("patient", deadline=None)  # Other work on the machine is not a failure.
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what only root can do."""
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="needs root")
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(skip)
