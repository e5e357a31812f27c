# SPDX-License-Identifier: BSD-2-Clause
"""The words of the command ``mlhost-limits``: its commands, in an order for people, and options.

Help, completion, the manual page and the page of the documentation are made of this parser.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .command_options import add_heal, add_policy, add_profile, add_watch, add_why, read_amount
from .core.policy import TIME_LIMIT
from .core.profiles import DEFAULT_PROFILE, NO_PROFILE
from .core.quote import clean
from .node.paths import POLICY as NODE_POLICY
from .version import VERSION

NAME = "mlhost-limits"
REFUSED = 2
ABOUT = "Check, set and explain the resource limits that training jobs really get on this host."
STATUSES = (
    "Exit status: 0 if all is as the policy asks, 1 if something falls short, 2 if the question "
    "was refused or could not be answered, 130 after Ctrl-C."
)
WELCOME = f"""\
{ABOUT}

  {NAME} check                  what falls short here, why, and the fix
  sudo {NAME} provision         make it so; with --check, say what would change
  {NAME} preflight -- COMMAND   will this training run survive on this host?
  {NAME} why train.log          what a run died of: a limit or none, and the fix

All commands: {NAME} --help
"""
_MOST_SECONDS = 86400
INTERNAL = ("monitor", "node-health")
"""What a timer and Slurm run."""

_OWN = ("--help", "--version")
SHELLS = ("bash", "zsh", "fish")
STANDARD_FORMATS = ("sarif", "inspec")


class Parser(argparse.ArgumentParser):
    """One that says what is wrong, and leaves all that could be right to ``--help``."""

    def error(self, message: str) -> NoReturn:
        from .run_options import is_of_run  # Long, and seldom needed.

        hint = f"; see {self.prog} --help"
        if message.startswith("unrecognized arguments:") and is_of_run(message.split()):
            hint = f"; a run is judged by: {NAME} preflight"
        self.exit(REFUSED, f"{NAME}: {clean(message)}{hint}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (file or sys.stderr).write(message)  # Newer ones drop it where there is no room.


class _Formatter(argparse.HelpFormatter):
    """One that leaves room for the names of commands."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def parse_words(words: Sequence[str]) -> argparse.Namespace:
    """Return what the words ask for; ``command`` names it."""
    parser = make_parser(words[0] if words else "")
    if words[:1] == ["preflight"]:  # Its files may stand between its options.
        own, command = _split_command(words[1:])
        given = argparse.Namespace(command="preflight", words=command)
        asked: argparse.Namespace = list_commands(parser)[0][2].parse_intermixed_args(own, given)
        return asked
    if words[:1] == ["watch"]:
        own, command = _split_command(words)
        _refuse_empty(own, parser)
        return _parse(own, parser, argparse.Namespace(words=command))
    _refuse_empty(words, parser)
    _refuse_option_first(words, parser)
    return _parse(words, parser)


def _parse(
    words: Sequence[str], parser: Parser, given: argparse.Namespace | None = None
) -> argparse.Namespace:
    """Return what words say; where some are not known, the help of their command is named."""
    found, unknown = parser.parse_known_args(words, given)
    if unknown:
        own = {name: below for name, _text, below in list_commands(parser)}
        own.get(words[0], parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    return found


def _refuse_option_first(words: Sequence[str], parser: Parser) -> None:
    """End with a sentence where an option stands before the command that it is for."""
    first = words[0] if words else ""
    name = first.partition("=")[0]
    if name.startswith("-") and not any(own.startswith(name) for own in ("-h", *_OWN)):
        parser.error(f"{first}: is not an option of {NAME} itself; a command comes first")


def _refuse_empty(words: Sequence[str], parser: Parser) -> None:
    """End with a sentence where a word is empty: a variable that is not set, most of the time."""
    for before, word in zip(["", *words], words):
        if not word or re.fullmatch(r"--[a-z-]+=", word):
            name = word[:-1] or (before if before.startswith("-") else f"the word after {before!r}")
            parser.error(f"{name}: is empty; leave it out, or state what is meant")


def _split_command(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return our own words, and the run's behind ``--``, if that is there."""
    if "--" not in words:
        return words, None
    at = list(words).index("--")
    return words[:at], words[at + 1 :]


def make_parser(only: str = "") -> Parser:
    """Return the parser of all commands; of that one alone, if it is one: the rest takes time."""
    parser = Parser(prog=NAME, description=ABOUT, epilog=STATUSES, formatter_class=_Formatter)
    parser.add_argument(
        "--version", action="version", version=f"{NAME} {VERSION}", help="show the version and exit"
    )
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", dest="command", title="commands"
    )
    for name in [only] if only in _COMMANDS else _COMMANDS:
        text, add = _COMMANDS[name]
        told = f"{text[0].upper()}{text[1:]}. {_MORE.get(name, '')}".strip()
        add(commands.add_parser(name, help=text, description=told))
    return parser


def _add_canary(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--canary",
        default=default,
        choices=["auto", "always", "never"],
        help="whether to start a container and a job, to see what they get",
    )


def _add_looks(parser: argparse.ArgumentParser) -> None:
    """Add what a check of a host and one of a run have in common."""
    add_policy(parser)
    parser.add_argument(
        "--probe",
        default="quiet",
        choices=["quiet", "full", "predict"],
        help="how to open sessions: without a trace, as a real login, or not at all",
    )
    _add_canary(parser, "auto")
    parser.add_argument(
        "--strict", action="store_true", help="what is unknown or will not last fails"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--time-limit",
        type=read_amount("seconds", _MOST_SECONDS),
        default=TIME_LIMIT,
        metavar="SECONDS",
        help="for the whole check; what has not answered by then is unknown; default: %(default)g",
    )


def _add_check(check: argparse.ArgumentParser) -> None:
    add_profile(check, DEFAULT_PROFILE)
    check.add_argument("--user", action="append", help="whose sessions to look at; repeat it")
    check.add_argument("--service", action="append", help="a PAM service to look at; repeat it")
    check.add_argument("--root", metavar="DIR", default="", help="judge the tree of an image")
    check.add_argument("-v", "--verbose", action="store_true", help="show every finding")
    check.add_argument(
        "--format",
        choices=STANDARD_FORMATS,
        help="print what falls short as SARIF 2.1.0, or every finding as InSpec's JSON does",
    )
    _add_looks(check)


def _add_provision(provision: argparse.ArgumentParser) -> None:
    from .provision_options import add_provision_options

    add_profile(provision, DEFAULT_PROFILE)
    add_provision_options(provision)


def _add_preflight(preflight: argparse.ArgumentParser) -> None:
    from .run_options import add_run_options
    from .try_run import add_try_options

    preflight.usage = "%(prog)s [OPTION ...] [FILE ...] [-- COMMAND ...]"
    preflight.add_argument(
        "files", nargs="*", metavar="FILE", help="what the run reads, or is started by"
    )
    add_profile(preflight, NO_PROFILE)
    _add_looks(preflight)
    add_try_options(preflight)
    add_run_options(preflight)


def _add_explain(chain: argparse.ArgumentParser) -> None:
    chain.add_argument("place", metavar="PLACE", help="where, as check names it, such as kernel")
    chain.add_argument("item", metavar="ITEM", help="a limit, such as nofile, or a sysctl")
    chain.add_argument("--json", action="store_true", help="print as JSON")


def _add_cause(cause: argparse.ArgumentParser) -> None:
    cause.add_argument(
        "code", metavar="CODE", help="as --json has it, such as pam-user-beats-wildcard"
    )


def _add_resolve(resolve: argparse.ArgumentParser) -> None:
    from .systemd.limits import MANAGER

    _add_tree(resolve)
    resolve.add_argument("--user", help="whose limits; by default those of root and of everyone")
    resolve.add_argument("--service", help="the PAM service that opens the session")
    resolve.add_argument(
        "--unit",
        default=MANAGER,
        help="a systemd unit; by default its managers' system.conf and user.conf",
    )
    resolve.add_argument("--json", action="store_true", help="print as JSON")


def _add_tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", default="/", metavar="DIR", help="the tree; by default /")


def _add_adopt(adopt: argparse.ArgumentParser) -> None:
    _add_tree(adopt)
    adopt.add_argument(
        "--format", choices=STANDARD_FORMATS[:1], help="print what it leaves out as SARIF 2.1.0"
    )


def _add_report(report: argparse.ArgumentParser) -> None:
    from .fleet_options import add_report_options

    add_report_options(report)


def _add_plan(plan: argparse.ArgumentParser) -> None:
    from .fleet_options import add_plan_options

    add_plan_options(plan)


def _add_completion(completion: argparse.ArgumentParser) -> None:
    completion.add_argument("shell", choices=SHELLS, help="which shell it is for")


def _add_monitor(monitor: argparse.ArgumentParser) -> None:
    monitor.add_argument(
        "--policy",
        metavar="FILE",
        default=NODE_POLICY,
        help="the policy, JSON or YAML; without a profile of its own it stands alone;"
        " default: %(default)s",
    )
    monitor.add_argument("--metrics", metavar="FILE", default="", help="a file for node_exporter")
    _add_canary(monitor, "never")
    monitor.add_argument(
        "--exit-zero", action="store_true", help="end with 0 also where the host falls short"
    )


def _add_node_health(health: argparse.ArgumentParser) -> None:
    health.add_argument(
        "--npd",
        action="store_true",
        help="tell node-problem-detector of Kubernetes instead, by exit status and one line",
    )


_COMMANDS: Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "check": ("measure this host and judge it against a policy", _add_check),
    "provision": ("make a policy true on this host, and check what is in effect", _add_provision),
    "preflight": (
        "judge a training run before it starts, by the words that start it",
        _add_preflight,
    ),
    "watch": ("run a command, and tell of a limit before it is reached", add_watch),
    "why": ("say what a run died of, by its last words", add_why),
    "heal": ("raise what runs to what a policy asks for it, without a restart", add_heal),
    "explain": ("show what sets one limit of one place, step by step", _add_explain),
    "cause": ("say what a code means that a check has named", _add_cause),
    "resolve": ("say what the files of a tree will give", _add_resolve),
    "adopt": ("print the policy that a site's own files amount to", _add_adopt),
    "report": ("make one page of the results of many hosts", _add_report),
    "plan": ("say the cheapest fixes for many hosts, in waves", _add_plan),
    "completion": ("print what lets a shell complete these words", _add_completion),
    "monitor": ("check this node for the timer, with metrics", _add_monitor),
    "node-health": ("drain this node in Slurm if it falls short", _add_node_health),
}
"""In an order for people, with a line about each; what a timer and Slurm run comes last."""

_MORE = {
    "check": "It changes nothing. Each reason for a shortfall is told with the line at fault and"
    " the fix. Without root, much is unknown.",
    "provision": "Needs root. What would lock this host is refused before anything is written.",
    "report": "A file is what check --json prints, what the module check returns, or the JSON of"
    " an earlier report. A file that exists and is not a report of ours is never replaced.",
    "heal": "Nothing is lowered, nothing is raised beyond the policy, and no process ends. What"
    " starts anew has what the files give: see provision. Exit status: 1 if something stays short.",
    "plan": "It runs nothing. A host gets all the fixes that it lacks, or none. Exit status: 1 if"
    " there is something to do, 0 if not.",
    "watch": "Standard streams, signals and the terminal are the command's; what is told goes to"
    " standard error. Exit status: the command's own; 127 if it is not found, 126 if it cannot be"
    " run, 2 if the question was refused.",
    "why": "It says whether that was a limit, how sure that is, the line at fault and the fix."
    " Exit status: 1 if it was a limit, 0 if it was none, 2 if it may be either or nothing is"
    " known. Whoever is not root may ask for their own runs alone.",
    "completion": f'For bash, in ~/.bashrc: eval "$({NAME} completion bash)"',
}


def list_commands(
    parser: argparse.ArgumentParser,
) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """Return every command with its line of help and its parser, in the order of the help."""
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    texts = {one.dest: str(one.help) for one in commands._choices_actions}
    return [(name, texts[name], below) for name, below in commands.choices.items()]


def list_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options and arguments of a command, without ``--help``."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [one for one in parser._actions if not isinstance(one, hidden)]


def describe(action: argparse.Action) -> str:
    """Return the help of an option, its default filled in."""
    return str(action.help) % {**vars(action), "prog": NAME} if action.help else ""


def name_value(action: argparse.Action) -> str:
    """Return what stands for an option's value, or nothing where it has none."""
    if action.nargs == 0:
        return ""
    name = action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper())
    return f"{name} ..." if action.nargs in ("+", "*") else str(name)
