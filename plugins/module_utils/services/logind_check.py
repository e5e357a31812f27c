# SPDX-License-Identifier: BSD-2-Clause
"""Judge whether logind removes a user's shared memory at the end of the last login."""

from __future__ import annotations

from ..core.cause import Outlook
from ..core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, Requirement, judge
from ..systemd.model import outlive_boot
from .logind_causes import find_logind_causes, format_flag
from .logind_conf import KEY, LOGIND, predict_remove_ipc
from .measure import run_systemd
from .read import read_owner

PLACE = "logind"
_OBJECT = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_FLAGS = {"b true": True, "b false": False}


def check_logind(wanted: bool, runs: bool) -> Finding:
    """Return whether logind does what is asked, by what it says of itself over D-Bus.

    :param runs: Whether it does at all: asking would start it.
    """
    seen, reason = _ask() if runs else (None, "systemd-logind is not running")
    value = None if seen is None else format_flag(seen)
    requirement = Requirement(PLACE, KEY, "value", exact=format_flag(wanted))
    finding = judge(requirement, Observation(value, "systemd-logind, over D-Bus", reason))
    try:
        files = read_owner(LOGIND)
    except (OSError, ValueError):
        return finding
    later = outlive_boot(files)
    soon, boot = (_judge(predict_remove_ipc(one), wanted) for one in (files, later))
    causes = find_logind_causes(wanted, files, seen)
    if not causes and boot == FAIL:
        causes = find_logind_causes(wanted, later, None)
    return finding._replace(causes=causes, outlook=Outlook("", soon, boot))


def _judge(given: bool | None, wanted: bool) -> str:
    return UNKNOWN if given is None else PASS if given == wanted else FAIL


def _ask() -> tuple[bool | None, str]:
    """Return what logind says that it does, or why it was not heard."""
    status, text = run_systemd("busctl", ["get-property", *_OBJECT, KEY])
    seen = None if status else _FLAGS.get(text.strip())
    return seen, "" if seen is not None else f"logind does not say: {text.strip()}"
