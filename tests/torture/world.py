# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of our own to break: a private /etc and one private running value, on this kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LIBRARY = Path(__file__).parents[2] / "plugins" / "module_utils"
RUN = Path(__file__).with_name("one_run.py")
TEMPORARY = ".mlhost-"
_LIMIT = 120.0

FOREIGN = {
    "security/limits.conf": b"# of the distribution\r\n* soft nofile 800\n@users - nofile 850\n#end",
    "security/limits.d/10-site.conf": b"* hard memlock 64\n",
    "security/limits.d/95-late.conf": b"*\tsoft  nofile 700\n\xff\nroot - core 0\n",
    "sysctl.d/99-late.conf": b"vm.max_map_count = 70000\n",
    "docker/daemon.json": b'{\r\n\t"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},\r\n'
    b'\t"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 512, "Soft": 512}}\r\n}',
}
_ALICE = {
    "passwd": "alice:x:59999:59999::/:/bin/sh\n",
    "group": "alice:x:59999:\n",
    "shadow": "alice:*:19000:0:99999:7:::\n",
}
_FOLDERS = ("security", "sysctl.d", "docker", "../var/lib/mlhost-limits")
State = dict[str, bytes]
"""Files by their path relative to /etc."""


class Result(NamedTuple):
    """How a run ended: its status (negative for a signal) and what it printed, if anything."""

    status: int
    said: dict[str, object]


class World:
    """A folder that stands for /etc and one for /var/lib; each run sees it, and its own /proc/sys/vm/max_map_count.

    Runs happen in mount namespaces of their own. This machine's files are never written.
    """

    def __init__(self, folder: Path, state: State | None = None) -> None:
        """Copy this machine's /etc, whose PAM stacks and users are real."""
        self.etc = folder / "etc"
        self.library = folder / "library"
        self.run_folder = folder / "run"
        self.kept = folder / "var" / "lib"
        self.map_count = folder / "max_map_count"
        self.run_folder.mkdir(parents=True)
        shutil.copytree("/etc", self.etc, symlinks=True, ignore_dangling_symlinks=True)
        shutil.copytree(LIBRARY, self.library / "mlhost_limits")
        shutil.copy(RUN, self.library)
        for name, line in _ALICE.items():
            with (self.etc / name).open("a") as file:
                file.write(line)
        self.reset(FOREIGN if state is None else state)

    def reset(self, state: State) -> None:
        """Make the files of this state the only ones; every inode is a new one."""
        for name in _FOLDERS:
            shutil.rmtree(self.etc / name, ignore_errors=True)
            (self.etc / name).mkdir(parents=True)
        (self.etc / "security/limits.d").mkdir()
        for name, content in state.items():
            (self.etc / name).parent.mkdir(parents=True, exist_ok=True)
            (self.etc / name).write_bytes(content)
        self.map_count.write_bytes(b"65530\n")

    def read(self) -> State:
        """Return every file that a run may write, temporary ones too."""
        return {
            os.path.normpath(path.relative_to(self.etc)): path.read_bytes()
            for name in _FOLDERS
            for path in sorted((self.etc / name).rglob("*"))
            if path.is_file()
        }

    def run(self, state: str = "present", tracer: tuple[str, ...] = ()) -> Result:
        """Provision once.

        :param tracer: A command line of strace that the run is the rest of.
        """
        script = (
            f"mount --bind {self.etc} /etc; mount --bind {self.run_folder} /run;"
            f" mount --bind {self.kept} /var/lib;"
            f' mount --bind {self.map_count} /proc/sys/vm/max_map_count; exec "$@"'
        )
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-ec", script, "sh", *tracer]
            + [sys.executable, "-S", str(self.library / RUN.name), state],
            env={**os.environ, "PYTHONPATH": str(self.library), "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
        lines = done.stdout.splitlines()
        said = json.loads(lines[-1]) if lines else {"stderr": done.stderr.decode()[-400:]}
        return Result(done.returncode, said)

    def find_closed(self) -> list[str]:
        """Return the sessions that do not open now, with the reasons."""
        result = self.run("sessions")
        closed = result.said.get("closed", [f"nothing can be measured: {result}"])
        return [str(reason) for reason in closed] if isinstance(closed, list) else [str(closed)]

    def find_leftovers(self) -> list[str]:
        """Return the temporary files of ours, in /etc and in /run."""
        mine = [name for name in self.read() if TEMPORARY in name]
        return mine + [path.name for path in self.run_folder.glob("mlhost-limits-*")]
