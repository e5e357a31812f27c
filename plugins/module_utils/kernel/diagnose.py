# SPDX-License-Identifier: BSD-2-Clause
"""Say why sysctls fall short, now or after a boot, and show who can set one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from ..core.cause import Link, Outlook, cite
from ..core.distribution import find_distribution
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement, judge
from ..core.values import Declaration
from ..host.look import Look
from .boot_loader import find_loader_doubts
from .boot_read import BootRead
from .boot_scripts import (
    ScriptWrite,
    find_credential_writes,
    find_loader_words,
    find_script_writes,
)
from .host_read import KernelRead
from .model import (
    LOADER,
    KernelFacts,
    find_defaults,
    find_module,
    find_start,
    judge_forecast,
    predict_boot,
)
from .policy import KernelValue, require_kernel
from .read import read_sysctl, sysctl_path
from .sysctl_conf import parse_sysctl_conf, parse_sysctl_number
from .sysctl_writes import find_procps


def check_kernel(asked: Mapping[str, KernelValue], look: Look) -> Iterator[Finding]:
    """Yield what each sysctl is now, why it falls short, and what a boot will make of it."""
    yield from explain_kernel(list(_judge_kernel(asked)), look)


def _judge_kernel(asked: Mapping[str, KernelValue]) -> Iterator[Finding]:
    for key, value in asked.items():
        how = "/proc/sys"
        try:
            text = read_sysctl(key)
            reason = "" if text is not None else "this kernel has no such sysctl"
        except OSError as exc:
            text, reason = None, f"cannot be read: {exc.strerror}"
        seen: int | str | None = text
        if text is not None and value.exact is None and not value.fields:
            number = parse_sysctl_number(text)
            seen = text if number is None else number
        yield judge(require_kernel(key, value), Observation(seen, how, reason))


def explain_kernel(findings: Sequence[Finding], look: Look) -> Iterator[Finding]:
    """Yield the findings with their causes, and with what a boot will make of them."""
    for finding in findings:
        try:
            yield _explain(finding, look)
        except OSError:  # What may not be read is not known.
            yield finding._replace(outlook=Outlook(after_boot=UNKNOWN))


def _explain(finding: Finding, look: Look) -> Finding:
    wanted = finding.requirement
    if finding.status == UNKNOWN:
        return _explain_unknown(finding)
    facts = gather_key(wanted.item, look.at(KernelRead).boot, read_sysctl(wanted.item))
    later = foretell_key(wanted, facts, look.at(KernelRead).boot)
    if finding.status == PASS and later == PASS:
        return finding._replace(outlook=Outlook(after_boot=later))
    from .causes import find_kernel_causes, find_unclear

    if finding.status == PASS and later != FAIL:
        causes = find_unclear(wanted, facts) if later == UNKNOWN else []
        return finding._replace(causes=tuple(causes), outlook=Outlook(after_boot=later))

    facts = _look_closer(facts, look)
    later = foretell_key(wanted, facts, look.at(KernelRead).boot)
    knows = facts.read_only or look.at(KernelRead).boot.applies_files
    causes = find_kernel_causes(wanted, facts) if knows else []
    return finding._replace(causes=tuple(causes), outlook=Outlook(after_boot=later))


def _explain_unknown(finding: Finding) -> Finding:
    key, causes = finding.requirement.item, finding.causes
    if finding.observation.value is None and read_sysctl(key) is None:
        from .causes_now import blame_absence

        causes = (blame_absence(key),)
    return finding._replace(causes=causes, outlook=Outlook(after_boot=UNKNOWN))


def foretell_key(wanted: Requirement, facts: KernelFacts, boot: BootRead) -> str:
    """Return whether a boot will meet a requirement, as far as this system shows it."""
    if facts.read_only or not boot.applies_files:
        return UNKNOWN
    return judge_forecast(wanted, predict_boot(facts))


def gather_key(key: str, boot: BootRead, running: str | None) -> KernelFacts:
    """Return what decides a key, less what only an explanation needs.

    :param running: Its value now.
    """
    number = None if running is None else parse_sysctl_number(running)
    module = find_module(key)
    return KernelFacts(
        key=key,
        running=running,
        files=boot.files,
        others={},
        real={},
        passing=boot.passing,
        defaults=find_defaults(key, number, boot.raises_nr_open, boot.raises_file_max),
        command_line=boot.command_line,
        loader=(*find_loader_words(key, boot.loader), *_find_early(key, boot)),
        tuned=boot.tuned,
        recommended=boot.recommended,
        scripts=tuple(_find_writes(key, boot)),
        stopped_by=boot.stop,
        late="" if module in boot.modules.loaded else module,
        late_by=boot.modules.stops.get(module),
        procps=find_procps(find_distribution(boot.os_release)),
        read_only=boot.is_read_only(key),
    )


def _find_writes(key: str, boot: BootRead) -> Iterator[ScriptWrite]:
    """Yield what scripts set; a package's that reads files of its own says nothing of a key."""
    for write in _list_writes(key, boot, boot.weighed_scripts):
        if not write.loads or write.at.path in boot.scripts:
            yield write


def _list_writes(key: str, boot: BootRead, texts: Mapping[str, str]) -> Iterator[ScriptWrite]:
    """Yield what sets a key once the files are read: credentials, then all that runs."""
    yield from (ScriptWrite(one, blocks=True) for one in boot.applier_doubts)
    yield from (ScriptWrite(one) for one in find_loader_doubts(boot.loader))
    yield from find_credential_writes(key, boot.credentials)
    yield from find_script_writes(key, texts)


def _find_early(key: str, boot: BootRead) -> Iterator[Declaration]:
    """Yield what the initramfs sets, where its value is plain."""
    writes = find_script_writes(key, boot.early)
    return (write.at for write in writes if write.at.value != "")


def _look_closer(facts: KernelFacts, look: Look) -> KernelFacts:
    """Return all that decides a key, and what a change of it may endanger."""
    from .use_read import find_largest_nofile, read_kernel_use

    boot, key = look.at(KernelRead).boot, facts.key
    nofiles = []
    if key == "fs.nr_open":
        nofiles = [find_largest_nofile(), *look.list_promises()]
    use = read_kernel_use(nofiles)
    stated = {
        line.key for path, text in boot.files.items() for line in parse_sysctl_conf(text, path)
    }
    return facts._replace(
        others=boot.others,
        real=boot.real,
        fresh=boot.fresh,
        scripts=tuple(_list_writes(key, boot, boot.all_scripts)),
        unknown_keys=frozenset(one for one in stated if not _exists(one)),
        open_files=use.files,
        use=use,
    )


def _exists(key: str) -> bool:
    return os.path.exists(sysctl_path(key))


def trace_kernel(key: str, look: Look) -> list[Link]:
    """Return all that can set a key, in the order of their words, and the running value.

    :raises ValueError: If this kernel has no such key.
    """
    from .remedies import cite_line, list_read_lines, list_unread_lines
    from .use_now_read import find_uses

    boot = look.at(KernelRead).boot
    facts = gather_key(key, boot, read_sysctl(key))
    if facts.running is None:
        raise ValueError(f"this kernel has no sysctl {key!r}")
    facts = facts._replace(real=boot.real, scripts=tuple(_list_writes(key, boot, boot.all_scripts)))
    forecast = predict_boot(facts)
    start = find_start(facts)
    links = [Link("default", " or ".join(facts.defaults) or "unknown", "where nothing states it")]
    if start.by is not None:
        name = "boot loader" if start.kind == LOADER else "command line"
        links.append(Link(name, str(start.by.value), cite(start.by)))
    if facts.stopped_by is not None:
        links.append(Link("no files", "", cite(facts.stopped_by)))
    links += [_link("file", line, facts, look) for line in list_read_lines(facts)]
    if facts.tuned and key in facts.tuned.lines:
        links.append(_link("tuned", facts.tuned.lines[key], facts, look))
    links += [_link("script", write.at, facts, look) for write in facts.scripts]
    unread = [_link("not at boot", line, facts, look) for line in list_unread_lines(facts)]
    who = cite_line(forecast.by, facts) if forecast.by else "the default"
    at_boot = Link("after boot", " or ".join(forecast.values) or "unknown", f"by {who}")
    running = Link("running", facts.running or "", sysctl_path(key))
    uses = [Link("in use", f"{one.used} of {one.most}", one.who) for one in find_uses(key)]
    return [*links, *unread, at_boot, running, *uses]


def _link(name: str, line: Declaration, facts: KernelFacts, look: Look) -> Link:
    from .remedies import cite_line

    return Link(name, str(line.value), cite_line(line, facts), look.find_change(line.path))
