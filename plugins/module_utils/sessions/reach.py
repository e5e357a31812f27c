# SPDX-License-Identifier: BSD-2-Clause
"""Say why pam_limits does not run in a service's sessions, or reads something else."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..core.cause import Cause, Remedy, append_line, cite, prepend_line, replace_line
from ..core.distribution import Dialect
from ..core.line_edit import edit_line, find_row, refuse
from ..core.values import Declaration, NamedTuple
from .limits_conf import LimitsLine, parse_limits_conf
from .pam_limits import LIMITS_CONF
from .pam_stack import (
    PamLine,
    declare_call,
    find_pam_limits,
    find_service_file,
    flatten,
    is_fatal,
    read_limits_options,
)

CODES = {
    "sshd-without-pam": "sshd does not use PAM, so no limits file counts for its sessions",
    "pam-limits-missing": "the service's PAM stack does not call pam_limits",
    "pam-limits-elsewhere": "pam_limits reads the file that conf= names, and nothing else",
    "pam-limits-fails": "pam_limits fails, and the stack does not mind",
    "pam-limits-skipped": "an earlier line of the PAM stack ends it or jumps over pam_limits",
    "pam-service-missing": "the service has no PAM file, and the one of 'other' counts",
}

_RELOGIN = "log in again"
_CALL = "session required pam_limits.so"
_COMMENTED = re.compile(r"[ \t]*#[# \t]*session[ \t]+.*\bpam_limits\b.*")
_JUMP = re.compile(r"\b(?:success|ignore|default)=([1-9][0-9]*)\b")


class Hindrance(NamedTuple):
    """Why the limits files do not count; ``lines`` are those that do instead, if any do.

    ``ends``: whether no session opens. ``bypasses``: whether nothing of the stack runs.
    """

    cause: Cause
    lines: tuple[LimitsLine, ...] | None = None
    ends: bool = False
    bypasses: bool = False


def find_bypass(use_pam: Declaration, unit: str) -> Hindrance | None:
    """Return why PAM has no say in the sessions of sshd, if it has none.

    :param unit: The unit of sshd, which must read its configuration again.
    """
    if use_pam.value == "yes":
        return None
    reload = ("systemctl", "reload-or-restart", unit)
    if use_pam.line:
        remedy = replace_line(use_pam, "UsePAM yes", _RELOGIN)
        text = f"{cite(use_pam)} keeps PAM, and with it every limits file, out of sshd's sessions"
    else:
        remedy = prepend_line(use_pam.path, "UsePAM yes", _RELOGIN)
        text = f"{use_pam.path}: {use_pam.text}, so that no limits file counts for sshd's sessions"
    remedy = remedy._replace(commands=(*remedy.commands, reload) if remedy.commands else ())
    return Hindrance(Cause("sshd-without-pam", text, remedy, use_pam), bypasses=True)


def find_hindrances(
    service: str,
    files: Mapping[str, str],
    missing: Collection[str],
    confs: Mapping[str, str],
    dialect: Dialect,
) -> Iterator[Hindrance]:
    """Yield why the limits files do not count for a service, in the order of the stack.

    :param files: Text of every PAM service file, by path.
    :param missing: Modules that the host lacks.
    :param confs: Text of the files that ``conf=`` names, those that exist.
    :raises ValueError: If libpam refuses the service.
    """
    lines = flatten(service, "session", files)
    calls = find_pam_limits(lines)
    if not calls:
        yield Hindrance(_warn_of_authselect(_blame_absence(service, files), files))
        return
    skippers = list(find_skippers(lines, calls))
    reached = [call for call, skipper in zip(calls, skippers) if skipper is None]
    if not reached and skippers[-1]:
        cause = _blame_skipper(skippers[-1], calls[-1], files)
        yield Hindrance(_warn_of_authselect(cause, files))
    last = (reached or calls)[-1]
    for call in reached or calls[-1:]:
        if _fails(call, missing, confs) and (call == last or _ends(call, missing)):
            cause = _blame_failure(call, missing, files)
            yield Hindrance(_warn_of_authselect(cause, files), ends=_ends(call, missing))
    conf = read_limits_options(last).conf
    if not _fails(last, missing, confs) and conf is not None:
        read = parse_limits_conf(confs[conf], conf, dialect.line_length)
        cause = _warn_of_authselect(_blame_conf(last, conf, files), files)
        yield Hindrance(cause, tuple(read))


def _fails(call: PamLine, missing: Collection[str], confs: Mapping[str, str]) -> bool:
    """Tell whether a call fails, for want of its module or of the file that it names."""
    conf = read_limits_options(call).conf
    return call.module in missing or (conf is not None and conf not in confs)


def _ends(call: PamLine, missing: Collection[str]) -> bool:
    """Tell whether no session opens where a call fails."""
    if call.module in missing:
        return not call.silent and is_fatal(call, "module_unknown")
    return is_fatal(call, "service_err")


class EarlierCall(NamedTuple):
    """A call of pam_limits before the last, which reads other files.

    ``lines`` are those of the file that it names; nothing stands for those of the usual ones.
    """

    lines: tuple[LimitsLine, ...] | None
    is_fatal: bool


def find_earlier(
    service: str, files: Mapping[str, str], confs: Mapping[str, str], dialect: Dialect
) -> tuple[EarlierCall, ...]:
    """Return the calls of pam_limits before the last, if any of them reads other files.

    :raises ValueError: If libpam refuses the service.
    """
    reached = _find_reached(service, files)
    named = [read_limits_options(call).conf for call in reached]
    if len(set(named)) < 2:
        return ()
    texts = [(call, conf, confs.get(conf or "")) for call, conf in zip(reached[:-1], named)]
    return tuple(
        EarlierCall(text if text is None else _read(text, conf, dialect), is_fatal(call))
        for call, conf, text in texts
        if conf is None or text is not None
    )


def _read(text: str, conf: str | None, dialect: Dialect) -> tuple[LimitsLine, ...]:
    return tuple(parse_limits_conf(text, conf or LIMITS_CONF, dialect.line_length))


def _find_reached(service: str, files: Mapping[str, str]) -> list[PamLine]:
    """Return the calls of pam_limits that libpam reaches."""
    lines = flatten(service, "session", files)
    calls = find_pam_limits(lines)
    skippers = find_skippers(lines, calls)
    return [call for call, skipper in zip(calls, skippers) if skipper is None]


def ends_with_limits(service: str, files: Mapping[str, str]) -> bool:
    """Tell whether no session opens through a service where the last pam_limits fails.

    Those that read the same files fail with it.

    :raises ValueError: If libpam refuses the service.
    """
    reached = _find_reached(service, files)
    conf = read_limits_options(reached[-1]).conf if reached else None
    return any(is_fatal(one) for one in reached if read_limits_options(one).conf == conf)


_BY_AUTHSELECT = re.compile("# *(?:Generated by|Do not edit.*) authselect", re.IGNORECASE)


def _warn_of_authselect(cause: Cause, files: Mapping[str, str]) -> Cause:
    """Say of a remedy that edits a file of authselect's how long it lasts."""
    if not cause.at or not _BY_AUTHSELECT.search(files.get(cause.at.path, "")[:1000]):
        return cause
    more = (
        f"; authselect writes {cause.at.path}, and its next apply-changes undoes this: "
        "do the same in a profile below /etc/authselect/custom"
    )
    return cause._replace(remedy=cause.remedy._replace(text=f"{cause.remedy.text}{more}"))


def _blame_absence(service: str, files: Mapping[str, str]) -> Cause:
    path = find_service_file(service, files)
    if path is None:
        text = f"there is no PAM file for {service}, and 'other' does not call pam_limits"
        made = f"/etc/pam.d/{service}"
        target = shlex.quote(made)
        line = f"[ ! -e {target} ] && {{ cat /etc/pam.d/other; echo; echo '{_CALL}'; }} > {target}"
        line += refuse(made, "exists by now: nothing was done.")
        remedy = Remedy("make one: that of 'other', with pam_limits", (("sh", "-c", line),))
        return Cause("pam-service-missing", text, remedy._replace(then=_RELOGIN))
    for number, line in enumerate(files[path].split("\n"), 1):
        if _COMMENTED.fullmatch(line):
            at = Declaration(path, number, line, "pam_limits.so")
            text = f"{cite(at)} is commented out, so that no limits file counts for {service}"
            remedy = Remedy("uncomment it", edit_line(at, "s/^[# \\t]*//"), _RELOGIN)
            return Cause("pam-limits-missing", text, remedy, at)
    at = Declaration(path, 0, "no pam_limits", "")
    text = f"{path} does not call pam_limits, so that no limits file counts for {service}"
    return Cause("pam-limits-missing", text, append_line(path, _CALL, _RELOGIN), at)


def find_skippers(lines: Sequence[PamLine], calls: Sequence[PamLine]) -> Iterator[PamLine | None]:
    """Yield the line that keeps libpam from reaching each call, as far as that can be read."""
    reach: list[int] = []  # How far the farthest jump of the lines up to each leads.
    farthest, waiting = 0, iter(calls)
    call = next(waiting, None)
    for index, line in enumerate(lines):
        if line is call:
            call = next(waiting, None)
            first = bisect_left(reach, index)
            yield lines[first] if first < index else None
        farthest = max(farthest, _measure_jump(index, line, len(lines)))
        reach.append(farthest)


def _measure_jump(index: int, line: PamLine, end: int) -> int:
    """Return the last line that is not reached after this one; 0 where all are."""
    if line.level:
        return 0
    if line.control.lower() == "sufficient" or "success=done" in line.control:
        return end
    jump = _JUMP.search(line.control)
    return index + int(jump[1][:9]) if jump else 0


def _blame_skipper(skipper: PamLine, call: PamLine, files: Mapping[str, str]) -> Cause:
    at = declare_call(skipper)
    text = f"{cite(at)} ends the stack or jumps before {call.place} calls pam_limits"
    commands = edit_line(find_row(at, files[at.path]), f"i\\{_CALL}")
    remedy = Remedy("call pam_limits before that line", commands, _RELOGIN)
    return Cause("pam-limits-skipped", text, remedy, at)


def _blame_failure(call: PamLine, missing: Collection[str], files: Mapping[str, str]) -> Cause:
    at = declare_call(call)
    lacks = call.module if call.module in missing else read_limits_options(call).conf
    reason = f"{lacks} is missing"
    effect = "no session opens" if _ends(call, missing) else "the stack goes on without it"
    text = f"{cite(at)} fails, since {reason}, and {effect}"
    remedy = replace_line(find_row(at, files[at.path]), _CALL, _RELOGIN)
    return Cause("pam-limits-fails", text, remedy, at)


def _blame_conf(call: PamLine, conf: str, files: Mapping[str, str]) -> Cause:
    at = declare_call(call)
    skipped = (
        "no file of limits.d" if conf == LIMITS_CONF else f"neither {LIMITS_CONF} nor limits.d"
    )
    text = f"{cite(at)} reads {conf} and {skipped}"
    commands = edit_line(find_row(at, files[at.path]), "s/[ \\t]conf=[^ \\t]*//g")
    remedy = Remedy(f"take {shlex.quote('conf=' + conf)} out of that line", commands, _RELOGIN)
    return Cause("pam-limits-elsewhere", text, remedy, at, ())
