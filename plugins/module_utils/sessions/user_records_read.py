# SPDX-License-Identifier: BSD-2-Clause
"""Read the records of users that systemd keeps beside passwd(5).

Source: nss-systemd(8), "Configuration in /etc/userdb/"; the JSON user record of systemd.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..core.values import User
from ..host.files import list_folder, read_bytes

_FOLDERS = ("/etc/userdb", "/run/userdb", "/run/host/userdb", "/usr/lib/userdb")
_OF_HOMED = "/var/lib/systemd/home/{}.identity"
_END = ".user"


def read_records(name: str, root: str) -> dict[str, bytes]:
    """Return the records of a user by path, the strongest first."""
    paths = [*(f"{folder}/{name}{_END}" for folder in _FOLDERS), _OF_HOMED.format(name)]
    texts = {path: read_bytes(path, root) for path in paths}
    return {path: text for path, text in texts.items() if text is not None}


def list_limited_users(root: str) -> Iterator[str]:
    """Yield the names of users whose records hold limits; a number is but another name of one."""
    names = (name for folder in _FOLDERS for name in list_folder(folder, root))
    users = (name[: -len(_END)] for name in names if name.endswith(_END))
    for name in dict.fromkeys(users):
        if not name.isdigit() and any(map(holds_limits, read_records(name, root).values())):
            yield name


def holds_limits(record: bytes) -> bool:
    """Tell whether a record holds limits, which pam_systemd sets."""
    return b"resourceLimits" in record


def find_recorded_user(name: str, root: str) -> User | None:
    """Return a user whom only a record states, or nothing where none does.

    :raises ValueError: If the record has not what systemd asks of one.
    """
    path, text = next(iter(read_records(name, root).items()), ("", b""))
    if not path:
        return None
    try:
        record = json.loads(text)
        uid, groups = record["uid"], record.get("memberOf", [])
        gid = record.get("gid", uid)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        uid = gid = groups = None
    if not (isinstance(uid, int) and isinstance(gid, int) and isinstance(groups, list)):
        raise ValueError(f"{path}: is not a record of {name!r} with a uid")
    return User(name, uid, gid, frozenset({name, *map(str, groups)}), frozenset({gid}))
