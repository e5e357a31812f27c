# SPDX-License-Identifier: BSD-2-Clause
"""Read the PAM service files of a host: which modules a session runs, and which line says so.

Format: pam.d(5); ``_pam_parse_conf_file()`` in libpam's ``pam_handlers.c``, ``_pam_StrTok()``
in ``pam_misc.c``; ``@include`` is Debian's patch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from ..core.values import Declaration, NamedTuple

DIRECTORIES = ("/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d")
"""Where libpam looks a service up, first match wins (the last one on SUSE only)."""

_MOST_LINES = 200_000
"""Lines of a stack: what is included may be included many times, and again in there."""

KINDS = ("auth", "account", "password", "session")

_TOKEN = re.compile(r"[ \t\n]*(?:\[((?:\\\]|[^\]])*)\]?|([^ \t\n]+))")


def _list_modules(names: str) -> frozenset[str]:
    return frozenset(f"pam_{name}" for name in names.split())


RUN_QUIETLY = _list_modules("""
    access deny limits listfile localuser nologin permit rootok securetty shells succeed_if time
    umask userdb usertype wheel
""")
"""Modules that decide whether a session opens, or set a limit (umask: ``ulimit=`` in GECOS)."""

RUN_FOR_ACCOUNT = frozenset(("pam_unix", "pam_sss", "pam_ldap", "pam_krb5", "pam_winbind"))
"""Modules whose account phase only looks the account up; their session phase does more."""

NO_LIMITS = _list_modules("""
    apparmor cap ck_connector echo env faildelay faillock fprintd ftp gnome_keyring group issue
    keyinit krb5 kwallet kwallet5 lastlog lastlog2 ldap loginuid mail mkhomedir mktemp motd
    namespace oddjob_mkhomedir pwhistory pwquality selinux sepermit setquota slurm slurm_adopt sss
    systemd tally2
    timestamp tmpdir tty_audit unix warn winbind wtmpdb xauth
""")
"""Modules that act on other things and never on the resource limits of the session."""


class PamLine(NamedTuple):
    """One module call of a stack, and where it is written.

    ``kind`` is one of :data:`KINDS`, ``@include``, or what stands there instead. ``control`` is
    the text between the brackets, or the keyword. An empty ``module`` stands for a line that
    libpam cannot use: it fails when it is reached. ``level`` counts the substacks around it.
    """

    path: str
    line: int
    kind: str
    control: str
    module: str
    args: tuple[str, ...] = ()
    silent: bool = False
    level: int = 0

    @property
    def name(self) -> str:
        """Return the module without directory and ``.so``: ``pam_limits``."""
        name = self.module.rpartition("/")[2]
        return name[:-3] if name.endswith(".so") else name

    @property
    def place(self) -> str:
        """Return ``file:line``."""
        return f"{self.path}:{self.line}"


class LimitsOptions(NamedTuple):
    """The arguments of pam_limits that change what it sets (``_pam_parse()`` in pam_limits.c).

    ``conf`` is the only file it then reads, limits.d included; ``unknown`` ones are ignored.
    """

    conf: str | None
    set_all: bool
    unknown: tuple[str, ...]


class QuietStack(NamedTuple):
    """A pam.d file that decides as the real one does and leaves nothing behind.

    ``substacks`` are the files it needs beside it, by absolute path. ``modules`` are those that
    run; ``skipped`` those left out without being known to leave limits alone.
    """

    text: str
    substacks: dict[str, str]
    modules: tuple[str, ...]
    skipped: tuple[str, ...]


def parse_pam_service(path: str, text: str) -> list[PamLine]:
    """Return the lines of one pam.d file in order, includes unresolved.

    A ``#`` ends the line wherever it stands, and a line with one is never continued.

    :raises ValueError: If the last line ends in a backslash: libpam then drops the service.
    """
    return [_parse_line(path, number, line) for number, line in _join_lines(path, text)]


@lru_cache(maxsize=64)
def _parse_once(path: str, text: str) -> tuple[PamLine, ...]:
    return tuple(parse_pam_service(path, text))


def _join_lines(path: str, text: str) -> Iterator[tuple[int, str]]:
    start, joined = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        kept, comment = line.partition("#")[:2]
        if not kept.strip(" \t"):
            continue
        start, continued = start or number, kept.rstrip(" \t")
        if continued.endswith("\\") and not comment:
            joined += continued[:-1] + " "
            continue
        yield start, joined + kept
        start, joined = 0, ""
    if start:
        raise ValueError(f"{path}:{start}: the file ends in a continued line: libpam refuses it")


def _parse_line(path: str, number: int, text: str) -> PamLine:
    words = [bracketed if plain is None else plain for bracketed, plain in _split_words(text)]
    kind = words[0] if words else ""
    silent = kind.startswith("-")
    kind = (kind[1:] if silent else kind).lower()
    if kind == "@include":
        words.insert(1, "")
    control, module = [*words[1:], "", ""][:2]
    if control.lower() in ("include", "substack"):
        control = control.lower()
    return PamLine(path, number, kind, control, module, tuple(words[3:]), silent)


def _split_words(text: str) -> list[tuple[str, str | None]]:
    """Split as ``_pam_StrTok()`` does: ``[a b]`` is one word, ``\\]`` in it a bracket."""
    found = [match.groups() for match in _TOKEN.finditer(text)]
    return [((inside or "").replace("\\]", "]"), plain) for inside, plain in found]


def find_service_file(service: str, files: Mapping[str, str]) -> str | None:
    """Return the path under which libpam finds a service, a file included, or ``None``."""
    if service.startswith("/"):
        return service if service in files else None
    paths = (f"{directory}/{service}" for directory in DIRECTORIES)
    return next((path for path in paths if path in files), None)


def flatten(service: str, kind: str, files: Mapping[str, str]) -> list[PamLine]:
    """Return the module calls of one service and kind, includes resolved.

    A substack is announced by a line with control ``substack``; its lines follow, one level
    deeper. A service without a file, or without a line of this kind, gets those of ``other``
    (``_pam_dispatch()`` in pam_dispatch.c).

    :param files: Text by absolute path of every file in :data:`DIRECTORIES`.
    :raises ValueError: If files include each other in a loop, or ``@include`` a missing one.
    """
    for name in (service, "other"):
        path = find_service_file(name, files)
        found = () if path is None else _expand(path, kind, files, (), 0)
        read = list(islice(found, _MOST_LINES + 1))
        if len(read) > _MOST_LINES:
            raise ValueError(f"{path}: includes more than {_MOST_LINES} lines")
        lines = [line for line in read if line is not None]
        if lines:
            return lines
    return []


def _expand(
    path: str,
    kind: str,
    files: Mapping[str, str],
    trail: tuple[str, ...],
    level: int,
    asked: bool = False,
) -> Iterator[PamLine | None]:
    """Yield the lines of one file, ``None`` for each that is not told: it takes time all the same.

    :param asked: Whether libpam reads it for one kind only.
    """
    if path in trail:
        raise ValueError(f"{path}: includes itself, by way of {', '.join(trail)}")
    trail = (*trail, path)
    for line in _parse_once(path, files[path]):
        if line.kind == "@include":
            target = find_service_file(line.module, files)
            if target is None:
                missing = f"{line.place}: @include {line.module}: no such file"
                raise ValueError(f"{missing}: libpam refuses the service")
            yield None
            yield from _expand(target, kind, files, trail, level, asked)
        elif line.kind == kind and line.control in ("include", "substack"):
            yield from _include(line._replace(level=level), files, trail)
        elif line.kind == kind:
            yield line._replace(level=level)
        elif line.kind not in KINDS and (asked or kind == "auth"):
            yield line._replace(kind=kind, control="default=bad", module="", args=(), level=level)
        else:
            yield None


def _include(
    line: PamLine, files: Mapping[str, str], trail: tuple[str, ...]
) -> Iterator[PamLine | None]:
    is_substack = line.control == "substack"
    yield line if is_substack else None
    deeper = line.level + 1 if is_substack else line.level
    target = find_service_file(line.module, files)
    if target is None:
        yield line._replace(control="default=bad", module="", args=())
    else:
        yield from _expand(target, line.kind, files, trail, deeper, asked=True)


def declare_call(line: PamLine) -> Declaration:
    """Return a line as what it says and where."""
    words = [line.kind, line.control, line.module, *line.args]
    return Declaration(line.path, line.line, " ".join(words), line.module)


def find_pam_limits(lines: Sequence[PamLine]) -> list[PamLine]:
    """Return the calls of pam_limits, in order."""
    return [line for line in lines if line.name == "pam_limits" and line.control != "substack"]


def is_fatal(line: PamLine, outcome: str = "perm_denied") -> bool:
    """Tell whether a session does not open where a module fails (pam.conf(5)).

    :param outcome: What the module returns; the default is what pam_limits returns where the
        kernel refuses a limit.
    """
    control = line.control.lower()
    if "=" not in control:
        return control in ("required", "requisite")
    actions = dict(word.partition("=")[::2] for word in control.split())
    return actions.get(outcome, actions.get("default", "bad")) in ("bad", "die")


def find_unknown_modules(lines: Sequence[PamLine]) -> list[PamLine]:
    """Return the calls of modules that a quiet session does not run and that nobody knows."""
    called = [line for line in lines if line.module and line.control != "substack"]
    return [line for line in called if not (line.name in NO_LIMITS or _runs(line))]


def _runs(line: PamLine, besides: Collection[str] = ()) -> bool:
    """Tell whether a quiet session runs a module."""
    name = line.name
    looks_up = line.kind == "account" and name in RUN_FOR_ACCOUNT
    return looks_up or name in RUN_QUIETLY or name in besides


def read_limits_options(line: PamLine) -> LimitsOptions:
    """Read the arguments of a pam_limits line. Of several ``conf=`` the last counts."""
    files = [arg[len("conf=") :] for arg in line.args if arg.startswith("conf=")]
    known = ("debug", "noaudit", "set_all", "utmp_early")
    unknown = tuple(arg for arg in line.args if arg not in known and not arg.startswith("conf="))
    return LimitsOptions(files[-1] if files else None, "set_all" in line.args, unknown)


def quiet_stack(
    lines: Sequence[PamLine],
    path: str,
    missing: Collection[str] = (),
    besides: Collection[str] = (),
) -> QuietStack:
    """Return a service with the same control flow in which only harmless modules run.

    Each module that would leave a trace (a session scope, a mount, a mail check) becomes
    ``pam_permit.so`` at its place with its control, so that jumps keep their targets.

    :param lines: From :func:`flatten`; those of several kinds may follow each other.
    :param path: Where the caller writes the text; the paths of substacks begin with it.
    :param missing: Modules that the host lacks; they stay, because libpam fails on them too.
    :param besides: Names of modules that run although they leave a trace.
    """
    texts: dict[str, list[str]] = {path: []}
    open_files, run, skipped = [path], [], []
    for line in lines:
        del open_files[line.level + 1 :]
        text = texts[open_files[-1]]
        if line.control == "substack":
            open_files.append(f"{path}-{line.kind}-{len(texts)}")
            texts[open_files[-1]] = []
            line = line._replace(module=open_files[-1])
        elif _runs(line, besides):
            run.append(line.module)
        elif line.module and line.module not in missing:
            skipped += [line.module] if line.name not in NO_LIMITS else []
            line = line._replace(module="pam_permit.so", args=())
        text.append(_format_line(line))
    files = {path: "".join(f"{line}\n" for line in text) for path, text in texts.items()}
    return QuietStack(
        files.pop(path), files, tuple(dict.fromkeys(run)), tuple(dict.fromkeys(skipped))
    )


def _format_line(line: PamLine) -> str:
    module = [_quote(line.module)] if line.module else []
    words = [_bracket(line.control), *module, *(_quote(arg) for arg in line.args)]
    return " ".join(["-" * line.silent + line.kind, *words])


def _quote(word: str) -> str:
    """Write a word so that it is read as one; a bracket opens only where it comes first."""
    plain = word and word[0] != "[" and not re.search(r"[ \t]", word)
    return word if plain else _bracket(word)


def _bracket(word: str) -> str:
    return "[" + word.replace("]", "\\]") + "]"
