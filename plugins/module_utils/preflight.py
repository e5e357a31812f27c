# SPDX-License-Identifier: BSD-2-Clause
"""For training code: guard a process, plan workers, refuse a run.

``from mlhost_limits import check, guard, plan_workers``. Nothing but the standard library is
imported, and of that only what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .check_host import CheckResult
    from .training.guard_levels import Reached
    from .training.guard_measure import Guard
    from .training.loader import Plan


class RunRefusedError(RuntimeError):
    """A run would not survive here; ``result`` holds the findings."""

    def __init__(self, result: CheckResult) -> None:
        from .core.no_go import CANNOT

        dies = any(cause.verdict == CANNOT for one in result.findings for cause in one.causes)
        head = f"this run {'would' if dies else 'may'} not survive here"
        super().__init__("\n".join([head, *result.lines]))
        self.result = result


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
    from .training.own_survey_read import survey_self

    if wanted is not None and (not isinstance(wanted, int) or wanted < 0):
        raise ValueError(f"wanted: {wanted!r} was given; a number of workers is accepted")
    survey = survey_self(run)
    bounds = [bound for bound in survey.bounds if bound.name != CPUS]
    if not isinstance(survey.cpus, str):
        bounds += [bound_by_cpus(survey.run, one.number, one.why) for one in survey.cpus]
    return plan(bounds, wanted)._replace(unknown=survey.unknown)


def measure(loader: object, batches: int = 20, seconds: float = 60.0) -> dict[str, object]:
    """Let a loader make some batches in a child, and return what it takes to be counted.

    >>> plan = plan_workers(16, **{**measure(loader), "hold": 2})  # doctest: +SKIP

    :param loader: torch's ``DataLoader``, or whatever yields batches.
    :param batches: How many are made; their largest counts.
    :param seconds: After which the child is ended.
    :returns: Keys of the policy's section ``training``: ``tensors_per_batch``, ``batch_size``,
        ``worker_memory`` and the loader's own options. How many batches the program holds is not
        among them.
    :raises RuntimeError: If it makes no batch, or not in time.
    """
    from .training.own_loader_measure import measure_loader

    return measure_loader(loader, batches, seconds)


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
    from .training.guard_read import count_descriptors
    from .training.runner_read import read_own_ranks

    own = {"base": count_descriptors(), **read_own_ranks()}
    policy = load_policy({"training": {**own, **run}}, profile, run=True)
    options = CheckOptions(sections=("training",), probe="predict", canary="never")
    result = check_host(policy, options)
    if stop and result.falls_short("unknown" if strict else "fail"):
        raise RunRefusedError(result)
    return result


def guard(
    *,
    raise_limits: bool = True,
    threshold: float = 0.8,
    on_limit: Callable[[Reached], object] | None = None,
) -> Guard:
    """Watch this process from now on; ``guard()``, or ``with guard() as watch: train()``.

    It says which limit comes near before the process dies of it, once for each, by the logger
    ``mlhost_limits``. A child after a fork is not watched; it may call this itself.

    :param raise_limits: Whether the soft limits of nofile, at most to 1048576, and of memlock rise
        to the hard ones at once, which needs no privilege. Those of nofile and nproc rise in any
        case where they come near.
    :param threshold: The part of a limit that is told.
    :param on_limit: What is called with it, in a thread of the guard's; what it raises is logged.
    :returns: The guard, running. Asked for the same again, it is the same one.
    :raises ValueError: If the threshold is not a part.
    """
    from .training.guard_measure import open_guard

    return open_guard(raise_limits, threshold, on_limit)


def TransformersGuard(**options: Any) -> Any:  # noqa: N802 - It stands for a class of a callback.
    """Return a guard for the Trainer of transformers: ``callbacks=[TransformersGuard()]``.

    :param options: Those of :func:`guard`.
    :raises ImportError: Where transformers is not installed.
    """
    from .training.trainers_measure import make_transformers_guard

    return make_transformers_guard(**options)


def LightningGuard(**options: Any) -> Any:  # noqa: N802 - It stands for a class of a callback.
    """Return a guard for the Trainer of Lightning: ``callbacks=[LightningGuard()]``.

    :param options: Those of :func:`guard`.
    :raises ImportError: Where neither ``lightning`` nor ``pytorch_lightning`` is installed.
    """
    from .training.trainers_measure import make_lightning_guard

    return make_lightning_guard(**options)
