# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports point one way, the policy library is pure, and no file outgrows its reader."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PLUGINS = TOP / "plugins"
LIBRARY = PLUGINS / "module_utils"
PURE = {
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "csv",
    "ast",
    "difflib",
    "fnmatch",
    "functools",
    "ipaddress",
    "itertools",
    "json",
    "re",
    "reprlib",
    "shlex",
    "struct",
    "types",
    "typing",
    "xml.sax.saxutils",
}
FILES = sorted(PLUGINS.rglob("*.py"))
ORDER = (
    *("core", "host", "write", "kernel", "sessions", "systemd", "containers", "processes"),
    *("services", "shared_memory", "containerd", "docker", "podman", "crio", "slurm", "training"),
    *("words", "why", "heal", "workspace", "node", "watch", "verbs", "plugin"),
)
"""Each folder may import itself and those before it; the verbs lie in the library itself."""
LOOKING = re.compile(
    r"(.+_)?(read|measure|settle|check|diagnose|provision|explain|image|resolve|adopt)"
)
"""What a file is called that looks at a host or writes to one; all others of a place are pure."""
TAG = "SPDX-License-" + "Identifier"  # In two parts, or tools take what follows for a license.
LONGEST_FILE, LONGEST_FUNCTION = 400, 40


def name_of(path: Path) -> str:
    return str(path.relative_to(PLUGINS))


def room_of(path: Path) -> str:
    if LIBRARY not in path.parents:
        return "plugin"
    return "verbs" if path.parent == LIBRARY else path.parent.name


@lru_cache(maxsize=None)
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    """Return every module a file imports, wherever it does; relative ones as absolute paths."""
    found = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


@lru_cache(maxsize=None)
def imported_files(path: Path) -> set[Path]:
    """Return the files of ours that a file imports."""
    found = set()
    for name in imported_modules(path):
        dots = len(name) - len(name.lstrip("."))
        if dots:
            found.add(path.parents[dots - 1].joinpath(*name[dots:].split(".")).with_suffix(".py"))
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    for target in imported_files(path):
        assert target.exists(), f"{name_of(path)} imports the package {target.stem}, not a file"
        assert ORDER.index(room_of(target)) <= ORDER.index(room_of(path)), name_of(target)


def test_no_file_imports_itself_in_a_roundabout_way() -> None:
    waiting = {path: imported_files(path) for path in FILES}
    while waiting:
        free = [path for path, targets in waiting.items() if not targets & set(waiting)]
        assert free, f"these import each other: {sorted(map(name_of, waiting))}"
        for path in free:
            del waiting[path]


PLACES = sorted(path for path in LIBRARY.glob("*/place.py") if path.parent.name != "host")


def test_only_the_registry_knows_the_places() -> None:
    registry = LIBRARY / "places.py"
    assert set(PLACES) <= imported_files(registry)
    assert not [path for path in FILES if path != registry and imported_files(path) & set(PLACES)]


@pytest.mark.parametrize("path", PLACES, ids=name_of)
def test_a_place_loads_nothing_before_it_is_asked(path: Path) -> None:
    """Outside of its methods, but for what a type checker alone reads."""
    loaded = [node for node in parse(path).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {node.module if isinstance(node, ast.ImportFrom) else "re" for node in loaded}
    assert names <= {"__future__", "core.policy", "host.place", "re"}


def test_a_verb_loads_what_it_needs_and_no_more() -> None:
    """Of files and of lines before anything is asked; a place more costs two small files."""
    program = (
        "import sys; from tests.conftest import load_library; load_library();"
        "import mlhost_limits.verbs;"
        "print(*(one.__file__ for name, one in sys.modules.items()"
        " if name.startswith('mlhost_limits') and getattr(one, '__file__', None)))"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=TOP, capture_output=True, check=True, text=True)
    paths = done.stdout.split()
    assert len(paths) <= 55
    assert sum(len(Path(path).read_text(encoding="utf-8").splitlines()) for path in paths) <= 4890


def is_pure(path: Path) -> bool:
    """Tell whether a file may neither look nor write, which its folder and its name say."""
    room = room_of(path)
    if room in ("host", "write", "verbs", "plugin") or path.name == "__init__.py":
        return False
    return room == "core" or not LOOKING.fullmatch(path.stem)


@pytest.mark.parametrize("path", [one for one in FILES if is_pure(one)], ids=name_of)
def test_what_is_pure_by_its_name_neither_reads_nor_writes(path: Path) -> None:
    outside = {name for name in imported_modules(path) if not name.startswith(".")}
    assert outside <= PURE
    called = {node.id for node in ast.walk(parse(path)) if isinstance(node, ast.Name)}
    assert not called & {"open", "print", "input", "exec", "eval", "__import__"}
    if path.name != "place.py":
        looks = [one for one in imported_files(path) if not is_pure(one)]
        assert not looks, [name_of(one) for one in looks]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_says_what_it_is_and_under_which_licence(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    license = "BSD-2-Clause" if LIBRARY in path.parents else "GPL-3.0-or-later"
    assert re.findall(rf"^# {TAG}: (.*)$", text, re.MULTILINE) == [license]
    assert ast.get_docstring(parse(path))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_too_long_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(parse(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert not long


@pytest.mark.parametrize(
    "path",
    [*TOP.glob("roles/*/*/*.yml"), *TOP.glob("playbooks/*.yml"), *TOP.glob("tests/**/*.py")],
    ids=lambda path: str(path.relative_to(TOP)),
)
def test_everything_around_the_library_is_under_the_gpl(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or f"{TAG}: GPL-3.0-or-later" in text
