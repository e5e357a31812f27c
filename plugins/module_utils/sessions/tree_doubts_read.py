# SPDX-License-Identifier: BSD-2-Clause
"""Find in a tree what may change the limits of its sessions after pam_limits has set them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.finding import Requirement
from ..core.values import Declaration, NamedTuple
from ..host.files import read_bytes, read_text
from .dialect_read import MODULE_FOLDERS
from .doubts_read import (
    CALLS,
    find_cron_scripts,
    find_getty_programs,
    find_records,
    find_sshd_scripts,
    may_set_limits,
    names_what_may,
)
from .first_scripts import find_forced_keys, find_variables, list_environments
from .host_read import read_sudoers
from .pam_stack import declare_call, find_unknown_modules, flatten
from .shell_limits import BOTH, ShellLine
from .sshd_config import (
    find_forced_commands,
    find_key_file,
    find_pam_services,
    list_key_files,
)
from .sudoers import find_sudo_settings
from .tree_read import SessionsTree, find_sshd_program
from .tree_samples_read import find_shell_line, find_startup_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import User

_SHELLS = ("sshd", "login", "su", "su-l")
"""Services whose sessions begin with a shell that reads the startup files of a login."""


_GECOS_LIMIT = re.compile(r"(?i)(?:^|,)ulimit=\s*([0-9]{0,18})")


class TreeDoubt(NamedTuple):
    """A line that may change limits; without an item any, without a value to what it likes."""

    at: Declaration
    item: str = ""
    values: tuple[tuple[str, int | None], ...] = ()

    def may_spoil(self, wanted: Requirement) -> bool:
        """Tell whether what is foretold to be met may not be."""
        if self.item not in ("", wanted.item):
            return False
        values = dict(self.values) if self.values else dict.fromkeys(BOTH)
        return any(
            value is None or not wanted.is_met_by(value)
            for bound, value in values.items()
            if wanted.bound == bound or (bound, wanted.bound) == ("hard", "soft")
        )

    def may_mend(self, wanted: Requirement) -> bool:
        """Tell whether what is predicted to fall short is raised by a line that says so."""
        value = dict(self.values).get(wanted.bound)
        return self.item == wanted.item and value is not None and wanted.is_met_by(value)


def find_tree_doubts(service: str, user: User, read: SessionsTree) -> Iterator[TreeDoubt]:
    """Yield what may change a user's sessions through a service of the tree.

    :raises ValueError: If a configuration cannot be read as its program reads it.
    """
    yield from _find_in_stack(service, read)
    yield from _find_in_gecos(service, user, read)
    if service == "sshd":
        yield from _find_in_sshd(user, read)
    if service.startswith("sudo"):
        for one in find_sudo_settings(read_sudoers(read.root)):
            if one.may_mean(user.name):
                pairs = tuple(zip(BOTH, one.limit)) if one.limit else ()
                yield TreeDoubt(one.at, one.item, pairs)
    if service in _SHELLS:
        yield from map(_doubt_line, find_startup_lines(user, read))
        yield from map(TreeDoubt, filter(None, [find_shell_line(user, read)]))
    if service == "login":
        yield from map(TreeDoubt, find_getty_programs(read.root))
    if service in ("cron", "crond"):
        found = find_cron_scripts(read.root)
        yield from (TreeDoubt(one) for one in found if names_what_may(one, read.root))
    yield from map(TreeDoubt, find_records(service, user, read))


def _find_in_gecos(service: str, user: User, read: SessionsTree) -> Iterator[TreeDoubt]:
    """Yield what pam_umask makes of a user's line: ``ulimit=N`` is in blocks of 512 bytes."""
    entry = read.people.get(user.name)
    found = _GECOS_LIMIT.findall(entry.at.text.split(":")[4]) if entry else []
    lines = flatten(service, "session", read.pam_files) if found else []
    if entry and any(one.name == "pam_umask" for one in lines):
        size = 512 * int(found[-1] or 0)
        yield TreeDoubt(entry.at, "fsize", (("soft", size), ("hard", size)))


def _find_in_sshd(user: User, read: SessionsTree) -> Iterator[TreeDoubt]:
    yield from map(TreeDoubt, filter(None, [find_sshd_program(read.root)]))
    path, texts = read.sshd_config
    for line in find_forced_commands(texts, path, user):
        if may_set_limits(str(line.value), read.root):
            yield TreeDoubt(line)
    yield from map(TreeDoubt, find_pam_services(texts, path, user))
    yield from map(TreeDoubt, find_sshd_scripts(path, texts, user, read.root))
    if user.uid == 0:
        for name in list_key_files(texts, path, user):
            yield from map(TreeDoubt, _find_in_keys(name, user, read))


def _find_in_keys(name: str, user: User, read: SessionsTree) -> Iterator[Declaration]:
    """Yield the keys of root that run in the place of the shell what may set limits."""
    entry = read.people.get(user.name)
    path = find_key_file(name, user.name, user.uid, entry.home if entry else "/root")
    for line in find_forced_keys(read_text(path, read.root) or "", path):
        if may_set_limits(str(line.value), read.root):
            yield line


def _doubt_line(line: ShellLine) -> TreeDoubt:
    value = line.at.value if isinstance(line.at.value, int) else None
    return TreeDoubt(line.at, line.item, tuple((bound, value) for bound in line.bounds))


def _find_in_stack(service: str, read: SessionsTree) -> Iterator[TreeDoubt]:
    kinds = ("auth", "account", "session")
    lines = [one for kind in kinds for one in flatten(service, kind, read.pam_files)]
    for line in lines:
        if line.name == "pam_exec" and may_set_limits(" ".join(line.args), read.root):
            yield TreeDoubt(declare_call(line))
    for line in find_unknown_modules([one for one in lines if one.kind != "auth"]):
        if line.name != "pam_exec" and _may_set(line.module, read.root):
            yield TreeDoubt(declare_call(line))
    for path in list_environments([one for one in lines if one.name == "pam_env"]):
        for at in find_variables(read_text(path, read.root) or "", path):
            if names_what_may(at, read.root):
                yield TreeDoubt(at)


def _may_set(module: str, root: str) -> bool:
    """Tell whether a module may set limits: what it links to; also where it is not in the tree."""
    paths = [module]
    if not module.startswith("/"):
        paths = [f"{folder}/{module}" for folder in MODULE_FOLDERS]
    found = [text for text in (read_bytes(path, root) for path in paths) if text is not None]
    return not found or any(re.search(CALLS, text) for text in found)
