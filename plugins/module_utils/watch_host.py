# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``watch --host``: tell of limits before runs reach them, and keep what runs died of."""

from __future__ import annotations

import os
import select
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .core.quote import one_line
from .host.look import format_time
from .node.metrics import Metric, format_metrics
from .watch.host_sampler_read import Death, HostSampler
from .watch.report import Watched, warn
from .watch.ring_read import FOLDER, keep, make_folder
from .watch.trends import HORIZON, TOLD, Trend
from .watch.verdict import Blame, Seen, find_signal, judge
from .why.host_read import read_log
from .why.verdict import SHOWN, Verdict
from .why.where_read import Where, place_process
from .write.temporary import replace_text

_QUIETLY, _MOST_OF_PLACE, _MOST_TOLD = 60.0, 4, 40
"""Seconds between two lines about one limit of one process, and how many lines come in as many
seconds at most, of one place and of all."""

_METRICS_EVERY = 30.0
_MOST_NEAR = 20
_LIVED = 60.0
"""Seconds after which a program that fails is worth a report, whatever it failed of."""

_RECENT = 120.0
_KILL, _CRASHES = 9, (4, 6, 7, 8, 11)


def watch_host(metrics: str) -> int:
    """Watch all that runs on this host, for as long as this lives.

    :param metrics: The file for the metrics, or nothing.
    :raises OSError: If this is not root of the host, to whom alone the kernel tells of all ends.
    """
    if os.geteuid():
        raise PermissionError("watch --host: only root hears how everybody's processes end")
    _Box(metrics).run()
    return 0


class _Box:
    """What is told of a host while it is watched."""

    def __init__(self, metrics: str) -> None:
        self._metrics, self._written = os.path.abspath(metrics) if metrics else "", 0.0
        self._told: dict[tuple[str, str], float] = {}
        self._ended: Counter[str] = Counter()
        self._sampler = HostSampler(self._warn, self._conclude, self._write_metrics)
        make_folder(FOLDER)
        if self._metrics:
            replace_text(self._metrics, format_metrics(self._describe()))

    def run(self) -> None:
        self._sampler.run()

    def _warn(self, trend: Trend) -> None:
        """Tell of a limit that comes near, and not too often of all that users can bring near."""
        level, where = trend.level, self._find_where(trend)
        place = f"{where.kind}:{where.name}"
        if self._may_say(place, f"{level.item or level.code} of {level.who}"):
            _say(f"{place}: {warn(trend, where.kind)}")
        else:
            trend.is_told = False  # Another time, if it is still near.

    def _may_say(self, place: str, what: str) -> bool:
        """Tell whether there is room for a line: so many of each place, and of all, in a minute."""
        now = time.monotonic()
        self._told = {one: at for one, at in self._told.items() if now - at < _QUIETLY}
        own = sum(one[0] == place for one in self._told)
        is_free = (place, what) not in self._told and own < _MOST_OF_PLACE
        if is_free and len(self._told) < _MOST_TOLD:
            self._told[place, what] = now
            return True
        return False

    def _find_where(self, trend: Trend) -> Where:
        """Return where somebody lives who comes near a limit."""
        members = self._sampler.tree.members
        member = members.get(trend.level.pid)
        if member:
            return place_process(member.cgroup, member.uid)
        return Where("host", os.uname().nodename, None)

    def _conclude(self, deaths: Sequence[Death]) -> None:
        """Judge a run that has ended, and keep a report where somebody may ask for it."""
        last = deaths[-1]
        verdict, blame, seen = self._judge(deaths)
        is_limit = verdict.is_limit and verdict.sure == SHOWN
        number = find_signal(last.end.status)
        lived = last.end.at - last.began
        if not (is_limit or number == _KILL or number in _CRASHES or lived >= _LIVED):
            return
        began, member = time.time() - time.monotonic(), last.member
        watched = Watched(
            *(seen, verdict, blame, member.comm, member.uid, member.cgroup),
            lambda moment: format_time(began + moment),
        )
        if is_limit:
            self._ended[verdict.reason.code] += 1
            where = place_process(member.cgroup, member.uid)
            place = f"{where.kind}:{where.name}"
            if self._may_say(place, "an end"):
                _say("; ".join([f"{place}: {member.comm} ended", *verdict.notes]))
        try:
            keep(watched.as_dict(), began + last.end.at, member.uid, member.pid)
        except OSError as error:
            if self._may_say(FOLDER, "a report"):
                _say(str(error))

    def _judge(self, deaths: Sequence[Death]) -> tuple[Verdict, Blame, Seen]:
        sampler, last = self._sampler, deaths[-1]
        ends = [one.end for one in deaths]
        was_killed = any(find_signal(one.status) == _KILL for one in ends)
        log = (read_log()[0] or ()) if was_killed else ()
        seen = Seen(
            last.began,
            last.end,
            ends[:-1],
            [one for one in sampler.rises if os.path.dirname(one.path) in last.end.folders],
            sampler.list_own(deaths),
            sampler.count_kills(),
            [line for line in log if line.age <= _RECENT],
            last.looks,
            is_alone=False,
        )
        return (*judge(seen), seen)

    def _write_metrics(self) -> None:
        now = time.monotonic()
        if self._metrics and now - self._written >= _METRICS_EVERY:
            self._written = now
            try:
                replace_text(self._metrics, format_metrics(self._describe()))
            except OSError as error:
                _say(str(error))

    def _describe(self) -> Iterator[Metric]:
        """Yield what comes near a limit, worst of each place, and what ended at one."""
        left: dict[tuple[str, str], float] = {}
        share: dict[tuple[str, str], float] = {}
        for trend in self._sampler.history.near:
            if trend.level.share >= TOLD and len(share) < _MOST_NEAR:
                where = self._find_where(trend)
                key = f"{where.kind}:{where.name}", trend.level.item or trend.level.code
                share[key] = max(share.get(key, 0.0), trend.level.share)
                if trend.left is not None and trend.left <= HORIZON:
                    left[key] = min(left.get(key, HORIZON), trend.left)
        for name, text, values in (
            ("near_limit_ratio", "Part of a limit that is taken, four fifths or more.", share),
            ("full_in_seconds", "Seconds until a limit is reached at the present rate.", left),
        ):
            rows = tuple(({"place": one[0], "item": one[1]}, at) for one, at in values.items())
            yield Metric(f"mlhost_limits_{name}", text, rows)
        yield Metric(
            "mlhost_limits_ended_at_limit",
            "Runs that ended at a limit since the black box of this host was started.",
            tuple(({"reason": code}, count) for code, count in self._ended.items()),
        )
        yield Metric(
            "mlhost_limits_black_box_timestamp_seconds",
            "When the black box of this host last wrote this.",
            (({}, time.time()),),
        )


def _say(line: str) -> None:
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    with suppress(OSError):
        if not poll.poll(0):
            return  # Who reads it has stopped: what is watched goes on.
        os.write(2, f"mlhost-limits: {one_line(line)}\n".encode("utf-8", "backslashreplace"))
