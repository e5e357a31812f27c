# SPDX-License-Identifier: GPL-3.0-or-later
"""Let each controller build, install and run the collection against a fresh host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.host import guest
from tests.host.cache import HostError, cache_root, produce, say
from tests.host.connection import Host
from tests.host.tool import run_tool

TOP = Path(__file__).parents[2]
OUTPUT = TOP / "build" / "controllers"
CONTROLLERS = {
    "2.18": "ansible-core==2.18.*",
    "2.19": "ansible-core==2.19.*",
    "newest": "ansible-core",
}
TREE = "trixie"
"""The release in which the newest controller runs: the Python of Debian 12 is too old for it."""

_PACKAGES = "python3-venv,openssh-client"
_ASK_PYTHON = "import platform; print(platform.python_version())"
# Its mounts are seen by nobody else and are gone when it ends.
_ENTER = (
    'tree=$1; shift; mount --make-rprivate / && mount -t proc proc "$tree/proc"'
    ' && mount --rbind /dev "$tree/dev"'
    ' && while [ "$1" != -- ]; do mkdir -p "$tree$1" && mount --bind "$1" "$tree$1" && shift; done'
    ' && shift && exec chroot "$tree" "$@"'
)


class Controller(NamedTuple):
    """An ansible-core in a virtual environment. ``tree`` is the system it is in, if not ours."""

    name: str
    tree: Path | None = None

    @property
    def output(self) -> Path:
        return OUTPUT / self.name

    @property
    def venv(self) -> Path:
        return self.output / "venv"

    def run(self, *words: str, folder: Path = TOP) -> subprocess.CompletedProcess[str]:
        """Run a program in its system; what it prints is kept in a log.

        :param folder: What it needs to see besides the working tree.
        """
        inside: list[str] = []
        if self.tree:
            inside = ["unshare", "--mount", "sh", "-c", _ENTER, "sh"]
            inside += [str(self.tree), str(TOP), str(folder), "--"]
        done = subprocess.run(
            [*inside, *words],
            cwd=self.output,
            env={
                "PATH": f"{self.venv}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root" if self.tree else os.environ.get("HOME", "/"),
                "LANG": "C.UTF-8",
                "ANSIBLE_HOME": f"{self.output}/home",
                "ANSIBLE_COLLECTIONS_PATH": f"{self.output}/collections",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        with (self.output / "log").open("a") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout}status {done.returncode}\n\n")
        return done


def run_controllers(names: Sequence[str]) -> Iterator[tuple[bool, dict[str, str]]]:
    """Yield for each controller whether all went well, and its row of the table."""
    for name in names:
        controller = install(name)
        with guest.running() as host:
            results = dict(run_steps(controller, host))
        words = {step: "passed" if good else "failed" for step, good in results.items()}
        print(f"{name}: {words}; {controller.output}/log", flush=True)
        row = {"asked for": name, **read_versions(controller), **words}
        yield all(results.values()), row


def install(name: str) -> Controller:
    """Install a controller into an empty folder of its own.

    :raises HostError: If it cannot be had.
    """
    controller = Controller(name, unpack_system() if name == "newest" else None)
    shutil.rmtree(controller.output, ignore_errors=True)
    controller.output.mkdir(parents=True)
    say(f"ansible-core {name}: installing it")
    python = "/usr/bin/python3" if controller.tree else sys.executable
    version = controller.run(python, "-c", _ASK_PYTHON).stdout.strip()
    # Downloaded here, where the network is set up, for the Python that is there.
    wheels = str(controller.output / "wheels")
    download = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", wheels]
    log = controller.output / "pip.log"
    run_tool([*download, "--python-version", version, CONTROLLERS[name]], log, 600)
    offline = ["--no-index", "--find-links", wheels, "ansible-core"]
    steps = [
        [python, "-m", "venv", str(controller.venv)],
        [f"{controller.venv}/bin/pip", "install", *offline],
    ]
    for words in steps:
        if controller.run(*words).returncode:
            raise HostError(f"{name} cannot be installed; see {controller.output}/log")
    return controller


def unpack_system() -> Path:
    """Return the root of a system of the newest release, making it if the cache has none."""
    target = cache_root() / "controllers" / TREE
    return produce(target, f"unpacking {TREE}", _fill_system) / "root"


def _fill_system(folder: Path) -> None:
    say(f"{TREE}: unpacking a system for the newest ansible-core (a minute, once)")
    words = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={_PACKAGES}",
        TREE,
        str(folder / "root"),
    ]
    run_tool(["unshare", "--mount", *words], folder / "log", 900)


def read_versions(controller: Controller) -> dict[str, str]:
    text = controller.run(f"{controller.venv}/bin/ansible", "--version").stdout
    core = re.search(r"core ([0-9.]+)", text)
    python = re.search(r"python version = ([0-9.]+)", text)
    system = controller.run("sh", "-c", '. /etc/os-release; echo "${NAME%% *} $VERSION_ID"').stdout
    if core is None or python is None:
        raise HostError(f"{controller.name} does not tell its version: {text!r}")
    return {"ansible-core": core[1], "Python": python[1], "on": system.strip()}


def run_steps(controller: Controller, host: Host) -> Iterator[tuple[str, bool]]:
    """Yield each step and whether it did what it should, with no warning of a deprecation."""
    for name, (words, expected) in list_steps(controller.output, str(host.inventory)).items():
        done = controller.run(f"{controller.venv}/bin/{words[0]}", *words[1:], folder=host.folder)
        for archive in controller.output.glob("mlhost-limits-*.tar.gz"):
            archive.rename(controller.output / "built.tar.gz")
        good = done.returncode == 0 and expected in done.stdout
        yield name, good and "DEPRECAT" not in done.stdout


def list_steps(output: Path, inventory: str) -> dict[str, tuple[list[str], str]]:
    """Return the command of each step, and what it prints when all is well."""
    galaxy = ["ansible-galaxy", "collection"]
    play = ["ansible-playbook", "-i", inventory]
    provision = [*play, "mlhost.limits.provision", "-e", "mlhost_limits_docker_restart=true"]
    audit = [*play, "mlhost.limits.audit", "-e", f"mlhost_limits_audit_dest={output}/audit.html"]
    check = ["ansible", "all", "-i", inventory, "-m", "mlhost.limits.check"]
    return {
        "build": ([*galaxy, "build", str(TOP), "--output-path", str(output)], "Created "),
        "install": (
            [*galaxy, "install", "--offline", f"{output}/built.tar.gz"],
            "installed successfully",
        ),
        "ansible-doc": (["ansible-doc", "mlhost.limits.check"], "mlhost.limits.check"),
        "role host": (provision, " changed=1 "),
        "second run": (provision, " changed=0 "),
        "check": (check, "| SUCCESS"),
        "audit": (audit, " failed=0 "),
    }
