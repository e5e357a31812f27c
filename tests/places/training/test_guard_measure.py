# SPDX-License-Identifier: GPL-3.0-or-later
"""A guard raises, watches and tells, and outlives forks, threads, callbacks and its own end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.training import guard_measure as guard
from mlhost_limits.training import soft_limits_settle as soft_limits
from mlhost_limits.training.guard_measure import Guard

TOP = Path(__file__).parents[3]
START = """
import sys; sys.path.insert(0, {top!r})
from tests.conftest import load_library
load_library()
import json, os, pickle, resource, threading, time
from mlhost_limits import guard
def bound(soft, hard=None): resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or soft))
def fill(number): return [os.open("/dev/null", os.O_RDONLY) for _file in range(number)]
def wait(ready):
    end = time.monotonic() + 30
    while not ready() and time.monotonic() < end: time.sleep(0.01)
told = []
"""


def start(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    text = START.format(top=str(TOP)) + code
    command = [sys.executable, *words, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def run(code: str, *words: str) -> Any:
    """Run code in a process of its own, whose limits it may change, and return what it prints."""
    done = start(code, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_soft_limits_rise_at_once() -> None:
    code = """
bound(100, 400)
watch = guard()
print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE), [str(one) for one in watch.raised]]))
"""
    soft, raised = run(code)
    assert soft == [400, 400]
    assert raised[0] == "nofile: soft 100 -> 400"


@pytest.mark.parametrize(
    ("item", "before", "after"),
    [("nofile", (100, 2**21), 2**20), ("memlock", (65536, -1), -1), ("memlock", (-1, -1), -1)],
)
def test_how_far_they_rise(
    item: str, before: tuple[int, int], after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = dict.fromkeys(soft_limits._AT_ONCE.values(), (100, 100))
    limits[soft_limits._AT_ONCE[item]] = before
    monkeypatch.setattr(soft_limits.resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(soft_limits.resource, "setrlimit", limits.__setitem__)
    raised = [one for one in soft_limits.raise_soft_limits() if one.item == item]
    assert limits[soft_limits._AT_ONCE[item]] == (after, before[1])
    assert len(raised) == (before[0] != after)
    if item == "memlock" and raised:
        assert str(raised[0]) == "memlock: soft 65536 -> unlimited"


def test_a_limit_that_the_kernel_refuses_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does with a hard limit that is above fs.nr_open by now."""

    def refuse(*_words: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(soft_limits.resource, "getrlimit", lambda _number: (100, 400))
    monkeypatch.setattr(soft_limits.resource, "setrlimit", refuse)
    assert soft_limits.raise_soft_limits() == []


def test_a_loop_is_told_before_it_dies_and_once() -> None:
    code = """
bound(200)
with guard(on_limit=told.append) as watch:
    files = []
    try:
        while True: files += fill(1)
    except OSError:
        before = len(told)
    watch.look()
print(json.dumps([before, len(told), told[0].level.used, str(told[0])]))
"""
    before, after, used, text = run(code)
    assert (before, after) == (1, 1)
    assert 100 <= used <= 165  # It may be foretold on a machine that is slow to look.
    assert "files in /dev" in text


def test_the_soft_limit_rises_where_it_comes_near() -> None:
    code = """
bound(200, 400)
watch = guard(raise_limits=False, on_limit=told.append)
before = resource.getrlimit(resource.RLIMIT_NOFILE)
files = fill(300)
now = resource.getrlimit(resource.RLIMIT_NOFILE)
files += fill(50)
print(json.dumps([before, now, [[one.level.limit, one.raised] for one in told]]))
"""
    assert run(code) == [[200, 400], [400, 400], [[200, 400], [400, 0]]]


def test_it_looks_by_itself_at_what_python_does_not_tell() -> None:
    """A copy of a descriptor raises no event."""
    code = """
bound(200)
guard(on_limit=told.append)
files = [os.dup(0) for _file in range(170)]
wait(lambda: told)
print(len(told))
"""
    assert run(code) == 1


def test_a_callback_may_raise_and_the_logger_is_told() -> None:
    code = """
bound(200)
def fail(reached): told.append(1); raise KeyError("x")
guard(on_limit=fail)
files = fill(170); [os.close(one) for one in files]
wait(lambda: told)
watch = guard(on_limit=fail)
watch.look()
files = fill(170)
wait(lambda: len(told) > 1)
print(len(told))
"""
    done = start(code)
    assert done.stdout == "2\n", done.stderr
    assert done.stderr.count("descriptors: 1") == 2
    assert done.stderr.count("on_limit failed") == 2
    assert done.stderr.count("KeyError: 'x'") == 2


def test_it_may_be_stopped_by_its_own_callback() -> None:
    code = """
bound(200)
def stop(reached): watch.stop(); told.append(1)
watch = guard(on_limit=stop)
begin = time.monotonic()
files = fill(180)
wait(lambda: told)
took = time.monotonic() - begin
[os.close(one) for one in files]
files = fill(180)
alive = [one.name for one in threading.enumerate() if one.name == "mlhost-guard"]
print(json.dumps([len(told), took < 1, alive]))
"""
    assert run(code) == [1, True, []]


def test_a_callback_that_needs_a_lock_of_the_one_who_opens_does_not_hang_it() -> None:
    code = """
bound(200)
lock = threading.Lock()
def need(reached):
    with lock: told.append(1)
guard(on_limit=need)
begin = time.monotonic()
with lock: files = fill(180)
took = time.monotonic() - begin
wait(lambda: told)
print(json.dumps([len(told), took < 2]))
"""
    assert run(code) == [1, True]


def test_the_same_guard_is_one_and_ends_with_its_last_holder() -> None:
    code = """
def threads(): return sum(one.name == "mlhost-guard" for one in threading.enumerate())
first = guard()
with guard() as second:
    same, other = first is second, guard(threshold=0.5)
    seen = [threads()]
    other.stop()
seen.append(threads())
first.stop(); seen.append(threads())
first.stop(); seen.append(threads())
with first: seen.append(threads())
seen.append(threads())
print(json.dumps([same, first is other, seen]))
"""
    assert run(code) == [True, False, [2, 1, 0, 0, 1, 0]]


def test_a_child_after_a_fork_is_silent_until_it_asks() -> None:
    """And no thread runs while a process forks, of which Python warns since 3.12."""
    code = """
bound(200)
def tell(reached): os.write(1, f"{os.getpid() == main} ".encode())
main = os.getpid()
watch = guard(on_limit=tell)
def child(asks):
    pid = os.fork()
    if not pid:
        if asks: guard(on_limit=tell)
        files = fill(170); time.sleep(0.1)
        os._exit(threading.active_count())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if sys.version_info > (3, 9) else asks + 1
os.write(1, f"{child(False)} {child(True)} ".encode())
files = fill(170)
wait(lambda: watch.reached)
"""
    done = start(code, "-W", "error")
    assert (done.stdout, done.stderr.count("Warning")) == ("False 1 2 True ", 0), done.stderr


def test_no_thread_of_the_guard_runs_while_a_process_forks() -> None:
    """What is registered first is called last before a fork."""
    code = """
def count(): told.append(sum(one.name == "mlhost-guard" for one in threading.enumerate()))
os.register_at_fork(before=count)
guard()
count()
if not os.fork(): os._exit(0)
count()
print(told)
"""
    assert run(code) == [1, 0, 1]


def test_a_thread_that_cannot_be_started_again_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    one = Guard()
    monkeypatch.setattr(guard.threading.Thread, "start", fail)
    one.start_thread()
    assert one._thread is None
    one.stop_thread()


def test_a_process_that_is_spawned_with_it_guards_itself() -> None:
    code = """
watch = guard(threshold=0.5)
text = pickle.dumps(watch)
watch.stop()
again = pickle.loads(text)
print(json.dumps([again is watch, again.options]))
"""
    assert run(code) == [False, [True, 0.5, None]]


def test_the_interpreter_ends_while_it_watches() -> None:
    code = """
guard(); guard(threshold=0.5)
threading.Thread(target=time.sleep, args=(0.05,)).start()
print(1)
"""
    done = start(code, "-X", "dev")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("where", ["main", "thread", "block"])
def test_an_error_that_nobody_handles_is_explained_first(where: str) -> None:
    """Copies in a tight loop are seen by nobody until then."""
    code = f"""
bound(200)
watch = guard()
def die():
    while True: os.dup(0)
if {where!r} == "thread":
    one = threading.Thread(target=die); one.start(); one.join()
elif {where!r} == "block":
    with watch: die()
else:
    die()
"""
    text = start(code).stderr
    assert text.count("descriptors: ") == 1
    assert text.index("descriptors: ") < text.index("OSError: [Errno 24]")


def test_many_threads_may_open_at_once() -> None:
    code = """
bound(2000)
watch = guard(on_limit=told.append)
held = [[] for _thread in range(8)]
def work(files):
    for _step in range(225):
        files += fill(1)
        time.sleep(0.01)
threads = [threading.Thread(target=work, args=(files,)) for files in held]
[one.start() for one in threads]; [one.join() for one in threads]
wait(lambda: told)
print(json.dumps([len(told), told[0].level.used < 1700]))
"""
    assert run(code) == [1, True]


@pytest.mark.parametrize("threshold", [0, -1, 1.1])
def test_a_threshold_that_is_no_part_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=f"threshold {threshold}: accepted is a part, above 0"):
        Guard(threshold=threshold)


def test_as_many_workers_fit_as_the_limits_leave() -> None:
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
with guard() as watch:
    few = watch.workers(64, tensors_per_batch=4, base=3)
    one = watch.workers(1)
    level = [trend for (name, _where), trend in watch._trends.items() if name == "tasks"][0]
    watch.look = lambda: None
    level.level = level.level._replace(used=level.level.limit - 7)
    print(json.dumps([few, one, watch.workers(16)]))
"""
    assert run(code) == [20, 1, 1]
