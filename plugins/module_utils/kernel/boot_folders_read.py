# SPDX-License-Identifier: BSD-2-Clause
"""List files of which one in a stronger folder replaces its namesakes, as systemd reads them."""

from __future__ import annotations

from collections.abc import Iterator

from ..host.files import leave_out_run, list_folder

_OWN, _RUN, _PACKAGES = ("/etc", "/usr/local/lib"), "/run", ("/usr/lib", "/lib")


def list_folders(name: str, root: str) -> list[str]:
    """Return the folders of that name, the strongest first."""
    first, *own = _OWN
    return leave_out_run([f"{top}/{name}" for top in (first, _RUN, *own, *_PACKAGES)], root)


def list_strongest(name: str, end: str, root: str, of_packages: bool) -> Iterator[str]:
    """Yield the files with that ending that the next boot reads there, in its order.

    What lies in /run is gone by then.

    :param of_packages: Whether those that packages bring are listed as well.
    """
    found = {
        one: f"{top}/{name}/{one}"
        for top in reversed((*_OWN, *(_PACKAGES if of_packages else ())))
        for one in list_folder(f"{top}/{name}", root)
        if one.endswith(end)
    }
    yield from (found[one] for one in sorted(found))
