# SPDX-License-Identifier: BSD-2-Clause
"""Read the flags that the files of a unit give dockerd."""

from __future__ import annotations

from collections.abc import Sequence

from ..host.files import read_text
from ..systemd.unit_file import Setting, parse_environment, parse_environment_file
from ..systemd.unit_read import _find_files, read_unit
from .dockerd_flags import Flag, find_flags


def read_dockerd_flags(root: str = "/", unit: str = "docker.service") -> list[Flag]:
    """Return the flags that the unit's files give dockerd at its next start, with their places.

    :raises ValueError: If a line cannot be split into words.
    """
    return find_unit_flags(read_unit(unit, root), root)


def find_unit_flags(stated: Sequence[Setting], root: str = "/") -> list[Flag]:
    """Return the flags that the settings of a unit give, and the files that they name.

    :raises ValueError: If a line cannot be split into words.
    """
    settings = [setting for setting in stated if setting.section == "Service"]
    environment = {}
    for setting in settings:
        if setting.key == "Environment":
            environment.update({entry.key: entry for entry in parse_environment(setting)})
    for setting in settings:
        if setting.key == "EnvironmentFile":
            for path in _find_files(setting.value.lstrip("-"), root):
                assigned = parse_environment_file(read_text(path, root) or "", path)
                environment.update({entry.key: entry for entry in assigned})
    return find_flags(settings, environment)
