# SPDX-License-Identifier: BSD-2-Clause
"""What a distribution builds otherwise than another: one table, which every place asks.

A family or a release that is not in it has ``None`` there: unknown, and never another's default.

Sources. Debian, Ubuntu: their packages, measured on Debian 11 to 13. Red Hat: the patches of its
systemd, ``b924c79720``, ``6e6aaec20c`` and ``e81e90faf1`` (DefaultTasksMax), ``0b3833d6c3``,
``49fab9715c`` and ``a86ee384de`` (RemoveIPC); ``src/basic/def.h`` of 239 (HIGH_RLIMIT_NOFILE); of
procps 3.3.17-6 ``sysctl-support-systemd-globs.patch``. SUSE: its systemd is built without the
raise of fs.nr_open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .named import NamedTuple

_RED_HAT = ("rhel", "centos", "almalinux", "rocky", "ol")
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")


class Distribution(NamedTuple):
    """One release of a distribution; each ``None`` is not known.

    ``name`` as people read it. ``family``: ``debian``, ``ubuntu``, ``rhel``, ``suse`` or nothing;
    ``release``: its numbers. ``tasks_share``: DefaultTasksMax of systemd where nothing states it,
    in percent of what the system can hold. ``removes_ipc``: RemoveIPC of logind where nothing
    states it. ``highest_nofile``: the hard nofile of services where nothing states it.
    ``raises_nr_open``: whether process 1 raises fs.nr_open at boot. ``knows_patterns``: whether
    sysctl(8) heeds patterns and exclusions in sysctl.d.
    """

    name: str = "this distribution"
    family: str = ""
    release: tuple[int, ...] = ()
    tasks_share: int | None = None
    removes_ipc: bool | None = None
    highest_nofile: int | None = None
    raises_nr_open: bool | None = None
    knows_patterns: bool | None = None


def find_distribution(os_release: Mapping[str, str]) -> Distribution:
    """Return what is known of a distribution, from the fields of os-release(5)."""
    own = os_release.get("ID", "")
    family = _find_family(own, os_release.get("ID_LIKE", "").split())
    match = _VERSION.match(os_release.get("VERSION_ID", ""))
    release = tuple(int(part) for part in match.groups() if part) if match else ()
    name = os_release.get("PRETTY_NAME") or own or "this distribution"
    found = Distribution(name, family, release)
    # The numbers of a derivative are its own.
    known = release[:1] if own == family or own in _RED_HAT else ()
    return _FACTS.get(family, _know_nothing)(found, known[0] if known else None)


def _find_family(own: str, like: list[str]) -> str:
    for name in (own, *like):
        if name in ("debian", "ubuntu"):
            return name
        if name in _RED_HAT:
            return "rhel"
        if name in ("sles", "suse", "opensuse-leap", "sle_hpc"):
            return "suse"
    return ""


def _know_nothing(found: Distribution, _major: int | None) -> Distribution:
    return found


def _know_debian(found: Distribution, major: int | None) -> Distribution:
    """Return what Debian, or what is made of it, builds."""
    first, first_with_nr_open, first_with_patterns, last = (
        (10, 13, 12, 13) if found.family == "debian" else (19, 25, 23, 26)
    )
    if major is not None and not first <= major <= last:
        return found._replace(knows_patterns=False if major < first else None)
    found = found._replace(tasks_share=15, removes_ipc=True, highest_nofile=524288)
    if major is None:
        return found
    return found._replace(
        raises_nr_open=major >= first_with_nr_open, knows_patterns=major >= first_with_patterns
    )


def _know_red_hat(found: Distribution, major: int | None) -> Distribution:
    """Return what Red Hat, or who builds its sources, builds."""
    if major not in (8, 9, 10):
        return found._replace(knows_patterns=False if major and major < 8 else None)
    return found._replace(
        tasks_share=80,
        removes_ipc=False,
        highest_nofile=262144 if major == 8 else 524288,
        raises_nr_open=major > 8,
        knows_patterns=major > 8,
    )


def _know_suse(found: Distribution, _major: int | None) -> Distribution:
    return found._replace(raises_nr_open=False)


_FACTS = {
    "debian": _know_debian,
    "ubuntu": _know_debian,
    "rhel": _know_red_hat,
    "suse": _know_suse,
}
