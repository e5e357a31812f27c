# SPDX-License-Identifier: BSD-2-Clause
"""Find whose a path is: what a user can exchange, that user looks at, and never root."""

from __future__ import annotations

import os
import pwd
import stat

from .door import read_kernel_text

_WALK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # As the kernel's MAXSYMLINKS.
_NOBODY = 65534
_ALL = "4294967295"


def find_keeper(path: str) -> int:
    """Return the uid of the last on the way to a directory who is not root; 0 where all is root's.

    The way ends at a link that is not root's: where it leads is for its owner to find out. Inside
    a user namespace, who is nobody there is a stranger, whom its root cannot become.
    """
    strangers = {0, _NOBODY} if _is_inside() else {0}
    here, keeper, links = os.open("/", _WALK), 0, 0
    parts = path.split("/")
    try:
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            entry = os.open(part, _WALK, dir_fd=here)
            found = os.fstat(entry)
            keeper = keeper if found.st_uid in strangers else found.st_uid
            if stat.S_ISLNK(found.st_mode):
                links += 1
                target = os.readlink("", dir_fd=entry)
                os.close(entry)
                if found.st_uid not in strangers or links > _MOST_LINKS:
                    break
                parts = [*target.split("/"), *parts]
                if not target.startswith("/"):
                    continue
                entry = os.open("/", _WALK)
            os.close(here)
            here = entry
    except OSError:
        pass  # The look says where the way ends, and why.
    finally:
        os.close(here)
    return keeper


def _is_inside() -> bool:
    """Tell whether this is a user namespace that does not know every user (user_namespaces(7))."""
    try:
        lines = read_kernel_text("/proc/self/uid_map").splitlines()
        return [line.split()[2] for line in lines] != [_ALL]
    except (OSError, IndexError):
        return False


def find_account(uid: int) -> pwd.struct_passwd:
    """Return the account of a uid; one without groups where the host knows none."""
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return pwd.struct_passwd((str(uid), "x", uid, _NOBODY, "", "/", "/bin/sh"))
