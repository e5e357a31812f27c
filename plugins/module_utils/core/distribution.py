# SPDX-License-Identifier: BSD-2-Clause
"""What a distribution builds otherwise than another: one table, which every place asks.

A family or a release that is not in it has ``None`` there: unknown, and never another's default.

Sources. Debian, Ubuntu: their packages, measured on Debian 11 to 13. Red Hat: the patches of its
systemd, ``b924c79720``, ``6e6aaec20c`` and ``e81e90faf1`` (DefaultTasksMax), ``0b3833d6c3``,
``49fab9715c`` and ``a86ee384de`` (RemoveIPC); ``src/basic/def.h`` of 239 (HIGH_RLIMIT_NOFILE); of
procps 3.3.17-6 ``sysctl-support-systemd-globs.patch``; of its Linux-PAM 1.3.1-16 and 1.5.1-9 the
backport of ``3234488f`` (nofile unlimited). SUSE: its systemd is built with
``-Dbump-proc-sys-fs-nr-open=false``. systemd-rc-local-generator(8) of Fedora and of SLE 15.5 names
the script of each. All but Debian and Ubuntu build Linux-PAM without Debian's
patches, Amazon Linux 2023 its 1.5.1. Linux-PAM: ``14ea1011`` in 1.5.3 (a file may be missing),
``getline()`` in 1.6.0, rttime in 1.7.1. systemd 250 raises memlock to 8 MiB; before it, that of
services is the kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .values import NamedTuple

_RED_HAT = ("rhel", "centos", "almalinux", "rocky", "ol")
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?")
_CODENAMES = {"bullseye": 11, "bookworm": 12, "trixie": 13, "focal": 20, "jammy": 22, "noble": 24}
"""Releases by the names that derivatives state, whose numbers are their own."""


class Dialect(NamedTuple):
    """Where builds of pam_limits differ in what they read.

    ``line_length``: where the buffer ends a line, 0 for never (since 1.6). ``wildcard_root``:
    whether ``*`` and groups match root. ``reads_nr_open``: whether an unlimited nofile becomes
    fs.nr_open (since 1.5.2); where it does not, the kernel refuses it. ``unknown``: the items
    whose lines are skipped (nonewprivs is known since 1.5.0, rttime since 1.7.1, and chroot to
    Debian's patch alone). ``needs_files``: whether a limits.conf that is missing, or a link in
    limits.d that hangs, ends every login (until 1.5.3). ``is_known``: whether this build is
    known at all; where it is not, the rest is no more than likely.
    """

    line_length: int = 0
    wildcard_root: bool = True
    reads_nr_open: bool = True
    unknown: tuple[str, ...] = ("rttime", "chroot")
    needs_files: bool = False
    is_known: bool = True

    @property
    def resets(self) -> bool:
        """Tell whether sessions start over from the limits of process 1, as Debian's patch had
        it before 1.7.0."""
        return self.line_length > 0 and not self.wildcard_root

    @property
    def ends_sessions(self) -> bool:
        """Tell whether a limit that the kernel refuses ends the session; Debian's patch goes on."""
        return self.wildcard_root


_BUFFER = 1023
_UPSTREAM_1_3 = Dialect(_BUFFER, unknown=("rttime", "chroot", "nonewprivs"), needs_files=True)
_UPSTREAM_1_5 = Dialect(_BUFFER, needs_files=True)
_UPSTREAM_1_6 = Dialect()
_DEBIAN_1_4 = Dialect(_BUFFER, False, False, ("rttime", "nonewprivs"), True)
_DEBIAN_1_5 = Dialect(_BUFFER, False, True, ("rttime",), True)
_DEBIAN_1_7 = Dialect(0, False, True, ("rttime",))
_UNKNOWN = _UPSTREAM_1_5._replace(is_known=False)


_OF_DEBIAN, _OF_RED_HAT = "/etc/rc.local", "/etc/rc.d/rc.local"
_OF_SUSE = "/etc/init.d/boot.local"


class Distribution(NamedTuple):
    """One release of a distribution; each ``None`` is not known.

    ``name`` as people read it. ``family``: ``debian``, ``ubuntu``, ``rhel``, ``suse``, ``amzn``,
    ``azurelinux`` or nothing; ``release``: its numbers. ``tasks_share``: DefaultTasksMax of
    systemd where nothing states it, in percent of what the system can hold. ``removes_ipc``:
    RemoveIPC of logind where nothing states it. ``highest_nofile``: the hard nofile of services
    where nothing states it. ``raises_nr_open``: whether process 1 raises fs.nr_open at boot.
    ``knows_patterns``: whether sysctl(8) heeds patterns and exclusions in sysctl.d.
    ``raises_memlock``: whether systemd gives services 8 MiB of memlock where nothing states it,
    or what the kernel gave process 1. ``pam``: how its pam_limits reads. ``local_scripts``: what
    systemd runs of them late in a boot, where it can be executed; all, where that is not known.
    """

    name: str = "this distribution"
    family: str = ""
    release: tuple[int, ...] = ()
    tasks_share: int | None = None
    removes_ipc: bool | None = None
    highest_nofile: int | None = None
    raises_nr_open: bool | None = None
    knows_patterns: bool | None = None
    raises_memlock: bool | None = None
    pam: Dialect = _UNKNOWN
    local_scripts: tuple[str, ...] = (_OF_DEBIAN, _OF_RED_HAT, _OF_SUSE)


def find_distribution(os_release: Mapping[str, str]) -> Distribution:
    """Return what is known of a distribution, from the fields of os-release(5)."""
    own = os_release.get("ID", "")
    family = _find_family(own, os_release.get("ID_LIKE", "").split())
    match = _VERSION.match(os_release.get("VERSION_ID", ""))
    release = tuple(int(part) for part in match.groups() if part) if match else ()
    name = os_release.get("PRETTY_NAME") or own or "this distribution"
    known = release[0] if release and (own == family or own in _OF_ONE_NUMBER) else None
    if known is None:  # The numbers of a derivative are its own.
        words = (os_release.get(f"{one}_CODENAME", "") for one in ("UBUNTU", "DEBIAN", "VERSION"))
        known = next((_CODENAMES[word] for word in words if word in _CODENAMES), None)
    return _FACTS.get(family, _know_nothing)(Distribution(name, family, release), known)


def _find_family(own: str, like: list[str]) -> str:
    for name in (own, *like):
        if name in ("debian", "ubuntu", "amzn", "azurelinux"):
            return name
        if name in _RED_HAT:
            return "rhel"
        if name in ("sles", "suse", "opensuse-leap", "sle_hpc"):
            return "suse"
    return ""


_OF_ONE_NUMBER = (*_RED_HAT, "raspbian", "sles", "sle_hpc", "opensuse-leap")
"""Those that count their releases as the family does that they are of."""


def _know_nothing(found: Distribution, _major: int | None) -> Distribution:
    return found


def _know_debian(found: Distribution, major: int | None) -> Distribution:
    """Return what Debian, or what is made of it, builds."""
    found = found._replace(local_scripts=(_OF_DEBIAN,))
    spares_root = found._replace(pam=_DEBIAN_1_7._replace(is_known=False))
    first, with_memlock, with_patterns, with_nr_open, last = (
        (10, 12, 12, 13, 13) if found.family == "debian" else (19, 23, 23, 25, 26)
    )
    if major is not None and not first <= major <= last:
        return spares_root._replace(knows_patterns=False if major < first else None)
    found = spares_root._replace(tasks_share=15, removes_ipc=True, highest_nofile=524288)
    if major is None:
        return found
    return found._replace(
        raises_nr_open=major >= with_nr_open,
        knows_patterns=major >= with_patterns,
        raises_memlock=major >= with_memlock,
        pam=_PAM_OF_DEBIAN[found.family].get(major, found.pam),
    )


_PAM_OF_DEBIAN = {
    "debian": {11: _DEBIAN_1_4, 12: _DEBIAN_1_5, 13: _DEBIAN_1_7},
    "ubuntu": {
        **dict.fromkeys((20, 21, 22), _DEBIAN_1_4),
        24: _DEBIAN_1_5._replace(needs_files=False),
        26: _DEBIAN_1_7,
    },
}


def _know_red_hat(found: Distribution, major: int | None) -> Distribution:
    """Return what Red Hat, or who builds its sources, builds."""
    found = found._replace(local_scripts=(_OF_RED_HAT,))
    if major not in (8, 9, 10):
        return found._replace(knows_patterns=False if major and major < 8 else None)
    pam = {8: _UPSTREAM_1_3, 9: _UPSTREAM_1_5, 10: _UPSTREAM_1_6}[major]
    if major == 8 and found.release[1:] and found.release[1] < 6:
        pam = pam._replace(reads_nr_open=False)  # Since pam 1.3.1-16 of January 2022.
    return found._replace(
        tasks_share=80,
        removes_ipc=False,
        highest_nofile=262144 if major == 8 else 524288,
        raises_nr_open=major > 8,
        knows_patterns=major > 8,
        raises_memlock=major > 8,
        pam=pam,
    )


def _know_suse(found: Distribution, major: int | None) -> Distribution:
    found = found._replace(raises_nr_open=False)
    return found._replace(local_scripts=(_OF_SUSE,)) if major == 15 else found


def _know_amazon(found: Distribution, major: int | None) -> Distribution:
    return found._replace(pam=_UPSTREAM_1_5) if major == 2023 else found


_FACTS = {
    "debian": _know_debian,
    "ubuntu": _know_debian,
    "rhel": _know_red_hat,
    "suse": _know_suse,
    "amzn": _know_amazon,
}
