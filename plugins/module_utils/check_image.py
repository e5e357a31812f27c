# SPDX-License-Identifier: BSD-2-Clause
"""Judge an image, which nobody has booted yet, by what its files will give."""

from __future__ import annotations

from collections.abc import Iterator

from .core.finding import UNKNOWN, Finding, Requirement
from .core.forecast import Forecast, tell
from .host.image import Tree
from .places import PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.check_options import Options
    from .core.policy import Policy


def check_image(policy: Policy, options: Options, root: str) -> Iterator[Finding]:
    """Yield a finding for all that a policy asks of a host to come; none of them passes.

    Of what files do not tell, nothing can be said before somebody runs it.

    :param root: Its tree; ``/`` where this process runs in it.
    :raises OSError: If the tree cannot be read.
    """
    tree = Tree(root)
    rest = []
    for place in PLACES:
        if not options.wants(place.name) or place.name not in policy.asked:
            continue
        foretold = place.foresee(policy.get(place.name), options, tree)
        if foretold is None:
            rest.append((Requirement(place.name, "all", "value"), Forecast(UNKNOWN)))
        for wanted, forecast in foretold or ():
            yield tell(wanted, forecast, root)
    for wanted, forecast in rest:
        yield tell(wanted, forecast, root)
