# SPDX-License-Identifier: GPL-3.0-or-later
"""Training code plans its workers, and is refused; its guard is tested beside its place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlhost_limits
import pytest
from mlhost_limits import preflight as training

TOP = Path(__file__).parents[2]
START = """
import sys; sys.path.insert(0, {top!r})
from tests.conftest import load_library
load_library()
import json, os, resource, time
"""


def run(code: str) -> Any:
    """Run code in a process of its own, whose limits it may change, and return what it prints."""
    text = START.format(top=str(TOP)) + code
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_package_offers_what_training_code_needs() -> None:
    for name in ("LightningGuard", "TransformersGuard", "check", "guard", "plan_workers"):
        assert getattr(mlhost_limits, name) is getattr(training, name)
    with pytest.raises(AttributeError, match="module 'mlhost_limits' has no attribute 'chekc'"):
        _ = mlhost_limits.chekc


def test_workers_are_planned_with_every_reason() -> None:
    code = """
from mlhost_limits import plan_workers
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
plans = [plan_workers(tensors_per_batch=4, base=3), plan_workers(1, tensors_per_batch=4)]
print(json.dumps([[plan.workers, [bound.name for bound in plan.bounds], plan.reasons] for plan in plans]))
"""
    (most, names, reasons), (one, *_rest) = run(code)
    assert names[:2] == ["nofile", "memory"]
    assert "CPUs" in names
    assert reasons.startswith("nofile 20 (soft limit 256), ")
    assert (most <= 20, one) == (True, 1)


@pytest.mark.parametrize(
    ("tensors", "strict", "stop", "refused"),
    [(1, False, True, False), (10**6, False, True, True), (10**6, False, False, False)],
)
def test_a_run_is_refused_for_what_falls_short_and_only_where_it_shall_stop(
    tensors: int, strict: bool, stop: bool, refused: bool
) -> None:
    """This process itself is judged."""
    words: dict[str, Any] = {"workers": 10 if tensors > 1 else 1, "checks": ["descriptors"]}
    words["tensors_per_batch"] = tensors
    if refused:
        with pytest.raises(RuntimeError, match="this run would not survive here") as caught:
            training.check(strict=strict, stop=stop, **words)
        assert caught.value.result.falls_short("fail")  # type: ignore[attr-defined]
    else:
        result = training.check(strict=strict, stop=stop, **words)
        assert result.falls_short("fail") == (tensors > 1)


def test_as_many_workers_fit_as_this_process_bears() -> None:
    """CPUs bound them too, and every bound is told."""
    plan = training.plan_workers(3, tensors_per_batch=1, prefetch=1)
    assert plan.workers == min(3, *(bound.most for bound in plan.bounds))
    assert {"nofile", "CPUs"} <= {bound.name for bound in plan.bounds}
    assert plan.reasons.endswith("; not known: /dev/shm (batch_size is not stated)")


def test_the_ranks_of_a_launcher_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = training.plan_workers(tensors_per_batch=1, batch_size="1MiB")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    of_eight = training.plan_workers(tensors_per_batch=1, batch_size="1MiB")
    most = [{one.name: one.most for one in plan.bounds} for plan in (alone, of_eight)]
    assert most[1]["memory"] <= most[0]["memory"] // 7
    stated = training.plan_workers(tensors_per_batch=1, ranks_per_node=1)
    assert {one.name: one.most for one in stated.bounds}["tasks"] > 7 * most[1]["tasks"]


@pytest.mark.parametrize("call", [training.plan_workers, training.check])
def test_what_a_run_cannot_be_is_refused(call: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match=r"training\.prefetch: -1 was given; a whole number"):
        call(prefetch=-1)


@pytest.mark.parametrize("wanted", [-1, 2.5, "4", object()])
def test_only_a_number_of_workers_is_wanted(wanted: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^wanted: .* was given; a number of workers is accepted$"
    ):
        training.plan_workers(wanted, tensors_per_batch=1)


@pytest.mark.parametrize("run", [{"place": "session:root@sshd"}, {"user": "root"}])
def test_workers_are_planned_for_the_process_that_asks(run: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"only the process that asks is checked here"):
        training.plan_workers(tensors_per_batch=1, **run)


@pytest.mark.slow
def test_a_run_that_would_die_does_not_start() -> None:
    code = """
from mlhost_limits import check
words = dict(workers=8, prefetch=4, tensors_per_batch=4, base=3)
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 161))
told = []
try:
    check("dataloader", **words)
except RuntimeError as exc:
    told.append(str(exc).splitlines()[:2])
told.append(check("dataloader", stop=False, **words).falls_short("fail"))
resource.setrlimit(resource.RLIMIT_NOFILE, (161, 161))
told.append(check("dataloader", strict=True, **words).lines[-1])
print(json.dumps(told))
"""
    assert run(code) == [
        [
            "this run may not survive here",
            "FAIL process:self: nofile soft 160, required 161",
        ],
        True,
        "7 pass, 0 fail, 0 unknown",
    ]


@pytest.mark.slow
def test_nothing_beyond_the_standard_library_is_imported() -> None:
    code = """
import sys
from mlhost_limits import check
from mlhost_limits import guard
from mlhost_limits import plan_workers
guard().stop()
names = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(json.dumps(sorted(names - {"mlhost_limits", "tests", "hypothesis", "__main__"})))
"""
    loaded = run(code)
    assert not {"torch", "numpy", "yaml", "ansible"} & set(loaded)
