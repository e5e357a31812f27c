# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``watch``: run a command, tell of a limit before it is reached, and what it ended of."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from .core.quote import clean
from .host.door import open_file, read_handle
from .host.look import format_time
from .watch.report import Watched, warn
from .watch.reports_read import is_report
from .watch.run_measure import NOT_FOUND, NOT_RUN, Run, end_as
from .watch.sampler_read import Sampler
from .watch.tree_read import Member
from .watch.trends import Trend
from .watch.verdict import Seen, has_failed, judge
from .why.host_read import read_log
from .why.where_read import place_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

NAME = "mlhost-limits"
_PATIENCE = 2.0
_LARGEST = 2**20
_QUIETLY = 5.0
"""Seconds between two lines that tell of the same limit of several processes."""


def watch_run(arguments: argparse.Namespace, command: Sequence[str] | None) -> int:
    """Run a command to its end; return its exit status, or die of the signal that it died of.

    With ``--host`` there is none, and all that runs is watched.

    :raises OSError, ValueError: If there is no command, or the report cannot be written there.
    """
    _require_one_way(arguments, command)
    if arguments.host:
        from .watch_host import watch_host  # Nobody else needs it.

        return watch_host(arguments.metrics or "")
    if not command:
        raise ValueError("no command follows --; see mlhost-limits watch --help")
    path = os.path.abspath(arguments.report) if arguments.report else ""
    if path:
        _require_place(path)
    try:
        run = Run(command)
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
    watch = _Watch(run, os.path.basename(command[0]))
    status = run.wait()
    return end_as(status, lambda: watch.conclude(status, path))


def _require_one_way(arguments: argparse.Namespace, command: Sequence[str] | None) -> None:
    """Refuse what would be left unread.

    :raises ValueError: If something is given that the other way to watch takes.
    """
    given = {"COMMAND": command, "--report": arguments.report}
    others = [name for name, value in given.items() if value]
    if arguments.host and others:
        raise ValueError(f"--host watches all that runs: it takes no {' and no '.join(others)}")
    if arguments.metrics and not arguments.host:
        raise ValueError("--metrics is for --host; of a command, --report FILE tells")


def _say(line: str) -> None:
    with suppress(OSError):  # Who reads it may be gone; the status is the command's all the same.
        os.write(2, f"{NAME}: {clean(line)}\n".encode("utf-8", "backslashreplace"))


def _require_place(path: str) -> None:
    """Refuse a report where none can be written, or where somebody else's file lies.

    :raises OSError, ValueError: If so.
    """
    if not os.path.isdir(os.path.dirname(path)):
        raise ValueError(f"--report: {os.path.dirname(path)} is not a directory")
    if os.path.lexists(path):
        text = read_handle(open_file(path), _LARGEST, path).decode("utf-8", "replace")
        if text and not is_report(text):
            raise ValueError(f"--report: {path} is there and not a report of watch: not replaced")


class _Watch:
    """What is known of a run while it lives, and what is told of it."""

    def __init__(self, run: Run, name: str) -> None:
        self._told: dict[str, float] = {}
        self._member = Member(run.pid, name, 0)
        self.sampler: Sampler | None = None
        with suppress(OSError, RuntimeError):  # The run goes on whatever keeps us from looking.
            sampler = Sampler(self._member, self._warn, [run.witness])
            sampler.start()
            self.sampler = sampler

    def _warn(self, trend: Trend) -> None:
        """Tell of a limit that comes near: one line, from the thread that looks."""
        now = time.monotonic()
        item = trend.level.item or trend.level.code
        if now - self._told.get(item, -_QUIETLY) >= _QUIETLY:
            self._told[item] = now
            member = self.sampler.root if self.sampler else self._member
            _say(warn(trend, place_process(member.cgroup, member.uid).kind))

    def conclude(self, status: int, path: str) -> None:
        """Tell what the run ended of, if it failed, and write the report."""
        at = time.monotonic()
        if self.sampler is None:
            _say("nothing was watched: no thread could be started")
            return
        if not has_failed(status) and not path:
            return
        with suppress(KeyboardInterrupt):
            watched = self._judge(self.sampler, status, at)
            if has_failed(status):
                self._tell(watched)
            if path:
                _write(watched, path)

    def _judge(self, sampler: Sampler, status: int, at: float) -> Watched:
        sampler.stop(_PATIENCE)
        root = sampler.root
        end = sampler.describe_end(root, status, at)
        kills = sampler.kills_last if sampler.kills_first is not None else None
        seen = Seen(
            sampler.began,
            end,
            tuple(sampler.ends),
            tuple(sampler.rises),
            sampler.history.list_near(),
            kills,
            read_log()[0] if kills != 0 else (),
            sampler.looks,
            sampler.shared,
        )
        verdict, blame = judge(seen)
        began = time.time() - time.monotonic()
        return Watched(
            *(seen, verdict, blame, root.comm, root.uid, root.cgroup),
            lambda moment: format_time(began + moment),
        )

    @staticmethod
    def _tell(watched: Watched) -> None:
        _say("\n".join(watched.format_brief(_explain(watched))))


def _explain(watched: Watched) -> list[str]:
    """Return what why says of a limit: the reason, how sure it is, the line at fault, the fix."""
    if watched.verdict.is_limit is False:
        return []
    from .judge_end import blame

    where = place_process(watched.cgroup, watched.uid)
    return blame(watched.verdict, where, group=watched.blame.group).lines


def _write(watched: Watched, path: str) -> None:
    from .audit_files import open_beside

    try:
        with open_beside(Path(path)) as (file, take_name):
            file.write(f"{json.dumps(watched.as_dict(), indent=1)}\n")
            file.flush()
            take_name()
    except OSError as error:
        _say(f"--report: {path}: {error.strerror or error}")
