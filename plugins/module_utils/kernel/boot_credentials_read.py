# SPDX-License-Identifier: BSD-2-Clause
"""Read the credentials that systemd-sysctl(8) and systemd-tmpfiles(8) are given at boot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..core.values import Declaration
from ..host.files import leave_out_run, read_text, under
from .boot_credentials import FOLDERS, SYSCTL, TMPFILES, Asked, Credentials, find_asked
from .boot_units import parse_unit
from .boot_units_read import APPLIER, is_masked, read_unit

_SETUP = "systemd-tmpfiles-setup.service"
_ENCRYPTED = ".encrypted"


def read_credentials(root: str, applies_files: bool) -> Credentials:
    """Return what a boot sets by credentials.

    :param applies_files: Whether it starts systemd-sysctl.
    """
    texts: dict[str, dict[str, str]] = {SYSCTL: {}, TMPFILES: {}}
    unclear: list[Declaration] = []
    for unit, name in ((APPLIER, SYSCTL), (_SETUP, TMPFILES)):
        if is_masked(unit, root) or (name == SYSCTL and not applies_files):
            continue
        asked = _find_asked(unit, name, root)
        unclear += asked.stated
        for path in (*asked.paths, *(_list_stored(name, root) if asked.of_store else ())):
            text = _read_plain(path, root)
            if text is None:
                unclear.append(Declaration(path, 0, "a credential", ""))
            else:
                texts[name][path] = text
    return Credentials(texts[SYSCTL], texts[TMPFILES], tuple(unclear))


def _find_asked(unit: str, name: str, root: str) -> Asked:
    """Return how a unit comes to a credential; that of a tree that lacks it asks the stores."""
    files = read_unit(unit, root)
    asked = find_asked(
        (one for path, text in files.items() for one in parse_unit(path, text)), name
    )
    has_main = any(path.endswith(f"/{unit}") for path in files)
    return asked if has_main else asked._replace(of_store=True)


def _list_stored(name: str, root: str) -> Iterator[str]:
    """Yield the first file of a name in the stores, as systemd looks for it."""
    plain = leave_out_run(FOLDERS, root)
    paths: Iterable[str] = (f"{one}{end}/{name}" for end in ("", _ENCRYPTED) for one in plain)
    yield from [one for one in paths if os.path.lexists(under(one, root))][:1]


def _read_plain(path: str, root: str) -> str | None:
    """Return a credential that nobody encrypted; ``None`` where its text is not to be had."""
    if path.rpartition("/")[0].endswith(_ENCRYPTED):
        return None
    try:
        return read_text(path, root) or ""
    except OSError:
        return None
