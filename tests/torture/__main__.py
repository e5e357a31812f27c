# SPDX-License-Identifier: GPL-3.0-or-later
"""Break runs at every point worth it, write ``build/torture.json`` and one line of figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .faults import torture

FILE = Path(__file__).parents[2] / "build" / "torture.json"
STRIDE = 20


def main() -> int:
    figures = torture(STRIDE, slice(None))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    print(", ".join(f"{name} {count}" for name, count in figures.items()))
    return int(any(count for name, count in figures.items() if name != "fault_points"))


if __name__ == "__main__":
    sys.exit(main())
