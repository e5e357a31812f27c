# SPDX-License-Identifier: GPL-3.0-or-later
"""Several cards fail where one works: too little memory, or too little of it may be locked."""

from __future__ import annotations

from pathlib import Path

from .cgroup import limit_memory
from .environments import install, run_with
from .product import check, describe
from .settings import soft_limit, without
from .trial import BUILD, CannotShowError, Command, Trial, execute

EXTENSIONS = BUILD / "extensions"
PARAMETERS = 3 * 4096 * 4096
RANKS = 2
MODEL = {
    "parameters": PARAMETERS,
    "largest_layer": 4096 * 4096,
    "gpus_per_node": RANKS,
    "ranks_per_node": RANKS,
    "workers": 0,
}
TOO_LITTLE, ENOUGH = 2**30, 8 * 2**30
BUFFER = 4 * 2**20
PINNED = {"workers": 0, "pinned_buffer": BUFFER}


def lock_too_much() -> Trial:
    """Pin a buffer as offload to NVMe does."""
    low, high = ((*soft_limit("l", size), *without("ipc_lock")) for size in (64, '"$(ulimit -Hl)"'))
    judge = check("deepspeed-zero3-offload", *describe(PINNED), "--only", "memory")
    return Trial(
        name="soft memlock 64 KiB without CAP_IPC_LOCK; raised to the hard limit",
        dies_of=r"mlock failed with 12|Cannot allocate memory",
        foretold=r"memlock soft 64KiB, required 4MiB",
        prepare=build_operator,
        run=pin(str(BUFFER)).within(*low),
        check=judge.within(*low),
        run_after=pin(str(BUFFER)).within(*high),
        check_after=judge.within(*high),
    )


def need_too_much() -> Trial:
    """Train two ranks in a cgroup that has less than the states of their model need."""
    few, many = limit_memory(TOO_LITTLE, "few"), limit_memory(ENOUGH, "many")
    judge = check("deepspeed-zero3-offload", *describe(MODEL))
    return Trial(
        name="a cgroup of 1 GiB; of 8 GiB",
        prepare=lambda: build(train()),
        dies_of=r"Signal 9 \(SIGKILL\)|exitcode: -9",
        foretold=r"model_states 10\d\dMiB, required 1296MiB",
        run=train().within(*few),
        check=judge.within(*few),
        run_after=train().within(*many),
        check_after=judge.within(*many),
    )


def build_operator() -> str:
    """Build what locks memory."""
    if not Path("/usr/include/libaio.h").exists():
        raise CannotShowError("DeepSpeed's async_io needs libaio.h: apt-get install libaio-dev")
    return build(pin())


def build(command: Command) -> str:
    """Have DeepSpeed build its operators, with all the limits that a compiler wants."""
    for lock in EXTENSIONS.glob("*/lock"):
        lock.unlink()  # One that a build left that was killed; the next would wait for ever.
    done = execute(command, patience=600)
    if done.status:
        raise CannotShowError(f"DeepSpeed's operators cannot be built: {done.output[-2000:]}")
    return "DeepSpeed's operators are built"


def pin(*words: str) -> Command:
    return run_with("deepspeed", "lock_memory.py", *words, **find_variables())


def train() -> Command:
    python = install("deepspeed")
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS))
    command = run_with("deepspeed", "train_offload.py", **find_variables())
    return command._replace(words=(str(python), *words, command.words[-1]))


def find_variables() -> dict[str, str]:
    """Return what DeepSpeed needs to know: no GPU, and where to build and to find ninja."""
    programs = install("deepspeed").parent
    return {
        "DS_ACCELERATOR": "cpu",
        "PYTHONWARNINGS": "ignore",
        "TORCH_EXTENSIONS_DIR": str(EXTENSIONS),
        "PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin",
    }


TRIALS = (lock_too_much, need_too_much)
