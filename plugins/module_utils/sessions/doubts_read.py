# SPDX-License-Identifier: BSD-2-Clause
"""Find on a host what may change the limits of sessions besides what was run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

from ..core.values import Declaration, User
from ..host.door import find_paths
from ..host.files import find_tree_paths, list_folder, read_bytes, read_each, read_text
from ..kernel.glob_pattern import is_pattern
from .doubts import (
    Doubt,
    doubt_command,
    doubt_module,
    doubt_record,
    doubt_script,
    doubt_service,
    doubt_sudo,
)
from .first_scripts import (
    SSHRC,
    find_cron_settings,
    find_given_variables,
    find_lines_about_others,
    find_login_programs,
    find_variables,
    list_environments,
)
from .libpam_measure import find_module
from .pam_stack import PamLine, declare_call, find_unknown_modules, flatten
from .shell_commands import strip_comments
from .shell_sources import find_sources
from .sshd_config import find_forced_commands, find_given_environments, find_pam_services
from .unit_lines_read import OF_ROOT, read_unit_lines
from .user_records_read import holds_limits, read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .host_read import SessionsRead
    from .limits_read import SessionFiles

_CRONTAB, _CRON_D = "/etc/crontab", "/etc/cron.d"
_GETTY = r"(?:serial-|console-|container-)?getty(?:@[^/]*)?\.service"
_OF_SYSTEM = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/")
_HARMLESS = ("internal-sftp", "true", "false", "exit", "echo", "cat", "date", "id", "logger", "scp")
_HEAD = 1024
_DEEPEST = 3  # Programs that start programs that start programs.
_PATH = re.compile(r"(?<![\w./-])/[\w./+-]+")
_SETS = re.compile("ulimit|rlimit|softlimit|chpst|systemd-run", re.IGNORECASE)
CALLS = b"setrlimit|prlimit|execv|execl|posix_spawn|popen|dlopen|system\0"
"""What a PAM module asks the linker for that sets limits, or that runs what may."""


def find_doubts(service: str, user: User, files: SessionsRead, mode: str) -> list[Doubt]:
    """Return what may change the limits of a user's session through a service.

    :param mode: How it was opened: ``quiet`` leaves modules of PAM out, ``full`` none.
    """
    found: list[Doubt] = []
    if mode == "quiet":
        found += [
            *_find_modules(service, files),
            *map(doubt_record, find_records(service, user, files)),
        ]
    if service == "sshd":
        path, texts = files.sshd_config
        found += [*_find_commands(user, files)]
        found += map(doubt_script, find_sshd_scripts(path, texts, user))
        found += map(doubt_service, find_pam_services(texts, path, user))
    if service.startswith("sudo"):
        settings = [one for one in files.sudo_settings if one.may_mean(user.name)]
        found += [doubt_sudo(one.at, one.item, one.limit) for one in settings]
    return [*found, *_find_scripts(service, files)]


@lru_cache(maxsize=32)  # Of every user it is the same.
def _find_scripts(service: str, files: SessionsRead) -> list[Doubt]:
    """Return what names a script that shells of a service's sessions read, or are."""
    kinds = ("auth", "session")
    lines = [line for kind in kinds for line in flatten(service, kind, files.pam_files)]
    paths = list_environments([line for line in lines if line.name == "pam_env"])
    found = [one for path in paths for one in find_variables(read_text(path) or "", path)]
    if service in ("cron", "crond"):
        found += find_cron_scripts()
    started = [declare_call(line) for line in lines if line.kind == "auth" and _runs(line)]
    started += find_getty_programs() if service == "login" else ()
    return [doubt_script(one) for one in (*started, *filter(names_what_may, found))]


def find_cron_scripts(root: str = "/") -> Iterator[Declaration]:
    """Yield the lines of crontabs that choose the shell of jobs, or what it reads first."""
    crontabs = [_CRONTAB, *(f"{_CRON_D}/{name}" for name in list_folder(_CRON_D, root))]
    for path, text in read_each(crontabs, root):
        yield from find_cron_settings(text, path)


def find_getty_programs(root: str = "/") -> Iterator[Declaration]:
    """Yield the lines of the administrator that have a getty start another program than login.

    Nobody knows whether it opens a session of PAM.
    """
    for line in read_unit_lines(_GETTY, root, OF_ROOT):
        yield from find_login_programs(line)


def find_sshd_scripts(
    path: str, texts: Mapping[str, str], user: User, root: str = "/"
) -> Iterator[Declaration]:
    """Yield what sshd has a session run, or its shells read, before anything else."""
    for line in find_given_environments(texts, path, user):
        yield from (one for one in find_given_variables(line) if names_what_may(one, root))
    yield from find_lines_about_others(read_text(SSHRC, root) or "", SSHRC)


def _runs(line: PamLine) -> bool:
    """Tell whether a line runs a program that may set limits: no look runs a stack of auth."""
    return line.name == "pam_exec" and _may_set(line)


def names_what_may(at: Declaration, root: str = "/") -> bool:
    """Tell whether limits may be set by what a line names, or nobody knows what that is."""
    return "$" in str(at.value) or may_set_limits(str(at.value), root)


@lru_cache(maxsize=32)  # Of every user it is the same.
def _find_modules(service: str, files: SessionsRead) -> list[Doubt]:
    return [
        doubt_module(declare_call(line))
        for kind in ("account", "session")
        for line in find_unknown_modules(flatten(service, kind, files.pam_files))
        if _may_set(line)
    ]


def find_records(service: str, user: User, files: SessionFiles) -> Iterator[Declaration]:
    """Yield the records of a user that hold limits, where a session would run pam_systemd.

    Source: ``apply_user_record_settings()`` of pam_systemd.
    """
    records = read_records(user.name, files.root)
    found = [path for path, text in records.items() if holds_limits(text)]
    lines = flatten(service, "session", files.pam_files) if found else ()
    if any(line.name in ("pam_systemd", "pam_systemd_home") for line in lines):
        yield from (Declaration(path, 0, "resourceLimits", "") for path in found)


def _may_set(line: PamLine) -> bool:
    """Tell whether a module may set limits: what it links to, or the program that it is given."""
    if line.name == "pam_exec":
        return may_set_limits(" ".join(line.args))
    path = find_module(line.module)
    try:
        return bool(path) and bool(re.search(CALLS, read_bytes(path or "") or b""))
    except OSError:
        return True


def _find_commands(user: User, files: SessionsRead) -> Iterator[Doubt]:
    path, texts = files.sshd_config
    for line in find_forced_commands(texts, path, user):
        if _is_strange(str(line.value)) or may_set_limits(str(line.value)):
            yield doubt_command(line)


def _is_strange(command: str) -> bool:
    """Tell whether a program is called whose name does not say where it is."""
    words = [word.strip("\"'") for word in command.split() if word not in ("exec", "command")]
    return bool(words) and not words[0].startswith("/") and words[0] not in _HARMLESS


def may_set_limits(command: str, root: str = "/", deep: int = 0) -> bool:
    """Tell whether a command, or a script that it names, may set limits; also if unreadable.

    :param root: The tree that the scripts lie in.
    """
    if _SETS.search(command) or deep > _DEEPEST:
        return True
    paths = dict.fromkeys(_PATH.findall(command))
    return any(_program_may(path, root, deep) for path in paths if not path.startswith("/dev/"))


def _program_may(path: str, root: str, deep: int) -> bool:
    try:
        content = read_bytes(path, root) or b""
    except OSError:
        return True
    if content.startswith(b"\x7fELF"):
        return not path.startswith(_OF_SYSTEM) and b"rlimit" in content
    if b"\0" in content[:_HEAD]:
        return False  # Data.
    first, _end, rest = content.decode("latin-1").partition("\n")
    if first.startswith("#!"):
        return _reads_what_may(rest, path, root, deep) or may_set_limits(
            f"{first[2:]}\n{strip_comments(rest)}", root, deep + 1
        )
    # A shell or Python may be given it; what it names in turn is data to most.
    return bool(_SETS.search(strip_comments(f"{first}\n{rest}")))


def _reads_what_may(text: str, path: str, root: str, deep: int) -> bool:
    """Tell whether a script reads a file that may set limits, or one that nobody knows."""
    sources = find_sources(text, path, "/root")
    patterns = [pattern for pattern, _at in sources.named if is_pattern(pattern)]
    find = find_paths if root == "/" else partial(find_tree_paths, root=root)
    names = [name for pattern in patterns for name in find(pattern)]
    return bool(sources.unclear) or any(_program_may(name, root, deep + 1) for name in names)
