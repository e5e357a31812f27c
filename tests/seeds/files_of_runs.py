# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a run finds: of a cache, whole ones, and a checkpoint; and what spoils one."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

Spoil = Callable[[Path], object]


def write_zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps({}, 2))
        file.writestr("archive/version", "3\n")
    return data.getvalue()


def write_tar() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        member = tarfile.TarInfo("0.cls")
        member.size = 4000
        file.addfile(member, io.BytesIO(b"1" * 4000))
    return data.getvalue()


def write_npy() -> bytes:
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100,), }"
    head = head.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + b"\0" * 800


_PARTS: tuple[object, ...] = (0x1950A86A20F9469CFC6C, 1001, {}, {}, [])
LEGACY = b"".join(pickle.dumps(part, 2) for part in _PARTS)


def write_checkpoint(folder: Path) -> Path:
    """Write what a Trainer resumes from, with weights in two shards."""
    checkpoint = folder / "checkpoint-10"
    checkpoint.mkdir()
    (checkpoint / "trainer_state.json").write_text('{"global_step": 10}')
    head = json.dumps({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    weights = len(head).to_bytes(8, "little") + head + b"\0" * 4
    names = [f"model-0000{one}-of-00002.safetensors" for one in (1, 2)]
    for name in names:
        (checkpoint / name).write_bytes(weights)
    index = {"metadata": {}, "weight_map": {"x": names[0], "y": names[1]}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin"):
        (checkpoint / name).write_bytes(write_zip())
    return checkpoint


def empty(name: str) -> Spoil:
    return lambda checkpoint: (checkpoint / name).write_bytes(b"")


def cut(name: str) -> Spoil:
    return lambda one: (one / name).write_bytes((one / name).read_bytes()[:12])


def remove(name: str) -> Spoil:
    return lambda checkpoint: os.unlink(checkpoint / name)
