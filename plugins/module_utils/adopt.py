# SPDX-License-Identifier: BSD-2-Clause
"""Read what a site's own files state on a host, or in a tree, and make a policy of it."""

from __future__ import annotations

import os

from .policy.adopt import adopt_docker, adopt_kernel, adopt_services, list_site_keys
from .policy.adopt_sessions import Host, adopt_sessions
from .policy.docker_config import decode_daemon_json
from .policy.dockerd_flags import find_config_path
from .policy.edit import HEADER, find_block_lines, remove_block
from .policy.logind_conf import LOGIND
from .policy.pam_limits import LIMITS_D, find_dialect, order_files
from .policy.plan_services import USER_CONF
from .policy.policy_text import format_policy
from .policy.sysctl_conf import SYSCTL_CONF, find_number
from .policy.sysctl_writes import find_lowest_nr_open, find_procps, resolve_sysctl
from .policy.systemd_limits import MANAGER
from .policy.tasks_max import SECTIONS as KINDS
from .policy.unit_model import Files
from .probe.files import (
    list_folder,
    read_bytes,
    read_limits_files,
    read_os_release,
    read_sysctl_files,
    read_text,
    under,
)
from .probe.image import is_chroot
from .probe.kernel import read_sysctl, sysctl_path
from .probe.unit import find_unit_names, read_dockerd_flags, read_manager_files, read_unit_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .policy.adopt import Adopted, LeftOut
    from .policy.unit_file import Source
    from .probe.unit import UnitFiles

_UNIT_FOLDERS = ("/etc/systemd/system.control", "/etc/systemd/system")


def adopt_tree(root: str) -> list[str]:
    """Return the policy that the site's files amount to, as lines of YAML.

    :param root: The tree; ``/`` for this host, whose kernel is asked as well.
    :raises ValueError: If it is no folder, or a file cannot be parsed.
    """
    if not os.path.isdir(root):
        raise ValueError(f"{root}: is no folder")
    sections = adopt_sections(root)
    return format_policy((one.section for one in sections), _gather(sections))


def _gather(sections: list[Adopted]) -> Iterator[LeftOut]:
    for one in sections:
        yield from one.left


def adopt_sections(root: str) -> list[Adopted]:
    """Return what each section of the policy holds, and what is not in it."""
    release = read_os_release(root)
    sysctl_files = _read_sysctl_files(root)
    nr_open = _find_nr_open(sysctl_files, root)
    procps = find_procps(release)
    keys = list_site_keys(sysctl_files, procps)
    runs = root == "/" and not is_chroot()
    lacking = {key for key in keys if runs and not os.path.exists(sysctl_path(key))}
    limits = {path: _without_block(text, path) for path, text in read_limits_files(root).items()}
    limits = _without_ours(limits)
    flags = read_dockerd_flags(root)
    daemon = find_config_path(flags)
    text = decode_daemon_json(read_bytes(daemon, root) or b"", daemon)
    return [
        adopt_sessions(limits, _read_others(limits, root), Host(find_dialect(release), nr_open)),
        adopt_kernel(sysctl_files, procps, lacking),
        adopt_services(dict(_read_units(root)), nr_open),
        adopt_docker(text, daemon, flags, nr_open),
    ]


def _without_ours(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not text.startswith(HEADER)}


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


def _read_sysctl_files(root: str) -> dict[str, str]:
    conf = read_text(SYSCTL_CONF, root)
    files = _without_ours(read_sysctl_files(root))
    return {**files, **({} if conf is None else {SYSCTL_CONF: conf})}


def _find_nr_open(files: dict[str, str], root: str) -> int | None:
    """Return the lowest fs.nr_open from now on; of a tree that does not state it, nothing."""
    if root == "/" and not is_chroot():
        return find_lowest_nr_open(files, {"fs.nr_open": read_sysctl("fs.nr_open")})
    stated = resolve_sysctl(files, ["fs.nr_open"]).get("fs.nr_open")
    return find_number(stated.winner) if stated else None


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
