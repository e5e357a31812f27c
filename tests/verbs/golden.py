# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole results of the verbs on made-up hosts, kept as JSON beside this file.

``python -m tests.verbs.golden`` writes them anew; look at what git says changed. A change that
only moves code changes none of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from .. import conftest

FOLDER = Path(__file__).with_name("golden")


def format_record(told: Any) -> str:
    """Return what is kept of a result."""
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def read_record(name: str) -> str:
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def main() -> int:
    """Write every record, and say which changed."""
    from .records import RECORDS

    FOLDER.mkdir(exist_ok=True)
    for name, record in RECORDS.items():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            text = format_record(record(Path(folder)))
        path = FOLDER / f"{name}.json"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"changed: {path.name}")
            path.write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.json"):
        if path.stem not in RECORDS:
            path.unlink()
    return 0


if __name__ == "__main__":
    assert conftest.LIBRARY.is_dir()
    sys.exit(main())
