# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of the library that can be taken out, to show that an attack works without them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any


def _replace(module: str, name: str, value: Any) -> None:
    setattr(importlib.import_module(f"mlhost_limits.{module}"), name, value)


def read_through_links() -> None:
    """Read a user's daemon.json through links, whoever made them."""

    def read(path: str, _uid: int) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    _replace("docker.rootless_read", "read_owned", read)


def follow_every_link() -> None:
    """Follow links on the way to a directory, whoever made them."""

    def read(link: int, _path: str, _owner: int, _count: int) -> str:
        return os.readlink("", dir_fd=link)

    _replace("host.open_directory", "_read_link", read)


def write_anywhere() -> None:
    """Make a workspace wherever its path leads."""
    _replace("workspace.settle", "find_target", os.path.realpath)


def print_every_byte() -> None:
    """Print what a user wrote as it is."""
    _replace("cli", "clean", lambda text: text)


GUARDS: dict[str, Callable[[], None]] = {
    "read_owned": read_through_links,
    "open_directory": follow_every_link,
    "clean": print_every_byte,
    "find_target": write_anywhere,
}
