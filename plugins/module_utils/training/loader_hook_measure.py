# SPDX-License-Identifier: BSD-2-Clause
"""See what torch's loaders give a script and what it keeps, from inside of its own process.

A script that is tried has the source of this file before it, as its ``sitecustomize``: nothing of
the library is imported here, and nothing that takes long before a loader is there.

Source: torch 2.13, ``DataLoader.__iter__`` and ``_BaseDataLoaderIter.__next__``.
"""

from __future__ import annotations

import os
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

FOLDER, BATCHES = "MLHOST_TRIED_INTO", "MLHOST_TRIED_BATCHES"
"""Variables of the script: where reports go, and how many batches of a loader are weighed."""

_MODULE = "torch.utils.data.dataloader"
_HOOK = "sitecustomize"
_DEEPEST = 50
_MOST_KEPT = 64
"""Tensors of one batch that are followed: whoever keeps a batch keeps one of the first."""
_KIB = 1024
_STILL, _LOOKS, _LONGEST = 0.05, 3, 3.0
"""Seconds between two looks at workers, how many of them show no change, and the most to wait."""


def weigh(value: Any) -> Iterator[int]:
    """Yield the bytes of each tensor in a batch; anything else travels in a pipe."""
    for one in find_tensors(value):
        yield int(one.numel()) * int(one.element_size())


def find_tensors(
    value: Any, depth: int = _DEEPEST, seen: dict[int, Any] | None = None
) -> Iterator[Any]:
    """Yield the tensors in a batch, each once: of mappings, sequences and objects that have them.

    :param seen: What was looked at, by its number; it is kept, or another gets that number.
    """
    seen = {} if seen is None else seen
    if not depth or isinstance(value, (str, bytes, int, float, type)) or id(value) in seen:
        return
    seen[id(value)] = value
    if hasattr(value, "numel") and hasattr(value, "element_size"):
        yield value
        return
    for one in _list_inner(value):
        yield from find_tensors(one, depth - 1, seen)


def _list_inner(value: Any) -> Any:
    if isinstance(value, (list, tuple, set)):
        return value
    if hasattr(value, "keys") and hasattr(value, "values"):
        return value.values()
    return list(getattr(value, "__dict__", {}).values())


def read_options(loader: Any) -> dict[str, Any]:
    """Return what a loader says of itself, by the names of torch's DataLoader."""
    import multiprocessing

    found: dict[str, Any] = {"workers": getattr(loader, "num_workers", 0)}
    found["epochs"] = 1 if getattr(loader, "persistent_workers", False) else 2
    if found["workers"]:  # To ask for it settles it, where nobody has.
        context = getattr(loader, "multiprocessing_context", None) or multiprocessing
        found["start_method"] = context.get_start_method()
    if getattr(loader, "prefetch_factor", None):
        found["prefetch"] = loader.prefetch_factor
    torch = sys.modules.get("torch.multiprocessing")
    if torch:
        found["sharing"] = torch.get_sharing_strategy()
    return found


def list_children() -> list[int]:
    """Return the children of this process."""
    own = os.getpid()
    return [int(pid) for pid in _read(f"/proc/self/task/{own}/children").split()]


def read_private(pid: int) -> int:
    """Return the bytes of a process that it shares with nobody, and that no file holds.

    What lies in /dev/shm is a batch's, even while nobody else has mapped it.
    """
    try:
        text = _read(f"/proc/{pid}/smaps_rollup")
    except OSError:
        return 0
    sizes = {name: int(size) * _KIB for name, size in re.findall(r"(\w+): +([0-9]+) kB", text)}
    own = sizes.get("Private_Dirty", 0) + sizes.get("Private_Hugetlb", 0)
    return max(own - sizes.get("Pss_Shmem", 0), 0)


def find_own(pids: Sequence[int]) -> int:
    """Return the most that a worker has of its own when it rests, as it does while nobody takes.

    A worker that makes a batch has that as well, and it is counted elsewhere.
    """
    least = now = [read_private(pid) for pid in pids]
    end, same = time.monotonic() + _LONGEST, 0
    while pids and same < _LOOKS and time.monotonic() < end:
        time.sleep(_STILL)
        before, now = now, [read_private(pid) for pid in pids]
        least = [min(pair) for pair in zip(least, now)]
        same = same + 1 if before == now else 0
    return max([0, *least])


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class _Loader:
    """What is seen of one loader; ``kept`` has what tells of each batch whether it lives."""

    def __init__(self, loader: Any) -> None:
        import weakref

        self.itself = weakref.ref(loader)
        self.data = id(getattr(loader, "dataset", None))
        self.seen: dict[str, Any] = {"batches": 0, "ended": False, "tensors": 0, "bytes": 0}
        self.seen.update(memory=0, options={"workers": getattr(loader, "num_workers", 0)})
        self.is_used = False
        self.iterators: list[Callable[[], Any]] = []
        self.kept: list[list[Callable[[], bool]]] = []

    def count_kept(self) -> int:
        """Return how many of its batches live."""
        self.kept = [one for one in self.kept if any(is_alive() for is_alive in one)]
        return len(self.kept)

    def has_workers_now(self) -> bool:
        """Tell whether workers of it are there."""
        found = [one() for one in self.iterators]
        alive = [one for one in found if one is not None and not getattr(one, "_shutdown", False)]
        return bool(alive and self.seen["options"]["workers"])


class Watch:
    """What is seen of the loaders of this process, written down at each change."""

    def __init__(self, folder: str, batches: int) -> None:
        self.folder, self.batches = folder, batches
        self._begin()

    def _begin(self) -> None:
        self.pid = os.getpid()
        self.loaders: list[_Loader] = []
        self.seen: dict[str, Any] = {"base": 0, "hold": 0, "at_once": 0}

    def find(self, loader: Any) -> _Loader:
        """Return what is known of a loader, new or not; a forked process begins anew."""
        if self.pid != os.getpid():
            self._begin()
        for one in self.loaders:
            if one.itself() is loader:
                return one
        self.loaders.append(_Loader(loader))
        return self.loaders[-1]

    def note_base(self, loader: Any) -> None:
        """Count what is open, where nothing of it is a loader's or a batch's."""
        self.find(loader)
        if not any(one.has_workers_now() or one.count_kept() for one in self.loaders):
            self.seen["base"] = max(self.seen["base"], len(os.listdir("/proc/self/fd")) - 1)

    def note_iterator(self, loader: Any, iterator: Any) -> None:
        """Note that a loader begins."""
        import weakref

        one = self.find(loader)
        alive = [known for known in one.iterators if known() not in (None, iterator)]
        one.iterators = [*alive, weakref.ref(iterator)]
        one.is_used = True
        one.seen["options"] = read_options(loader)
        now = sum(known.has_workers_now() for known in self.loaders)
        self.seen["at_once"] = max(self.seen["at_once"], now)
        self.write()

    def note_kept(self) -> None:
        """Count the batches that live beside the last one of each loader."""
        hold = sum(max(one.count_kept() - 1, 0) for one in self.loaders)
        if hold > self.seen["hold"]:
            self.seen["hold"] = hold
            self.write()

    def note_batch(self, iterator: Any, batch: Any) -> None:
        """Weigh a batch, and follow how long it lives."""
        for one in self._find_owners(iterator):
            tensors, seen = list(find_tensors(batch)), one.seen
            one.kept.append([_follow(tensor) for tensor in tensors[:_MOST_KEPT]])
            if seen["batches"] >= self.batches:
                return
            seen["batches"] += 1
            seen["tensors"] = max(seen["tensors"], len(tensors))
            seen["bytes"] = max(seen["bytes"], sum(weigh(tensors)))
            if seen["batches"] & (seen["batches"] - 1) == 0 or seen["batches"] == self.batches:
                seen["memory"] = max(seen["memory"], find_own(_list_workers(iterator)))
            self.write()

    def note_end(self, iterator: Any) -> None:
        """Note that a loader has no more batches in this epoch."""
        for one in self._find_owners(iterator):
            one.seen["ended"] = True
            self.write()

    def _find_owners(self, iterator: Any) -> list[_Loader]:
        if self.pid != os.getpid():
            self._begin()
        known = (one for one in self.loaders if any(it() is iterator for it in one.iterators))
        return list(known)[:1]

    def write(self) -> None:
        """Write down all that is seen, at once and under the number of this process."""
        import json

        used = {one.data for one in self.loaders if one.is_used}
        waiting = [
            one
            for one in self.loaders
            if not one.is_used and one.itself() is not None and one.data not in used
        ]
        unused = sum(bool(one.seen["options"]["workers"]) for one in waiting)
        told = {"pid": self.pid, "made": len(self.loaders), "unused": unused, **self.seen}
        told["ranks"] = os.environ.get("LOCAL_WORLD_SIZE", "")
        told["loaders"] = [one.seen for one in self.loaders if one.is_used]
        path = f"{self.folder}/{self.pid}"
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(f"{path}.new", f"{path}.json")


def _list_workers(iterator: Any) -> list[int]:
    workers = getattr(iterator, "_workers", None)
    return list_children() if workers is None else [one.pid for one in workers if one.pid]


def _follow(tensor: Any) -> Callable[[], bool]:
    """Return what tells whether the data of a tensor is kept, by a view or another language too."""
    import weakref

    torch = sys.modules.get("torch.multiprocessing.reductions")
    if torch and hasattr(tensor, "untyped_storage"):
        storage = torch.StorageWeakRef(tensor.untyped_storage())
        return lambda: not storage.expired()
    itself = weakref.ref(tensor)
    return lambda: itself() is not None


def hang_in(module: Any, watch: Watch) -> None:
    """Let a watch hear of every loader that a module's DataLoader makes, and of its batches."""
    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    make, begin, take = loader.__init__, loader.__iter__, iterator.__next__

    def make_and_note(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        _note(watch.find, self)

    def note_and_begin(self: Any) -> Any:
        _note(watch.note_base, self)
        made = begin(self)
        _note(watch.note_iterator, self, made)
        return made

    def note_and_take(self: Any) -> Any:
        _note(watch.note_kept)
        try:
            batch = take(self)
        except StopIteration:
            _note(watch.note_end, self)
            raise
        _note(watch.note_batch, self, batch)
        return batch

    loader.__init__, loader.__iter__, iterator.__next__ = (
        make_and_note,
        note_and_begin,
        note_and_take,
    )


def _note(note: Callable[..., object], *given: Any) -> None:
    """Note something; a script that is tried never fails of being watched, and a worker is not."""
    data = sys.modules.get("torch.utils.data")
    if data and getattr(data, "get_worker_info", lambda: None)() is not None:
        return
    try:
        note(*given)
    except Exception as error:  # A batch and a loader are the script's: they may do what they like.
        sys.stderr.write(f"mlhost-limits could not measure: {type(error).__name__}: {error}\n")


class Finder:
    """Stands first where modules are looked for, until torch's loader is."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Return the module as others find it, to be hung into once it is there."""
        if name != _MODULE:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_and_hang_in(module: Any) -> None:
                run(module)
                hang_in(module, self.watch)

            spec.loader.exec_module = run_and_hang_in  # type: ignore[method-assign]
        return spec


def _let_others_begin() -> None:
    """Run the ``sitecustomize`` that would have run without this one."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != here]
    spec = importlib.machinery.PathFinder.find_spec(_HOOK, sys.path)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == _HOOK:
    sys.meta_path.insert(0, Finder(Watch(os.environ[FOLDER], int(os.environ[BATCHES]))))
    _let_others_begin()
