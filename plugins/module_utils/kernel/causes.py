# SPDX-License-Identifier: BSD-2-Clause
"""Say why a sysctl is not what a policy asks, now or after a boot, by changing one thing at a time.

What is at fault first is put right in thought and the next boot is predicted again, until it
meets the requirement: each thing that had to change is a cause. What is left is the running value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from ..core.cause import Cause, Remedy, cite, search
from ..core.finding import FAIL, PASS, UNKNOWN, Requirement
from ..core.quote import one_line
from ..core.values import Declaration
from .boot_credentials import CREDENTIALS
from .causes_now import blame_container, blame_running, find_exhaustion
from .lockouts import find_locking_values
from .model import (
    FILE,
    LATE,
    LOADER,
    SCRIPT,
    TUNED,
    Forecast,
    KernelFacts,
    judge_forecast,
    judge_value,
    list_boot_files,
    predict_boot,
    predict_reload,
)
from .policy import KernelValue
from .remedies import (
    Fix,
    cite_line,
    compare_lines,
    find_rivals,
    find_value,
    fix_by_comment,
    fix_by_exclude,
    fix_by_line,
    fix_by_loading,
    fix_by_renaming,
    fix_by_stating,
    fix_by_switch,
    fix_by_unmasking,
    fix_script,
    list_lines,
    locate_file,
)
from .sysctl_conf import DROP_IN, parse_sysctl_number
from .unread import Unread, find_unread

CODES = {
    "sysctl-later-file-wins": "of two files of sysctl.d, that of the later name counts",
    "sysctl-later-line-wins": "of two lines of one file, the later counts",
    "sysctl-conf-wins": "/etc/sysctl.conf is read after the file that states enough",
    "sysctl-run-file-wins": "a file in /run, made by a program, states less and is read later",
    "sysctl-vendor-file-wins": "a file of a package states less and is read later",
    "sysctl-name-beats-pattern": "a line that names the key beats a pattern, wherever they stand",
    "sysctl-file-masked": "a file of the same name in an earlier directory hides the good one",
    "sysctl-excluded": "a line '-key' without a value takes the key's assignment back",
    "sysctl-value-refused": "the kernel refuses the value, and the good one before it is lost too",
    "sysctl-line-skipped": "a line that states enough cannot be read, and is skipped",
    "sysctl-file-not-read": "a file that states enough is not read, because of its name",
    "sysctl-conf-not-read": "/etc/sysctl.conf states enough, but no boot of this host reads it",
    "sysctl-run-file-lost": "a file in /run states enough, but a boot empties that directory",
    "sysctl-commented-out": "the line that states enough is a comment",
    "sysctl-command-line": "the kernel command line sets the key, and no file corrects it",
    "sysctl-tuned-wins": "the active profile of tuned sets the key after the files are read",
    "sysctl-script-wins": "a unit, cron or rc.local sets the key after the files are read",
    "sysctl-service-masked": "systemd-sysctl is masked, so that no file is applied at boot",
    "sysctl-module-late": "the key's module is loaded after the files are read",
    "sysctl-script-unclear": "what runs at boot may set the key to a value that no file tells",
    "sysctl-stated-too-low": "the line that counts states too little, and no other states enough",
    "sysctl-stated-too-high": "the line that counts states too much, and no other states less",
    "sysctl-stated-otherwise": "the line that counts states another text than the one required",
    "sysctl-not-stated": "nothing states the key, and what it starts with does not do",
    "sysctl-lost-at-boot": "the value was set by hand, and no file keeps it over a boot",
    "sysctl-not-loaded": "a file states enough, and has not been loaded since it was written",
    "sysctl-changed-by-hand": "a boot would give enough: something changed the value since",
    "sysctl-file-max-reached": "as many files are open as fs.file-max allows",
    "sysctl-read-only": "/proc/sys is read-only here: the value is that of the container's host",
    "sysctl-key-absent": "this kernel has no such key",
}

_MEMORY = ("vm.min_free_kbytes", "vm.nr_hugepages", "vm.overcommit_")


def find_unclear(wanted: Requirement, facts: KernelFacts) -> list[Cause]:
    """Return the line that may set a key at boot, where nobody can say that it will, or to what."""
    forecast = predict_boot(facts)
    if forecast.by is None or forecast.kind not in (SCRIPT, LOADER, LATE, TUNED):
        return []
    if forecast.kind == LATE:
        return [_explain_late(facts)]
    if forecast.kind == TUNED:
        return _explain_recommended(facts, forecast.by)
    if forecast.kind == LOADER:
        text = f"{cite(forecast.by)} sets it where the next kernel is given that, and no file does"
        fix = fix_by_stating(facts, find_value(wanted, facts.running))
        return [Cause("sysctl-command-line", text, fix.remedy, forecast.by)]
    right = find_value(wanted, facts.running)
    found = list(_explain_writes(forecast, facts, right))[:1]
    if found or forecast.values:
        return found
    text = f"{cite(forecast.by)} {_when(forecast.by)}, and may set {wanted.item}"
    remedy = Remedy(f"have that line set {right}, or take it out")
    return [Cause("sysctl-script-unclear", text, remedy, forecast.by)]


def _explain_writes(forecast: Forecast, facts: KernelFacts, right: str) -> Iterator[Cause]:
    """Yield the line that sets a key where a condition holds, or that keeps the files from it."""
    for index, write in enumerate(facts.scripts):
        if write.at != forecast.by:
            continue
        has_run = facts.running == facts.normalize(str(write.at.value))
        if write.blocks:
            yield _blame_applier(write.at)
        elif forecast.values and write.depends and not has_run:
            text = f"{cite(write.at)} runs after the files are read where a condition holds"
            remedy = fix_script(index, facts, right).remedy
            told = f"{text}, and sets {write.at.value} then"
            yield Cause("sysctl-script-unclear", told, remedy, write.at)


def _blame_applier(line: Declaration) -> Cause:
    text = f"{cite(line)} may keep systemd-sysctl from applying the files at boot"
    remedy = Remedy("have systemd-sysctl.service run as its package has it")
    return Cause("sysctl-script-unclear", text, remedy, line)


def _when(line: Declaration) -> str:
    """Say when a line counts: a script runs, a credential or a kernel's word does not."""
    if line.text.startswith("systemd."):
        return "may be given to the next kernel"
    is_read = line.path.endswith(CREDENTIALS) or "Credential" in line.text
    return "is read after the files" if is_read else "runs after the files are read"


def _explain_recommended(facts: KernelFacts, line: Declaration) -> list[Cause]:
    """Return the line of a profile that tuned may choose itself, if one does."""
    if not facts.recommended:
        return []
    text = f"{cite(line)} sets it where tuned chooses that profile by itself"
    remedy = Remedy("name a profile in /etc/tuned/active_profile")
    return [Cause("sysctl-tuned-wins", text, remedy, line)]


def find_kernel_causes(wanted: Requirement, facts: KernelFacts) -> list[Cause]:
    """Return everything that keeps a key from a requirement, now or after a boot, in order."""
    meets_now = judge_value(wanted, facts.running or "") == PASS
    if not meets_now and facts.read_only:
        return [blame_container(wanted)]
    good = (PASS, UNKNOWN) if meets_now else (PASS,)
    causes, state = search(facts, partial(_find_next, wanted, good))
    if meets_now:
        return causes
    if not causes and judge_forecast(wanted, predict_boot(facts)) == PASS:
        causes = blame_running(wanted, facts)
    return [*find_exhaustion(wanted, facts), *_set_now(wanted, causes, state)]


def _set_now(wanted: Requirement, causes: list[Cause], state: KernelFacts) -> list[Cause]:
    """Have the last remedy set the running value as well, where that locks nobody out."""
    if not causes:
        return []
    *others, last = causes
    values = predict_boot(state).values
    value = values[0] if len(values) == 1 else find_value(wanted, state.running)
    remedy = last.remedy
    text = f"{remedy.text}, and set the running value" if remedy.text else "set the running value"
    danger = _find_danger(wanted.item, value, state)
    if danger:
        remedy = Remedy(f"{text}; not as things are: {danger}")
    elif remedy.commands or not remedy.text:
        command = ("sysctl", "-w", f"{wanted.item}={value}")
        remedy = remedy._replace(text=text, commands=(*remedy.commands, command))
    return [*others, last._replace(remedy=remedy)]


def _find_danger(key: str, value: str, facts: KernelFacts) -> str:
    """Return why a running value would lock the host, if it would; more is better but of memory."""
    numbers = [parse_sysctl_number(text) or 0 for text in (value, facts.running or "")]
    if facts.use is None or (numbers[0] >= numbers[1] and not key.startswith(_MEMORY)):
        return ""
    return next(find_locking_values({key: KernelValue(exact=value)}, facts.use), "")


def _find_next(
    wanted: Requirement, good: Collection[str], state: KernelFacts
) -> tuple[Cause, KernelFacts] | None:
    """Return what is at fault first at boot, and the facts with that put right."""
    forecast = predict_boot(state)
    if judge_forecast(wanted, forecast) in good:
        return None
    if forecast.kind == LATE:
        return _blame_module(state)
    if forecast.kind == SCRIPT:
        return _blame_script(wanted, forecast, state)
    if forecast.kind == TUNED:
        return _blame_tuned(wanted, forecast, state)
    if forecast.kind == FILE:
        return _blame_file(wanted, forecast, state)
    return _blame_silence(wanted, forecast, state)


def _join(
    code: str, text: str, fix: Fix, at: Declaration | None, shadows: tuple[Declaration, ...] = ()
) -> tuple[Cause, KernelFacts]:
    return Cause(code, text, fix.remedy, at, shadows), fix.facts


def _blame_module(state: KernelFacts) -> tuple[Cause, KernelFacts] | None:
    if not state.late:
        return None
    if state.late_by is not None:
        return _explain_late(state), state._replace(late="", late_by=None)
    text = f"{state.late} brings {state.key}, and is loaded after the files are read"
    return _join("sysctl-module-late", text, fix_by_loading(state), None)


def _explain_late(state: KernelFacts) -> Cause:
    """Return what keeps a module from being loaded early."""
    line = state.late_by
    stop = cite(line) if line else "nothing"
    text = f"{stop} keeps {state.late} from being loaded, which brings {state.key}"
    return Cause("sysctl-module-late", text, Remedy(f"take out {stop}"), line)


def _blame_script(
    wanted: Requirement, forecast: Forecast, state: KernelFacts
) -> tuple[Cause, KernelFacts] | None:
    for index, write in enumerate(state.scripts):
        if write.at == forecast.by:
            others = (*state.scripts[:index], *state.scripts[index + 1 :])
            for unclear in find_unclear(wanted, state):
                return unclear, state._replace(scripts=others)
            text = f"{cite(write.at)} {_when(write.at)}, and sets {write.at.value}"
            fix = fix_script(index, state, find_value(wanted, state.running))
            if list_lines(state):  # What the files do wrong is said too.
                fix = fix._replace(facts=state._replace(scripts=others))
            rivals = find_rivals(wanted, write.at, state)
            return _join("sysctl-script-wins", text, fix, write.at, rivals)
    return None


def _blame_tuned(
    wanted: Requirement, forecast: Forecast, state: KernelFacts
) -> tuple[Cause, KernelFacts] | None:
    line = forecast.by
    if line is None or state.tuned is None or not forecast.values:
        return None
    text = f"{cite(line)}, of the active profile of tuned, sets {forecast.values[0]} at boot"
    if state.tuned.switch is not None:
        text += f", and {cite(state.tuned.switch)} keeps the files from being applied after it"
        fix = fix_by_switch(state.tuned.switch, state)
    elif state.tuned.exclude is not None and state.tuned.excludes(state.key):
        text += f", and {cite(state.tuned.exclude)} keeps the files from being applied to it"
        fix = fix_by_exclude(state.tuned.exclude, state)
    else:
        fix = fix_by_stating(state, find_value(wanted, state.running))
    return _join("sysctl-tuned-wins", text, fix, line, find_rivals(wanted, line, state))


def _blame_file(
    wanted: Requirement, forecast: Forecast, state: KernelFacts
) -> tuple[Cause, KernelFacts] | None:
    """Blame the line that counts at boot, or the one that a script reads again after it."""
    reload = predict_reload(state._replace(files=list_boot_files(state)))
    for line in (forecast.by, reload.by):
        if line and judge_value(wanted, state.normalize(line.value)) == FAIL:
            return _blame_line(wanted, line, state)
    return None


def _blame_line(
    wanted: Requirement, by: Declaration, state: KernelFacts
) -> tuple[Cause, KernelFacts]:
    """Blame a line that counts and does not state enough."""
    line = locate_file(by, state)
    name, value = cite_line(by, state), find_value(wanted, state.running)
    rivals = find_rivals(wanted, by, state)
    if rivals:
        code = compare_lines(line, rivals[-1])
        named = code == "sysctl-name-beats-pattern"
        verb = "names the key, and so beats the pattern" if named else "is read after and beats"
        fix = fix_by_comment(line, state, value)
        return _join(code, f"{name} {verb} {cite(rivals[-1])}", fix, line, rivals)
    for unread in find_unread(wanted, state):
        if unread.code != "sysctl-commented-out":
            hides = unread.by is not None and unread.by.path == by.path
            return _blame_unread(unread._replace(by=line) if hides else unread, state)
    fix = fix_by_line(line, state, value)
    if wanted.exact is not None:
        text = f"{name} states another value than {one_line(value)}"
        return _join("sysctl-stated-otherwise", text, fix, line)
    low = judge_value(wanted._replace(maximum=None), state.normalize(by.value)) == FAIL
    code = "sysctl-stated-too-low" if low else "sysctl-stated-too-high"
    return _join(code, f"{name} states too {'little' if low else 'much'}", fix, line)


def _blame_silence(
    wanted: Requirement, forecast: Forecast, state: KernelFacts
) -> tuple[Cause, KernelFacts]:
    """Blame what keeps the key from being stated; that nobody does comes last."""
    if state.stopped_by is not None:
        text = f"{cite(state.stopped_by)} keeps systemd-sysctl from applying any file at boot"
        return _join("sysctl-service-masked", text, fix_by_unmasking(state), state.stopped_by)
    lines = list_lines(state)
    if lines:
        return _blame_undone(wanted, lines[-1], state)
    for unread in find_unread(wanted, state):
        return _blame_unread(unread, state)
    if forecast.by is not None:
        text = f"{cite(forecast.by)} gives {forecast.values[0]}, and no file states {state.key}"
        fix = fix_by_stating(state, find_value(wanted, state.running))
        return _join("sysctl-command-line", text, fix, forecast.by)
    emptied = Declaration(DROP_IN, 0, "an empty file", "")
    if not state.files.get(DROP_IN, "x").strip():
        text = f"{DROP_IN}, the file that provision writes, is empty or a link to /dev/null"
        return _join(
            "sysctl-file-masked",
            text,
            fix_by_stating(state, find_value(wanted, state.running)),
            emptied,
        )
    running = state.normalize(state.running or "")
    gives = f": a boot gives {forecast.values[0]}" if len(forecast.values) == 1 else ""
    if judge_value(wanted, running) == PASS:
        text = f"{state.key} is {one_line(running)} now, but no file states it{gives}"
        return _join("sysctl-lost-at-boot", text, fix_by_stating(state, running), None)
    fix = fix_by_stating(state, find_value(wanted, state.running))
    return _join("sysctl-not-stated", f"no file states {state.key}{gives}", fix, None)


def _blame_undone(
    wanted: Requirement, by: Declaration, state: KernelFacts
) -> tuple[Cause, KernelFacts]:
    """Blame a line that leaves the key as it was, and makes those before it do nothing."""
    line, value = locate_file(by, state), find_value(wanted, state.running)
    rivals = find_rivals(wanted, by, state)
    lost = f", and {cite(rivals[-1])} is lost with it" if rivals else ""
    if "=" not in by.text:
        text = f"{cite_line(by, state)} has no value, and leaves the key as it is{lost}"
        return _join("sysctl-excluded", text, fix_by_comment(line, state, value), line, rivals)
    text = f"the kernel refuses the value of {cite_line(by, state)}{lost}"
    code = "sysctl-value-refused"
    meant = [one for one in find_unread(wanted, state) if one.at[:2] == by[:2]]
    right = str(meant[0].at.value) if meant else value
    fix = fix_by_comment(line, state, value) if rivals else fix_by_line(line, state, right)
    return _join(code, text, fix, line, rivals)


def _blame_unread(entry: Unread, state: KernelFacts) -> tuple[Cause, KernelFacts]:
    at, value = locate_file(entry.at, state), str(entry.at.value)
    if entry.name:
        fix = fix_by_renaming(entry.at.path, entry.name, state)
    elif entry.instead:
        fix = fix_by_line(at, state, value)
    else:
        fix = fix_by_stating(state, value)
    text = f"{cite_line(entry.at, state)} has no effect at boot: {one_line(entry.reason)}"
    return _join(entry.code, text, fix, entry.by or at, (at,) if entry.by else ())
