# SPDX-License-Identifier: BSD-2-Clause
"""Fold findings into reasons: what one line, or one thing that nobody states, makes fall short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .edit import OURS
from .finding import FAIL, Finding
from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cause import Cause

    Key = tuple[str, ...]

_SESSION = "session:"
_STATED_BY_US = {
    "sysctl-not-stated": "kernel",
    "pam-not-stated": "sessions",
    "pam-soft-alone": "sessions",
    "pam-root-not-covered": "sessions",
    "unit-not-stated": "services",
    "logind-not-stated": "services",
    "docker-not-stated": "docker",
    "docker-containerd-too-low": "docker",
    "docker-shm-not-stated": "docker",
    "podman-not-stated": "podman",
    "crio-not-stated": "crio",
    "shm-not-stated": "shared_memory",
}
"""Causes that ``provision`` alone mends, since it states what nobody states: with its sections."""
_LIMITS = "/etc/security/limits"
_WRONG = "-stated-too-"
_MOST_NAMES = 4
_KINDS = {
    "new-container": "new containers of",
    "new-service": "new services of",
    "job": "jobs of",
    "path": "",
}


class Reason(NamedTuple):
    """Findings that fall short for one reason; ``causes`` are all that must be put right for it.

    A cause that another reason has in front stands there alone: nothing is to be done twice.
    """

    findings: tuple[Finding, ...]
    causes: tuple[Cause, ...] = ()

    @property
    def is_of_one(self) -> bool:
        """Tell whether it may be about one user alone: by a line of theirs, or their own doing."""
        first = self.findings[0]
        at = first.causes[0].at if first.causes else None
        is_limit = at is not None and at.path.startswith(_LIMITS)
        return bool(first.owner or (is_limit and at and at.text.split()[:1] != ["*"]))

    @property
    def is_in_our_file(self) -> bool:
        """Tell whether a line that states the wrong value is one that ``provision`` writes anew."""
        return any(one.writer == OURS and _WRONG in one.code for one in self.causes)

    @property
    def section(self) -> str:
        """Return the section that ``provision`` mends it with; empty where it does not alone."""
        sections = {find_section(one.code) for one in self.causes}
        return sections.pop() if len(sections) == 1 else ""


def find_section(code: str) -> str:
    """Return the section that ``provision`` mends a cause with; empty where it does not alone."""
    return _STATED_BY_US.get(code, "")


def find_reasons(findings: Iterable[Finding], state: str = FAIL) -> list[Reason]:
    """Return why findings of a state fall short, the reason of the most findings first."""
    identify = _Identity()
    groups: dict[Key, list[Finding]] = {}
    for finding in findings:
        if finding.state == state:
            groups.setdefault(identify.of_finding(finding), []).append(finding)
    taken = set(groups)
    reasons = []
    for key, members in groups.items():
        causes: dict[tuple[object, ...], Cause] = {}
        keys = set()
        for finding in members:
            for cause in finding.causes:
                own = identify.of_cause(cause, finding)
                keys.add(own)
                if own == key or own not in taken:
                    causes.setdefault((cause.code, cause.remedy), cause)
        taken |= keys
        reasons.append(Reason(tuple(members), tuple(causes.values())))
    return sorted(reasons, key=lambda one: (not _is_blamed(one, reasons), -len(one.findings)))


def _is_blamed(reason: Reason, others: Iterable[Reason]) -> bool:
    """Tell whether a value of the kernel is what others fall short for: it comes before them."""
    wanted = reason.findings[0].requirement
    texts = (one.text for other in others if other is not reason for one in other.causes)
    return wanted.place == "kernel" and any(wanted.item in text for text in texts)


class _Identity:
    """Tells which causes are the same: by the line at fault, by what is done, or by what lacks."""

    def __init__(self) -> None:
        self._by_remedy: dict[tuple[object, ...], Key] = {}

    def of_finding(self, finding: Finding) -> Key:
        """Return what a finding has in common with the others of its reason."""
        if finding.causes:
            return self.of_cause(finding.causes[0], finding)
        wanted = finding.requirement
        return (finding.owner, "", find_kind(wanted.place), wanted.item)

    def of_cause(self, cause: Cause, finding: Finding) -> Key:
        wanted = finding.requirement
        key: Key = (finding.owner, cause.code, find_kind(wanted.place), wanted.item)
        if cause.at is not None and cause.at.path:
            key = (finding.owner, cause.code, cause.at.path, str(cause.at.line))
        if not cause.remedy.commands:
            return key
        return self._by_remedy.setdefault((finding.owner, cause.code, cause.remedy.commands), key)


def find_kind(place: str) -> str:
    """Return what kind of place one is: ``session``, ``container``, ``kernel``."""
    return place.partition(":")[0]


def name_places(
    places: Sequence[str], all_places: Iterable[str], samples: Sequence[str] = ()
) -> str:
    """Name places in words: ``root and everyone, at every login``.

    :param all_places: Of all findings, so that it is known what every login is.
    :param samples: Users who stand for everybody that the policy does not name.
    """
    sessions = [place for place in places if place.startswith(_SESSION)]
    ways = [_split_session(place)[1] for place in all_places if place.startswith(_SESSION)]
    told = list(_name_sessions(sessions, set(ways), samples)) if sessions else []
    return "; ".join([*told, *_name_others([one for one in places if one not in sessions])])


def _name_sessions(places: Iterable[str], every: set[str], samples: Sequence[str]) -> Iterator[str]:
    users: dict[str, list[str]] = {}
    for place in places:
        user, way = _split_session(place)
        users.setdefault(user, []).append(way)
    by_ways: dict[tuple[str, ...], list[str]] = {}
    for user, ways in users.items():
        by_ways.setdefault(tuple(dict.fromkeys(ways)), []).append(user)
    for at, names in by_ways.items():
        who = dict.fromkeys("everyone" if name in samples else name for name in names)
        how = "every login" if len(every) > 1 and every <= set(at) else join_some(at)
        yield f"{join_some(list(who))}, at {how}" if how else join_some(list(who))


def _split_session(place: str) -> tuple[str, str]:
    user, _mark, way = place[len(_SESSION) :].rpartition("@")
    return (user, way) if user else (way, "")


def _name_others(places: Sequence[str]) -> Iterator[str]:
    """Name the members of each kind together: ``service: a.service, b.service``."""
    kinds: dict[str, list[str]] = {}
    for place in dict.fromkeys(places):
        kind, _mark, name = place.partition(":")
        kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        yield f"{_KINDS.get(kind, kind)} {join_some(names)}".strip() if any(names) else kind


def join_some(names: Sequence[str]) -> str:
    """Name the first of some things, and how many more there are."""
    more = len(names) - _MOST_NAMES
    if more > 1:
        return f"{', '.join(names[:_MOST_NAMES])} and {more} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
