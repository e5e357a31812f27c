# SPDX-License-Identifier: BSD-2-Clause
"""The commands that raise a sysctl and never lower it, whatever was raised before.

Of several findings each may ask for another value: whoever runs all that is printed, in whatever
order, ends with the highest.
"""

from __future__ import annotations

from ..core.cause import ADD, RAISES, Remedy, cite, replace_line
from .sysctl_conf import SYSCTL_CONF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.values import Declaration

_NR_OPEN = "fs.nr_open"
_SITE_NAME = "95-site.conf"


def raise_now(key: str, value: int) -> tuple[str, ...]:
    """Return a command that gives a sysctl a value at least."""
    script = f'{RAISES}{key.replace(".", "/")})" -ge {value} ] || sysctl -w {key}={value}'
    return ("sh", "-c", script)


def raise_nr_open(value: int, at_boot: int, line: Declaration | None, then: str = "") -> Remedy:
    """Return how fs.nr_open comes to be a value at least, now and at boot.

    :param at_boot: What a boot gives as it is.
    :param line: The statement that decides that, where there is one.
    """
    commands: tuple[tuple[str, ...], ...] = (raise_now(_NR_OPEN, value),)
    if line and at_boot < value and not _is_of_files(line.path):
        return Remedy(f"let {cite(line)} give fs.nr_open {value} at least", (), then)
    if line and at_boot < value and line.path.startswith("/etc/"):
        commands += replace_line(line, f"{_NR_OPEN} = {value}").commands
    elif at_boot < value:
        commands += (_state_at_least(value, line.path if line else ""),)
    return Remedy(f"raise fs.nr_open to {value}, now and at boot", commands, then)


def _is_of_files(path: str) -> bool:
    """Tell whether a file is one of sysctl.d(5), and no script, unit or profile."""
    return "/sysctl.d/" in path or path == SYSCTL_CONF


def _state_at_least(value: int, beaten: str) -> tuple[str, ...]:
    """Return the command that states fs.nr_open, unless our file states as much already.

    :param beaten: A file that is to be read before it.
    """
    name = beaten.rpartition("/")[2]
    file = "/etc/sysctl.d/" + (f"{name[:-5]}.site.conf" if name > _SITE_NAME else _SITE_NAME)
    stated = f"sed -n 's/^{_NR_OPEN} = //p' {file} 2>/dev/null | sort -n | tail -n 1"
    add = f"{ADD} '{_NR_OPEN} = {value}' >> {file}"
    return ("sh", "-c", f'[ "$({stated})" -ge {value} ] 2>/dev/null || {add}')
