# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing in the library opens a file, a folder, a socket or a program but who is named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
OPENERS = {
    "open", "io.open", "os.open", "os.fdopen", "os.listdir", "os.scandir", "os.walk", "os.fwalk",
    "glob.glob", "glob.iglob", "mmap.mmap", "socket.socket", "connect", "shutil.copy",
    "shutil.copytree", "shutil.rmtree", "shutil.move", "tempfile.mkdtemp", "tempfile.mkstemp",
    "tempfile.TemporaryFile", "tempfile.NamedTemporaryFile",
}  # fmt: skip
STARTERS = {
    "subprocess.run", "subprocess.Popen", "subprocess.call", "os.system", "os.popen", "os.execve",
    "os.execv", "os.execvp", "os.posix_spawn", "os.fork",
}  # fmt: skip
MAY_OPEN = {
    "probe/door.py": "the door itself",
    # What runs as the user whose the directory is, inside of folders that it holds open.
    **dict.fromkeys(
        (
            "probe/cache_files.py",
            "probe/directory.py",
            "probe/keeper.py",
            "probe/open_directory.py",
            "probe/output.py",
            "probe/proofs.py",
            "probe/trial_folder.py",
            "apply/quarantine.py",
            "apply/workspace.py",
        ),
        "folders of users, by descriptor",
    ),
    # What writes or removes files of ours, in folders of root's or of this run.
    **dict.fromkeys(
        (
            "apply/docker.py",
            "apply/kernel.py",
            "apply/lock.py",
            "apply/rehearsal.py",
            "apply/replace.py",
            "apply/slurm.py",
            "apply/temporary.py",
            "apply/textfile.py",
            "kept.py",
            "node_health.py",
            "probe/cgroup_cage.py",
            "probe/containerd.py",
            "probe/pam_services.py",
            "probe/podman_canary.py",
            "probe/removal.py",
            "probe/scratch.py",
        ),
        "files of ours",
    ),
    "probe/own_sections.py": "the names of our own records",
    "probe/policy_file.py": "the policy that the caller names, by descriptor",
    "install_monitor.py": "the files that it has written",
    "probe/node_state.py": "the state that it has written, of root's alone",
    "probe/as_user.py": "the audit identity of this very process",
    "probe/children.py": "/dev/null",
    "probe/files.py": "a folder that the door has opened",
    "probe/libpam.py": "the control group of this very process, in a session without memory",
    "probe/process_clues.py": "the program of a process, as that process's user",
    "watch.py": "the descriptors of this very process",
    "zipapp.py": "the library's own files",
}
MAY_START = {
    "check_within.py": "the look, which is this library",
    "guarded.py": "a task of this library",
    "probe/as_user.py": "a user's child",
    "probe/children.py": "a task of this library",
    "probe/podman_canary.py": "podman, as whose container it is",
    "probe/program.py": "a program by its path",
    "probe/proofs.py": "a second process of the same trial",
    "probe/slurm.py": "programs of Slurm, as root",
    "probe/slurm_job.py": "srun, as the user",
}
FILES = sorted(path for path in LIBRARY.rglob("*.py") if "policy" not in path.parts)


def find_calls(path: Path, names: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in names or (name.rpartition(".")[2] == "connect" and "connect" in names):
                yield f"line {node.lineno}: {name}"


def name_of(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_who_is_named_opens_or_starts(path: Path) -> None:
    for names, allowed in ((OPENERS, MAY_OPEN), (STARTERS, MAY_START)):
        found = list(find_calls(path, names))
        if name_of(path) in ("probe/docker.py", "probe/session_base.py", "probe/canary_key.py"):
            found = [one for one in found if not one.endswith(": connect")]  # The door's.
        assert not found or name_of(path) in allowed, found


@pytest.mark.parametrize(
    ("allowed", "names"), [(MAY_OPEN, OPENERS), (MAY_START, STARTERS)], ids=["open", "start"]
)
def test_nobody_is_named_in_vain(allowed: dict[str, str], names: set[str]) -> None:
    assert [name for name in allowed if not list(find_calls(LIBRARY / name, names))] == []
