# SPDX-License-Identifier: GPL-3.0-or-later
"""What a watch sees of the loaders of its own process, and what the script keeps of them."""

from __future__ import annotations

import collections
import json
import os
import signal
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.training import loader_hook_measure as hook
from mlhost_limits.training.loader_hook_measure import Watch, find_own, hang_in

from tests.worlds.loaders import LOADER


class Seen:
    """A module of loaders with a watch in it, and the last report."""

    def __init__(self, folder: Path) -> None:
        self.module = types.ModuleType("dataloader")
        exec(LOADER, self.module.__dict__)
        self.folder = folder
        hang_in(self.module, Watch(str(folder), 4))

    def make(self, *sizes: tuple[int, ...], **options: Any) -> Any:
        return self.module.DataLoader(list(sizes), **options)

    @property
    def report(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.folder / f"{os.getpid()}.json").read_text())
        return read


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Seen]:
    yield Seen(tmp_path)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for pid in map(int, children):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_the_largest_of_the_first_batches_counts(seen: Seen) -> None:
    for _batch in seen.make((1,), (2, 3), (1, 1, 1), (1,), (900,)):
        pass
    [loader] = seen.report["loaders"]
    assert (loader["batches"], loader["ended"]) == (4, True)
    assert (loader["tensors"], loader["bytes"]) == (3, 20)


@pytest.mark.parametrize("hold", [0, 1, 5])
def test_what_the_script_keeps_beside_its_batch_is_counted(seen: Seen, hold: int) -> None:
    held = collections.deque[Any](maxlen=hold + 1)
    for batch in seen.make(*[(1,)] * 9):
        held.append(batch)
    assert seen.report["hold"] == hold


def test_loaders_are_counted_while_their_workers_are_there(seen: Seen) -> None:
    first = iter(seen.make((1,), (1,), num_workers=2, prefetch_factor=3))
    next(first)
    assert seen.report["at_once"] == 1
    for _batch in seen.make((1,), num_workers=1, persistent_workers=True):
        pass
    assert seen.report["at_once"] == 2
    for _batch in seen.make((1,), num_workers=1):
        pass
    assert seen.report["at_once"] == 2, "the second is over"
    one, two, _three = (loader["options"] for loader in seen.report["loaders"])
    assert (one["workers"], one["prefetch"], one["epochs"]) == (2, 3, 2)
    assert (two["workers"], two["epochs"]) == (1, 1)


def test_a_loader_that_waits_is_told_unless_it_stands_for_another(seen: Seen) -> None:
    kept = [seen.make((1,), num_workers=1), seen.make((1,)), seen.make((2,), num_workers=1)]
    same = seen.module.DataLoader(kept[0].dataset, num_workers=1)
    next(iter(same))
    assert seen.report["unused"] == 1
    del kept[2]
    next(iter(same))
    assert seen.report["unused"] == 0


def test_what_is_open_counts_before_a_loader_and_a_batch(seen: Seen) -> None:
    free = len(os.listdir("/proc/self/fd")) - 1
    with open(os.devnull), open(os.devnull):
        loader = seen.make((1,), (1,), num_workers=1)
        running = iter(loader)
        kept = next(running)
        with open(os.devnull):
            next(iter(seen.make((1,))))
        assert seen.report["base"] == free + 2
        assert kept


def test_a_child_tells_of_its_own_loaders(seen: Seen) -> None:
    next(iter(seen.make((1,))))
    pid = os.fork()
    if not pid:
        for _batch in seen.make((7, 7)):
            pass
        os._exit(0)
    os.waitpid(pid, 0)
    told = json.loads((seen.folder / f"{pid}.json").read_text())
    assert [one["tensors"] for one in told["loaders"]] == [2]
    assert [one["tensors"] for one in seen.report["loaders"]] == [1]


def test_a_script_does_not_fail_of_being_watched(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    seen.folder.rmdir()
    assert len(list(seen.make((1,), (2,)))) == 2
    assert "mlhost-limits could not measure: FileNotFoundError" in capsys.readouterr().err
    seen.folder.mkdir()


@pytest.mark.parametrize(
    ("looks", "own"),
    [([9, 9, 5, 5, 5, 5], 5), ([5, 5, 5, 5, 9], 5), ([9, 8, 7, 6, 5, 4, 4, 4, 4], 4)],
)
def test_what_a_worker_has_is_seen_when_it_rests(
    monkeypatch: pytest.MonkeyPatch, looks: list[int], own: int
) -> None:
    """A batch that it makes is counted elsewhere."""
    seen = {1: iter(looks), 2: iter([3] * len(looks))}
    monkeypatch.setattr(hook, "read_private", lambda pid: next(seen[pid]))
    monkeypatch.setattr(hook, "_STILL", 0)
    assert find_own([1, 2]) == own
    assert find_own([]) == 0


def test_a_worker_that_never_rests_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(100, 10**9))
    monkeypatch.setattr(hook, "read_private", lambda _pid: next(numbers))
    monkeypatch.setattr(hook, "_LONGEST", 0.1)
    assert find_own([1]) == 100


def test_of_a_process_no_file_counts_and_nothing_in_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = ("Pss_Anon: 900", "Pss_Shmem: 100", "Private_Clean: 800", "Private_Dirty: 300")
    text = "".join(f"{row} kB\n" for row in (*rows, "Private_Hugetlb: 2048"))
    monkeypatch.setattr(hook, "_read", lambda _path: text)
    assert hook.read_private(1) == (300 - 100 + 2048) * 1024
