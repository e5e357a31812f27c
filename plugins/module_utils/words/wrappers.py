# SPDX-License-Identifier: BSD-2-Clause
"""Find the command behind what wraps it: ``nohup``, ``taskset -c 0``, ``conda run -n X``.

Sources: the manual pages of the tools, and the documents of uv, poetry, pixi, conda and nsys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.values import NamedTuple
from .names import KEYS_OF, spell

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
PYTHON_FILE = re.compile(r"[^\s=-][^\s=]*\.pyc?")
_COMMAND = re.compile(r"(^|[\s/])(python[0-9.]*|torchrun|accelerate|deepspeed)\s")


class Wrapper(NamedTuple):
    """How the words of a tool go on to the command that it starts.

    ``below`` are the words one of which must follow its name, ``valued`` its options that take a
    value in a word of their own, ``more`` the words that stand before the command.
    """

    below: tuple[str, ...] = ()
    valued: str = ""
    more: int = 0


_UV = "--with --with-editable --with-requirements --extra --group --only-group --python -p --index"
_UV += " --env-file --project --directory --package --from --index-url --default-index --no-group"
_CONDA = "-n --name -p --prefix --cwd -e --environment --manifest-path"
_WRAPPERS = {
    **dict.fromkeys(("nohup", "setsid", "command", "builtin", "catchsegv", "unbuffer"), Wrapper()),
    **dict.fromkeys(("uvx", "pipx"), Wrapper(valued=_UV)),
    **dict.fromkeys(("conda", "mamba", "micromamba", "pixi"), Wrapper(("run",), _CONDA)),
    **dict.fromkeys(("poetry", "pdm", "rye", "pipenv"), Wrapper(("run",), "-C -P --project -p")),
    "uv": Wrapper(("run",), _UV),
    "hatch": Wrapper(("run",)),
    "coverage": Wrapper(("run",), "--rcfile --source --data-file --omit --include"),
    "export": Wrapper(),
    "exec": Wrapper(valued="-a"),
    "env": Wrapper(valued="-u --unset -C --chdir"),
    "time": Wrapper(valued="-f --format -o --output"),
    "nice": Wrapper(valued="-n --adjustment"),
    "ionice": Wrapper(valued="-c --class -n --classdata"),
    "chrt": Wrapper(more=1),
    "taskset": Wrapper(more=1),
    "timeout": Wrapper(valued="-s --signal -k --kill-after", more=1),
    "flock": Wrapper(valued="-w --timeout -E", more=1),
    "stdbuf": Wrapper(valued="-i -o -e --input --output --error"),
    "numactl": Wrapper(
        valued="-C -N -m -i -p --physcpubind --cpunodebind --membind --interleave --preferred"
    ),
    "sudo": Wrapper(valued="-u --user -g --group -C -D --chdir -p --prompt -h --host"),
    "doas": Wrapper(valued="-u -C"),
    "prlimit": Wrapper(),
    "setpriv": Wrapper(valued="--reuid --regid --groups"),
    "systemd-run": Wrapper(
        valued="-p --property -u --unit --slice -E --setenv --uid --gid -M --machine"
    ),
    "nsys": Wrapper(
        ("profile", "launch"),
        "-o --output -t --trace -s --sample -d --duration -y --delay -c --capture-range -w -f -e",
    ),
    "ncu": Wrapper(valued="-o --export --set --section -k --kernel-name -c --launch-count -s"),
    "py-spy": Wrapper(("record", "top"), "-o --output -r --rate -d --duration -f --format"),
    "strace": Wrapper(valued="-o -e -p -s -E"),
    "ltrace": Wrapper(valued="-o -e -s"),
    "perf": Wrapper(("stat", "record"), "-e --event -o --output -F -g"),
    "xvfb-run": Wrapper(valued="-s --server-args -n --server-num -e -f"),
    "gdb": Wrapper(valued="-ex -x"),
}
"""By the name of the tool."""

_NOTHING = (
    "echo printf cd ls cp mv rm mkdir cat tee grep sed awk chmod chown ln touch tar git wget curl"
    " pip pip3 apt apt-get yum dnf brew module ml set unset which type test [ [[ true false sleep"
    " wait kill trap read nvidia-smi ulimit shift exit return date hostname scontrol sinfo squeue"
    " df du find diff head tail wc dirname basename realpath readlink pushd popd black ruff mypy"
    " pytest flake8 isort huggingface-cli hf aws gsutil gcloud rsync scp unzip gzip wandb dvc local"
    " declare typeset readonly alias shopt pkill killall rmdir mktemp less man scancel sacct for"
    " case esac fi done function select :"
)
_STARTS_NOTHING = frozenset(_NOTHING.split())
"""Commands of which no words are a run's, whatever they name."""


class Peeled(NamedTuple):
    """A command without what wraps it: the variables in front, and whether there was anything."""

    variables: dict[str, str]
    words: Sequence[str]
    wrapped: bool = False


def peel(words: Sequence[str]) -> Peeled:
    """Return the command behind assignments and wrappers."""
    variables: dict[str, str] = {}
    at, wrapped = 0, False
    while at < len(words):
        assigned = ASSIGNMENT.fullmatch(words[at])
        after = at + 1 if assigned else _pass(words, at)
        if assigned:
            variables[assigned[1]] = assigned[2]
        elif after == at:
            break
        wrapped = wrapped or not assigned
        at = after
    return Peeled(variables, words[at:], wrapped)


def _pass(words: Sequence[str], at: int) -> int:
    """Return where the words of a wrapper end; where there is none, the same place."""
    wrapper = _WRAPPERS.get(words[at].rpartition("/")[2])
    follows = words[at + 1] if at + 1 < len(words) else ""
    if wrapper is None or (wrapper.below and follows not in wrapper.below):
        return at
    at += 2 if wrapper.below else 1
    valued = wrapper.valued.split()
    while at < len(words) and words[at].startswith("-"):
        if words[at] in ("-m", "--module") and words[at] not in valued:
            break  # A module of Python's, as uv run has it.
        at += 2 if words[at] in valued else 1
        if words[at - 1] == "--":
            break
    return min(at + wrapper.more, len(words))


def starts_nothing(words: Sequence[str]) -> bool:
    """Tell whether a command is one of which everybody knows that it starts no run."""
    if not words:
        return True
    name = words[0].rpartition("/")[2]
    below = words[1] if len(words) > 1 else ""
    installs = name in ("uv", "conda", "mamba", "poetry", "pixi") and below != "run"
    return name in _STARTS_NOTHING or installs


def seems_to_start(words: Sequence[str]) -> bool:
    """Tell whether an unknown command may start a run: by a script, an option, or its name."""
    name = words[0].rpartition("/")[2] if words else ""
    if starts_nothing(words) or not name:
        return False
    options = (word.partition("=")[0] for word in words[1:] if word.startswith("--"))
    return bool(
        re.search("train|finetune|fine_tune|pretrain", name)
        or (
            name in ("make", "just", "task", "invoke", "xargs", "parallel", "ssh", "screen")
            and any(map(_names_a_run, words[1:]))
        )
        or any(PYTHON_FILE.fullmatch(word) for word in words)
        or any(spell(option) in KEYS_OF for option in options)
    )


def _names_a_run(word: str) -> bool:
    return bool(re.search("train|finetune|run", word) or _COMMAND.search(word))
