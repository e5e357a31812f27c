# SPDX-License-Identifier: GPL-3.0-or-later
"""Load batches through a library until the worst moment of a loader, and print what that takes.

The worst moment does not come by chance: the first worker holds back one batch until those of all
others wait in the process that trains, and that one stops after it has asked for one more batch
and before it lets go of the last, as a scheduler may stop it, until the workers have done all.
"""

import argparse
import collections
import ctypes
import functools
import json
import math
import mmap
import os
import struct
import sys
import tempfile
import time

import torch
from torch.multiprocessing import reductions
from torch.utils.data import DataLoader, Dataset, IterableDataset, dataloader, get_worker_info

sys.path.insert(0, os.path.dirname(__file__))
import drawn_libraries as libraries

QUIET, LONGEST = 1.0, 60.0
"""Seconds for which nothing changes where all is done, and the most to wait for it."""


class Shared:
    """What the processes of a rank tell each other: gates that are open, and a worker's peak."""

    FIELDS = ("first_gate", "second_gate", "last_epoch", "descriptors")

    def __init__(self, path=None):
        self.path = path or make_file()
        with open(self.path, "r+b") as file:
            file.truncate(mmap.PAGESIZE)
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def __reduce__(self):
        return Shared, (self.path,)

    def get(self, name, slot=0):
        return struct.unpack_from("q", self.memory, 8 * (self.FIELDS.index(name) + slot))[0]

    def raise_to(self, name, number, slot=0):
        """Raise a number; whoever shares a slot of the last field would undo what another wrote."""
        if number > self.get(name, slot):
            struct.pack_into("q", self.memory, 8 * (self.FIELDS.index(name) + slot), number)


def make_file():
    handle, path = tempfile.mkstemp(dir="/tmp")
    os.close(handle)
    return path


class Source:
    """What a worker does for a batch: the first one waits before the deepest."""

    def __init__(self, given, shared, gate):
        self.given, self.shared, self.gate = given, shared, gate
        self.is_ready, self.kept = False, []

    def make(self, sample):
        index, is_later = divmod(sample, self.given.samples)
        worker = get_worker_info()
        if worker and not self.is_ready:
            self.get_ready()
        if not is_later and self.is_held(worker, index):
            wait(lambda: self.shared.get(self.gate) >= index)
        return {
            f"x{at}": torch.zeros(size, dtype=torch.uint8)
            for at, size in enumerate(self.given.sizes)
        }

    def is_held(self, worker, index):
        is_first = worker and worker.id == 0 and index in self.given.deep
        return is_first and self.shared.get("last_epoch")

    def get_ready(self):
        self.is_ready = True
        self.kept = libraries.keep(self.given)
        watch(torch.UntypedStorage, "_share_filename_cpu_", self.look)
        watch(reductions.multiprocessing.reduction, "DupFd", self.look)

    def look(self):
        self.shared.raise_to("descriptors", count_open(), get_worker_info().id)


class Samples(Dataset):
    """Samples by number, which torch puts together."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        """Return a number that does not end, but that of an epoch before the last."""
        given, shared = self.source.given, self.source.shared
        return 100000 if shared.get("last_epoch") else given.first * given.samples

    def __getitem__(self, index):
        return self.source.make(index)


class Stream(IterableDataset):
    """Batches from a pipeline of a library, numbered as torch takes them."""

    def __init__(self, source, pipeline):
        self.source, self.pipeline = source, pipeline

    def __iter__(self):
        worker = get_worker_info()
        for number, _sample in enumerate(self.pipeline):
            batch, sample = divmod(number, self.source.given.samples)
            batch = batch * worker.num_workers + worker.id
            yield self.source.make(batch * self.source.given.samples + sample)


def wait(is_true, longest=LONGEST):
    end = time.monotonic() + longest
    while not is_true() and time.monotonic() < end:
        time.sleep(0.002)


def watch(owner, name, look):
    """Have a function of somebody else's look at what is open when it has done its work."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(*words, **named):
        result = original(*words, **named)
        look()
        return result

    setattr(owner, name, watched)


def count_open(pid="self"):
    """Count descriptors, of this process with the one that it takes to do so."""
    return len(os.listdir(f"/proc/{pid}/fd"))


class Peaks:
    """The most that this process, and all that it started, had at a time."""

    def __init__(self, given, shared):
        self.given, self.shared = given, shared
        self.most = collections.Counter()
        # Each step of DeepSpeed's starts numactl, and waits for it.
        self.passing = given.ranks if given.stage == 3 else 0

    def look(self):
        """Count all that a limit bounds; who started them sees the workers."""
        self.look_at_descriptors()
        space = os.statvfs("/dev/shm")
        shm = (space.f_blocks - space.f_bfree) * space.f_frsize
        run = find_run()
        with open("/proc/self/maps") as rows:
            mappings = sum(1 for row in rows)
        now = {
            "shared_memory": shm,
            "tasks": sum(len(os.listdir(f"/proc/{pid}/task")) for pid in run) + self.passing,
            "mappings": mappings,
            "memory": shm + sum(map(count_own_memory, run)),
            "descriptors": max(map(count_open, run[1:]), default=0),
            "address_space": max(map(count_mapped, run)),
        }
        for name, number in now.items():
            self.most[name] = max(self.most[name], number)

    def look_at_descriptors(self):
        now = max(count_open(), *self.list_of_workers())
        self.most["descriptors"] = max(self.most["descriptors"], now)

    def list_of_workers(self):
        return [self.shared.get("descriptors", slot) for slot in range(self.given.workers)]

    def settle(self):
        """Wait until nobody makes or takes anything any more."""
        seen, since, end = None, time.monotonic(), time.monotonic() + LONGEST
        while time.monotonic() - since < QUIET and time.monotonic() < end:
            space = os.statvfs("/dev/shm")
            now = (space.f_bfree, [count_open(pid) for pid in find_run() if pid != os.getpid()])
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(0.02)


def find_run():
    """Return this process and all that it started, daemons of torch's manager too."""
    parents, found = {}, {os.getpid()}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as row:
                parents[int(name)] = int(row.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for pid in sorted(parents):  # A child has the larger number, but where numbers begin anew.
        if parents[pid] in found:
            found.add(pid)
    return sorted(found)


def adopt():
    """Have this process become the parent of what a child of it leaves behind."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def count_own_memory(pid):
    """Return the bytes of a process that no file holds, shared ones by who shares them."""
    with open(f"/proc/{pid}/smaps_rollup") as rows:
        sizes = dict(row.split()[:2] for row in rows if row.startswith("Pss_Anon"))
    return 1024 * int(sizes["Pss_Anon:"])


def count_mapped(pid):
    """Return the most bytes of addresses that a process had so far."""
    with open(f"/proc/{pid}/status") as rows:
        return next(1024 * int(row.split()[1]) for row in rows if row.startswith("VmPeak"))


def slow_down(given, shared, peaks):
    """Open the gate of a loader when all waits that can, and stop where most is held."""
    own = dataloader._MultiProcessingDataLoaderIter
    receive, ask = own._try_get_data, own._try_put_index

    def try_get_data(self, *words, **named):
        waiting = sum(len(info) == 2 for info in self._task_info.values())
        if self._rcvd_idx in given.deep and waiting >= (self._num_workers - 1) * given.prefetch:
            shared.raise_to(self._dataset.source.gate, self._rcvd_idx)
        return receive(self, *words, **named)

    def try_put_index(self):
        ask(self)
        # Later nothing waits here any more, and every worker holds all that it may prefetch.
        later = self._rcvd_idx - 1 - self._num_workers * given.prefetch
        if {self._rcvd_idx - 1, later} & {*given.deep} and shared.get("last_epoch"):
            libraries.meet(given)
            peaks.settle()
            peaks.look()
            libraries.meet(given)

    own._try_get_data, own._try_put_index = try_get_data, try_put_index
    watch(reductions.multiprocessing.reduction, "recv_handle", peaks.look_at_descriptors)


def make_loaders(given, shared):
    words = {} if given.context is None else {"multiprocessing_context": given.context}
    if given.workers:
        words.update(prefetch_factor=given.prefetch, timeout=100 if given.context else 40)
    for gate in Shared.FIELDS[: given.loaders]:
        source = Source(given, shared, gate)
        pipeline = libraries.make_pipeline(given)
        data = Samples(source) if pipeline is None else Stream(source, pipeline)
        yield DataLoader(data, batch_size=given.samples, num_workers=given.workers, **words)


class Taken:
    """The batch that a program has in hand, and those that it keeps beside it."""

    def __init__(self, hold):
        self.held = collections.deque(maxlen=hold)
        self.batch = None

    def take(self, batches, many):
        for _number in range(many):
            batch = next(batches)
            self.held.append(self.batch)
            self.batch = batch
            del batch


def train(given, loaders, shared):
    """Take batches up to the deepest; a second loader starts when the first is there."""
    taken = Taken(given.hold)
    batches = iter(loaders[0])
    for _epoch in range(given.epochs - 1):
        taken.take(batches, given.first)
        del batches
        if _epoch == given.epochs - 2:
            shared.raise_to("last_epoch", 1)
        batches = iter(loaders[0])
    taken.take(batches, given.deep[0] + 1)
    for loader in loaders[1:]:
        other, others = Taken(0), iter(loader)
        other.take(others, given.deep[0] + 1)
        taken.take(batches, given.deep[1] - given.deep[0])
        other.take(others, given.more)
    taken.take(batches, given.more)


def parse():
    parser = argparse.ArgumentParser()
    for name in ("workers", "prefetch", "tensors", "batch-size", "hold", "loaders", "epochs"):
        parser.add_argument(f"--{name}", type=int, default=0 if name == "hold" else 1)
    for name in ("accumulation", "groups", "ranks", "samples"):
        parser.add_argument(f"--{name}", type=int, default=1)
    for name in ("worker-memory", "files", "labels", "rank", "stage", "width", "layers", "trained"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--context")
    parser.add_argument("--port", type=int)
    parser.add_argument("--cached", default="plain")
    parser.add_argument("--sharing", default="file_descriptor")
    parser.add_argument("--library", default="torch")
    given = parser.parse_args()
    given.sizes = find_sizes(given)
    given.deep = find_deep(given)
    given.first = max(given.hold + 1, given.workers)
    given.more = given.workers * given.prefetch + 1  # What is lost at the worst moment is missed.
    return given


def find_sizes(given):
    """Return the bytes of each tensor of a sample: all alike, or one and labels."""
    many, size = given.tensors, given.batch_size // given.samples
    if given.labels and size > 8 * many:
        return [size - 8 * (many - 1)] + [8] * (many - 1)
    return [size // many + (number < size % many) for number in range(many)]


def find_deep(given):
    """Return the numbers of the batches at which most is held: each the first worker's."""
    workers, steps = max(given.workers, 1), given.accumulation
    each = math.lcm(workers, steps)
    least = 2 * steps if given.library in ("transformers", "trl") else given.hold + 2
    first = each * -(-least // each)
    second = first + workers * (given.prefetch + 1 + -(-given.hold // workers))
    return [first] if given.loaders == 1 else [first, second]


def main():
    given = parse()
    adopt()
    libraries.start_ranks(given)
    libraries.prepare(given)
    shared = Shared()
    os.chmod(shared.path, 0o666)
    peaks = Peaks(given, shared)
    loaders = list(make_loaders(given, shared))
    if given.workers:
        slow_down(given, shared, peaks)
    run = libraries.TRAIN.get(given.library, train)
    if given.epochs == 1:
        shared.raise_to("last_epoch", 1)
    run(given, loaders, shared)
    libraries.meet(given)
    os.unlink(shared.path)
    if given.rank:
        os._exit(0)
    print(json.dumps({"peaks": peaks.most}), flush=True)
    os._exit(0)  # How workers end is not a part of it.


if __name__ == "__main__":
    main()
