# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the library as it is: every folder, above those that it imports."""

from __future__ import annotations

from pathlib import Path

from tests.project.test_architecture import LIBRARY, ORDER, imported_files, room_of

TOP = Path(__file__).parents[2]
PICTURE = TOP / "docs" / "images" / "house.svg"
_GROUPS = (
    ("what no place owns", ("core", "host", "write")),
    ("places that others build on", ("kernel", "sessions", "systemd", "containers", "processes")),
    ("places", ("services", "shared_memory", "containerd", "docker", "podman", "crio")),
    ("jobs and nodes", ("slurm", "training", "words", "workspace", "node")),
    ("what is asked", ("verbs",)),
)
_WIDTH, _HEIGHT, _GAP = 150, 54, 12
_FIRST, _FULL = 200, 1180
_TEXT = 'font-family="sans-serif" fill="#1b1f24"'


_SAYS = {
    "core": "values and formats",
    "host": "looks at a host",
    "write": "replaces files",
    "kernel": "sysctls",
    "sessions": "PAM, shells",
    "systemd": "units, managers",
    "containers": "what engines share",
    "processes": "what runs",
    "services": "systemd's services",
    "shared_memory": "/dev/shm",
    "training": "one run",
    "words": "what starts a run",
    "workspace": "folders of a run",
    "node": "load, metrics",
    "containerd": "what pods inherit",
    "docker": "root's and rootless",
    "podman": "root's and users'",
    "crio": "what its files state",
    "slurm": "jobs, steps, logins",
    "verbs": "loops over places.py",
}


def find_imports(name: str) -> list[str]:
    """Return the folders that one imports."""
    paths = [path for path in LIBRARY.rglob("*.py") if room_of(path) == name]
    found = {room_of(target) for path in paths for target in imported_files(path)} - {name}
    return sorted(found, key=ORDER.index)


def draw() -> str:
    """Return the picture: a row for each group, the verbs at the top."""
    height = len(_GROUPS) * (_HEIGHT + 2 * _GAP) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_FULL} {height}" role="img">',
        "<title>The folders of the library</title>",
        f'<rect width="{_FULL}" height="{height}" fill="#ffffff"/>',
    ]
    for row, (title, names) in enumerate(reversed(_GROUPS)):
        top = _GAP + row * (_HEIGHT + 2 * _GAP)
        parts.append(f'<text x="{_GAP}" y="{top + 32}" font-size="13" {_TEXT}>{title}</text>')
        for column, name in enumerate(names):
            parts += _draw_room(name, _FIRST + column * (_WIDTH + _GAP), top)
    return "\n".join([*parts, "</svg>", ""])


def _draw_room(name: str, left: int, top: int) -> list[str]:
    shown = "the library itself" if name == "verbs" else f"{name}/"
    return [
        f"<g><title>{name} imports {', '.join(find_imports(name)) or 'nothing'}</title>",
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#eef4fb"'
        ' stroke="#3b6ea5"/>',
        f'<text x="{left + 10}" y="{top + 23}" font-size="14" font-weight="bold" {_TEXT}>'
        f"{shown}</text>",
        f'<text x="{left + 10}" y="{top + 42}" font-size="11" {_TEXT}>{_SAYS.get(name, "")}</text></g>',
    ]
