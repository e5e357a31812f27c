# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages as people write them in public threads: the reason that ended them is told first.

They were known when the rules were written, so they count for no figure.
"""

from __future__ import annotations

import json

import pytest
from mlhost_limits.why.answer import Answer
from mlhost_limits.why.log_text import (
    _HEAD,
    _LAST,
    _TAIL,
    Words,
    find_block,
    find_failures,
    list_pids,
    worked_on,
)
from mlhost_limits.why.reasons import REASONS
from mlhost_limits.why.verdict import FITS, MINIMUM, POSSIBLE, judge_words

from tests.why.corpus import HERE

FILES = "OSError: [Errno 24] Too many open files: 'a'"
GPU = "torch.cuda.OutOfMemoryError: CUDA out of memory."
OOM = "Memory cgroup out of memory: Killed process 5 (python)"
ORDER = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***"
X = ["x"]

ROWS = [(row["expected"], row["text"]) for row in json.loads((HERE / "public.json").read_text())]


@pytest.mark.parametrize(("expected", "text"), ROWS)
def test_a_message_of_a_thread_is_understood(expected: str, text: str) -> None:
    verdict = judge_words(Words(text))
    assert verdict
    assert verdict.reason.code == expected
    if not REASONS[expected].is_limit:
        assert verdict.is_limit is not True


@pytest.mark.parametrize(
    "text",
    [
        "INFO setrlimit: raised nofile to 65536",
        "OSError: [Errno 28] No space left on device: '/scratch/ckpt'\nINFO namespace default",
        "ValueError: the solver stopped due to time limit",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Hardware limit: 101376",
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        "RuntimeError: HIP error: out of memory",
        "zmq.error.Again: Resource temporarily unavailable while the thread waited in recv",
        "requests.exceptions.HTTPError: 413 Client Error: file too large for this endpoint",
        "epoch 137 done; 3 jobs killed last night\nKeyError: 'x'",
        "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due"
        " to high memory usage. (2) ray stop --force is called. (3) The worker is crashed due to SIGSEGV",
        "write /sys/fs/cgroup/cpuset/docker/abc/cpuset.cpus: no space left on device",
        "OSError: [Errno 99] Cannot assign requested address",
        "sqlite3.OperationalError: unable to open database file",
        "OSError: out of pty devices",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "cudaMallocHost failed: cudaErrorMemoryAllocation: out of memory",
    ],
)
def test_what_only_sounds_like_a_limit_is_not_blamed(text: str) -> None:
    verdict = judge_words(Words(text))
    assert verdict is None or not (verdict.sure == FITS and verdict.reason.is_limit)
    assert verdict is None or verdict.is_limit is not True


@pytest.mark.parametrize(
    "text",
    [
        "WARNING ulimit.py: Found ulimit of 1024 and failed to automatically increase with error x."
        " This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. Consider it",
        "WARNING retrying after OSError: [Errno 24] Too many open files\nepoch 1 done\nepoch 2 done",
        "OSError: [Errno 24] Too many open files\nepoch 1\nepoch 2\nSaved model.\nTraining complete.",
        "commit abc: fix 'Too many open files' in loader\nBuild finished",
        "If you run out of memory, reduce batch size\nTraining done",
        "To avoid `RuntimeError: can't start new thread`, set OMP_NUM_THREADS",
        "WARNING: The number of open files is low: Too many open files may occur; ulimit -n 1024",
        "Note: exit code 137 means OOM. Training completed successfully.",
        "score: -11",
        "lr: -6 done",
        "return: -9.0",
        "episode return: -137, code 137",
        "--exit_code 137",
        "request id=137 status=137 ok",
        "GET /x status code: 137 items",
        "signal 9 of 10 processed",
        "channel signal 11 recorded; temperature -11",
        "Epoch 137: status loss 1.37 killed\nall done",
        "the query exited early and returned 153 rows",
        "cannot find hugepages config; using default",
        "MAP_HUGETLB failed, falling back to 4 KiB pages",
        "RLIMIT_NOFILE is 65536",
    ],
)
def test_warnings_hints_and_metrics_are_no_failures(text: str) -> None:
    assert judge_words(Words(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "OSError: [Errno 99] Cannot assign requested address",
        "sqlite3.OperationalError: unable to open database file",
        "OSError: out of pty devices",
        "cudaMallocHost failed: cudaErrorMemoryAllocation: out of memory",
        "Error: connect EADDRINUSE 10.0.0.1:80",
        "RuntimeError: DataLoader worker (pid(s) 700895) exited unexpectedly",
        "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process stopped",
        "concurrent.futures.process.BrokenProcessPool: A process was terminated abruptly",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    ],
)
def test_a_limit_is_not_ruled_out_where_it_is_a_usual_cause(text: str) -> None:
    verdict = judge_words(Words(text))
    assert verdict
    assert verdict.is_limit is None


@pytest.mark.parametrize("size", ["9" * 400, "1.2.3", "\u0663.\u0665", "", "."])
def test_no_size_is_too_strange(size: str) -> None:
    for words in (
        "Unable to allocate {} GiB for an array",
        "memoryerror: you tried to allocate {} bytes",
    ):
        verdict = judge_words(Words(words.format(size)))
        assert verdict
        assert verdict.needed is None


def test_the_first_lock_of_many_is_no_more_than_the_least() -> None:
    text = (
        "failed to mlock 67108864-byte buffer (after previously locking 0 bytes): Cannot allocate"
    )
    verdict = judge_words(Words(f"{text} memory"))
    assert verdict
    assert verdict.needed == (MINIMUM, 2**26)
    told = "\n".join(Answer(verdict).lines)
    assert "at least 64MiB" in told
    assert "enough" not in told


def test_of_a_long_line_the_failure_is_shown_and_where_it_stood() -> None:
    line = f"{'x' * 600} OSError: [Errno 24] Too many open files: {'y' * 600}"
    verdict = judge_words(Words(f"first\n{line}"))
    assert verdict
    said = " ".join("\n".join(Answer(verdict, log="rank1.log", is_cut=True).lines).split())
    assert "Too many open files" in said
    assert "line 2 of rank1.log, from where it was read" in said
    assert len(said) < 1000


@pytest.mark.parametrize(("between", "is_told"), [(10, True), (1600, False)])
def test_of_a_long_log_the_last_lines_count(between: int, is_told: bool) -> None:
    """What an earlier run wrote into the same file did not end this one; alone, it is found."""
    first, after = "OSError: [Errno 24] Too many open files", ["a line"] * between
    alone = judge_words(Words("\n".join([first, *after])))
    assert alone
    assert alone.line == first
    verdict = judge_words(Words("\n".join([first, *after, "ValueError: no such layer"])))
    assert verdict
    assert verdict.line.startswith("ValueError")
    assert verdict.earlier == (first if is_told else "")


ORDER = "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"
KILLED = "bash: line 1:  4711 Killed                  python train.py"
EXITED = "srun: error: n1: task 0: Exited with exit code 1"
RANK = "srun: error: n1: task 1: Killed"
LOSS = "loss 0.137"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([ORDER, KILLED], "job-time"),
        ([ORDER, *[LOSS] * 39, KILLED], "job-time"),
        ([ORDER, *[LOSS] * 40, KILLED], "cgroup-memory"),
        ([KILLED, ORDER], "job-time"),
        ([EXITED, RANK], "another-died"),
        ([RANK, EXITED], "cgroup-memory"),
        ([EXITED, KILLED], "cgroup-memory"),
        ([EXITED.replace("code 1", "code 137"), RANK], "cgroup-memory"),
        ([RANK], "cgroup-memory"),
    ],
)
def test_a_kill_that_a_launcher_ordered_is_not_for_memory(lines: list[str], code: str) -> None:
    """Slurm kills what outlives its time, and the other ranks once one has ended."""
    verdict = judge_words(Words("\n".join(lines)))
    assert verdict
    assert verdict.reason.code == code


def test_the_traceback_of_a_failure_is_kept_with_it() -> None:
    block = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    main()",
        "RuntimeError: can't start new thread",
    ]
    verdict = judge_words(Words("\n".join(["loss 0.137", *block])))
    assert verdict
    assert verdict.near == "\n".join(block)


def test_nothing_is_told_of_a_run_that_says_nothing() -> None:
    for text in ("", "\n\n", "loss 0.137\n" * 50, "\0\xff\x1b[31m", "done"):
        assert judge_words(Words(text)) is None


@pytest.mark.parametrize(
    ("lines", "number", "code", "sure"),
    [
        ([FILES], 1, "nofile", FITS),
        ([f"{FILES}, retrying"], 1, "nofile", POSSIBLE),
        # A kill shortly after an order is that of the order.
        ([*X * 30, ORDER, "Killed"], 31, "job-time", FITS),
        ([ORDER, *X * 39, "Killed"], 1, "job-time", FITS),
        ([ORDER, *X * 40, "Killed"], 42, "cgroup-memory", POSSIBLE),
        # What stands above the last words tells which of several reasons it was.
        (["Killed"], 1, "cgroup-memory", POSSIBLE),
        ([*X * 150, OOM, "Killed"], 152, "cgroup-memory", FITS),
        ([OOM, *X * 199, "Killed"], 201, "cgroup-memory", FITS),
        ([OOM, *X * 200, "Killed"], 202, "cgroup-memory", POSSIBLE),
    ],
)
def test_the_lines_above_the_last_words_count(
    lines: list[str], number: int, code: str, sure: str
) -> None:
    verdict = judge_words(Words("\n".join(lines)))
    assert verdict
    assert (verdict.number, verdict.reason.code, verdict.sure) == (number, code, sure)


def test_a_limit_above_an_error_is_told_and_no_other_error() -> None:
    for above, earlier in ((FILES, FILES), (GPU, "")):
        verdict = judge_words(Words(f"{above}\n{GPU}"))
        assert verdict
        assert (verdict.number, verdict.earlier) == (2, earlier)


def test_far_above_is_looked_where_the_last_lines_name_nothing() -> None:
    far = [FILES, *X * _LAST]
    assert [one.number for one in find_failures(Words("\n".join(far)))] == [0]
    assert [one.number for one in find_failures(Words("\n".join([*far, GPU])))] == [_LAST + 1]


def test_of_a_long_line_both_ends_are_read() -> None:
    whole = "a" * (_HEAD + _TAIL)
    assert Words(whole)[0] == whole
    assert Words(f"{whole}b")[0] == f"{'a' * _HEAD} ... {'a' * (_TAIL - 1)}b"


def test_a_line_is_read_with_its_traceback_or_with_those_beside_it() -> None:
    start = "Traceback (most recent call last):"
    beside = [f"line {number}" for number in range(20)]
    assert find_block(Words("\n".join(beside)), 10).split("\n") == beside[6:15]
    for lines in (
        [start, *["  a"] * 8, "E: b", "c"],
        [start, "  a", "b", *["  a"] * 3, "E: b", "c"],
    ):
        assert find_block(Words("\n".join(["x", *lines])), len(lines) - 1).split("\n") == lines
    lines = [start, "b", *["  a"] * 5, "E: b"]
    assert find_block(Words("\n".join(lines)), 7).split("\n") == lines[3:]


@pytest.mark.parametrize(
    ("above", "below", "on"),
    [(["epoch 1"], ["epoch 2"], False), ([], ["epoch 1", "epoch 2"], True)],
)
def test_a_run_works_on_where_work_follows(above: list[str], below: list[str], on: bool) -> None:
    words = Words("\n".join([*above, "WARNING: Too many open files", *below]))
    (found,) = find_failures(words)
    assert worked_on(words, found, is_last=True) is on


@pytest.mark.parametrize(("lines", "code"), [(200, "collective-timeout"), (201, "killed-by-hand")])
def test_of_what_follows_the_first_of_two_hundred_lines_counts(lines: int, code: str) -> None:
    first = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)"
    text = [*X * 5, first, *X * (lines - 1), "KeyboardInterrupt"]
    verdict = judge_words(Words("\n".join(text)))
    assert verdict
    assert verdict.reason.code == code


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ("a.service: State 'stop-sigterm' timed out. Killing.", "killed-by-hand"),
        (OOM, "cgroup-memory"),
        ("bash: line 1: 77 Killed python t.py", "job-time"),
    ],
)
def test_only_a_kill_of_which_nothing_is_known_follows_from_an_order(told: str, code: str) -> None:
    verdict = judge_words(Words(f"{ORDER}\n{told}"))
    assert verdict
    assert verdict.reason.code == code


@pytest.mark.parametrize(
    ("above", "below", "is_told"),
    [
        ([], [], True),
        ([], ["Exception ignored in: <x>"], True),
        ([], [*X, "Exception ignored in: <x>"], True),
        (["Exception ignored in: <x>"], [], False),
        (["Exception ignored in: <x>", "Traceback (most recent call last):"], [], False),
        (["Exception ignored in: <x>", "Traceback (most recent call last):", "  File"], [], False),
        (["Exception ignored in: <x>", *[" y"] * 58], [], False),
        (["Exception ignored in: <x>", *[" y"] * 59], [], True),
        (["Exception ignored in: <x>", "y"], [], True),
    ],
)
def test_what_python_ignores_is_no_end(above: list[str], below: list[str], is_told: bool) -> None:
    verdict = judge_words(Words("\n".join([*above, FILES, *below])))
    assert (verdict is not None) is is_told


@pytest.mark.parametrize(
    ("text", "pids"),
    [
        ("Killed process 12 (python), pid=7", {12, 7}),
        ("bash: line 3:  99 Killed", {99}),
        ("PIDs: 5 of stepid 6", {5}),
        ("nobody", set()),
    ],
)
def test_the_processes_that_a_text_names(text: str, pids: set[int]) -> None:
    assert list_pids(text) == pids


TRACE = "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("above", "first"),
    [
        (["a", "b", TRACE], TRACE),
        (["a", "b", TRACE, " f"], TRACE),
        (["a", "b", TRACE, " f", " g"], TRACE),
        (["a", TRACE, *[" f"] * 8], TRACE),
        (["a", TRACE, "b"], TRACE),
        (["a", TRACE, "b", "c", "d", "e", "f"], "c"),
        (["a", TRACE, *[" f"] * 59], " f"),
        (["a", TRACE, *[" f"] * 58], TRACE),
        (["a"], "a"),
        ([], "E"),
    ],
)
def test_a_block_begins_with_its_traceback(above: list[str], first: str) -> None:
    block = find_block(Words("\n".join([*above, "E", *"12345"])), len(above)).split("\n")
    assert block[0] == first
    assert block[-5:] == ["E", *"1234"]


@pytest.mark.parametrize(
    ("path", "others"),
    [
        *(("/mnt/usb/a", ["file-system"]), ("/media/u/a", ["file-system"])),
        *(("/run/media/u/a", ["file-system"]), ("/srv/a", []), ("/run/mnt/a", [])),
    ],
)
def test_a_file_of_what_is_mounted_may_be_too_large_for_it(path: str, others: list[str]) -> None:
    verdict = judge_words(Words(f"OSError: [Errno 27] File too large: '{path}'"))
    assert verdict
    assert [one.code for one in (verdict.reason, *verdict.others)] == ["fsize", *others]


def test_each_of_two_lines_is_found_that_end_alike() -> None:
    words = Words("\n".join(["OSError: Too many open files"] * 3))
    assert [one.number for one in find_failures(words)] == [0, 1, 2]
