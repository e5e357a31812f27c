# SPDX-License-Identifier: BSD-2-Clause
"""Say why a service that states nothing gets less than a policy asks, when it is started now."""

from __future__ import annotations

from ..core.cause import Cause, Remedy, cite
from ..core.values import Rlimit, format_pair
from ..systemd.model import UnitFacts, predict_unit, rank_statements
from ..systemd.want import declare, is_enough
from .causes import Verdict, find_start_causes, finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.reader import Limit
    from .causes import Commands

_FAILED = Rlimit(0, 0)


def explain_new(
    item: str,
    limit: Limit,
    has: Rlimit | None,
    facts: UnitFacts,
    booted: UnitFacts | None,
    reload: Commands,
) -> Verdict:
    """Return why a limit of new services falls short, now or after a boot.

    :param has: What one got that was just started, ``None`` where that was not seen.
    :param booted: The facts as they will be after a boot, ``None`` where they are not known.
    :param reload: The commands by which the manager reads its files.
    """
    given, boot = (predict_unit(one) if one else None for one in (facts, booted))
    after = given[item] if given else _FAILED
    at_boot = boot[item] if boot else None
    # What it has is what the next one gets, until the manager reads its files.
    verdict = Verdict((), has or after, at_boot)
    if not is_enough(limit, after):
        causes = finish(find_start_causes(item, limit, facts), reload)
    elif has is not None and not is_enough(limit, has):
        causes = (_blame_reload(item, has, facts, reload),)
    elif booted and at_boot is not None and not is_enough(limit, at_boot):
        causes = finish(find_start_causes(item, limit, booted), reload)
    else:
        return verdict
    return verdict._replace(causes=causes)


def _blame_reload(item: str, has: Rlimit, facts: UnitFacts, reload: Commands) -> Cause:
    """Blame that the manager has not read its files since they were changed."""
    ranked = rank_statements(item, facts)
    at = declare(ranked[-1]) if ranked else None
    what = cite(at) if at else "what the files say now"
    text = (
        f"{what} is not read yet: the service manager gives a new service {format_pair(item, has)}"
    )
    remedy = Remedy("let the manager read its files", reload)
    return Cause("unit-not-reloaded", text, remedy, at)
