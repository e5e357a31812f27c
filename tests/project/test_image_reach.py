# SPDX-License-Identifier: GPL-3.0-or-later
"""Who judges an image reads its tree alone: nothing of the machine that looks has a say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
CODE = """
import os, sys
sys.path.insert(0, {top!r})
from pathlib import Path
from tests.conftest import load_library
load_library()
from tests.verbs import test_image as images
tree, reached, inside = "", set(), ""
really_open = os.open
def open_below(path, flags, mode=0o777, *, dir_fd=None):
    global inside
    inside = "" if dir_fd is None else os.readlink(f"/proc/self/fd/{{dir_fd}}") + "/"
    try:
        return really_open(path, flags, mode, dir_fd=dir_fd)
    finally:
        inside = ""
os.open = open_below
def hear(event, words):
    if tree and event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.posix_spawn"):
        path = inside + str(words[0])
        if isinstance(words[0], int):
            path = os.readlink(f"/proc/self/fd/{{words[0]}}")
        module = path.endswith((".py", ".pyc", ".so")) or path in sys.path
        module = module or path.startswith(os.path.dirname(os.__file__))
        if not path.startswith(tree) and not module and not path.startswith({top!r}):
            reached.add(event + " " + path)
sys.addaudithook(hear)
look = images.check_host
def listen(policy, options):
    global tree
    tree = options.root
    try:
        return look(policy, options)
    finally:
        tree = ""
images.check_host = listen
for number, (policy, files, _wanted) in enumerate(images.CASES.values()):
    images.check(Path({folder!r}) / str(number), policy, files)
print(number, *reached, sep="\\n")
"""


@pytest.mark.slow
def test_nothing_outside_of_the_tree_is_read(tmp_path: Path) -> None:
    code = CODE.format(top=str(TOP), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    number, *reached = done.stdout.split("\n")[:-1]
    assert int(number) > 40
    assert reached == []
