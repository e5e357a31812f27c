# SPDX-License-Identifier: BSD-2-Clause
"""Blank out credentials before text is shown."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\\n]|\\.)*"?'
_SENSITIVE = r"(?:token|secret|passw|passphrase|credential|\bauth\b|api[-_]?key|access[-_]?key)"
_SECRET_MEMBER = re.compile(
    rf'("[^"\n]*{_SENSITIVE}[^"\n]*"\s*:\s*)({_STRING}|\[[^\]]*\]?|[^\s"{{\[,}}]+)', re.IGNORECASE
)
_SECRET_OPTION = re.compile(rf"([\w.-]*{_SENSITIVE}[\w.-]*=)([^\s\"'\\]+)", re.IGNORECASE)
_USER_PASSWORD = re.compile(
    r"""(?:([a-z][\w+.-]*:(?:\\?/){2})|[^\s"'/:@]+:)[^\s"']+(?:@|\\u0040)""", re.IGNORECASE
)


def redact(text: str) -> str:
    """Blank out credentials in daemon.json or a unit file, for diffs and logs.

    Values of keys that name a secret go whole, and whatever stands before the ``@`` of an
    address. It needs no valid JSON: a broken file is shown as well.
    """
    text = _SECRET_MEMBER.sub(r'\1"REDACTED"', text)
    text = _SECRET_OPTION.sub(r"\1REDACTED", text)
    return _USER_PASSWORD.sub(lambda match: f"{match[1] or ''}REDACTED@", text)
