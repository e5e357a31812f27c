"""Build the disk image of a fresh Debian host, once per release and recipe."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from . import built_like
from .cache import cache_root, produce, require_space, say
from .recipe import (
    DISK_SIZE,
    EARLY_HOOK,
    LATE_HOOK,
    OPTIONS,
    Recipe,
    digest,
    find_recipe,
)
from .tool import require_program, run_tool

_BUILD_GIB = 4
_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub"

# One shell, so that a fakeroot round it still knows the owners when the disk is made.
_UNPACK_AND_FORMAT = """
tar -C "$1" -xpf "$2" && rm "$2" || exit
labels=/etc/selinux/default/contexts/files/file_contexts
if [ -e "$1$labels" ]; then
  sed -i s/^SELINUX=.*/SELINUX=enforcing/ "$1/etc/selinux/config"
  libraries=$1/usr/lib/x86_64-linux-gnu
  "$1/usr/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" "$1/usr/sbin/setfiles" \\
    -F -r "$1" "$1$labels" "$1" || exit
fi
mke2fs -q -t ext4 -d "$1" "$3" "$4"
"""


class Image(NamedTuple):
    """The files of a built image; all are read only from then on."""

    folder: Path

    @property
    def disk(self) -> Path:
        """Return the root file system, raw ext4."""
        return self.folder / "disk.ext4"

    @property
    def kernel(self) -> Path:
        """Return the kernel that QEMU boots directly."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Return the initial ram disk of that kernel."""
        return self.folder / "initrd.img"

    @property
    def identity(self) -> Path:
        """Return the private key that opens root and alice."""
        return self.folder / "identity"

    @property
    def host_key(self) -> str:
        """Return the host's public key as ``known_hosts`` states it."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])


def build(release: str) -> Image:
    """Return the image of a release, building it if the cache does not hold it."""
    recipe = find_recipe(release)
    target = cache_root() / "hosts" / f"{release}-{digest(recipe)}"
    return Image(produce(target, f"building {release}", lambda to: _fill(to, recipe)))


def _fill(folder: Path, recipe: Recipe) -> None:
    for program in ("mmdebstrap", "mke2fs", *_as_root()):
        require_program(program)
    require_space(folder, _BUILD_GIB)
    donor = None
    if recipe.kernel_from != recipe.release:
        donor = build(recipe.kernel_from)
    image, archive, log = Image(folder), folder / "root.tar", folder / "build.log"
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", ""]
    run_tool([*key, "-f", image.identity], log, 30)
    say(f"{recipe.release}: installing Debian (about a minute, once)")
    hooks = [f"--{hook}" for hook in _hooks(image, donor)]
    hooks += [f"--{hook}" for hook in built_like.list_hooks(recipe.like)] if recipe.like else []
    packages = f"--include={','.join(recipe.packages)}"
    # Its mounts live and die with it, even when it is killed.
    private = ["unshare", "--mount"] if os.geteuid() == 0 else []
    options = [packages, *OPTIONS.get(recipe.release, ()), *hooks]
    install = [*private, "mmdebstrap", "--variant=minbase", *options]
    run_tool([*install, recipe.release, archive], log, 1200)
    say(f"{recipe.release}: making the file system")
    _make_disk(archive, image.disk, log)


def _hooks(image: Image, donor: Image | None) -> list[str]:
    """Return the hooks that turn a bare system into our host and take its kernel."""
    early, late = shlex.quote(str(EARLY_HOOK)), shlex.quote(str(LATE_HOOK))
    hooks = [
        f'essential-hook=sh {early} "$1"',
        f"customize-hook=upload {image.identity}.pub /identity.pub",
        f'customize-hook=sh {late} "$1"',
        f"customize-hook=download {_HOST_KEY} {image.folder}/host_key.pub",
    ]
    if donor is not None:
        shutil.copy(donor.kernel, image.kernel)
        shutil.copy(donor.initrd, image.initrd)
        return [*hooks, f"customize-hook=copy-in {donor.folder}/modules /usr/lib"]
    return [
        *hooks,
        f"customize-hook=download /vmlinuz {image.kernel}",
        f"customize-hook=download /initrd.img {image.initrd}",
        f"customize-hook=copy-out /usr/lib/modules {image.folder}",
    ]


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["fakeroot"]


def _make_disk(archive: Path, disk: Path, log: Path) -> None:
    """Make a file system of an archive, with its owners even when we are not root."""
    root = archive.with_suffix("")
    root.mkdir()
    script = [*_as_root(), "sh", "-c", _UNPACK_AND_FORMAT, "sh"]
    run_tool([*script, root, archive, disk, DISK_SIZE], log, 300)
    shutil.rmtree(root)
