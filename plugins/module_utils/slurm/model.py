# SPDX-License-Identifier: BSD-2-Clause
"""Predict the limits of a job of Slurm: those of slurmd, then PAM's, then the login's soft ones.

Sources: ``_set_limit()`` in ulimits.c and ``pam_setup()`` in pam_ses.c of slurmstepd. A soft limit
above slurmd's hard one is cut to it. slurmd raises its own soft nofile to the hard one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.values import Declaration, NamedTuple, Rlimit
from ..sessions.facts import SessionFacts, find_ending, predict_session
from .slurm_conf import Propagation


class JobPam(NamedTuple):
    """The line that puts jobs through PAM, and all that decides the session."""

    line: Declaration
    session: SessionFacts


class JobFacts(NamedTuple):
    """All that decides the limits of a job that somebody submits.

    ``slurmd`` are those of the daemon that starts it, and ``login`` those of the session that
    submits it, which ``who`` names.
    """

    slurmd: Mapping[str, Rlimit]
    login: Mapping[str, Rlimit]
    who: str
    propagation: Propagation
    pam: JobPam | None = None


def raise_nofile(limits: Mapping[str, Rlimit]) -> dict[str, Rlimit]:
    """Return the limits of slurmd once it has started."""
    hard = limits["nofile"].hard
    return {**limits, "nofile": Rlimit(hard, hard)}


def find_given(facts: JobFacts) -> dict[str, Rlimit]:
    """Return what a job has where the login decides nothing: slurmd's limits, or PAM's.

    It is nothing at all where PAM refuses the session of the job.
    """
    given = raise_nofile(facts.slurmd)
    if facts.pam is None:
        return given
    session = facts.pam.session
    session = session._replace(start=session.start._replace(inherited=given))
    if find_ending(session):
        return dict.fromkeys(given, Rlimit(0, 0))
    return predict_session(session)


def predict_job(item: str, facts: JobFacts, propagated: bool | None = None) -> Rlimit:
    """Return one limit of a job.

    A soft limit above slurmd's hard one is cut to it; slurmd raises its own soft nofile to the hard
    one. Sources: ``_set_limit()`` in ulimits.c and ``pam_setup()`` in pam_ses.c of slurmstepd.

    :param propagated: Whether the login decides it; by default what slurm.conf says.
    """
    given = find_given(facts)[item]
    if propagated is None:
        propagated = item in facts.propagation.items
    return Rlimit(min(facts.login[item].soft, given.hard), given.hard) if propagated else given
