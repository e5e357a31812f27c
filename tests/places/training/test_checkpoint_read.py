# SPDX-License-Identifier: GPL-3.0-or-later
"""Of each library's checkpoint, what resuming ends at is named, and what it does not read is not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.training import cache_open_read, checkpoint_read
from mlhost_limits.training.checkpoint_read import Contents, read_contents

from tests.worlds.archives import make_pt, make_safetensors

PT, SAFE = make_pt(), make_safetensors()
METADATA = b"\x80\4\x95 __0_0.distcp and __1_0.distcp."


def write(top: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return top


STATE = {"trainer_state.json": b'{"epoch": 1}', "rng_state.pth": PT, "training_args.bin": PT}
OPTIMIZER = {"optimizer.pt": PT, "scheduler.pt": PT}
INDEX = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
LAYOUTS = {
    "one file": {**STATE, **OPTIMIZER, "model.safetensors": SAFE, "config.json": b"{}"},
    "of old": {**STATE, **OPTIMIZER, "pytorch_model.bin": PT, "scaler.pt": PT},
    "shards": {
        **STATE,
        **OPTIMIZER,
        "model.safetensors.index.json": json.dumps(INDEX).encode(),
        "model-1-of-2.safetensors": SAFE,
        "model-2-of-2.safetensors": SAFE,
    },
    "an adapter": {
        **STATE, **OPTIMIZER, "adapter_model.safetensors": SAFE, "adapter_config.json": b"{}",
    },
    "two adapters": {
        **STATE,
        **OPTIMIZER,
        "one/adapter_model.safetensors": SAFE,
        "one/adapter_config.json": b"{}",
        "two/adapter_model.bin": PT,
        "two/adapter_config.json": b"{}",
    },
    "fsdp": {
        **STATE,
        "scheduler.pt": PT,
        "pytorch_model_fsdp_0/.metadata": METADATA,
        "pytorch_model_fsdp_0/__0_0.distcp": b"x",
        "pytorch_model_fsdp_0/__1_0.distcp": b"x",
        "optimizer_0/.metadata": METADATA,
        "optimizer_0/__0_0.distcp": b"x",
        "optimizer_0/__1_0.distcp": b"x",
    },
    "fsdp, gathered": {
        **STATE, "pytorch_model_fsdp.bin": PT, "optimizer.bin": PT, "scheduler.pt": PT,
    },
    "deepspeed": {
        **STATE,
        "scheduler.pt": PT,
        "latest": b"global_step7\n",
        "global_step7/mp_rank_00_model_states.pt": PT,
        "global_step7/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt": PT,
        "global_step7/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt": PT,
        "global_step7/bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt": PT,
    },
    "accelerate": {
        "model.safetensors": SAFE, "optimizer.bin": PT, "scheduler.bin": PT,
        "random_states_0.pkl": PT,
    },
    "diffusers": {"unet/x.safetensors": SAFE, "optimizer.bin": PT, "random_states_0.pkl": PT},
}  # fmt: skip
UNREAD = {"training_args.bin", "random_states_0.pkl", "unet/x.safetensors"}
BEGINS_ANEW = {
    "rng_state.pth", "optimizer.pt", "scheduler.pt", "optimizer.bin", "scaler.pt", "config.json",
    "scheduler.bin", "training_args.bin", "random_states_0.pkl",
    "unet/x.safetensors",
}  # fmt: skip
"""What a library that does not find it does without."""


def look(top: Path, trusts: bool = False) -> Contents:
    handle = os.open(top, os.O_RDONLY)
    try:
        return read_contents(handle, trusts)
    finally:
        os.close(handle)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_whole_can_be_resumed_from(tmp_path: Path, name: str) -> None:
    write(tmp_path, LAYOUTS[name])
    assert look(tmp_path) == Contents([], [], [])


CASES = [(name, file) for name, files in LAYOUTS.items() for file in files]


@pytest.mark.parametrize(("name", "file"), CASES)
def test_each_file_that_is_read_must_be_whole(tmp_path: Path, name: str, file: str) -> None:
    content = LAYOUTS[name][file]
    write(tmp_path, LAYOUTS[name])
    for size in {0, len(content) // 2} if len(content) > 1 else {0}:
        (tmp_path / file).write_bytes(content[:size])
        broken = look(tmp_path).broken
        if file in UNREAD:
            assert not broken
        else:
            assert [one for one, _why in broken][:1] == [file], (size, broken)


@pytest.mark.parametrize(("name", "file"), CASES)
def test_each_file_that_must_be_there_is_missed(tmp_path: Path, name: str, file: str) -> None:
    write(tmp_path, LAYOUTS[name])
    (tmp_path / file).unlink()
    found = look(tmp_path)
    if name == "accelerate" and file == "optimizer.bin":
        assert (found.broken, len(found.unsure)) == ([], 1)
    elif file in BEGINS_ANEW or (name, file) in LAST_RANK:
        assert not found.broken, found
    else:
        assert found.broken, found


LAST_RANK = {("deepspeed", "global_step7/bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt")}
"""Nobody knows how many ranks there were."""


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["optimizer.pt"], "optimizer.pt is missing: optimizer and scheduler begin anew"),
        (["scheduler.pt"], "scheduler.pt is missing: optimizer and scheduler begin anew"),
        (
            ["optimizer.pt", "scheduler.pt"],
            "optimizer.pt and scheduler.pt are missing: optimizer and scheduler begin anew",
        ),
        (["rng_state.pth"], "rng_state.pth is missing: random numbers begin anew"),
    ],
)
def test_what_a_run_goes_on_without_is_told(tmp_path: Path, names: list[str], told: str) -> None:
    """The Trainer loads the optimizer and the scheduler together, or neither: one may be damaged."""
    write(tmp_path, LAYOUTS["one file"])
    for name in names:
        (tmp_path / name).unlink()
        (tmp_path / name).with_suffix(".bak").touch()
    for name in {"optimizer.pt", "scheduler.pt"} - set(names) if "optimizer" in told else ():
        (tmp_path / name).write_bytes(b"")
    assert look(tmp_path) == Contents([], [], [told])


def test_the_file_that_is_loaded_counts(tmp_path: Path) -> None:
    """One of safetensors before one of torch, and one file before shards."""
    write(tmp_path, {**LAYOUTS["one file"], "pytorch_model.bin": b"", "adapter_model.bin": b""})
    write(tmp_path, {"model.safetensors.index.json": b"", "model-1-of-2.safetensors": b""})
    assert look(tmp_path).broken == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"trainer_state.json": b"[]"}, ("trainer_state.json", "is not a mapping")),
        ({"trainer_state.json": b"\xff{}"}, ("trainer_state.json", "is not JSON: it is cut short, or damaged")),
        ({"trainer_state.json": b"[" * 10**6}, ("trainer_state.json", "is not JSON: it is cut short, or damaged")),
        ({"model.safetensors.index.json": b"{}"}, ("model.safetensors.index.json", "names no shards")),
        ({"model.safetensors.index.json": b'{"weight_map": []}'}, ("model.safetensors.index.json", "names no shards")),
        ({"model-2-of-2.safetensors": b""}, ("model-2-of-2.safetensors", "is empty")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    tmp_path: Path, change: dict[str, bytes], expected: tuple[str, str]
) -> None:
    write(tmp_path, {**LAYOUTS["shards"], **change})
    assert look(tmp_path).broken == [expected]


@pytest.mark.parametrize(
    ("content", "broken", "unsure"),
    [
        (b"", [("model-1.foo", "is empty")], []),
        (b"x", [], [("model-1.foo", "has an unknown format")]),
    ],
)
def test_a_shard_of_an_unknown_ending_is_never_whole(
    tmp_path: Path, content: bytes, broken: list[Any], unsure: list[Any]
) -> None:
    index = json.dumps({"weight_map": {"a": "model-1.foo"}}).encode()
    files = {"model.safetensors.index.json": index, "model-1.foo": content}
    found = look(write(tmp_path, {**STATE, **OPTIMIZER, **files}))
    assert (found.broken, found.unsure) == (broken, unsure)


def test_what_deepspeed_and_fsdp_lack_is_said(tmp_path: Path) -> None:
    write(tmp_path / "a", {**LAYOUTS["deepspeed"], "latest": b"global_step9"})
    assert look(tmp_path / "a").broken == [("latest", "names global_step9, which is not there")]
    write(tmp_path / "b", LAYOUTS["deepspeed"])
    gone = "global_step7/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
    (tmp_path / "b" / gone).unlink()
    assert look(tmp_path / "b").broken == [(gone, "is missing")]
    write(tmp_path / "c", {**LAYOUTS["fsdp"], "optimizer_0/__1_0.distcp": b""})
    (tmp_path / "c" / "pytorch_model_fsdp_0" / "__0_0.distcp").unlink()
    assert look(tmp_path / "c").broken == [
        ("pytorch_model_fsdp_0/__0_0.distcp", "is missing"),
        ("optimizer_0/__1_0.distcp", "is empty"),
    ]
    write(tmp_path / "d", {**LAYOUTS["fsdp"], "optimizer_0/.metadata": b"odd."})
    assert look(tmp_path / "d").broken == [("optimizer_0/.metadata", "names no shards")]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["one file"])
    for name in ("model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "model.safetensors")
    (tmp_path / "optimizer.pt").symlink_to("nowhere")
    (tmp_path / "scheduler.pt").symlink_to("/dev/zero")
    (tmp_path / "trainer_state.json").symlink_to("config.json")
    assert look(tmp_path).broken == [
        ("model.safetensors", "is a named pipe, not a file"),
        ("optimizer.pt", "is a link that leads nowhere"),
        ("scheduler.pt", "is a link to a device, not to a file"),
    ]


def test_a_shard_elsewhere_is_not_followed(tmp_path: Path) -> None:
    index = json.dumps({"weight_map": {"a": "../../etc/passwd"}}).encode()
    write(tmp_path, {**LAYOUTS["shards"], "model.safetensors.index.json": index})
    assert look(tmp_path).unsure == [
        ("model.safetensors.index.json", "names ../../etc/passwd, which was not looked at")
    ]


def test_what_changes_meanwhile_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {**LAYOUTS["one file"], "model.safetensors": SAFE[:-1]})
    (tmp_path / "optimizer.pt").unlink()

    def change(act: Callable[[], object]) -> Contents:
        monkeypatch.setattr(checkpoint_read, "wait_for", lambda _changed: act())
        return look(tmp_path)

    found = change(lambda: (tmp_path / "scheduler.pt").write_bytes(b"more"))
    assert (found.broken, found.unsure) == ([], [("model.safetensors", "is being written")])
    assert change(lambda: None).broken == []  # Younger than a few seconds still.
    time.sleep(cache_open_read.YOUNG)
    assert change(lambda: None).broken == [
        ("model.safetensors", f"has {len(SAFE) - 1} bytes, and its header states {len(SAFE)}")
    ]
    assert change(lambda: (tmp_path / "model.safetensors").write_bytes(SAFE)).broken == []


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
def test_root_opens_what_is_others_only_where_it_runs(tmp_path: Path) -> None:
    write(tmp_path, LAYOUTS["fsdp"])
    for path in (tmp_path / "trainer_state.json", tmp_path / "optimizer_0"):
        os.chown(path, 65534, 65534)
    reason = "is nobody's, and only that user looks at it"
    assert look(tmp_path).unsure == [("trainer_state.json", reason), ("optimizer_0", reason)]
    assert look(tmp_path, trusts=True) == Contents([], [], [])
