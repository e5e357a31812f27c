# SPDX-License-Identifier: BSD-2-Clause
"""Make a policy true on a host in one run: read, plan, write, prove."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from .core.edit import Edit, show_change, show_edit
from .core.option_names import name_option
from .core.plan import Section, SectionPlan
from .core.policy import Policy, ProvisionOptions
from .core.reader import PolicyError
from .core.values import NamedTuple
from .host.image import is_image, will_boot
from .host.place import Place
from .host.root import require_root
from .places import PLACES
from .sessions.provision import find_kernel_lockouts
from .write.lock import find_editor, only_run, remove_leftovers, wait_for_packages

Item = TypeVar("Item")
_UNBOOTED = "this is an image: files are written, and what they give comes with its first boot"


class Outcome(NamedTuple):
    """What a run did, or would do in check mode."""

    edits: tuple[Edit, ...]
    sysctls: tuple[tuple[str, str, str], ...]
    shortfalls: tuple[str, ...]
    notes: tuple[str, ...]
    restarted: tuple[str, ...]
    restart_required: tuple[str, ...]
    old_limits: tuple[str, ...]
    in_effect: tuple[str, ...]
    raised: tuple[str, ...] = ()

    def as_result(self) -> dict[str, object]:
        """Return what a task returns; the diff holds every file and every running value."""
        return {
            "changed": bool(self.edits or self.sysctls or self.restarted or self.raised),
            "files": [edit.path for edit in self.edits],
            "sysctls": [
                {"key": key, "before": before, "after": after}
                for key, before, after in self.sysctls
            ],
            "shortfalls": list(self.shortfalls),
            "notes": list(self.notes),
            "restarted": list(self.restarted),
            "restart_required": list(self.restart_required),
            "raised": list(self.raised),
            "old_limits": list(self.old_limits),
            "in_effect": list(self.in_effect),
            "diff": [*map(show_edit, self.edits), *self._show_sysctls()],
        }

    def _show_sysctls(self) -> Iterator[dict[str, str]]:
        for key, before, after in self.sysctls:
            yield show_change("running kernel", f"{key} = {before}", f"{key} = {after}")


def provision(policy: Policy, options: ProvisionOptions) -> Outcome:
    """Make the sections of a policy true on this host.

    :raises PolicyError: With every reason to refuse; nothing was written then.
    :raises OSError: If a file or a value could not be written, and what was is put back; or if
        the caller is not root.
    """
    require_root()
    if options.check_mode:
        return _provision(policy, options)
    with only_run():
        said = remove_leftovers(_list_folders(policy))
        outcome = _provision(policy, options)
    return outcome._replace(notes=(*outcome.notes, *said))


def _list_folders(policy: Policy) -> list[str]:
    """Return the folders in which files may be replaced."""
    places = (place for place in PLACES if place.is_provisioned)
    meant = (place for place in places if place.name in policy.asked or place.is_always_planned)
    return [folder for place in meant for folder in place.list_folders()]


def _provision(policy: Policy, options: ProvisionOptions) -> Outcome:
    image = is_image()
    if image and not os.path.exists(os.devnull):
        raise PolicyError([f"{os.devnull}: is missing; programs of an image need its devices"])
    named = prepare_sections(policy, options)
    if image:  # There is nothing to tell, and nothing that runs.
        named = {name: Section(one.plan) for name, one in named.items()}
    sections = named.values()
    plans = [one.plan for one in sections]
    beaten = _join(one.shortfalls for one in plans)
    overridden = [
        f"{one}, and is ineffective by {name_option('override')}"
        for one in beaten
        if one.neutralized
    ]
    problems = [*_join(one.problems for one in plans), *_find_lockouts(policy, options, named)]
    problems += _find_editors(plans)
    if problems:
        raise PolicyError(problems)
    rivals = _find_rivals(plans)  # Nothing that may fail comes after the writing.
    said: tuple[str, ...] = (_UNBOOTED,) if image else ()
    if not options.check_mode:
        said += _write(policy, named)
    foretold = find_foretold(policy, options) if image and will_boot() else ()
    raised, short = _heal(policy, options)
    return Outcome(
        edits=_join(one.edits for one in plans),
        sysctls=_join([*(one.sysctls for one in sections), *(one.running for one in sections)]),
        shortfalls=tuple(str(one) for one in beaten if not one.neutralized),
        notes=(*overridden, *_join(one.notes for one in plans), *rivals, *said, *short),
        restarted=_join(one.restarted for one in sections),
        restart_required=_join(one.restart_required for one in sections),
        old_limits=() if options.absent else _join(one.find_old() for one in sections),
        in_effect=(*_join(one.in_effect for one in sections), *foretold),
        raised=raised,
    )


def _heal(policy: Policy, options: ProvisionOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Raise what runs, if that is asked for; return what was raised, and what stays short."""
    if not options.heal or options.absent or is_image():
        return (), ()
    from .raise_living import heal_all

    asked = {name: one for name, one in policy.asked.items() if options.wants(name)}
    healed = heal_all(policy._replace(asked=asked), options.check_mode)
    return healed.as_texts(), tuple(dict.fromkeys((*healed.short, *healed.problems)))


def _join(parts: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    return tuple(chain.from_iterable(parts))


def prepare_sections(policy: Policy, options: ProvisionOptions) -> dict[str, Section]:
    """Return what each place needs, by name and in the order of places: fs.nr_open comes first."""
    nr_open: int | None = None
    sections = {}
    for place in PLACES:
        if place.is_provisioned:
            section = _prepare(place, policy, options, nr_open)
            nr_open = nr_open if section.nr_open is None else section.nr_open
            sections[place.name] = section
    return sections


def _prepare(
    place: Place[Any], policy: Policy, options: ProvisionOptions, nr_open: int | None
) -> Section:
    """Return what a place needs; what an earlier run made and nobody asks for is taken back."""
    if not options.wants(place.name):
        return place.leave()
    if place.name in policy.asked:
        return place.prepare(policy, options, nr_open)
    if not place.is_always_planned:
        if not place.is_made("/"):
            return place.leave()
        options = options._replace(absent=True)
    return place.prepare(policy, options, nr_open)._replace(in_effect=())


def find_foretold(policy: Policy, options: ProvisionOptions) -> list[str]:
    """Return the sections of an image of which its files say what its boot will give."""
    written = (place for place in PLACES if place.is_provisioned and place.name in policy.asked)
    told = (place for place in written if type(place).foresee is not Place.foresee)
    return [place.name for place in told if options.wants(place.name)]


def _find_lockouts(
    policy: Policy, options: ProvisionOptions, sections: Mapping[str, Section]
) -> Iterator[str]:
    """Yield why the kernel's new values would lock this host: the sessions' plan decides too."""
    kernel = sections["kernel"]
    changes = kernel.sysctls or kernel.plan.edits or kernel.plan.problems
    if changes and not options.absent and not is_image():
        yield from find_kernel_lockouts(policy.get("kernel") or {}, sections["sessions"].plan)


def _find_editors(plans: Iterable[SectionPlan]) -> Iterator[str]:
    """Yield the files that somebody is editing: what they save later would undo our change."""
    for edit in (edit for plan in plans for edit in plan.edits):
        trace = find_editor(edit.path) if edit.before is not None else ""
        if trace:
            yield f"{edit.path}: is open in an editor ({trace}); close it first"


def _find_rivals(plans: Sequence[SectionPlan]) -> list[str]:
    """Return who else writes the files that we change, or that beat ours."""
    if not any(plan.edits or plan.shortfalls for plan in plans):
        return []
    from .host.rivals import describe_rivals

    return list(describe_rivals(plans))


def _write(policy: Policy, sections: Mapping[str, Section]) -> tuple[str, ...]:
    """Write everything in an order that locks nobody out, or leave everything as it was.

    :returns: What is worth saying of the host as it was before.
    """
    if not any(one.plan.edits or one.sysctls or one.settle for one in sections.values()):
        return ()
    from .sessions.settle import apply_plans, find_named_users

    if any(edit.of_others for one in sections.values() for edit in one.plan.edits):
        wait_for_packages()
    return apply_plans(sections, find_named_users(policy.get("sessions") or ()))
