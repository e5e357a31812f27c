# SPDX-License-Identifier: GPL-3.0-or-later
"""Break runs at every point worth it, write ``build/torture.json``, end with one line of figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .faults import FIGURES, torture
from .power import cut_power

FILE = Path(__file__).parents[2] / "build" / "torture.json"
STRIDE = 60
EVERY = 2


def main() -> int:
    broken, cut = torture(STRIDE, slice(None)), cut_power(EVERY)
    figures = {name: broken[name] + cut[name] for name in FIGURES}
    figures["power_cuts"] = cut["fault_points"]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    print(f"torture: {', '.join(f'{count} {name}' for name, count in figures.items())}; {FILE}")
    return int(any(figures[name] for name in FIGURES if name != "fault_points"))


if __name__ == "__main__":
    sys.exit(main())
