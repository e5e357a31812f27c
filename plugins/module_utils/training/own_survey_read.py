# SPDX-License-Identifier: BSD-2-Clause
"""How many workers fit into this very process, as training code asks for them."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.policy import CheckOptions
from ..core.reader import PolicyError
from ..host.look import Look
from .guard_levels import Level
from .guard_read import count_descriptors
from .loader import Bound
from .policy import SELF, Training, read_training
from .runner_read import read_own_ranks
from .survey_read import Survey
from .tasks import TaskRoom, bound_by_tasks


def survey_self(run: Mapping[str, object]) -> Survey:
    """Return a look at this process, without opening a session or starting anything.

    :param run: Keys of the policy's section ``training``. ``base`` is by default what is open now.
    :raises ValueError: With all that is wrong with them.
    """
    problems = [
        f"training.{key}: only the process that asks is checked here"
        for key in ("place", "user")
        if run.get(key) not in (None, SELF)
    ]
    own = {"workers": 1, "base": count_descriptors(), **read_own_ranks()}
    training = read_training({**own, **run}, problems)
    if problems or training is None:
        raise PolicyError(problems)
    return Survey(training, CheckOptions(probe="predict", canary="never"), Look())


def bound_by_level(level: Level, run: Training) -> Bound:
    """Return how many workers a limit of tasks has room for, beside what runs already."""
    room = TaskRoom(max(level.limit - level.used, 0), level.limit, level.where)
    return bound_by_tasks(run, 0, room)
