# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in a folder: its files decide sysctls, and the commands of a remedy change them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlhost_limits.core.values import Declaration
from mlhost_limits.kernel.boot_scripts import find_script_writes
from mlhost_limits.kernel.model import KernelFacts, find_module
from mlhost_limits.kernel.sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES, parse_sysctl_conf
from mlhost_limits.kernel.tuned_profile import (
    MAIN_CONF,
    Tuned,
    merge_profiles,
    read_exclude,
    read_reapply,
)

MAPS = "vm.max_map_count"
KEYS = (MAPS, "fs.nr_open", "fs.file-max", "net.nf_conntrack_max")
SCRIPTS = ("/etc/rc.local", "/etc/systemd/system/tune.service", "/usr/lib/systemd/system/x.service")
PROFILE = "/etc/tuned/site/tuned.conf"
APPLIER = "/etc/systemd/system/systemd-sysctl.service"
_TOP = re.compile(r"(?<![\w/])/(etc|run|usr)/")


class World:
    """A host; a text that begins with ``->`` is a link.

    :param facts: What is not read from files, as KernelFacts has it.
    """

    def __init__(
        self, top: Path, files: Mapping[str, str], running: str, key: str = MAPS, **facts: Any
    ) -> None:
        self.top, self.running, self.key, self.facts = top, running, key, facts
        for path, text in files.items():
            self.write(path, text)
        for folder in ("/etc/sysctl.d", "/etc/modules-load.d"):
            self.find(folder).mkdir(parents=True, exist_ok=True)

    def find(self, path: str) -> Path:
        return self.top / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        file = self.find(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            file.symlink_to(text[2:])
        else:
            file.write_text(text, encoding="latin-1", newline="")

    def read(self, path: str) -> str:
        file = self.find(path)
        if not file.is_file():  # Absent, or /dev/null.
            return ""
        with file.open(encoding="latin-1", newline="") as opened:
            return opened.read()

    def _list(self) -> Iterable[str]:
        for folder in SYSCTL_DIRECTORIES:
            names = sorted(os.listdir(self.find(folder))) if self.find(folder).is_dir() else []
            yield from (f"{folder}/{name}" for name in names)

    def gather(self) -> KernelFacts:
        """Return what the host's files say now."""
        paths = [path for path in self._list() if path.endswith(".conf")]
        files = {path: self.read(path) for path in paths}
        if self.find(SYSCTL_CONF).exists():
            files[SYSCTL_CONF] = self.read(SYSCTL_CONF)
        real = {path: f"/{os.path.relpath(self.find(path).resolve(), self.top)}" for path in files}
        keys = {one.key for path, text in files.items() for one in parse_sysctl_conf(text, path)}
        module = find_module(self.key)
        loaded = self.read(f"/etc/modules-load.d/{module}.conf")
        scripts = {path: self.read(path) for path in SCRIPTS if self.find(path).exists()}
        found: dict[str, Any] = {
            "others": {path: self.read(path) for path in self._list() if path not in files},
            "real": {path: target for path, target in real.items() if target != path},
            "unknown_keys": frozenset(key for key in keys if key not in KEYS),
            "tuned": self._read_tuned(),
            "scripts": tuple(find_script_writes(self.key, scripts)),
            "stopped_by": self._find_stop(),
            "late": "" if module in loaded.split() else module,
            **self.facts,
        }
        return KernelFacts(self.key, self.running, files, **found)

    def _find_stop(self) -> Declaration | None:
        masked = self.find(APPLIER).is_symlink()
        return Declaration(APPLIER, 0, "a link to /dev/null", "") if masked else None

    def _read_tuned(self) -> Tuned | None:
        if not self.find(PROFILE).exists():
            return None
        switch = read_reapply(self.read(MAIN_CONF))
        lines = merge_profiles([(PROFILE, self.read(PROFILE))])
        exclude = read_exclude(self.read(MAIN_CONF))
        return Tuned(lines, switch is None, switch, exclude=exclude)

    def carry_out(self, commands: Iterable[tuple[str, ...]]) -> None:
        """Do what a remedy says, word by word, in this host."""
        for words in commands:
            if words[0] == "sysctl":
                assert words[1] == "-w"
                self.running = words[2].partition("=")[2]
            elif words[0] == "systemctl":
                assert words[1:] == ("unmask", "systemd-sysctl.service")
                self.find(APPLIER).unlink()
            else:
                here = [_TOP.sub(rf"{self.top}/\1/", word) for word in words]
                subprocess.run(here, check=True, capture_output=True, cwd=self.top)
