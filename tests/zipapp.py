# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the one file that holds the whole command; the same bytes of the same sources."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

LIBRARY = Path(__file__).parents[1] / "plugins" / "module_utils"

INTERPRETER = "/usr/bin/python3"
"""What Debian, Ubuntu, Fedora and SUSE have there; any other runs the file as its argument."""


def build() -> bytes:
    """Return the archive: every source, and the parts of the page."""
    ours = _load_builder()
    parts = {f"page/{one.name}": one.read_bytes() for one in (LIBRARY / "page").iterdir()}
    built: bytes = ours.build_zipapp({**ours.read_library(), **parts}, INTERPRETER, compiles=False)
    return built


def _load_builder() -> ModuleType:
    """Load the one file that is needed, so that whoever installs needs no tools of development."""
    spec = importlib.util.spec_from_file_location("zipapp_read", LIBRARY / "node/zipapp_read.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zipapp", description=__doc__)
    parser.add_argument("file", type=Path, help="where to write it")
    path = parser.parse_args().file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build())
    path.chmod(0o755)
    print(f"{path}: {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
