# SPDX-License-Identifier: BSD-2-Clause
"""Make the services of a policy of what a site wrote for units, managers and logind."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..core.edit import HEADER
from ..host.files import list_folder, under
from ..kernel.site_read import find_nr_open
from ..systemd.limits import MANAGER
from ..systemd.model import Files
from ..systemd.unit_read import UnitFiles, find_unit_names, read_manager_files, read_unit_files
from .adopted import adopt_services
from .logind_conf import LOGIND
from .plan import USER_CONF
from .tasks_max import SECTIONS as KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.adopted import Adopted
    from ..systemd.unit_file import Source

_UNIT_FOLDERS = ("/etc/systemd/system.control", "/etc/systemd/system")


def adopt_tree_services(root: str) -> Adopted:
    """Return what the site's lines give units, systemd's managers and logind."""
    return adopt_services(dict(_read_units(root)), find_nr_open(root))


def _read_units(root: str) -> Iterator[tuple[str, Files]]:
    """Yield systemd's managers and every unit that the site wrote a file or a drop-in for."""
    for name in (MANAGER, USER_CONF, LOGIND):
        found = _drop_ours(read_manager_files(root, name))
        yield name, Files(None, (), found.main, tuple(found.dropins))
    names = {
        find_unit_names(name, root)[1][0]
        for folder in _UNIT_FOLDERS
        for name in _list_units(folder, root)
    }
    for name in sorted(names):
        found = _drop_ours(read_unit_files(name, root))
        yield name, Files(found.main, tuple(found.dropins))


def _list_units(folder: str, root: str) -> Iterator[str]:
    for name in list_folder(folder, root):
        unit = name[: -len(".d")] if name.endswith(".d") else name
        is_link = os.path.islink(under(folder, root) + f"/{name}")
        if unit.rpartition(".")[2] in KINDS and not (is_link and unit == name):
            yield unit


def _drop_ours(found: UnitFiles) -> UnitFiles:
    return found._replace(dropins=[one for one in found.dropins if not _is_ours(one)])


def _is_ours(source: Source) -> bool:
    return source.text.startswith(HEADER)
