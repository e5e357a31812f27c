# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the last words of every case; write ``build/why.json``, end with a line of figures."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import load_library

load_library()

from .judge import (
    OPEN,
    RIGHT,
    WRONG,
    Judged,
    is_limit,
    judge_all,
    judge_all_on_host,
)

FILE = Path(__file__).parents[2] / "build" / "why.json"


def main() -> int:
    told = {"words": count(list(judge_all())), "host": count(list(judge_all_on_host()))}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(told, indent=1) + "\n")
    for name, figures in told.items():
        print(f"why, by {name}:", ", ".join(f"{key} {value}" for key, value in figures.items()))
    return 1 if any(one["wrong"] or one["wrong_blame"] for one in told.values()) else 0


def count(judged: list[Judged]) -> dict[str, int]:
    """Return the figures of one way of asking, and print what is not right."""
    for one in judged:
        if one.outcome != RIGHT:
            print(f"{one.outcome:6} {one.case.name}: {one.case.expected}; told {one.told}")
    counts = {name: sum(one.outcome == name for one in judged) for name in (RIGHT, OPEN, WRONG)}
    others = [one for one in judged if not is_limit(one.case)]
    return {
        "cases": len(judged),
        **counts,
        "sure": sum(one.is_sure for one in judged),
        "pairs": sum(bool(one.case.pair) for one in judged),
        "no_limit": len(others),
        "no_limit_right": sum(one.outcome == RIGHT for one in others),
        "wrong_blame": sum(one.blames for one in judged),
    }


raise SystemExit(main())
