# SPDX-License-Identifier: BSD-2-Clause
"""Write what a sysctl must become, as commands and in thought, and name the lines that state it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..core.cause import Remedy, append_line, cite, comment_out, replace_line
from ..core.fields import raise_fields
from ..core.finding import PASS, Requirement
from ..core.line_edit import edit_value, find_row, find_top
from ..core.quote import one_line
from ..core.values import Declaration, NamedTuple
from .model import KernelFacts, is_effective, judge_value, list_boot_files
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES, order_files, parse_sysctl_conf
from .sysctl_writes import SYSTEMD, resolve_sysctl
from .tuned_profile import list_excluded

_OF_PACKAGES = ("/usr/lib/", "/lib/")


def find_value(wanted: Requirement, running: str | None) -> str:
    """Return the value that meets a requirement with least change.

    :param running: What it is now, of which no number is lowered.
    """
    if wanted.exact is not None:
        return wanted.exact
    if wanted.fields:
        return raise_fields(wanted.fields, running or "")
    return str(wanted.maximum if wanted.minimum is None else wanted.minimum)


def list_lines(facts: KernelFacts) -> tuple[Declaration, ...]:
    """Return the lines that concern the key in what a boot reads, the strongest last."""
    files = list_boot_files(facts)
    found = resolve_sysctl(files, [facts.key], SYSTEMD, facts.is_taken).get(facts.key)
    return () if found is None else (*found.shadowed, found.winner)


def list_read_lines(facts: KernelFacts) -> list[Declaration]:
    """Return the lines that concern the key, in the order in which a boot reads them."""
    found = set(list_lines(facts))
    every = (line.declaration for line in SYSTEMD.read(list_boot_files(facts)))
    return [line for line in every if line in found]


def list_unread_lines(facts: KernelFacts) -> list[Declaration]:
    """Return the lines about the key of files that a boot does not read."""
    read = order_files(list_boot_files(facts))
    links = {facts.real.get(path, path) for path in read}
    return [
        line.declaration
        for path, text in facts.files.items()
        if path not in read and facts.real.get(path, path) not in links
        for line in parse_sysctl_conf(text, path)
        if line.key == facts.key
    ]


def find_rivals(
    wanted: Requirement, line: Declaration, facts: KernelFacts
) -> tuple[Declaration, ...]:
    """Return the other lines that state enough, the strongest last."""
    return tuple(
        locate_file(one, facts)
        for one in list_lines(facts)
        if one != line
        and is_effective(facts, one)
        and judge_value(wanted, facts.normalize(one.value)) == PASS
    )


def cite_line(line: Declaration, facts: KernelFacts) -> str:
    """Name a line by the file that holds it, and by the link through which it is read."""
    real = locate_file(line, facts)
    return cite(real) + (f", read as {one_line(line.path)}," if real != line else "")


def compare_lines(line: Declaration, rival: Declaration) -> str:
    """Return the code of why one line beats another."""
    if line.path == rival.path:
        after = line.line > rival.line
        return "sysctl-later-line-wins" if after else "sysctl-name-beats-pattern"
    if line.path == SYSCTL_CONF:
        return "sysctl-conf-wins"
    names = [one.path.rpartition("/")[2] for one in (line, rival)]
    if names[0] < names[1] and rival.path != SYSCTL_CONF:
        return "sysctl-name-beats-pattern"
    if line.path.startswith("/run/"):
        return "sysctl-run-file-wins"
    if line.path.startswith(_OF_PACKAGES):
        return "sysctl-vendor-file-wins"
    return "sysctl-later-file-wins"


FOLDER = "/etc/sysctl.d"
_EDITABLE = ("/etc/", "/usr/local/")
_SITE_NAMES = ("95-site.conf", "99-zz-site.conf", "zz-site.conf", "zzzz-site.conf")
_MODULES_FOLDER = "/etc/modules-load.d"


class Fix(NamedTuple):
    """A remedy, and the facts as they are once it was carried out."""

    remedy: Remedy
    facts: KernelFacts


def locate_file(at: Declaration, facts: KernelFacts) -> Declaration:
    """Return a statement by the file that holds it, where it was read through a link."""
    return at._replace(path=facts.real.get(at.path, at.path))


def fix_by_comment(at: Declaration, facts: KernelFacts, value: str) -> Fix:
    """Make a line of a file ineffective; one that must not be edited is overruled instead."""
    at = _find_whole(at, facts)
    return _edit(comment_out(at), at, facts, f"# {at.text}") or fix_by_stating(facts, value)


def fix_by_line(at: Declaration, facts: KernelFacts, value: str) -> Fix:
    """Put the right line in the place of one."""
    line = f"{facts.key} = {value}"
    at = _find_whole(at, facts)
    return _edit(replace_line(at, line), at, facts, line) or fix_by_stating(facts, value)


def _find_whole(at: Declaration, facts: KernelFacts) -> Declaration:
    """Return a statement with the whole line for its text, where it still stands there.

    A link that leads out of root's folders is not followed: what it leads to is somebody else's.
    """
    if not find_top(locate_file(at, facts).path):
        return at._replace(line=0)
    whole = find_row(at, facts.files.get(at.path, ""))
    return whole if whole.text.strip() == at.text.strip() else at._replace(line=0)


def fix_by_stating(facts: KernelFacts, value: str) -> Fix:
    """Add a line to a file of /etc/sysctl.d that is read after those that state the key."""
    last = max((path.rpartition("/")[2] for path in facts.files), default="")
    names = [name for name in _SITE_NAMES if _is_free(name, facts)]
    fixes = [_append(name, facts, value) for name in (*names, f"{last[:-5]}.site.conf")]
    return next((fix for fix in fixes if _is_heeded(fix.facts, value)), fixes[-1])


def _append(name: str, facts: KernelFacts, value: str) -> Fix:
    path, line = f"{FOLDER}/{name}", f"{facts.key} = {value}"
    text = facts.files.get(path, "")
    is_ended = text.endswith("\n") or not text
    remedy = append_line(path, line, is_ended=is_ended)
    if not any(one.startswith(f"{FOLDER}/") for one in (*facts.files, *facts.others)):
        remedy = remedy._replace(commands=(("mkdir", "-p", FOLDER), *remedy.commands))
    text += "" if is_ended else "\n"
    return Fix(remedy, facts._replace(files={**facts.files, path: f"{text}{line}\n"}))


def _is_heeded(facts: KernelFacts, value: str) -> bool:
    """Tell whether a value is what the files give."""
    bound = resolve_sysctl(facts.files, [facts.key]).get(facts.key)
    return bound is not None and facts.normalize(bound.winner.value) == facts.normalize(value)


def _is_free(name: str, facts: KernelFacts) -> bool:
    """Tell whether a file would be ours to add to, and would hide no other."""
    paths = [f"{folder}/{name}" for folder in SYSCTL_DIRECTORIES]
    if any(path in facts.files for path in paths[1:]):
        return False
    return paths[0] not in facts.files or bool(facts.files[paths[0]].strip())


def fix_by_renaming(path: str, name: str, facts: KernelFacts) -> Fix:
    """Give a file the name under which it is read."""
    others = {one: text for one, text in facts.others.items() if one != path}
    files = {**facts.files, name: facts.others[path]}
    remedy = Remedy(f"rename the file to {one_line(name)}", (("mv", "-nT", path, name),))
    return Fix(remedy, facts._replace(files=files, others=others))


def fix_by_loading(facts: KernelFacts) -> Fix:
    """Have a module loaded before the files are read."""
    file = f"{_MODULES_FOLDER}/{facts.late}.conf"
    remedy = append_line(file, facts.late)
    text = f"load {facts.late} before the files are read, with {file}"
    return Fix(remedy._replace(text=text), facts._replace(late=""))


def fix_by_unmasking(facts: KernelFacts) -> Fix:
    """Let systemd-sysctl run at boot."""
    at = facts.stopped_by
    remedy = Remedy("take that word off the kernel command line")
    if at and at.line:
        remedy = Remedy(f"take {cite(at)} out, or have it run systemd-sysctl")
    elif at and at.path.startswith("/etc/"):
        remedy = Remedy("unmask it", (("systemctl", "unmask", "systemd-sysctl.service"),))
    return Fix(remedy, facts._replace(stopped_by=None))


def fix_by_switch(switch: Declaration, facts: KernelFacts) -> Fix:
    """Let tuned write what the files state once more after its own."""
    remedy = replace_line(switch, "reapply_sysctl = 1")
    remedy = remedy._replace(text='make it "reapply_sysctl = 1", so that the files win')
    tuned = facts.tuned and facts.tuned._replace(reapplies=True, switch=None)
    return Fix(remedy, facts._replace(tuned=tuned))


def fix_by_exclude(line: Declaration, facts: KernelFacts) -> Fix:
    """Let tuned write what the files state of this key once more after its own."""
    left = [one for one in list_excluded(line) if not fnmatchcase(facts.key, one)]
    text = " ".join(("reapply_sysctl_exclude =", ",".join(left))).strip()
    remedy = replace_line(line, text)._replace(text=f'make it "{text}", so that the files win')
    after = line._replace(text=text, value=",".join(left))
    return Fix(remedy, facts._replace(tuned=facts.tuned and facts.tuned._replace(exclude=after)))


def fix_script(index: int, facts: KernelFacts, value: str) -> Fix:
    """Change the value that a script sets; a file of a package is left to a person."""
    write = facts.scripts[index]
    at = write.at
    right = write._replace(at=at._replace(value=value))
    scripts = (*facts.scripts[:index], right, *facts.scripts[index + 1 :])
    old, new = (f"{write.before}{one}{write.after}" for one in (at.value, value))
    commands = edit_value(at, old, new) if at.value != "" else ()
    return Fix(Remedy(f"have that line set {value}", commands), facts._replace(scripts=scripts))


def _edit(remedy: Remedy, at: Declaration, facts: KernelFacts, line: str) -> Fix | None:
    """Return a remedy with what it leaves, if the line is one that may be edited by number."""
    held = facts.files.get(at.path)
    if held is None or not remedy.commands or not at.path.startswith(_EDITABLE):
        return None
    rows = held.split("\n")
    rows[at.line - 1] = line
    files = {
        path: "\n".join(rows) if at.path in (path, facts.real.get(path)) else text
        for path, text in facts.files.items()
    }
    return Fix(remedy, facts._replace(files=files))
