# SPDX-License-Identifier: BSD-2-Clause
"""Read a file of variables as Compose and ``docker run --env-file`` do: ``.env``.

Source: the Compose specification, "Interpolation" and ``env_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .shell_variables import expand

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*[=:]\s*(.*?)\s*", re.ASCII)
_QUOTED = re.compile(r"(['\"])(.*?)(?<!\\)\1(?:\s.*)?")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def read_env_file(text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a file; the last of two lines counts.

    :param known: Variables that win over those of the file where a value names one.

    >>> read_env_file("RANKS=8  # per node\\nMEM='64g'", {})
    {'RANKS': '8', 'MEM': '64g'}
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, value = match[1], match[2]
        quoted = _QUOTED.fullmatch(value)
        value = quoted[2] if quoted else _COMMENT.sub("", value)
        is_literal = quoted is not None and quoted[1] == "'"
        found[name] = value if is_literal else expand(value, {**found, **known})
    return found
