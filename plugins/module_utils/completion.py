# SPDX-License-Identifier: BSD-2-Clause
"""Write what lets bash, zsh and fish complete the words of the command, made of its parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence

from .cause_codes import CODES
from .command_line import NAME, describe, list_commands, list_options, make_parser, name_value
from .core.values import NamedTuple
from .places import EXPLAINED, PROVISIONED

_FILES = ("FILE", "DIR", "PATH")
_WORDS: Mapping[tuple[str, str], Sequence[str]] = {
    ("cause", "code"): tuple(CODES),
    ("explain", "place"): tuple(name for name in EXPLAINED if name == name.lower()),
    ("provision", "only"): PROVISIONED,
}
"""What may stand there, of what the parser itself takes any word for."""

_HEAD = f"# Made by: {NAME} completion"


class Word(NamedTuple):
    """An option or argument: its spellings (none of an argument), and what may follow it."""

    flags: tuple[str, ...]
    text: str
    value: str
    """What stands for its value; empty if it takes none."""
    choices: tuple[str, ...]
    is_file: bool
    repeats: bool


class Command(NamedTuple):
    """One command with a line about it."""

    name: str
    text: str
    words: list[Word]


def write_completion(shell: str) -> str:
    """Return the script for one shell."""
    writers = {"bash": _write_bash, "zsh": _write_zsh, "fish": _write_fish}
    return "\n".join([*writers[shell](_list_commands()), ""])


def _list_commands() -> list[Command]:
    return [
        Command(name, text, [_describe_word(name, one) for one in list_options(parser)])
        for name, text, parser in list_commands(make_parser())
    ]


def _describe_word(command: str, action: argparse.Action) -> Word:
    choices = tuple(map(str, action.choices or _WORDS.get((command, action.dest), ())))
    value = name_value(action)
    return Word(
        tuple(action.option_strings),
        describe(action),
        value,
        choices,
        not choices and value.split(" ", maxsplit=1)[0] in _FILES,
        isinstance(action, argparse._AppendAction) or action.nargs in ("+", "*"),
    )


def _write_bash(commands: Sequence[Command]) -> Iterator[str]:
    """Yield the script for bash: what may follow the word before, then the command's options."""
    names = " ".join(one.name for one in commands)
    yield f"{_HEAD} bash"
    yield "_mlhost_limits() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
    yield "    local command=${COMP_WORDS[1]} words=''"
    yield "    COMPREPLY=()"
    yield "    if (( COMP_CWORD == 1 )); then"
    yield f"        words='{names} --help --version'"
    yield "    else"
    yield '        case "$command $before" in'
    for command in commands:
        for one in command.words:
            if one.value and one.flags:
                yield _write_case(command.name, one)
    yield "        esac"
    yield '        case "$command" in'
    for command in commands:
        options = " ".join(flag for one in command.words for flag in one.flags)
        own = " ".join(word for one in command.words if not one.flags for word in one.choices)
        files = any(one.is_file for one in command.words if not one.flags)
        opens = '[[ $word == -* ]] || COMPREPLY=($(compgen -f -- "$word")); ' if files else ""
        yield f"            {command.name}) {opens}words='{f'{own} {options} --help'.strip()}' ;;"
    yield "        esac"
    yield "    fi"
    yield '    COMPREPLY+=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield f"complete -o filenames -F _mlhost_limits {NAME}"


def _write_case(command: str, one: Word) -> str:
    names = "|".join(f'"{command} {flag}"' for flag in one.flags)
    found = f"-W {shlex.quote(' '.join(one.choices))}" if one.choices else "-f"
    if not one.choices and not one.is_file:
        return f"            {names}) return ;;"
    return f'            {names}) COMPREPLY=($(compgen {found} -- "$word")); return ;;'


def _write_zsh(commands: Sequence[Command]) -> Iterator[str]:
    yield f"#compdef {NAME}"
    yield f"{_HEAD} zsh"
    yield "_mlhost_limits() {"
    yield "    local -a commands"
    yield "    commands=("
    for command in commands:
        text = command.text.replace("\\", "\\\\").replace(":", "\\:")
        yield f"        {shlex.quote(f'{command.name}:{text}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then"
    yield "        _describe command commands"
    yield "        _arguments '--help[show help]' '--version[show the version]'"
    yield "        return"
    yield "    fi"
    yield '    local command="${words[2]}"'
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield '    case "$command" in'
    for command in commands:
        yield f"        {command.name})"
        yield "            _arguments \\"
        for one in command.words:
            yield from (f"                {told} \\" for told in _specify(one))
        yield "                '--help[show help]' ;;"
    yield "    esac"
    yield "}"
    yield f"compdef _mlhost_limits {NAME}"


def _specify(one: Word) -> Iterator[str]:
    """Yield what _arguments of zsh takes for an option or an argument."""
    message = _escape(one.value)
    action = "_files" if one.is_file else f"({' '.join(one.choices)})" if one.choices else " "
    if not one.flags:
        yield shlex.quote(f"{'*' if one.repeats else ''}:{message}:{action}")
    for flag in one.flags:
        again = "*" if one.repeats else ""
        follows = f":{message}:{action}" if one.value else ""
        yield shlex.quote(f"{again}{flag}[{_escape(one.text)}]{follows}")


def _escape(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\[]:" else char for char in text)


def _write_fish(commands: Sequence[Command]) -> Iterator[str]:
    names = " ".join(one.name for one in commands)
    start = f"complete -c {NAME}"
    yield f"{_HEAD} fish"
    yield f"{start} -f"
    none_yet = shlex.quote(f"not __fish_seen_subcommand_from {names}")
    yield f"{start} -n {none_yet} -l version -d 'show the version'"
    yield f"{start} -l help -d 'show help'"
    for command in commands:
        yield f"{start} -n {none_yet} -a {command.name} -d {_quote_fish(command.text)}"
    for command in commands:
        seen = shlex.quote(f"__fish_seen_subcommand_from {command.name}")
        for one in command.words:
            yield f"{start} -n {seen} {_specify_fish(one)} -d {_quote_fish(one.text)}"


def _specify_fish(one: Word) -> str:
    words = [f"-{'l' if flag.startswith('--') else 's'} {flag.lstrip('-')}" for flag in one.flags]
    if one.choices:
        words.append(f"{'-x ' if one.flags else ''}-a {_quote_fish(' '.join(one.choices))}")
    elif one.is_file:
        words.append("-r -F" if one.flags else "-F")
    elif one.value and one.flags:
        words.append("-x")
    return " ".join(words)


def _quote_fish(text: str) -> str:
    """Return a text in quotes of fish, where a backslash and a quote are escaped (fish(1))."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
