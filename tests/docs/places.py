# SPDX-License-Identifier: GPL-3.0-or-later
"""Where commands of the documents run: on a reader's machine, and on the host it reaches."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.host import guest
from tests.host.connection import Host
from tests.host.library import FOLDER, carry

from .plan import TOP, Step, find_files
from .table import DOCUMENTS, MACHINE, Document

SECONDS = 1800
"""A command that takes longer hangs; a busy machine may take much of it."""
_NOT_COPIED = ("build", ".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", ".coverage*")
_COMMAND = "/usr/local/bin/mlhost-limits"
_LAUNCHER = f'#!/bin/sh\nPYTHONPATH={FOLDER} exec python3 -m mlhost_limits.cli "$@"\n'


class Outcome(NamedTuple):
    """What a command ended with, and all that it printed."""

    status: int
    printed: str


class Machine:
    """The one guest of a run: stock for every document, replaced after those that change it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._used_by: list[str] = []
        self._host: Host | None = None
        self._end = ExitStack()

    def host_for(self, path: str) -> Host:
        """Return the guest, prepared for a document."""
        if self._host is None or self._is_spent(path):
            self.stop()
            self._host = self._end.enter_context(guest.running(name=self.name))
            carry(self._host, {"yaml": Path(yaml.__file__).parent})
            self._host.run(f"cat > {_COMMAND}; chmod 0755 {_COMMAND}", input=_LAUNCHER)
        if path not in self._used_by:
            self._used_by.append(path)
            self._prepare(self._host, path)
        return self._host

    def _is_spent(self, path: str) -> bool:
        used = [other for other in self._used_by if other != path]
        return any(DOCUMENTS.get(other, Document()).changes_machine for other in used)

    def _prepare(self, host: Host, path: str) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, text in {**MACHINE, **find_files(path)}.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        folder = shlex.quote(folder_of(path))
        subprocess.run(
            [*host.shared_command(), f"mkdir -p {folder} && tar -xz -C {folder}"],
            input=packed.getvalue(),
            check=True,
            timeout=SECONDS,
        )

    def run(self, step: Step, script: str) -> Outcome:
        """Run a script on the guest, as root, where the files of the document are."""
        host = self.host_for(step.path)
        words = f"cd {shlex.quote(folder_of(step.path))}; export PYTHONPATH={FOLDER}\n{script}"
        done = host.run(f"bash -c {shlex.quote(words)} 2>&1", check=False, timeout=SECONDS)
        return Outcome(done.returncode, done.stdout + done.stderr)

    def leave(self) -> None:
        """End the guest, if it runs, for a document that starts guests itself: one at a time."""
        if self._host is not None:
            self.stop()

    def stop(self) -> None:
        """End the guest; one of its name, too, that a document started and did not end."""
        self._used_by.clear()
        self._host = None
        self._end.close()
        if guest.find(self.name) is not None:
            guest.stop(self.name)


class Desk:
    """This machine, as a reader has it: a copy of the project for each document, and a home."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        self.folder = folder
        self.machine = machine

    def run(self, step: Step, script: str) -> Outcome:
        """Run a script in the document's own copy of the project."""
        folder = self._folder_for(step, script)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env=self._environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Outcome(done.returncode, done.stdout)

    def _folder_for(self, step: Step, script: str) -> Path:
        folder = self.folder / Path(folder_of(step.path)).name
        if not folder.exists():
            shutil.copytree(TOP, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
            for name, text in find_files(step.path).items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
        if DOCUMENTS.get(step.path, Document()).has_guests:
            self.machine.leave()
        elif re.search(r" hosts\b|\$MACHINE", script):
            host = self.machine.host_for(step.path)
            groups = "".join(f"[{group}]\n{host.name}\n" for group in ("gpu", "training"))
            (folder / "hosts").write_text(f"{host.inventory_line()}\n{groups}")
        return folder

    def _environment(self, folder: Path) -> dict[str, str]:
        """Return ours, with a home that is empty; what is downloaded is kept where it always is."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        installed = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or str(TOP / "build/collections")
        return {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": f"{home}/.ansible/collections:{installed}",
            "ANSIBLE_HOME": f"{home}/.ansible",
            # Of the many that a machine of ours may have, discovery may find one that does not run.
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "HOME": str(home),
            "MACHINE": self.machine.name,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        }


def folder_of(path: str) -> str:
    """Return the folder of a document on the guest."""
    return "/root/" + path.replace("/", "-").replace(".md", "")
