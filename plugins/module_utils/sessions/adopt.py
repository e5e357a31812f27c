# SPDX-License-Identifier: BSD-2-Clause
"""Make the sessions of a policy of a site's limits files."""

from __future__ import annotations

from ..core.adopted import Adopted
from ..core.edit import find_block_lines, remove_block
from ..host.files import list_folder, read_os_release, read_text
from ..kernel.site_read import drop_ours, find_nr_open
from .adopted import Host, adopt_sessions
from .limits_read import read_limits_files
from .pam_limits import LIMITS_D, find_dialect, order_files


def adopt_tree_sessions(root: str) -> Adopted:
    """Return what the site's limits files give to logins."""
    limits = {path: _without_block(text, path) for path, text in read_limits_files(root).items()}
    limits = drop_ours(limits)
    host = Host(find_dialect(read_os_release(root)), find_nr_open(root))
    return adopt_sessions(limits, _read_others(limits, root), host)


def _without_block(text: str, path: str) -> str:
    """Return a file with our block made empty lines, so that the others keep their number.

    :raises ValueError: If a marker stands alone.
    """
    remove_block(text, path)
    ours = find_block_lines(text)
    rows = enumerate(text.split("\n"), start=1)
    return "\n".join("" if number in ours else row for number, row in rows)


def _read_others(read: dict[str, str], root: str) -> dict[str, str]:
    """Return the text of the files of limits.d that pam_limits passes over."""
    names = [f"{LIMITS_D}/{name}" for name in list_folder(LIMITS_D, root)]
    names = [path for path in names if path not in order_files(dict.fromkeys(names, ""))]
    return {path: read_text(path, root) or "" for path in names if path not in read}
