# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the demo, keep what it prints and when (asciicast v2), and draw it as an animated picture.

``python -m tests.film`` records docs/images/demo.cast anew and draws docs/images/demo.svg of it;
with the word ``draw`` it draws what was recorded.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from html import escape
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CAST, FILM = IMAGES / "demo.cast", IMAGES / "demo.svg"
COLUMNS, ROWS = 80, 26
LONGEST_WAIT, SHORTEST_WAIT, LAST_WAIT = 1.6, 0.09, 6.0
"""Seconds: what a viewer is asked to wait for a line, at most and at least, and at the end."""

LINE_HEIGHT, WIDTH, MARGIN = 18, 712, 14
_STYLE = """\
  <style>
    .back { fill: #0d1117; }
    text { font: 13.5px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace;
      fill: #c9d1d9; white-space: pre; }
    .bad { fill: #ff7b72; }
    .good { fill: #56d364; }
    .command { fill: #79c0ff; font-weight: 600; }
    .title { fill: #ffffff; font-weight: 600; }
    .dim { fill: #8b949e; }
    .rows { animation: scroll %(seconds)gs step-end infinite; transform: translateY(%(end)gpx); }
    @media (prefers-reduced-motion: reduce) { .rows { animation: none; } }
    @keyframes scroll {
%(frames)s
    }
  </style>"""
_KINDS = (
    (re.compile(r"-|\d+ {2,}\S|\S+: \d+ of \d+ requirements? falls? short"), "bad"),
    (re.compile(r"\+|ok|     fix  |\S+: \d+ of \d+ requirements? (is|are) met"), "good"),
    (re.compile(r"\$ "), "command"),
    (re.compile(r"\d\. |     all of them at once|Red to green"), "title"),
    (re.compile(r"=|     why  |@@|TASK|PLAY"), "dim"),
)


def record() -> None:
    """Run the demo and write what it prints, each line with its second."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "tests.demo"], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    start = time.monotonic()
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "make demo"}
    rows = [json.dumps(header)]
    assert process.stdout
    for line in process.stdout:
        rows.append(json.dumps([round(time.monotonic() - start, 2), "o", line]))
        print(line, end="", flush=True)
    if process.wait():
        raise SystemExit("film: the demo failed")
    CAST.write_text("\n".join(rows) + "\n")


def draw(cast: str) -> str:
    """Return the picture: one column of all rows, which moves up as they come."""
    events = [json.loads(row) for row in cast.splitlines()[1:]]
    times = [float(at) for at, _kind, _text in events]
    lines = [str(text).rstrip("\n") for _at, _kind, text in events]
    waits = [min(LONGEST_WAIT, max(SHORTEST_WAIT, b - a)) for a, b in zip(times, times[1:])]
    seconds = sum(waits) + LAST_WAIT
    frames, now = [], 0.0
    for number, wait in enumerate([*waits, LAST_WAIT], start=1):
        place = (ROWS - number) * LINE_HEIGHT
        frames.append(f"      {100 * now / seconds:.3f}% {{ transform: translateY({place}px); }}")
        now += wait
    style = _STYLE % {
        "seconds": round(seconds, 2),
        "end": (ROWS - len(lines)) * LINE_HEIGHT,
        "frames": "\n".join(frames),
    }
    height = ROWS * LINE_HEIGHT + 2 * MARGIN
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "  <title>make demo: a fresh host, checked, provisioned, and checked again</title>",
        style,
        f'  <rect class="back" width="{WIDTH}" height="{height}" rx="8"/>',
        f'  <svg x="{MARGIN}" y="{MARGIN}" width="{WIDTH - 2 * MARGIN}" height="{ROWS * LINE_HEIGHT}">',
        '    <g class="rows">',
        *(_draw_row(number, line) for number, line in enumerate(lines) if line),
        "    </g>",
        "  </svg>",
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _draw_row(number: int, line: str) -> str:
    kind = next((kind for pattern, kind in _KINDS if pattern.match(line)), "")
    mark = f' class="{kind}"' if kind else ""
    y = (number + 1) * LINE_HEIGHT - 5
    return f'<text{mark} y="{y}" xml:space="preserve">{escape(line[:COLUMNS])}</text>'


def main() -> int:
    """Record the demo, unless what was recorded shall be drawn."""
    if sys.argv[1:] != ["draw"]:
        record()
    FILM.write_text(draw(CAST.read_text()))
    print(f"{FILM}: {FILM.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
