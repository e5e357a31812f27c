# SPDX-License-Identifier: BSD-2-Clause
"""Split the words of a command into options with their values, and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core.values import NamedTuple
from .facts import Fact, Wanted, Words
from .names import AUTO, KEYS_OF, OF_TRANSFORMERS, read_option, spell

COMMAND_LINE = "command line"
_SETTING = re.compile(r"[+~]{0,2}[A-Za-z_][A-Za-z0-9_./@-]*=", re.ASCII)
_SWITCHES = ("resume", "use_peft", "use_lora", "lora_enable")
"""Options that are on where no value follows them."""
_NUMBER = re.compile(r"-[0-9.]+")
_SHORT = re.compile(r"(-(?:c|[bj](?==?\d)))=?(.+)")
_SCRIPT = re.compile(r".*\.(py|sh|bash|sbatch|slurm)")


class Option(NamedTuple):
    """One option as it is written; ``value`` is ``None`` where it has none."""

    name: str
    value: str | None


class Split(NamedTuple):
    """The options of some words, and the words that are not options."""

    options: tuple[Option, ...]
    rest: tuple[str, ...] = ()


def split_all(words: Sequence[str]) -> Split:
    """Return all options, wherever they stand: ``--opt value``, ``--opt=value``, ``opt=value``."""
    options: list[Option] = []
    rest, at = [], 0
    while at < len(words):
        option, used = _read_option(words, at)
        at += used
        if option:
            options.append(option)
        else:
            rest.append(words[at - 1])
    return Split(tuple(options), tuple(rest))


def split_before(words: Sequence[str], flags: Sequence[str] = ()) -> Split:
    """Return the options before the first word that is not one, and all from there on.

    :param flags: Those that take no value, where a word behind them could be taken for one.
    """
    options: list[Option] = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] in flags:
            options.append(Option(words[at], None))
            at += 1
            continue
        if words[at] in ("-m", "--module"):
            return Split(tuple(options), tuple(words[at:]))
        option, used = _read_option(words, at, scripts=True)
        at += used
        if option:
            options.append(option)
    return Split(tuple(options), tuple(words[at:]))


def _read_option(words: Sequence[str], at: int, scripts: bool = False) -> tuple[Option | None, int]:
    """Return the option that a word begins, and how many words it takes."""
    word = words[at]
    if not word.startswith("-"):
        if _SETTING.match(word):
            return Option(*_split_at_sign(word)), 1
        return None, 1
    if "=" in word and word.startswith("--"):
        return Option(*_split_at_sign(word)), 1
    short = _SHORT.fullmatch(word)
    if short and not word.startswith("--"):
        return Option(short[1], short[2]), 1
    follows = words[at + 1] if at + 1 < len(words) else None
    if follows is None or (follows.startswith("-") and not _NUMBER.fullmatch(follows)):
        return Option(word, None), 1
    if scripts and _SCRIPT.fullmatch(follows):
        return Option(word, None), 1
    if _SETTING.match(follows) and spell(follows.partition("=")[0]) in KEYS_OF:
        return Option(word, None), 1  # As --cfg-options data.num_workers=4 has it.
    return Option(word, follows), 2


def _split_at_sign(word: str) -> tuple[str, str]:
    name, _sign, value = word.partition("=")
    return name, value


def read_arguments(words: Sequence[str], where: str, rank: int) -> Words:
    """Return what the arguments of a script say; the last of two counts.

    :param where: ``file:line``, or nothing of the command line.
    """
    split = split_all(words)
    found: list[Fact | Wanted] = []
    for name, value in split.options:
        if value is None:
            if spell(name) not in _SWITCHES:
                continue
            value = "true"
        here = where or name
        shown = f"{where}: {name}" if where else name
        found += read_option(name, value, here, rank, shown)
    if any(spell(name) == "multiprocessing_distributed" for name, _value in split.options):
        found = [one for one in found if not (isinstance(one, Fact) and one.key == "world")]
        found.append(Fact("ranks_per_node", AUTO, where or "its own launcher", rank))
    shown = where or COMMAND_LINE
    found += [
        Wanted(word, shown)
        for word in split.rest
        if re.fullmatch(r"[^\s]+\.(json|ya?ml)|[^\s]*config[^\s]*\.py", word)
    ]
    return Words(
        tuple(one for one in found if isinstance(one, Fact)),
        tuple(one for one in found if isinstance(one, Wanted)),
        library=find_library(name for name, _value in split.options),
    )


def find_library(names: Iterable[str]) -> str:
    """Return whose loop draws the batches, where the names of options show it."""
    spelled = {spell(name) for name in names}
    return "transformers" if spelled & set(OF_TRANSFORMERS) else ""
