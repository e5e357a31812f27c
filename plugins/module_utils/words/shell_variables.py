# SPDX-License-Identifier: BSD-2-Clause
"""Put the values of variables into a text of a shell, as far as they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping

_COUNT = re.compile(r"\$\{#([A-Za-z_]\w*)\[[@*]\]\}")
_VARIABLE = re.compile(
    r"\$(?:\{([A-Za-z_]\w*|\d)(?:\[[@*]\])?(?::?[-=]([^{}]*))?\}|([A-Za-z_]\w*))", re.ASCII
)
LONGEST = 2**16


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the variables that are known; what is not known stays as it stands."""

    def replace(match: re.Match[str]) -> str:
        value = variables.get(match[1] or match[3])
        if value is None or len(value) > LONGEST:
            return match[0] if match[2] is None else match[2]
        return value

    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text)} characters; at most {LONGEST} are read")
    counted = _COUNT.sub(
        lambda one: str(len(variables[one[1]].split())) if one[1] in variables else one[0], text
    )
    arrays = re.sub(r"\"(\$\{[A-Za-z_]\w*\[@\]\})\"", r"\1", counted)
    done = _VARIABLE.sub(replace, arrays)
    if len(done) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters with its variables")
    return done
