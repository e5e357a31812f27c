# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge toys, on a host and in the tree of one."""

from __future__ import annotations

from ..core.cause import Link, cite
from ..core.finding import FAIL, UNKNOWN, Finding, Observation, Requirement, judge
from ..core.forecast import Forecast
from ..core.resolved import describe
from ..core.values import Bound
from ..host.files import read_text
from .toy_conf import PATH, blame, parse_toys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def _require(least: int) -> Requirement:
    return Requirement("toys", "marbles", "value", least)


def check_toys(least: int) -> Finding:
    """Return whether there are marbles enough."""
    lines = parse_toys(read_text(PATH) or "")
    seen = Observation(int(lines[-1].value) if lines else 0, PATH)
    return judge(_require(least), seen)._replace(causes=blame(least, lines))


def foresee_toys(least: int, root: str) -> Iterator[tuple[Requirement, Forecast]]:
    """Yield what the files of a tree will give."""
    lines = parse_toys(read_text(PATH, root) or "")
    causes = blame(least, lines)
    yield _require(least), Forecast(FAIL if causes else UNKNOWN, None, None, causes)


def trace_toys() -> list[Link]:
    """Return who can set the marbles."""
    return [
        Link("toys.conf", str(one.value), cite(one)) for one in parse_toys(read_text(PATH) or "")
    ]


def resolve_toys(root: str) -> Iterator[dict[str, object]]:
    """Yield what the files of a tree state."""
    for one in parse_toys(read_text(PATH, root) or "")[-1:]:
        yield describe("toys", "marbles", "value", Bound(one, ()), "")
