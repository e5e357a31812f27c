# SPDX-License-Identifier: BSD-2-Clause
"""Read a policy, as YAML gives it, into checked values; report every violation at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .core.policy import Policy
from .core.policy_shape import find_misshapes, find_unfit_texts
from .core.profiles import (
    DEFAULT_PROFILE,
    NO_PROFILE,
    PROFILE,
    PROFILE_NAMES,
    Asked,
    Merged,
    find_profile,
)
from .core.reader import (
    PolicyError,
    UnknownKey,
    join_names,
    name_kind,
    read_mapping,
    refuse_unknown,
)
from .places import PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.waivers import Waiver
    from .host.place import Place

_NOTHING: tuple[object, ...] = (None, (), {})
WAIVERS = "waivers"


def load_policy(
    policy: object, profile: str, run: bool = False, told: Iterable[str] = (), root: str = "/"
) -> Policy:
    """Merge *policy* over the named profile and check the result.

    Mappings merge key by key, lists and values replace, ``null`` removes what the profile says.

    :param policy: A mapping, or ``None`` for the profile as it is. It may name its profile itself.
    :param run: Whether a run is meant to be judged, so that all it needs must be stated.
    :param told: What is wrong with it and no longer seen in its values, such as a second key.
    :param root: The tree that it is for, of whose memory a share may be stated.
    :raises PolicyError: With every violation, each with its key path.
    """
    policy, profile = choose_profile(policy, profile)
    if policy is not None and not isinstance(policy, dict):
        raise PolicyError([f"policy: {name_kind(policy)} was given; a mapping is accepted"])
    if policy == {}:
        raise PolicyError(["policy: is empty, so nothing would be required; leave it out"])
    misshapes = find_misshapes(policy)
    if misshapes:
        raise PolicyError([*told, *misshapes])
    of_host = _state(policy, profile)
    policy = _fill_shares(policy, root)
    given: Mapping[str, Any] = policy if isinstance(policy, dict) else {}
    doubles = (one for place in PLACES for one in place.find_doubles(given.get(place.path)))
    problems = [*told, *doubles]
    loaded = _read_policy(merge_profile(given, profile), given, problems)
    if not problems:
        problems += [*_find_clashes(loaded), *find_unfit_texts(policy)]
    problems += _find_missing(loaded, problems) if run else []
    if not problems and not loaded.asked:
        problems.append("policy: is empty, so nothing would be required")
    if problems:
        raise PolicyError(problems)
    return loaded._replace(stated=of_host)


def choose_profile(policy: object, profile: str) -> tuple[Any, str]:
    """Return a policy without the name of its profile, and that name; the policy's own counts.

    :raises PolicyError: If there is no such profile, or both name one and mean different ones.
    """
    if isinstance(policy, dict) and PROFILE in policy:
        own = policy[PROFILE]
        named = str(getattr(own, "named", own))
        is_default = not isinstance(profile, Asked) and profile in (DEFAULT_PROFILE, NO_PROFILE)
        if not is_default and find_profile(str(profile)) is not find_profile(named):
            asked = f"--profile or mlhost_limits_profile {str(profile)!r}"
            both = f"the policy names {named!r}, and {asked}"
            raise PolicyError([f"profile: {both}; one of them is accepted"])
        profile = own
        policy = {key: value for key, value in policy.items() if key != PROFILE} or None
    if profile in PROFILE_NAMES:
        return policy, profile
    accepted = f"accepted are {join_names(PROFILE_NAMES)}, each with @1 for that version of it"
    if isinstance(profile, str) and "/" in profile:
        accepted += "; a file is accepted in a policy file of the command alone"
    seen = "is empty" if profile in (None, "") else f"{profile!r} is unknown"
    raise PolicyError([f"profile: {seen}; {accepted}"])


def _state(policy: Any, profile: str) -> Mapping[str, object]:
    """Return all that a host is asked, without what a run is asked."""
    of_runs = [place.path for place in PLACES if place.is_of_run]
    whole = merge_profile(policy or {}, profile)
    return {key: value for key, value in whole.items() if key not in of_runs}


def _fill_shares(policy: object, root: str) -> object:
    from .core.shares import fill_shares, find_shares

    if not find_shares(policy):
        return policy
    from .host.image import is_image
    from .kernel.use_read import read_memory_size

    is_host = root in ("", "/") and not is_image()
    return fill_shares(policy, read_memory_size("MemTotal") if is_host else None)


def merge_profile(policy: Mapping[str, object], profile: str) -> Mapping[str, object]:
    """Return a policy merged over a profile, as plain data."""
    return merge(find_profile(profile) or {}, _spell(policy))


def merge_policies(policies: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return policies as one that stands alone, each merged over the one behind it.

    :raises PolicyError: If the last one names no profile of ours.
    """
    last = policies[-1]
    if PROFILE not in last:
        names = join_names(PROFILE_NAMES)
        raise PolicyError([f"profile: is not stated; in the last file one is accepted of {names}"])
    merged, name = choose_profile(last, NO_PROFILE)
    merged = merge_profile(merged or {}, name)
    for policy in reversed(policies[:-1]):
        merged = merge(merged, _spell({**policy, PROFILE: None}))
    return {PROFILE: Merged(name), **merged}


def _spell(policy: Mapping[str, object]) -> dict[str, object]:
    spelled = dict(policy)
    for place in PLACES:
        if place.path in spelled:
            spelled[place.path] = place.spell(spelled[place.path])
    return spelled


def _find_missing(policy: Policy, told: list[str]) -> list[str]:
    """Return what a run must state and does not, but for what is told to be wrong."""
    paths = {problem.partition(":")[0] for problem in told}
    missing = (
        one
        for place in PLACES
        if place.name in policy.asked
        for one in place.find_missing(policy.get(place.name))
    )
    return [one for one in missing if one.partition(":")[0] not in paths]


def _find_clashes(policy: Policy) -> Iterator[str]:
    """Yield the units that two sections speak of: each would write what the other takes out."""
    known: dict[str, str] = {}
    stated = (place for place in PLACES if place.name in policy.asked)
    for place in stated:
        for unit, path in place.list_units(policy.get(place.name)).items():
            if unit in known:
                yield f"{known[unit]}: {path} states it as well; one of them is accepted"
            known.setdefault(unit, path)


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Return *base* with *over* merged in; ``None`` removes a key."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(below if _is_mergeable(below, value) else {}, value)  # type: ignore[arg-type]
        else:
            merged[key] = value
    return merged


def _is_mergeable(below: object, over: Mapping[str, object]) -> bool:
    """Tell whether *over* adds to *below*; a kernel key's ``exact`` replaces its minimum."""
    return isinstance(below, dict) and "exact" not in over


def _read_policy(raw: Mapping[str, Any], given: Mapping[str, Any], problems: list[str]) -> Policy:
    groups = _group()
    refuse_unknown("policy", {**raw, **given}, (*groups, WAIVERS), problems)
    spelled = _spell(given)
    sections: dict[str, tuple[object, object]] = {}
    for top in filter(groups.__contains__, raw):
        whole = _restore_nulls(raw[top], spelled.get(top))
        if groups[top]:
            below = read_mapping(top, whole, groups[top], problems)
            stated = ((name, one) for name, one in below.items() if name in raw[top])
            sections.update({f"{top}.{name}": (raw[top][name], one) for name, one in stated})
        else:
            sections[top] = raw[top], whole
    asked = {
        place.name: _read_section(place, *sections[path], problems)
        for path in sections
        for place in PLACES
        if place.path == path
    }
    asked = {name: value for name, value in asked.items() if value not in _NOTHING}
    return Policy(asked, _read_waivers(raw, problems))


def _group() -> dict[str, list[str]]:
    """Return the keys of a policy, each with those below it that are places of their own."""
    groups: dict[str, list[str]] = {}
    for place in PLACES:
        top, _dot, below = place.path.partition(".")
        names = groups.setdefault(top, [])
        if below and below not in names:
            names.append(below)
    return groups


def _restore_nulls(merged: object, given: object) -> object:
    """Return what was merged with the null keys that merging took out: their names may be wrong."""
    if not (isinstance(merged, dict) and isinstance(given, dict)):
        return merged
    nulls = {key: None for key, value in given.items() if value is None}
    return {**nulls, **{key: _restore_nulls(one, given.get(key)) for key, one in merged.items()}}


def _read_section(place: Place[Any], raw: object, whole: object, problems: list[str]) -> Any:
    """Return what is asked of a place.

    :param whole: With the null keys too: of these it is told alone which are unknown.
    """
    told: list[str] = []
    asked = place.read_policy(raw, told)
    if whole != raw:
        of_whole: list[str] = []
        place.read_policy(whole, of_whole)
        unknown = (one for one in of_whole if isinstance(one, UnknownKey))
        told += [one for one in unknown if one not in told]
    problems += [one for one in told if one not in problems]  # Two places may read one section.
    return asked


def _read_waivers(raw: Mapping[str, object], problems: list[str]) -> tuple[Waiver, ...]:
    if WAIVERS not in raw:
        return ()
    from .core.waivers import read_waivers  # Few policies have any.

    return read_waivers(raw[WAIVERS], problems)
