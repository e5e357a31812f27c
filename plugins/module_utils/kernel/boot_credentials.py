# SPDX-License-Identifier: BSD-2-Clause
"""Find what credentials of systemd set: lines that count after all files of sysctl.d.

Sources: systemd-sysctl(8) and systemd-tmpfiles(8), "Credentials"; systemd.exec(5),
``ImportCredential=``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from ..core.values import Declaration, NamedTuple
from .boot_units import Setting, merge

SYSCTL, TMPFILES = CREDENTIALS = ("sysctl.extra", "tmpfiles.extra")
FOLDERS = tuple(f"{top}/credstore" for top in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
_STORED = ("ImportCredential", "LoadCredential", "LoadCredentialEncrypted")
_STATED = ("SetCredential", "SetCredentialEncrypted")


class Credentials(NamedTuple):
    """Text of the credentials that are plain, by path, and what says that there are others."""

    sysctls: Mapping[str, str]
    tmpfiles: Mapping[str, str]
    unclear: tuple[Declaration, ...] = ()


class Asked(NamedTuple):
    """How a unit comes to a credential: by the stores, by a file, or as a line says itself."""

    of_store: bool
    paths: tuple[str, ...] = ()
    stated: tuple[Declaration, ...] = ()


def find_asked(settings: Iterable[Setting], name: str) -> Asked:
    """Return how a unit comes to a credential of a name."""
    settings = [one for one in settings if one.section == "Service"]
    of_store, paths, stated = False, [], []
    for one in (one for key in (*_STORED, *_STATED) for one in merge(settings, key)):
        wanted, _colon, rest = one.value.partition(":")
        if not (wanted == name or (one.name == "ImportCredential" and fnmatchcase(name, wanted))):
            continue
        if one.name in _STATED:
            stated.append(Declaration(one.path, one.first, f"{one.name}={one.value}", ""))
        elif rest.startswith("/"):
            paths.append(rest)
        else:
            of_store = True
    return Asked(of_store, tuple(paths), tuple(stated))
