# SPDX-License-Identifier: BSD-2-Clause
"""Say what the files of a tree state for the size of /dev/shm."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.cause import cite
from ..core.resolved import Effect, describe
from ..core.values import UNLIMITED, Bound
from ..host.files import read_text
from .boot_mounts import find_mounts
from .model import FSTAB, SHM, find_lines
from .read import find_fstab_stop, read_scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..host.image import Tree

_LARGEST = 2**60
"""Bytes of memory: a size that it changes is a share of what the host will have."""


def resolve_shm(tree: Tree) -> Iterator[dict[str, object]]:
    """Yield the size that fstab states, and what mounts it anew after that."""
    fstab = read_text(FSTAB, tree.root) or ""
    lines, largest = (find_lines(fstab, memory) for memory in (0, _LARGEST))
    mounts = find_mounts(read_scripts(tree.root), 0)
    again = f"{cite(mounts[0].at)} mounts it anew" if mounts else ""
    if not lines:
        if again:
            yield {"place": f"path:{SHM}", "reason": again}
        return
    stop = find_fstab_stop(tree.root)
    why = f"{stop} it" if stop else again
    effect = Effect(None, why) if why else None
    line = lines[0]
    if line.value == UNLIMITED:
        line = line._replace(value="unlimited")
    elif line.value != largest[0].value:
        line = line._replace(value="a share of the host's memory")
    yield describe(f"path:{SHM}", "size", "value", Bound(line, tuple(lines[1:])), "bytes", effect)
