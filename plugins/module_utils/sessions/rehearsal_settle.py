# SPDX-License-Identifier: BSD-2-Clause
"""Open sessions under limits files that are not written yet, in a mount namespace of our own."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial

from ..host.children import run_in_children
from ..host.scratch import make_scratch, remove_scratch
from ..write.replace import apply_edits, find_target
from .pam_limits import LIMITS_CONF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.edit import Edit

_FOLDER = os.path.dirname(LIMITS_CONF)
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_TIME_LIMIT = 120.0


def rehearse(edits: Sequence[Edit], find_harm: Callable[[], str]) -> str:
    """Return the harm that these edits of limits files would do; nothing of them is written.

    A run that is killed between its write and its proof must not leave a host that nobody can
    enter, so the proof comes first. Where this process may not have a mount namespace (in most
    containers), nothing is found out and the proof after the write stands alone.

    :param find_harm: What to find out while /etc/security looks as it will.
    """
    if not edits or not all(find_target(edit.path).startswith(f"{_FOLDER}/") for edit in edits):
        return ""
    scratch = make_scratch()
    try:
        copy = f"{scratch}{_FOLDER}"
        shutil.copytree(_FOLDER, copy, symlinks=True)
        apply_edits(edits, scratch)
        report = run_in_children([partial(_look, copy, find_harm)], _TIME_LIMIT)[0]
    finally:
        remove_scratch(scratch)
    return report.value if isinstance(report.value, str) else ""


def _look(copy: str, find_harm: Callable[[], str]) -> str:
    """Show this process alone the copy in place of the real folder. Runs in a child."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        return ""
    # What is mounted from here on must not be seen by anybody else.
    private = libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    if private or libc.mount(os.fsencode(copy), _FOLDER.encode(), None, _MS_BIND, None):
        return ""
    return find_harm()
