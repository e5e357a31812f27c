# SPDX-License-Identifier: BSD-2-Clause
"""Read a command that starts a run: its launchers one in the other, then the script's arguments.

Sources: the documents of torchrun, ``accelerate launch``, ``deepspeed``, srun(1), mpirun(1) and
``docker run``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..core.values import NamedTuple
from .at_once import multiply
from .compose_command import is_compose_command, read_compose_command
from .docker_run import ENGINES, find_run, split_docker_run
from .facts import (
    ARGUMENT,
    DEFAULT,
    ENVIRONMENT,
    JOB,
    LAUNCHER,
    NAMED,
    Fact,
    Wanted,
    Words,
    join_words,
)
from .job_options import skip_shell_options, split_job
from .job_starters import count_beside, note_unknown, read_jobs, read_module, starts_jobs
from .names import AUTO, read_option
from .options import COMMAND_LINE, Option, read_arguments, split_before
from .programs import ALL_GPUS, DEFAULTS, FLAGS, LAUNCHES, MODULES, PROGRAMS
from .shell_script import Reader, Source, read_shell
from .shell_variables import expand
from .trainer_file import read_zero_options
from .wrappers import PYTHON_FILE, Peeled, peel, seems_to_start, starts_nothing

_SHELLS = ("bash", "sh", "zsh", "dash")
_SCRIPT = re.compile(r"[^\s]+\.(sh|bash|sbatch|slurm)")
_TORCH = ("torch.distributed.run", "torch.distributed.launch", "torch.distributed.elastic")
_ACCELERATE = ("accelerate.commands.launch",)
_GIVEN = re.compile("-[a-zA-Z]*c")
_OF_TRL = re.compile("(?:^|/)trl[./]scripts[./]")
_OWN_FILE = re.compile(r"\.{0,2}/.*")
_LISTED = re.compile("[0-9]+(,[0-9]+)*")
_DEEPEST, _SHOWN = 8, 60


def read_command(words: Sequence[str], where: str = "", depth: int = 0) -> Words:
    """Return what a command says of the run that it starts.

    :param where: ``file:line``, or nothing where it is our own command line.
    """
    peeled = peel(words)
    before, words = read_variables(peeled.variables, where), peeled.words
    start = _find_start(peeled)
    if start and depth < _DEEPEST:
        front = words[: start.at]
        said = start.read(list(words[start.at :]), where, depth + 1)
        times = count_beside(front)
        beside = Words() if times else note_unknown(front, where)
        said = multiply(said, times) if times > 1 else said
        return join_words([before, read_jobs(front, where), beside, said])
    if where:  # A line of a script that starts nothing which is known.
        return join_words([before, _note_unread(words, where)])
    return join_words([before, _note_unread(words, where), read_arguments(words, where, ARGUMENT)])


def _note_unread(words: Sequence[str], where: str) -> Words:
    """Say of what seems to start a run, and is not known, that it is not read."""
    if not seems_to_start(words):
        return Words()
    shown = " ".join(words[:2])[:_SHOWN]  # What follows may be a secret.
    told = f"{where or COMMAND_LINE}: not read: {shown}: no launcher of that name is known"
    taken = "" if where else "; its options are taken for those of a script"
    return Words(notes=(f"{told}{taken}",))


def name_start(words: Sequence[str]) -> str:
    """Return what starts a run in a line of a script: ``torchrun``; nothing where none is known."""
    peeled = peel(words)
    start = _find_start(peeled)
    return peeled.words[start.at].rpartition("/")[2] if start else ""


class _Start(NamedTuple):
    """Where in a command what is known begins, and what reads it from there."""

    at: int
    read: Callable[[Sequence[str], str, int], Words]


def _find_start(peeled: Peeled) -> _Start | None:
    """Return what starts a run: the command itself, or one behind a wrapper that is not known."""
    words = peeled.words
    if starts_nothing(words):
        return None
    is_job = starts_jobs(words[0])
    for at, word in enumerate(words):
        read = _find_reader(word.rpartition("/")[2], words[at:])
        if read is None and (at == 0 or peeled.wrapped or is_job) and _is_script(word):
            read = _read_python_file
        if read:
            return _Start(at, read)
        if at == 0 and _OWN_FILE.match(word):
            return None  # A program of somebody's own, whose arguments are no launchers.
    return None


def _is_script(word: str) -> bool:
    return bool(PYTHON_FILE.fullmatch(word)) or word in ("-m", "--module")


def _read_python_file(words: Sequence[str], where: str, depth: int) -> Words:
    return _read_python(["python", *words], where, depth)


def _find_reader(
    name: str, words: Sequence[str]
) -> Callable[[Sequence[str], str, int], Words] | None:
    """Return what reads from a word on, where it is a launcher, a shell, or a trainer."""
    if is_compose_command(words):
        return read_compose_command
    if name in ENGINES:
        return _read_docker if find_run(words) else _refuse_exec if "exec" in words[1:3] else None
    if name in _SHELLS:
        return _read_shell
    if name in ("eval", "tmux"):
        return _read_eval if name == "eval" else _read_tmux
    if _SCRIPT.fullmatch(name) or name in ("sbatch", "source", "."):
        return _read_script
    if re.fullmatch(r"python[0-9.]*|ipython", name):
        return _read_python
    if name in ("torchrun", "accelerate", "deepspeed"):
        return {"torchrun": _read_torchrun, "deepspeed": _read_deepspeed}.get(
            name, _read_accelerate
        )
    return _read_program if name in PROGRAMS else None


def read_variables(variables: Mapping[str, str], where: str) -> Words:
    """Return what variables say that trainers and launchers read."""
    known = {
        "NPROC_PER_NODE": "nproc_per_node",
        "GPUS_PER_NODE": "gpus_per_node",
        "LOCAL_WORLD_SIZE": "local_world_size",
        "WORLD_SIZE": "world_size",
        "NNODES": "nnodes",
        "OMP_NUM_THREADS": "omp_num_threads",
        "WIDS_CACHE": "wids_cache",
        "WDS_CACHE": "wds_cache",
        "SLURM_NTASKS_PER_NODE": "slurm_ntasks_per_node",
        "SLURM_NNODES": "slurm_nnodes",
        "SLURM_JOB_NUM_NODES": "slurm_nnodes",
    }
    facts = []
    for name, value in variables.items():
        here = where or f"${name}"
        if name == "NVIDIA_VISIBLE_DEVICES" and _LISTED.fullmatch(value):
            facts.append(Fact("gpus.count", value.count(",") + 1, here, JOB))
        elif name == "CUDA_VISIBLE_DEVICES" and _LISTED.fullmatch(value):
            facts.append(Fact("gpus.count", value.count(",") + 1, here, ENVIRONMENT))
        elif name in known:
            rank = JOB if name.startswith("SLURM_") else ENVIRONMENT
            shown = f"{where}: {name}" if where else f"${name}"
            facts += [
                fact
                for fact in read_option(known[name], value, here, rank, shown)
                if isinstance(fact, Fact)
            ]
    return Words(tuple(facts))


def _read_launcher(options: Sequence[Option], where: str) -> Words:
    found = [
        one
        for name, value in options
        if value is not None
        for one in read_option(
            name, value, where or name, LAUNCHER, f"{where}: {name}" if where else name
        )
    ]
    wanted = tuple(
        one._replace(kind="accelerate") for one in found if isinstance(one, Wanted) and not one.kind
    )
    return Words(tuple(one for one in found if isinstance(one, Fact)), wanted)


def _read_script_of(words: Sequence[str], where: str, depth: int) -> Words:
    """Return what is said from the script on: ``train.py --a 1``, or ``-m package.train``."""
    words = list(words)
    if words[:1] in (["-m"], ["--module"]):
        words = words[1:]
    if not words:
        return Words()
    if words[0].rpartition("/")[2] == "python" or _SCRIPT.fullmatch(words[0]):
        return read_command(words, where, depth)
    said = read_arguments(words[1:], where, ARGUMENT)
    return said._replace(library="trl") if _OF_TRL.search(words[0]) else said


def _read_torchrun(words: Sequence[str], where: str, depth: int) -> Words:
    split = split_before(words[1:], FLAGS["torchrun"])
    said = _read_launcher(split.options, where)
    ranks = [fact for fact in said.facts if fact.key == "ranks_per_node"]
    threads = Fact("threads", 1, "torchrun's default", DEFAULT)
    facts = (*said.facts, threads) if ranks and ranks[-1].value != 1 else said.facts
    facts = facts if ranks else (Fact("ranks_per_node", 1, "torchrun's default", DEFAULT), *facts)
    below = _read_script_of(split.rest, where, depth) if split.rest else _miss("torchrun", where)
    return join_words([said._replace(facts=facts), _leave_ranks(below)])


def _leave_ranks(said: Words) -> Words:
    """Return what a script says without its processes: its launcher has started those."""
    kept = [one for one in said.facts if one.key != "ranks_per_node" or one.rank != ARGUMENT]
    return said._replace(facts=tuple(kept))


def _miss(launcher: str, where: str) -> Words:
    return Words(problems=(f"{where or COMMAND_LINE}: {launcher} is given no script",))


def _read_accelerate(words: Sequence[str], where: str, depth: int) -> Words:
    if words[1:2] != ["launch"] and words[0].rpartition("/")[2] == "accelerate":
        return Words()
    split = split_before(words[2:], FLAGS["accelerate"])
    said = _read_launcher(split.options, where)
    below = _read_script_of(split.rest, where, depth) if split.rest else _miss("accelerate", where)
    counted = "--cpu" in words[2 : len(words) - len(split.rest)]
    every = () if counted else (ALL_GPUS._replace(where="accelerate launch", rank=NAMED),)
    zero = read_zero_options(split.options, where)
    return join_words([said, zero, _leave_ranks(below), Words(every, library="accelerate")])


def _read_deepspeed(words: Sequence[str], where: str, depth: int) -> Words:
    split = split_before(words[1:], FLAGS["deepspeed"])
    said = _read_launcher(split.options, where)
    included = [value for name, value in split.options if name == "--include" and value]
    count = [_count_included(value) for value in included]
    if count and count[-1]:
        said = said._replace(
            facts=(*said.facts, Fact("ranks_per_node", count[-1], where or "--include", LAUNCHER))
        )
    elif not any(fact.key == "ranks_per_node" for fact in said.facts):
        auto = Fact("ranks_per_node", AUTO, where or "deepspeed", LAUNCHER)
        said = said._replace(facts=(*said.facts, auto))
    below = _read_script_of(split.rest, where, depth) if split.rest else _miss("deepspeed", where)
    return join_words([said, below])


def _count_included(text: str) -> int:
    """Return the most GPUs of one host of ``localhost:0,1@worker-2:0,1``."""
    slots = [one.partition(":")[2] for one in text.split("@")]
    return max((one.count(",") + 1 for one in slots if one), default=0)


def _read_python(words: Sequence[str], where: str, depth: int) -> Words:
    split = split_before(words[1:], FLAGS["python"])
    rest = list(split.rest)
    if rest[:1] == ["-m"] and len(rest) > 1:
        trainer = MODULES.get(rest[1].partition(".")[0])
        if trainer:
            return _read_program([trainer, *rest[2:]], where, depth)
        if rest[1].startswith(_TORCH):
            return _read_torchrun(["torchrun", *rest[2:]], where, depth)
        if rest[1] in _ACCELERATE:
            return _read_accelerate(["accelerate", "launch", *rest[2:]], where, depth)
    below = _read_script_of(rest, where, depth)
    return join_words([_count_starts(rest, where), below])


def _count_starts(words: Sequence[str], where: str) -> Words:
    """Return how many processes Python starts: one, but for a module that launches a script."""
    script = [at for at, word in enumerate(words) if at > 1 and PYTHON_FILE.fullmatch(word)]
    if words[:1] == ["-m"] and script and LAUNCHES.search(words[1]):
        return read_module(words[1 : script[0]], where)
    one = Fact("ranks_per_node", 1, "python starts one", DEFAULT)
    return Words((one,) if words else ())


def _read_shell(words: Sequence[str], where: str, depth: int) -> Words:
    at = next((at for at, word in enumerate(words) if at and _GIVEN.fullmatch(word)), 0)
    if at:
        text = words[at + 1] if at + 1 < len(words) else ""
        return _read_commands(text, where, "bash -c", depth)
    return _read_script(["", *words[1:]], where, depth)


def _read_eval(words: Sequence[str], where: str, depth: int) -> Words:
    return _read_commands(" ".join(words[1:]), where, "eval", depth)


def _read_tmux(words: Sequence[str], where: str, depth: int) -> Words:
    """Read what a window is given to do, as ``tmux new -d`` and ``tmux send-keys`` have it."""
    given = [word for word in words[1:] if re.search(r"\s", word)]
    return _read_commands("\n".join(given), where, "tmux", depth)


def _read_commands(text: str, where: str, by: str, depth: int) -> Words:
    """Return what a text says that a shell is given as its command.

    :param by: The word that gives it.
    """
    return read_shell(text, Source(where or by, False, 0, depth), {}, _READER)


def _read_script(words: Sequence[str], where: str, depth: int) -> Words:
    """Want the script that is run; what follows are its own arguments."""
    must = not where  # What a script runs besides, such as a module's setup, may be elsewhere.
    notes: tuple[str, ...] = ()
    if words[0] == "sbatch":
        notes, words, wrapped = split_job(words[1:], where or COMMAND_LINE)
        if wrapped:
            said = _read_commands(wrapped, where, "sbatch --wrap", depth)
            return join_words([Words(notes=notes), said])
    elif words[0] in ("", "source", "."):
        words = skip_shell_options(words[1:])
    if not words:
        return Words(notes=notes)
    if words[0].endswith("/activate"):
        return Words()  # Of a virtual environment.
    if "$" in words[0]:
        return Words(notes=(*notes, f"{where or COMMAND_LINE}: {words[0]} is not known here"))
    given = tuple(words[1:])
    wanted = Wanted(words[0], where or COMMAND_LINE, "script", must, arguments=given)
    said = Words(wanted=(wanted,), notes=notes)
    return join_words([said, read_arguments(words[1:], where, ARGUMENT)])


def _read_program(words: Sequence[str], where: str, _depth: int) -> Words:
    """Return what a trainer that is a program says; SWIFT and Axolotl are of transformers."""
    said = read_arguments(words[1:], where, ARGUMENT)
    name = words[0].rpartition("/")[2]
    ranks = [
        fact._replace(rank=LAUNCHER)
        for fact in said.facts
        if fact.key in ("ranks_per_node", "world")
    ]
    others = [fact for fact in said.facts if fact.key not in ("ranks_per_node", "world")]
    said = said._replace(facts=(*others, *ranks))
    return join_words([said, DEFAULTS.get(name, Words())])


def _refuse_exec(words: Sequence[str], where: str, _depth: int) -> Words:
    starts = any(_find_reader(word, words[at:]) for at, word in enumerate(words) if at > 1)
    if not starts:
        return Words()
    told = f"{where or COMMAND_LINE}: {words[0]} exec: runs in a container that there is"
    hint = f"state --place container:{words[0]}/NAME, and the command that runs in it"
    return Words(problems=(f"{told}; {hint}",))


def _read_docker(words: Sequence[str], where: str, depth: int) -> Words:
    container = split_docker_run(words, where)
    if not container.image:
        return Words(problems=(f"{where or COMMAND_LINE}: {words[0]} run is given no image",))
    unknown = f"what the image {container.image} runs of its own is not known"
    inner = Words(notes=(unknown,))
    if container.words:
        known = dict(container.variables)
        inner = read_command([expand(one, known) for one in container.words], where, depth)
    variables = read_variables(container.variables, where)
    given = Words(container.gpus, stated=(container.stated,))
    said = container.map(join_words([given, variables, inner]))
    return join_words([said, Words(wanted=container.files)])


def read_script(
    text: str,
    path: str,
    environment: Mapping[str, str],
    read_source: Callable[[str], str] = lambda _path: "",
    arguments: Sequence[str] = (),
) -> Words:
    """Return what a script says.

    :param path: Its name, for origins.
    :param environment: What is set where it will run, as far as that is known.
    :param read_source: What returns the text of a file that it sources.
    :param arguments: What it is given.
    """
    reader = _READER._replace(read_source=read_source)
    return read_shell(text, Source(path), environment, reader, arguments)


_READER = Reader(read_command, name_start, read_variables)
