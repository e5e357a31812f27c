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
    "host/door.py": "the door itself",
    # What runs as the user whose the directory is, inside of folders that it holds open.
    **dict.fromkeys(
        (
            "training/cache_look_read.py",
            "training/cache_open_read.py",
            "training/cache_read.py",
            "training/checkpoint_folder_read.py",
            "training/folder_measure.py",
            "host/open_directory.py",
            "training/output_check.py",
            "training/proofs_measure.py",
            "host/trial_folder.py",
            "workspace/settle.py",
        ),
        "folders of users, by descriptor",
    ),
    # What writes or removes files of ours, in folders of root's or of this run.
    **dict.fromkeys(
        (
            "docker/settle.py",
            "kernel/settle.py",
            "write/lock.py",
            "sessions/settle.py",
            "write/replace.py",
            "slurm/settle.py",
            "write/temporary.py",
            "kept.py",
            "kept_folder.py",
            "node_health.py",
            "host/cgroup_cage.py",
            "containerd/measure.py",
            "sessions/pam_read.py",
            "podman/measure.py",
            "host/scratch.py",
            "saving.py",
        ),
        "files of ours",
    ),
    "audit_files.py": "results and reports that the caller names",
    "streams.py": "/dev/null",
    "docker/made_read.py": "the names of our own records",
    "host/policy_file.py": "the policy that the caller names, by descriptor",
    "words/files_read.py": "the names in the folder of a run, as the user whose it is",
    "install_monitor.py": "the files that it has written",
    "node/state_read.py": "the state that it has written, of root's alone",
    "host/leave_root.py": "the audit identity of this very process",
    "host/children.py": "/dev/null",
    "host/files.py": "a folder that the door has opened",
    "sessions/libpam_measure.py": "the control group of this very process, in a session without memory",
    "processes/read.py": "the program of a process, as that process's user",
    "training/guard_read.py": "what this very process uses",
    "why/host_read.py": "the kernel's own log",
    "heal/settle.py": "the mounts of a container, from inside, without following a link there",
    "watch/ends_read.py": "the kernel's own tale of how processes end",
    "watch/events_read.py": "the kernel's trigger of memory pressure",
    "watch/run_measure.py": "/dev/null",
    "node/zipapp_read.py": "the library's own files",
    "training/confine_measure.py": "a program of its own, as who runs the script that it tries",
    "training/loader_hook_measure.py": "what this very process uses, and its report in a trial",
}
MAY_START = {
    "check_within.py": "the look, which is this library",
    "host/guarded.py": "a task of this library",
    "host/as_user.py": "a user's child",
    "host/children.py": "a task of this library",
    "podman/measure.py": "podman, as whose container it is",
    "host/program.py": "a program by its path",
    "training/proofs_measure.py": "a second process of the same trial",
    "training/confine_measure.py": "the command of a run that is tried, as who runs it",
    "watch/run_measure.py": "the command that is watched, as who asks",
    "slurm/read.py": "programs of Slurm, as root",
    "slurm/measure.py": "srun, as the user",
}
FILES = sorted(LIBRARY.rglob("*.py"))


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
        if name_of(path) in (
            "docker/api_read.py",
            "sessions/base_read.py",
        ):
            found = [one for one in found if not one.endswith(": connect")]  # The door's.
        assert not found or name_of(path) in allowed, found


@pytest.mark.parametrize(
    ("allowed", "names"), [(MAY_OPEN, OPENERS), (MAY_START, STARTERS)], ids=["open", "start"]
)
def test_nobody_is_named_in_vain(allowed: dict[str, str], names: set[str]) -> None:
    assert [name for name in allowed if not list(find_calls(LIBRARY / name, names))] == []
