# SPDX-License-Identifier: GPL-3.0-or-later
"""Give generated sysctl.d trees to the real systemd-sysctl and ``sysctl --system``.

Runs in namespaces of its own (``unshare --mount --net``): the files are ours, and so are the
keys of the network namespace, so that the kernel itself says what it took. The programs are
those of a Debian release; the kernel is this machine's.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("mlhost_limits") is None:  # On a guest it is installed.
    from tests.conftest import load_library

    load_library()

from mlhost_limits.host.files import read_distribution, read_text
from mlhost_limits.kernel.host_read import read_sysctl_files
from mlhost_limits.kernel.sysctl_conf import SYSCTL_CONF
from mlhost_limits.kernel.sysctl_writes import SYSTEMD, Reader, find_procps, resolve_sysctl

from tests.oracle.userland import mount_root, run_inside
from tests.places.kernel.sysctl_trees import (
    BASES,
    INTERFACE,
    Tree,
    find_smaller,
    make_tree,
    write_tree,
)

COMMANDS = {"systemd": ["/lib/systemd/systemd-sysctl"], "procps": ["sysctl", "--system"]}
KEYS = {name.translate(str.maketrans("./", "/.")): name for name in BASES}


class Rig:
    """A root of its own with the programs of one release."""

    def __init__(self, tree: Path, root: Path) -> None:
        self.root = root
        mount_root(tree, root, ("usr/lib/sysctl.d", "usr/local/lib/sysctl.d"))
        release = (tree / "usr/lib/os-release").read_text()
        (root / "etc/os-release").write_text(release)
        subprocess.run(["ip", "link", "set", "lo", "name", INTERFACE], check=True)
        self.readers = {"systemd": SYSTEMD, "procps": find_procps(read_distribution(str(root)))}
        self.effects: dict[tuple[str, str], str | None] = {}

    def path(self, name: str) -> Path:
        return self.root / "proc/sys" / name

    def reset(self) -> None:
        for name, base in BASES.items():
            self.path(name).write_text(base)

    def read(self) -> dict[str, str]:
        return {key: self.path(name).read_text().strip() for key, name in KEYS.items()}

    def find_effect(self, key: str, value: str) -> str | None:
        """Return what the kernel makes of a value; ``None`` where it refuses it."""
        name = KEYS[key]
        if (name, value) not in self.effects:
            self.path(name).write_text(BASES[name])
            try:
                self.path(name).write_bytes(value.encode("latin-1") + b"\n")
                self.effects[name, value] = self.path(name).read_text().strip()
            except OSError:
                self.effects[name, value] = None
        return self.effects[name, value]

    def predict(self, reader: Reader) -> dict[str, str]:
        """Return the value of each key after the program: ours, or the one before."""
        files = read_sysctl_files(str(self.root))
        conf = read_text(SYSCTL_CONF, str(self.root))
        files = files if conf is None else {**files, SYSCTL_CONF: conf}
        found = resolve_sysctl(
            files,
            list(KEYS),
            reader,
            lambda key, value: self.find_effect(key, value) is not None,
        )
        values = {key: BASES[name] for key, name in KEYS.items()}
        for key, bound in found.items():
            effect = self.find_effect(key, str(bound.winner.value))
            if effect is not None and "=" in bound.winner.text:
                values[key] = effect
        return values

    def compare(self, program: str, tree: Tree) -> list[str]:
        """Return what differs between the prediction and the kernel's values."""
        write_tree(tree, self.root)
        expected = self.predict(self.readers[program])
        self.reset()
        run_inside(self.root, COMMANDS[program])
        return [
            f"{key}: predicted {expected[key]}, got {value}"
            for key, value in self.read().items()
            if expected[key] != value
        ]

    def shrink(self, program: str, tree: Tree) -> Tree:
        """Return the smallest tree on the way down that still differs."""
        for smaller in find_smaller(tree):
            if self.compare(program, smaller):
                return self.shrink(program, smaller)
        return tree


def main(tree: str, root: str, count: str, seed: str) -> None:
    """Print as JSON how many trees were tried, and the smallest that differ."""
    rig = Rig(Path(tree), Path(root))
    rng = random.Random(int(seed))
    mismatches = []
    compared = 0
    for _ in range(int(count)):
        case = make_tree(rng)
        for program in COMMANDS:
            if rig.compare(program, case):
                least = rig.shrink(program, case)
                mismatches.append([program, least, rig.compare(program, least)])
            compared += 1
        if len(mismatches) >= 10:
            break
    json.dump({"cases": compared, "mismatches": mismatches}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
