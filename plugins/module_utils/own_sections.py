# SPDX-License-Identifier: BSD-2-Clause
"""Find which sections of a policy an earlier run has made true here, by a few looks at files."""

from __future__ import annotations

import os

from .host.files import list_folder, read_text, under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS = "/etc/systemd/system"
_NAME = "90-mlhost.conf"
_FILES = {
    "containerd": f"{_UNITS}/containerd.service.d/90-mlhost-containers.conf",
    "podman": f"/etc/containers/containers.conf.d/{_NAME}",
    "slurm": f"{_UNITS}/slurmd.service.d/90-mlhost-slurm.conf",
}
_MARKED = {"slurm": "/etc/slurm/slurm.conf", "shared_memory": "/etc/fstab"}
_MARK = "# BEGIN mlhost.limits"
_RECORDS = "/var/lib/mlhost-limits"
_MANAGERS = tuple(f"/etc/systemd/{name}.conf.d" for name in ("system", "user", "logind"))


def find_own_sections(root: str = "/") -> set[str]:
    """Return the sections of which there is a file, a block or a record of ours."""
    return set(_find(root))


def _find(root: str) -> Iterator[str]:
    yield from (name for name, path in _FILES.items() if _is_there(path, root))
    for name, path in _MARKED.items():
        if _MARK in (_read(path, root) or ""):
            yield name
    dropins = [f"{_UNITS}/{name}" for name in list_folder(_UNITS, root) if name.endswith(".d")]
    if any(_is_there(f"{folder}/{_NAME}", root) for folder in (*dropins, *_MANAGERS)):
        yield "services"
    for _base, _folders, files in os.walk(under(_RECORDS, root)):
        if any(name.endswith(".record") for name in files):
            yield "docker"
            return


def _is_there(path: str, root: str) -> bool:
    return os.path.isfile(under(path, root))


def _read(path: str, root: str) -> str | None:
    try:
        return read_text(path, root)
    except OSError:
        return None  # Its own section says so where it is asked for.
