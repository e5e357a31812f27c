# SPDX-License-Identifier: GPL-3.0-or-later
"""Training code raises its limits, plans its workers, watches its descriptors, and is refused."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlhost_limits
import pytest
from mlhost_limits import preflight as training
from mlhost_limits.training import watch_read as watch

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
    for name in ("check", "plan_workers", "raise_soft_limits", "watch_descriptors"):
        assert getattr(mlhost_limits, name) is getattr(training, name)
    with pytest.raises(AttributeError, match="module 'mlhost_limits' has no attribute 'chekc'"):
        _ = mlhost_limits.chekc


def test_soft_limits_rise_to_the_hard_ones_and_never_fall() -> None:
    code = """
from mlhost_limits import raise_soft_limits
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 400))
steps = [raise_soft_limits(n)[0] for n in (200, 150, 900)] + [raise_soft_limits()[0]]
print(json.dumps([[*step, str(step)] for step in steps]))
"""
    assert run(code) == [
        ["nofile", 100, 200, 400, True, "nofile: soft 100 -> 200 (hard 400)"],
        ["nofile", 200, 200, 400, True, "nofile: soft 200 -> 200 (hard 400)"],
        ["nofile", 200, 400, 400, False, "nofile: soft 200 -> 400 (hard 400, less than wanted)"],
        ["nofile", 400, 400, 400, True, "nofile: soft 400 -> 400 (hard 400)"],
    ]


@pytest.mark.parametrize(
    ("item", "before", "after"),
    [("nofile", (100, 2**21), 2**20), ("memlock", (65536, -1), None), ("memlock", (-1, -1), None)],
)
def test_how_far_they_rise_where_nobody_says(
    item: str, before: tuple[int, int], after: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {resource.RLIMIT_NOFILE: (100, 100), resource.RLIMIT_MEMLOCK: (0, 0)}
    limits[training._RAISED[item]] = before
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    raised = {one.item: one for one in training.raise_soft_limits()}[item]
    assert raised.now == after
    assert limits[training._RAISED[item]] == (-1 if after is None else after, before[1])


def test_no_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _resource: (65536, -1))
    monkeypatch.setattr(resource, "setrlimit", lambda *_words: None)
    raised = training.raise_soft_limits({"memlock": 2**30})
    assert [str(one) for one in raised] == ["memlock: soft 65536 -> 1073741824 (hard unlimited)"]


def test_a_limit_that_cannot_be_raised_so_is_refused() -> None:
    with pytest.raises(ValueError, match="'nproc' is unknown; accepted are nofile, memlock"):
        training.raise_soft_limits({"nproc": 1})


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


@pytest.mark.parametrize("call", [training.plan_workers, training.check])
def test_what_a_run_cannot_be_is_refused(call: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match=r"training\.prefetch: -1 was given; a whole number"):
        call(prefetch=-1)


@pytest.mark.slow
def test_a_run_that_would_die_does_not_start() -> None:
    code = """
from mlhost_limits import check
words = dict(workers=8, prefetch=4, tensors_per_batch=4, base=3)
resource.setrlimit(resource.RLIMIT_NOFILE, (160, 161))
told = []
try:
    check("second_me", **words)
except RuntimeError as exc:
    told.append(str(exc).splitlines()[:2])
told.append(check("second_me", stop=False, **words).falls_short("fail"))
resource.setrlimit(resource.RLIMIT_NOFILE, (161, 161))
told.append(check("second_me", strict=True, **words).message.splitlines()[0])
print(json.dumps(told))
"""
    assert run(code) == [
        [
            "this run would not survive here",
            "FAIL process:self: nofile soft 160, required 161",
        ],
        True,
        "7 pass, 0 fail, 0 unknown",
    ]


def test_a_watch_warns_once_for_each_crossing() -> None:
    code = """
from mlhost_limits import watch_descriptors
told = []
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
watch = watch_descriptors(0.8, 0.01, told.append)
def fill(number):
    return [os.open("/dev/null", os.O_RDONLY) for _file in range(number)]
def look():
    watch.look(), watch.look()
    return len(told)
files = fill(40)
counts = [look()]
for file in files:
    os.close(file)
counts.append(look())
files = fill(40)
counts.append(look())
files += fill(50 - len(os.listdir("/proc/self/fd")) + 1)
counts.append(look())
print(json.dumps([counts, told[0].split("; ")[1]]))
"""
    counts, kinds = run(code)
    assert counts == [1, 1, 2, 2]
    assert re.match(r"most are 4\d files in /dev, ", kinds)


@pytest.mark.slow
def test_a_watch_looks_by_itself() -> None:
    """A busy machine may keep it waiting, so it is given a minute."""
    code = """
import threading
from mlhost_limits import watch_descriptors
told = threading.Event()
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
with watch_descriptors(0.8, 0.01, lambda _text: told.set()):
    early = told.is_set()
    files = [os.open("/dev/null", os.O_RDONLY) for _file in range(40)]
    print(json.dumps([early, told.wait(60)]))
"""
    assert run(code) == [False, True]


def test_a_full_table_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_words: object) -> None:
        raise OSError(24, "Too many open files")

    told: list[str] = []
    monkeypatch.setattr(os, "stat", fail)
    monkeypatch.setattr(os, "listdir", fail)
    monkeypatch.setattr(resource, "getrlimit", lambda _resource: (100, 100))
    watch.DescriptorWatch(warn=told.append).look()
    assert told == ["100 of 100 descriptors are open (100 %); most are not known"]


def test_the_logger_is_told_where_nobody_else_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _resource: (4, 4))
    watch.DescriptorWatch().look()
    assert [record.name for record in caplog.records] == ["mlhost_limits"]


def test_a_watch_is_started_and_stopped_as_often_as_one_likes() -> None:
    one = training.watch_descriptors()
    assert one.start() is one.start()
    one.stop()
    one.stop()


@pytest.mark.parametrize(("threshold", "seconds"), [(0, 1), (1.1, 1), (0.5, 0)])
def test_a_watch_of_nothing_is_refused(threshold: float, seconds: float) -> None:
    with pytest.raises(ValueError, match="0 to 1, and above 0"):
        training.watch_descriptors(threshold, seconds)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("socket:[47]", "socket"),
        ("pipe:[1]", "pipe"),
        ("anon_inode:[eventpoll]", "eventpoll"),
        ("anon_inode:inotify", "inotify"),
        ("net:[40265]", "net"),
        ("/dev/shm/torch_1_2_0 (deleted)", "shared memory"),
        ("/memfd:x (deleted)", "shared memory"),
        ("/data/shard-0001.tar", "files in /data"),
        ("/x", "files in /"),
    ],
)
def test_the_kinds_of_what_is_open(target: str, kind: str) -> None:
    assert watch.name_kind(target) == kind


def test_before_linux_6_2_the_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    assert watch.count_descriptors(str(tmp_path)) > 0
    assert watch.find_kinds(str(tmp_path)) == [("files in /dev", 1)]


@pytest.mark.slow
def test_nothing_beyond_the_standard_library_is_imported() -> None:
    code = """
import sys
from mlhost_limits import check
from mlhost_limits import plan_workers
from mlhost_limits import raise_soft_limits
from mlhost_limits import watch_descriptors
names = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(json.dumps(sorted(names - {"mlhost_limits", "tests", "hypothesis", "__main__"})))
"""
    loaded = run(code)
    assert not {"torch", "numpy", "yaml", "ansible"} & set(loaded)
