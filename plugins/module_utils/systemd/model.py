# SPDX-License-Identifier: BSD-2-Clause
"""Predict the limits of a service's next start: what its files ask for, and what it then gets.

Sources: ``fallback_rlimit_nofile()``, ``setrlimit_closest()`` and ``exec_child()`` of systemd;
``do_prlimit()`` of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.distribution import Distribution
from ..core.values import Declaration, NamedTuple, Rlimit
from ..sessions.facts import SessionFacts, find_ending, predict_session
from ..sessions.model import FD_SETSIZE
from .limits import Reading, Statement, read_manager_limits, read_unit_limits
from .unit_file import Source

_RUNTIME = ("/run/systemd/system", "/run/systemd/transient", "/run/systemd/user")
"""Where what lies is gone after a boot. What generators write is written again."""


class Stray(NamedTuple):
    """A file that systemd does not read, why, and the path under which it would."""

    source: Source
    reason: str
    path: str


class Files(NamedTuple):
    """All that decides a unit: its file, its drop-ins, and the manager's, the strongest first.

    ``others`` are files of the unit's name that weaker folders hold, ``vendor`` is whose systemd
    it is: what counts where no file states anything.
    """

    main: Source | None
    dropins: tuple[Source, ...] = ()
    manager: Source | None = None
    manager_dropins: tuple[Source, ...] = ()
    others: tuple[Source, ...] = ()
    strays: tuple[Stray, ...] = ()
    vendor: Distribution = Distribution()


class Manager(NamedTuple):
    """What a service manager gives where no file states it, and what it may do.

    ``own`` are the limits of its process: it falls back to their hard ones where the kernel
    refuses what it asks for. A user's manager may not raise them at all. At boot it reads its files
    before fs.nr_open is set, and does not cut its default to that.
    """

    defaults: Mapping[str, Rlimit]
    own: Mapping[str, Rlimit]
    nr_open: int
    may_raise: bool = True
    at_boot: bool = False


class Pam(NamedTuple):
    """The line that puts a service through PAM, and all that decides the session."""

    line: Declaration
    session: SessionFacts


class UnitFacts(NamedTuple):
    """One service, or unit of another kind.

    ``pam`` is there where PAM has a say, and ``folder`` is where a person's units lie.
    ``nr_open_line`` is the line that gives fs.nr_open at boot, which will be ``nr_open_at_boot``
    then, 0 where that is not known. ``defaults_of`` is there where this
    stands for every service that states nothing: the name of its manager's file, as system.conf.
    """

    name: str
    files: Files
    manager: Manager
    pam: Pam | None = None
    folder: str = "/etc/systemd/system"
    nr_open_line: Declaration | None = None
    defaults_of: str = ""
    nr_open_at_boot: int = 0

    @property
    def title(self) -> str:
        """Return what a sentence calls it."""
        return "a new service" if self.defaults_of else self.name


def find_defaults(
    of_pid_1: Mapping[str, Rlimit], memlock: int, highest_nofile: int
) -> dict[str, Rlimit]:
    """Return the limits that systemd gives where nothing states any.

    :param memlock: What the kernel gave the first process.
    :param highest_nofile: The hard one of services (``HIGH_RLIMIT_NOFILE``).
    """
    nofile = Rlimit(FD_SETSIZE, highest_nofile)
    return {**of_pid_1, "nofile": nofile, "memlock": Rlimit(memlock, memlock)}


def find_user_defaults(of_manager: Mapping[str, Rlimit]) -> dict[str, Rlimit]:
    """Return the limits that a user's manager gives where nothing states any."""
    nofile = of_manager["nofile"]
    return {**of_manager, "nofile": Rlimit(min(nofile.soft, FD_SETSIZE), nofile.hard)}


def read_unit(facts: UnitFacts) -> Reading:
    """Return what systemd reads of the unit's own files."""
    main = facts.files.main or Source(facts.name, "")
    return read_unit_limits(facts.name.rpartition(".")[2], main, facts.files.dropins)


def rank_statements(item: str, facts: UnitFacts) -> list[Statement]:
    """Return all that is stated of a limit, the line that counts last."""
    own = read_manager_limits(facts.files.manager, facts.files.manager_dropins)
    statements = (*own.statements, *read_unit(facts).statements)
    return [statement for statement in statements if statement.item == item]


def find_asked(item: str, facts: UnitFacts) -> Rlimit:
    """Return what systemd will ask the kernel for."""
    ranked = rank_statements(item, facts)
    return ranked[-1].limit if ranked else facts.manager.defaults[item]


def predict_unit(facts: UnitFacts) -> dict[str, Rlimit] | None:
    """Return the limits after the files are read anew and the unit is started; none if it cannot.

    A unit whose file cannot be read is not loaded, and so not started.
    """
    if read_unit(facts).refused:
        return None
    asked = {item: find_asked(item, facts) for item in facts.manager.own}
    if not (facts.manager.at_boot or rank_statements("nofile", facts)):
        soft, hard = asked["nofile"]
        asked["nofile"] = Rlimit(soft, min(hard, facts.manager.nr_open))
    return predict_start(asked, facts)


def predict_start(asked: Mapping[str, Rlimit], facts: UnitFacts) -> dict[str, Rlimit] | None:
    """Return the limits of a process that systemd asks these for; none if it will not start."""
    taken = {item: _take(item, limit, facts.manager) for item, limit in asked.items()}
    given = {item: limit for item, limit in taken.items() if limit is not None}
    if len(given) < len(taken):
        return None
    if facts.pam is None:
        return given
    session = facts.pam.session
    start = session.start._replace(inherited=given, nr_open=facts.manager.nr_open)
    session = session._replace(start=start)
    return None if find_ending(session) else predict_session(session)


def _take(item: str, limit: Rlimit, manager: Manager) -> Rlimit | None:
    """Return what the kernel takes: all, or what systemd falls back to; else the start fails."""
    highest = manager.own[item].hard
    nr_open = manager.nr_open if item == "nofile" else limit.hard
    if limit.hard <= nr_open and (manager.may_raise or limit.hard <= highest):
        return limit
    fallback = Rlimit(min(limit.soft, highest), min(limit.hard, highest))
    return fallback if item != "nofile" or fallback.hard <= nr_open else None


def outlive_boot(files: Files) -> Files:
    """Return the files that will still be there after a boot."""
    return files._replace(
        main=None if files.main is None or _is_fleeting(files.main) else files.main,
        dropins=tuple(source for source in files.dropins if not _is_fleeting(source)),
        manager_dropins=tuple(one for one in files.manager_dropins if not _is_fleeting(one)),
    )


def _is_fleeting(source: Source) -> bool:
    return source.path.startswith(_RUNTIME)
