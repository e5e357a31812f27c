# SPDX-License-Identifier: BSD-2-Clause
"""Plan the files that keep a cache directory: at boot, while it ages, and for each job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.cause import cite
from ..core.edit import HEADER
from ..core.plan import SectionPlan, plan_edits
from ..core.values import Declaration, NamedTuple

FSTAB = "/etc/fstab"
TMPFILES = "/etc/tmpfiles.d/90-mlhost.conf"
PROFILE = "/etc/profile.d/90-mlhost.sh"
VARIABLES = ("WIDS_CACHE", "WDS_CACHE")
_MARK = "x-mlhost.workspace"
"""An option that mount(8) skips, and by which our line is known again."""

_PATH = re.compile(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+")
_TOP_NAMES = "bin boot dev etc home lib lib64 proc root run sbin sys usr var tmp mnt opt srv media"
_TOPS = frozenset(f"/{name}" for name in _TOP_NAMES.split())
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\$?")
_MODE = re.compile(r"[0-7]{3,4}")
_AGE = re.compile(r"([0-9]+(us|ms|s|m|min|h|d|w))+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = re.compile(r'^mlhost_cache="(.+)/\$\(id -u\)', re.MULTILINE)


class Workspace(NamedTuple):
    """What is wanted: a directory, its owner and mode, and what else is written for it.

    ``size`` in bytes makes it a tmpfs, ``age`` as tmpfiles.d(5) writes it cleans it up,
    ``variables`` name each job's own directory below it, ``prolog`` is where a TaskProlog of Slurm
    is written.
    """

    path: str
    owner: str = "root"
    group: str = "root"
    mode: str = "1777"
    size: int | None = None
    age: str = ""
    variables: tuple[str, ...] = ()
    prolog: str = ""
    absent: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that are read before they are planned."""
        return (FSTAB, TMPFILES, PROFILE, *([self.prolog] if self.prolog else []))


def plan_workspace(wanted: Workspace, files: Mapping[str, str]) -> SectionPlan:
    """Return the edits that keep a workspace.

    :param files: The text of each of its files that is there, by path.
    """
    problems = tuple(_find_problems(wanted, files))
    if problems:
        return SectionPlan(problems=problems)
    after = {
        FSTAB: _set_line(files.get(FSTAB), wanted),
        TMPFILES: _set_rule(files.get(TMPFILES), wanted),
    }
    sets = bool(wanted.variables) and not wanted.absent
    snippets = {PROFILE: _write_profile(wanted)}
    if wanted.prolog:
        snippets[wanted.prolog] = _write_prolog(wanted)
    for file, text in snippets.items():
        others = _find_named(files.get(file)) not in (None, wanted.path)
        after[file] = text if sets else files.get(file) if others else None
    edits = plan_edits(files, after)
    said = f"jobs of Slurm get it once slurm.conf states TaskProlog={wanted.prolog}"
    notes = (said,) if wanted.prolog and sets else ()
    edits = tuple(
        edit._replace(mode=0o755) if edit.path == wanted.prolog else edit for edit in edits
    )
    return SectionPlan(edits, notes=notes)


def name_both(option: str) -> str:
    """Return the name of an option, with the variable that the role reads in its place."""
    return f"{option} (mlhost_limits_workspace_{option})"


def _find_problems(wanted: Workspace, files: Mapping[str, str]) -> Iterator[str]:
    path = wanted.path
    if not _PATH.fullmatch(path) or "/.." in path or path in _TOPS:
        yield (
            f"{name_both('path')}: {path!r} was given; accepted is an absolute path of letters,"
            " digits and ._-, which is not a directory of the system"
        )
    checks = (
        ("owner", wanted.owner, _NAME, "a user"),
        ("group", wanted.group, _NAME, "a group"),
        ("mode", wanted.mode, _MODE, "an octal number, such as 1777"),
        ("max_age", wanted.age or "1d", _AGE, "a time as tmpfiles.d(5) writes it, such as 10d"),
        ("task_prolog", wanted.prolog or "/x/x", _PATH, "an absolute path"),
        *(("variables", name, _VARIABLE, "a variable's name") for name in wanted.variables),
    )
    for name, value, pattern, accepted in checks:
        if not pattern.fullmatch(value):
            yield f"{name_both(name)}: {value!r} was given; accepted is {accepted}"
    if wanted.prolog and not wanted.variables:
        yield f"{name_both('task_prolog')}: sets variables, and {name_both('variables')} names none"
    yield from _find_owned(wanted, files)
    foreign = [line for line in _find_lines(files.get(FSTAB), path) if _MARK not in line.text]
    if foreign and wanted.size is not None:
        yield f"{cite(foreign[0])} mounts {path} already; leave out the size"


def _find_owned(wanted: Workspace, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the files that somebody else wrote, or that serve another workspace."""
    sets = bool(wanted.variables) and not wanted.absent
    for file in (TMPFILES, PROFILE, wanted.prolog):
        named = _find_named(files.get(file))
        if not files.get(file, HEADER).startswith(("#!/bin/sh\n" + HEADER, HEADER)):
            yield f"{file}: is of somebody else; move it out of the way first"
        elif sets and named not in (None, wanted.path):
            yield (
                f"{file}: names directories below {named}; take that back with state absent, or"
                " give no variables for one of the two"
            )


def _find_lines(text: str | None, path: str) -> Iterator[Declaration]:
    """Yield the lines of fstab(5) for a directory."""
    for number, row in enumerate((text or "").split("\n"), start=1):
        cells = row.split()
        if len(cells) > 3 and not row.lstrip().startswith("#") and cells[1].rstrip("/") == path:
            yield Declaration(FSTAB, number, row, cells[1])


def format_mount(wanted: Workspace) -> str:
    """Return the options of the tmpfs, as fstab and mount(8) take them."""
    who = f"uid={wanted.owner},gid={wanted.group}"
    return f"rw,nosuid,nodev,size={wanted.size},mode={wanted.mode},{who},{_MARK}"


def is_ours(text: str | None, path: str) -> bool:
    """Tell whether a line of ours mounts the directory at boot."""
    return any(_MARK in line.text for line in _find_lines(text, path))


def _set_line(text: str | None, wanted: Workspace) -> str | None:
    """Return fstab with our line for the directory, where it stood or at the end, or without."""
    rows = [] if text is None else text.split("\n")
    own = [line.line - 1 for line in _find_lines(text, wanted.path) if _MARK in line.text]
    if wanted.absent or wanted.size is None:
        left = [row for number, row in enumerate(rows) if number not in own]
        return "\n".join(left) if own else text
    line = f"tmpfs {wanted.path} tmpfs {format_mount(wanted)} 0 0"
    if own:
        return "\n".join([*rows[: own[0]], line, *rows[own[0] + 1 :]])
    # A text without a line end at its end has none after the line is taken out again.
    ended = not rows or rows[-1] == ""
    return "\n".join([*rows[:-1], line, ""] if ended else [*rows, line])


def _set_rule(text: str | None, wanted: Workspace) -> str | None:
    """Return the rules of tmpfiles.d(5), one for each workspace: made at boot, cleaned by age."""
    rules = {row.split()[1]: row for row in (text or "").split("\n") if row.startswith("d ")}
    fields = (wanted.path, wanted.mode.zfill(4), wanted.owner, wanted.group, wanted.age or "-")
    rules[wanted.path] = f"d {' '.join(fields)}"
    if wanted.absent:
        del rules[wanted.path]
    return "\n".join([HEADER, *rules.values(), ""]) if rules else None


def has_rule(text: str | None, path: str) -> bool:
    """Tell whether a rule of ours makes the directory at boot."""
    rows = [row.split() for row in (text or "").split("\n")]
    return any(row[:2] == ["d", path] for row in rows)


def _find_named(text: str | None) -> str | None:
    """Return the workspace below which a script of ours names directories."""
    match = _NAMED.search(text or "")
    return match[1] if match else None


_MAKE = """\
if mkdir -p -m 0700 "$mlhost_cache" 2>/dev/null &&
   [ -O "$mlhost_cache" ] && [ ! -L "$mlhost_cache" ]; then
"""


def _write_profile(wanted: Workspace) -> str:
    """Return what each login and batch script reads: a directory of one's own, and its variables.

    What somebody else has made under that name, or a link, is not used.
    """
    sets = "".join(f'    export {name}="$mlhost_cache"\n' for name in wanted.variables)
    own = f'mlhost_cache="{wanted.path}/$(id -u)${{SLURM_JOB_ID:+-$SLURM_JOB_ID}}"\n'
    return f"{HEADER}\n{own}{_MAKE}{sets}fi\nunset mlhost_cache\n"


def _write_prolog(wanted: Workspace) -> str:
    """Return a TaskProlog, whose lines that begin with export become a task's environment."""
    sets = "".join(f'    echo "export {name}=$mlhost_cache"\n' for name in wanted.variables)
    own = f'mlhost_cache="{wanted.path}/$(id -u)-$SLURM_JOB_ID-$SLURM_PROCID"\n'
    return f"#!/bin/sh\n{HEADER}\n{own}{_MAKE}{sets}fi\nexit 0\n"
