# SPDX-License-Identifier: BSD-2-Clause
"""For training code: raise soft limits, plan workers, watch descriptors, refuse a run.

``from mlhost_limits import check, plan_workers, raise_soft_limits, watch_descriptors``. Nothing
but the standard library is imported, and of that only what is asked for.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping

from .core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .check_host import CheckResult
    from .training.loader import Plan
    from .training.survey_read import Survey
    from .training.watch_read import DescriptorWatch

_RAISED = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK}
_HIGHEST_NOFILE = 2**20
"""Where nobody says: a program that closes every descriptor it may have is slow with 2**30."""


class Raised(NamedTuple):
    """What a limit was and is; ``enough`` tells whether it is what was wanted.

    ``None`` stands for no limit.
    """

    item: str
    before: int | None
    now: int | None
    hard: int | None
    enough: bool

    def __str__(self) -> str:
        told = f"{self.item}: soft {_name(self.before)} -> {_name(self.now)}"
        return f"{told} (hard {_name(self.hard)}{'' if self.enough else ', less than wanted'})"


class RunRefusedError(RuntimeError):
    """A run would not survive here; ``result`` holds the findings."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__("\n".join(["this run would not survive here", *result.lines]))
        self.result = result


def raise_soft_limits(wanted: int | Mapping[str, int] | None = None) -> list[Raised]:
    """Raise soft limits up to the hard ones, which needs no privilege; none is lowered.

    :param wanted: A number of files, or numbers by ``nofile`` and ``memlock`` (bytes). By default
        both rise to the hard limit, nofile at most to 1048576.
    :returns: What each of them was and is.
    """
    if wanted is None:
        numbers: Mapping[str, int | None] = {"nofile": None, "memlock": None}
    else:
        numbers = {"nofile": wanted} if isinstance(wanted, int) else wanted
    unknown = sorted(numbers.keys() - _RAISED.keys())
    if unknown:
        raise ValueError(f"{unknown[0]!r} is unknown; accepted are {', '.join(_RAISED)}")
    return [_raise(item, number) for item, number in numbers.items()]


def _raise(item: str, wanted: int | None) -> Raised:
    endless = float("inf")
    soft, hard = (
        endless if one == resource.RLIM_INFINITY else one
        for one in resource.getrlimit(_RAISED[item])
    )
    asked = wanted if wanted is not None else _HIGHEST_NOFILE if item == "nofile" else endless
    new = max(soft, min(asked, hard))
    pair = tuple(resource.RLIM_INFINITY if one == endless else int(one) for one in (new, hard))
    if new != soft:
        resource.setrlimit(_RAISED[item], (pair[0], pair[1]))
    before, now, most = (None if one == endless else int(one) for one in (soft, new, hard))
    return Raised(item, before, now, most, new >= (wanted or 0))


def _name(value: int | None) -> str:
    return "unlimited" if value is None else str(value)


def plan_workers(wanted: int | None = None, **run: object) -> Plan:
    """Return the largest number of workers that this process bears, with the reasons.

    >>> plan = plan_workers(16, tensors_per_batch=8, batch_size="64MiB", prefetch=4)
    >>> DataLoader(..., num_workers=plan.workers)  # doctest: +SKIP

    :param wanted: How many there shall be at most.
    :param run: Keys of the policy's section ``training``. ``base`` is by default what is open now.
    :raises ValueError: With all that is wrong with them.
    """
    from .training.loader import CPUS, bound_by_cpus
    from .training.loader import plan_workers as plan

    survey = _survey({"workers": 1, **run})
    bounds = [bound for bound in survey.bounds if bound.name != CPUS]
    if not isinstance(survey.cpus, str):
        bounds += [bound_by_cpus(survey.run, one.number, one.why) for one in survey.cpus]
    return plan(bounds, wanted)


def _survey(run: Mapping[str, object]) -> Survey:
    """Return a look at this process, without opening a session or starting anything."""
    from .core.policy import CheckOptions
    from .core.reader import PolicyError
    from .host.look import Look
    from .training.policy import read_training
    from .training.survey_read import Survey
    from .training.watch_read import count_descriptors

    problems: list[str] = []
    training = read_training({"base": count_descriptors(), **run}, problems)
    if problems or training is None:
        raise PolicyError(problems)
    return Survey(training, CheckOptions(probe="predict", canary="never"), Look())


def check(
    profile: str = "none", *, strict: bool = False, stop: bool = True, **run: object
) -> CheckResult:
    """Judge this process before it trains; the first line of a script.

    :param profile: What kind of run it is.
    :param strict: Whether what is unknown counts as no-go.
    :param stop: Whether a no-go raises; else see ``falls_short`` of the result.
    :param run: Keys of the policy's section ``training``, such as ``workers=16``.
    :raises RunRefusedError: With the report, where the run would not survive.
    :raises ValueError: With all that is wrong with the keys, or missing.
    """
    from .check_host import check_host
    from .core.policy import CheckOptions
    from .schema import load_policy
    from .training.watch_read import count_descriptors

    policy = load_policy({"training": {"base": count_descriptors(), **run}}, profile, run=True)
    options = CheckOptions(sections=("training",), probe="predict", canary="never")
    result = check_host(policy, options)
    if stop and result.falls_short("unknown" if strict else "fail"):
        raise RunRefusedError(result)
    return result


def watch_descriptors(
    threshold: float = 0.8, seconds: float = 1.0, warn: Callable[[str], None] | None = None
) -> DescriptorWatch:
    """Return a watch that warns each time that the open descriptors cross a part of the limit.

    ``with watch_descriptors(): train()``, or ``watch = watch_descriptors().start()``.

    :param warn: What is called with the sentence; by default the logger ``mlhost_limits``.
    """
    from .training.watch_read import DescriptorWatch

    return DescriptorWatch(threshold, seconds, warn)
