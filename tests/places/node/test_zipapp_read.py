# SPDX-License-Identifier: GPL-3.0-or-later
"""The library in one file: the same bytes each time, whole, and right on another Python too."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mlhost_limits.node.zipapp_read import build_zipapp, is_of, read_library

FILES = {"__init__.py": b"", "cli.py": b"def main():\n    return 7\n", "policy/a.py": b"x = 1\n"}
PYTHON = sys.executable


def test_it_holds_every_file_of_the_library() -> None:
    top = Path(__file__).parents[3] / "plugins" / "module_utils"
    names = {path.relative_to(top).as_posix() for path in top.rglob("*.py")}
    assert set(read_library()) == names


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from mlhost_limits.node.zipapp_read import build_zipapp, read_library\n"
        "import hashlib\n"
        "print(hashlib.sha256(build_zipapp(read_library(), '/usr/bin/python3')).hexdigest())\n"
    )
    (tmp_path / "mlhost_limits").symlink_to(Path(__file__).parents[3] / "plugins" / "module_utils")
    told = set()
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        words = [PYTHON, "-c", code, str(tmp_path)]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        told.add(subprocess.check_output(words, env=environment))
    assert len(told) == 1


@pytest.mark.parametrize("compiles", [True, False])
def test_it_runs_by_itself(tmp_path: Path, compiles: bool) -> None:
    program = tmp_path / "x.pyz"
    program.write_bytes(build_zipapp(FILES, PYTHON, compiles))
    program.chmod(0o755)
    assert subprocess.run([program]).returncode == 7


def test_bytecode_of_another_python_is_passed_over(tmp_path: Path) -> None:
    built = build_zipapp(FILES, PYTHON)
    with zipfile.ZipFile(io.BytesIO(built)) as old, zipfile.ZipFile(tmp_path / "x", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, b"\0" * 4 + content[4:] if name.endswith("c") else content)
    assert subprocess.run([PYTHON, tmp_path / "x"]).returncode == 7


def test_what_is_there_is_known_again() -> None:
    built = build_zipapp(FILES, PYTHON)
    assert is_of(built, built)
    assert not is_of(b"", built)
    assert not is_of(built[:-30], built)
    assert not is_of(build_zipapp(FILES, PYTHON, compiles=False), built)
    assert not is_of(build_zipapp(FILES, "/usr/bin/python9"), built)
    assert not is_of(
        build_zipapp({**FILES, "cli.py": b"def main():\n    return 8\n"}, PYTHON), built
    )
    damaged = built.replace(b"return 7", b"return 9").replace(b"\x07", b"\x08")
    assert not is_of(damaged, built)
