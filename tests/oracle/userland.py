# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of each Debian release, unpacked: the real ones, on this machine's kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.host.built_like import FAMILIES, build, digest
from tests.host.cache import cache_root, produce, say
from tests.host.tool import run_tool

# What is built like another distribution takes minutes.
_LIKE = FAMILIES if os.environ.get("MLHOST_ALL") else ()
RELEASES = ("bullseye", "bookworm", "trixie", *_LIKE)
PACKAGES = ("base-files", "coreutils", "procps", "systemd")
MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh"
FOLDERS = (
    *("usr/lib/sysctl.d", "usr/local/lib/sysctl.d", "usr/local/lib/systemd"),
    *("usr/lib/systemd/system", "usr/lib/systemd/system.conf.d"),
)


def unpack(release: str, packages: tuple[str, ...] = PACKAGES) -> Path:
    """Return a folder with packages of a release, fetching them if the cache has none."""
    like = digest(release) if release in FAMILIES else ""
    inputs = repr((release, packages, FOLDERS, like))
    name = f"{release}-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"
    target = cache_root() / "userlands" / name
    return produce(target, f"unpacking {release}", lambda to: _fill(to, release, packages)) / "root"


def _fill(folder: Path, release: str, packages: tuple[str, ...]) -> None:
    say(f"{release}: unpacking {' and '.join(packages)}")
    family = FAMILIES.get(release)
    words = ["mmdebstrap", "--variant=extract", f"--include={','.join(packages)}"]
    hook = f"--setup-hook={MERGED_USR}"
    tree = folder / "root"
    words += [hook, family.release if family else release]
    run_tool(["unshare", "--mount", *words, tree], folder / "log", 600)
    if family:
        shutil.copytree(build(release), tree, symlinks=True, dirs_exist_ok=True)
    for name in FOLDERS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    for useless in ("usr/share", "usr/include", "usr/games", "var"):
        shutil.rmtree(tree / useless, ignore_errors=True)


def mount_root(tree: Path, root: Path, fresh: tuple[str, ...]) -> None:
    """Make *root* a machine of its own: the programs of *tree*, all else empty and in memory.

    Must run in a mount namespace of its own.

    :param fresh: Folders below /usr that start empty and may be written.
    """
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", root)
    for name in ("usr", "etc", "run", "proc", "sys", "dev", "tmp", "var"):
        (root / name).mkdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    mount("--bind", tree / "usr", root / "usr")
    mount("-o", "remount,bind,ro", root / "usr")
    for name in ("run", *fresh):  # A systemd would mount its own /run, which we could not see.
        mount("-t", "tmpfs", "tmpfs", root / name)
    mount("-t", "proc", "proc", root / "proc")
    os.mknod(root / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
    shutil.copytree(tree / "etc/ld.so.conf.d", root / "etc/ld.so.conf.d", dirs_exist_ok=True)


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


def run_inside(
    root: Path, words: list[str], seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program with *root* as its root."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        preexec_fn=lambda: _enter(root),
    )


def _enter(root: Path) -> None:
    os.chroot(root)
    os.chdir("/")
