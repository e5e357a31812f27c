# SPDX-License-Identifier: BSD-2-Clause
"""Judge what an image's files will give: what they are sure to give, whatever the host will be.

Nothing of an image is measured, so nothing passes: what its files give is unknown until the first
boot, with the forecast as its outlook. What they are sure not to give falls short now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from .cause import RAISES, Cause, Outlook, Remedy
from .finding import (
    FAIL,
    FORETOLD,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    format_observed,
)
from .quote import one_line
from .values import UNLIMITED, Bound, Declaration, NamedTuple, Rlimit

NEEDS_BOOT = "nothing of an image runs"
_ADDS = re.compile(r" >> (/etc/[\w./-]+)/[^/\s]+$")
_NOW = re.compile(r", (?:and set the running value|now and at boot|and restart [\w.-]+)")
"""What a sentence says of the running kernel besides."""
_OF_RUNNING = ("sysctl", "systemctl", "mount", "modprobe")
"""Programs that change what runs: of no use to what does not."""


class Forecast(NamedTuple):
    """What the files give; ``value`` is ``None`` where they do not say, and ``by`` who says so."""

    status: str
    value: int | str | None = None
    by: Declaration | None = None
    causes: tuple[Cause, ...] = ()
    reason: str = ""


def skip(wanted: Iterable[Requirement], reason: str) -> Iterator[tuple[Requirement, Forecast]]:
    """Yield that nothing can be said, and why."""
    for one in wanted:
        yield one, Forecast(UNKNOWN, reason=reason)


def tell(
    wanted: Requirement,
    forecast: Forecast,
    root: str = "/",
    lacks: Callable[[str], bool] = lambda _folder: False,
) -> Finding:
    """Return the finding of one forecast: it falls short, or the first boot will show.

    :param root: The tree that was read; remedies are for it, and not for the host that looks.
    :param lacks: Tells whether it has no folder of a name.
    """
    outlook = Outlook(after_boot=forecast.status)
    if forecast.status == FAIL:
        causes = tuple(_fit(cause, root, lacks) for cause in forecast.causes)
        return Finding(FAIL, wanted, Observation(forecast.value, FORETOLD), causes, outlook)
    told = f"{forecast.reason or NEEDS_BOOT}, so the first boot decides"
    if forecast.status == PASS:
        told = _describe(wanted, forecast)
    return Finding(UNKNOWN, wanted, Observation(None, FORETOLD, told), (), outlook)


def _describe(wanted: Requirement, forecast: Forecast) -> str:
    """Return ``foretold nofile soft 65536 by FILE:LINE``."""
    words = ["predicted", wanted.item]
    words += [wanted.bound] if wanted.bound != "value" else []
    words += [] if forecast.value is None else [format_observed(forecast.value, wanted.unit)]
    words += [f"by {forecast.by.place}"] if forecast.by else []
    return one_line(" ".join(words))


def _fit(cause: Cause, root: str, lacks: Callable[[str], bool]) -> Cause:
    """Return a cause whose commands change the files of the tree, and nothing that runs."""
    enter = () if root == "/" else ("chroot", root)
    kept = [words for words in cause.remedy.commands if not _is_of_running(words)]
    added = (match[1] for words in kept for match in [_ADDS.search(words[-1])] if match)
    missing = [("mkdir", "-p", folder) for folder in dict.fromkeys(added) if lacks(folder)]
    commands = tuple((*enter, *words) for words in (*missing, *kept))
    text = _NOW.sub("", cause.remedy.text)
    return cause._replace(remedy=Remedy(text, commands, "build it again"))


def settle(least: Forecast, most: Forecast, doubt: str) -> Forecast:
    """Return a forecast where what is not known makes no difference; else why nobody can tell."""
    return least if least.status == most.status else Forecast(UNKNOWN, reason=doubt)


def _is_of_running(words: Sequence[str]) -> bool:
    """Tell whether a command changes what runs, and no file; in a chroot that is the builder's."""
    return words[0] in _OF_RUNNING or words[-1].startswith(RAISES)


def conclude(
    status: str, value: int | str | None, bound: Bound | None, causes: tuple[Cause, ...]
) -> Forecast:
    return Forecast(status, value, bound.winner if bound else None, causes)


def list_extremes() -> tuple[Rlimit, Rlimit]:
    """Return the least and the most that anything starts from."""
    return Rlimit(0, 0), Rlimit(UNLIMITED, UNLIMITED)
