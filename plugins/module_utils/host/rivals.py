# SPDX-License-Identifier: BSD-2-Clause
"""Name who else writes the files at fault, and those that we change: what they wrote comes back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from ..core.edit import HEADER, OURS
from ..core.quote import one_line
from .door import find_paths, open_file, read_handle
from .files import follow_links, list_folder, read_text, under
from .program import run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.finding import Finding
    from ..core.plan import SectionPlan
    from ..core.values import Declaration

_HEAD = 15  # Lines; a generated file says so at its start.
_COMMENT = re.compile(r"\s*(?:#|;|//|--|<!--|/\*)\s*(\S.*)")
_SAYS_WHO = re.compile(
    r"\b(?:managed|generated|created|maintained|written|controlled|deployed|configured|installed)"
    r"\b.{0,60}\b(?:by|with|from|using)\s+\w"
    r"|\bansible[ _]managed\b|\b(?:auto-?generated|system_role:)"
    r"|\bdo not (?:edit|modify|change|touch)\b|\b(?:changes|edits|modifications)\b.{0,60}"
    r"\b(?:lost|overwritten|overridden|discarded)\b",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"\s*#\s*(BEGIN|END)\b.*(MANAGED|managed|cloud-init|puppet)")


def find_header(text: str, line: int = 0) -> str:
    """Return ``line N says "…"`` where a file's head, or a block's mark, names who writes it.

    :param line: The number of a line in the file: marks of a block count where it lies inside.
    """
    rows = text.splitlines()
    start = _find_block(rows, line)
    if start:
        return _cite(start, rows[start - 1])
    if text.startswith(HEADER):
        return ""
    for number, row in enumerate(rows[:_HEAD], start=1):
        comment = _COMMENT.match(row)
        if comment and not _BLOCK.match(row) and _SAYS_WHO.search(comment[1]):
            return _cite(number, row)
    return ""


def _find_block(rows: list[str], line: int) -> int:
    """Return the number of the mark that opens the block around a line; 0 where there is none."""
    start = 0
    for number, row in enumerate(rows[:line], start=1):
        mark = _BLOCK.match(row)
        if mark:
            start = number if mark[1] == "BEGIN" else 0
    return start


def _cite(number: int, row: str) -> str:
    return f'line {number} says "{" ".join(row.split())[:100]}"'


CONFFILE = "a configuration file of package "
_DPKG = "/var/lib/dpkg/info"
_RPM = "/usr/bin/rpm"
_TIME_LIMIT = 20.0
_LARGEST = 2**20


def find_packages(paths: Iterable[str], root: str = "/", rpm: str = _RPM) -> dict[str, str]:
    """Return, by path, ``package NAME``, or what part of which package else.

    Files that no package knows are left out, and all are where the package manager is unknown.

    :param root: The tree whose packages are meant.
    """
    dpkg = under(_DPKG, root)
    wanted = {path: _names_of(path) for path in paths}
    found: dict[str, str] = {}
    for path, package in _find_in(f"{dpkg}/*.list", wanted, whole_line=True):
        found.setdefault(path, _describe(path, package))
    rest = {path: names for path, names in wanted.items() if path not in found}
    for path, package in _find_in(f"{dpkg}/*.postinst", rest, whole_line=False):
        found.setdefault(path, f"written by the installation script of package {package}")
    if not os.path.isdir(dpkg) and os.access(rpm, os.X_OK):
        found.update(_ask_rpm(rest, [rpm, "--root", root]))
    return found


def _names_of(path: str) -> list[bytes]:
    """Return a path as dpkg may know it: some packages still say /lib for /usr/lib."""
    names = [os.fsencode(path)]
    if path.startswith("/usr/lib/"):
        names.append(os.fsencode(path[len("/usr") :]))
    return names


def _find_in(
    pattern: str, wanted: dict[str, list[bytes]], whole_line: bool
) -> Iterable[tuple[str, str]]:
    for file in find_paths(pattern) if wanted else ():
        try:
            content = b"\n" + read_handle(open_file(file), _LARGEST, file)
        except OSError:
            continue
        for path, names in wanted.items():
            marks = [b"\n" + name + b"\n" for name in names] if whole_line else names
            if any(mark in content for mark in marks):
                yield path, os.path.basename(file).rpartition(".")[0].partition(":")[0]


def _ask_rpm(paths: Iterable[str], rpm: Sequence[str]) -> Iterable[tuple[str, str]]:
    for path in paths:
        query = [*rpm, "-qf", "--queryformat", "%{NAME}\\n", path]
        code, text = run_program(query, _TIME_LIMIT, with_errors=False)
        if code < 0:
            return
        if code == 0:
            yield path, _describe(path, text.split()[0])


def _describe(path: str, package: str) -> str:
    return f"{CONFFILE}{package}" if path.startswith("/etc/") else f"package {package}"


_VENDOR = ("/usr/", "/lib/")


def name_writers(findings: Iterable[Finding], root: str = "/") -> list[Finding]:
    """Return the findings, their causes with the writer of each file at fault.

    :param root: The tree that the files are of.
    """
    findings = list(findings)
    at = {cause.at for finding in findings for cause in finding.causes if cause.at}
    writers = find_writers(at, root)
    return [
        finding._replace(
            causes=tuple(
                cause._replace(writer=writers.get(cause.at, "")) if cause.at else cause
                for cause in finding.causes
            )
        )
        for finding in findings
    ]


def find_writers(lines: Iterable[Declaration], root: str = "/") -> dict[Declaration, str]:
    """Return who else writes the file of each line, by its header, its place or its package."""
    lines = [line for line in lines if line.path.startswith("/")]
    packages = find_packages({line.path for line in lines}, root)
    found = {}
    for line in lines:
        package = packages.get(line.path, "")
        maker = name_generator(line.path, root)
        maker = "" if package and maker.startswith("perhaps") else maker
        said = [_read_header(line, root), maker, package]
        writer = "; ".join(text for text in said if text)
        if writer:
            found[line] = writer
    return found


def _read_header(line: Declaration, root: str) -> str:
    try:
        text = read_text(line.path, root) or ""
    except OSError:
        return ""
    return OURS if text.startswith(HEADER) else one_line(find_header(text, line.line))


def describe_rivals(plans: Iterable[SectionPlan]) -> Iterator[str]:
    """Yield a note for every foreign file that a plan changes or loses to, and its other writer.

    What a package's update leaves alone once it was changed, or is known to replace, is left out.
    """
    from ..core.values import Declaration

    lines = {}
    for plan in plans:
        for shortfall in plan.shortfalls:
            lines[shortfall.foreign.path] = shortfall.foreign
        for edit in plan.edits:
            if edit.of_others:
                lines.setdefault(edit.path, Declaration(edit.path, 0, "", ""))
    for line, writer in find_writers(lines.values()).items():
        if not line.path.startswith(_VENDOR) and not writer.startswith(CONFFILE):
            yield f"{line.path}: {writer}; what is changed there may be undone"


_AUTHSELECT = "/etc/authselect/"
_UNIT_OF_SNAP = re.compile(r"/etc/systemd/system/snap\.([^./]+)\.[^/]+\.(?:service|socket|timer)")
_BASES = ("/run", "/var/lib", "/usr/local/lib", "/usr/lib")
_EXTENSIONS = {
    "/usr/": ("extensions", "/usr/lib/extension-release.d"),
    "/opt/": ("extensions", "/usr/lib/extension-release.d"),
    "/etc/": ("confexts", "/etc/extension-release.d"),
}
"""By what an extension lays itself over: where extensions lie, and what says that one does."""

_RELEASE = "extension-release."


def name_generator(path: str, root: str = "/") -> str:
    """Return who writes a file, and what becomes of an edit; nothing where that is not known.

    Sources: authselect-profiles(5), snapd's ``wrappers`` package, systemd-sysext(8).
    """
    try:
        real = follow_links(path, root)
        if real.startswith(_AUTHSELECT):
            return _name_profile(root)
        snap = _UNIT_OF_SNAP.fullmatch(real)
        if snap:
            return f"snapd, for the snap {snap[1]}: its next refresh undoes an edit, no drop-in"
        return _find_extension(real, root)
    except OSError:
        return ""


def _name_profile(root: str) -> str:
    rows = (read_text(f"{_AUTHSELECT}authselect.conf", root) or "").split("\n")
    name = rows[0].strip()
    profile = f", by its profile {name}" if re.fullmatch(r"[\w./-]+", name) else ""
    return (
        f"authselect{profile}: an edit is undone by its next apply-changes; what stays is "
        f"a profile below {_AUTHSELECT}custom"
    )


def _find_extension(path: str, root: str) -> str:
    """Return the extension that lays a file over the system's own."""
    top = next((top for top in _EXTENSIONS if path.startswith(top)), "")
    if not top:
        return ""
    kind, releases = _EXTENSIONS[top]
    merged = [name[len(_RELEASE) :] for name in list_folder(releases, root)]
    for name in merged:
        for folder in (f"{base}/{kind}" for base in _BASES):
            if os.path.lexists(under(f"{folder}/{name}", root) + path):
                return f"the system extension {folder}/{name}: an edit of it belongs there"
    images = [f"{base}/{kind}/{name}.raw" for base in _BASES for name in merged]
    found = [image for image in images if os.path.exists(under(image, root))]
    return f"perhaps a system extension: {', '.join(found)}" if found else ""
