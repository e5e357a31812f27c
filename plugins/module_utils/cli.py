# SPDX-License-Identifier: BSD-2-Clause
"""The command ``mlhost-limits``: check a host or a run, explain, or say what files will give."""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .core.policy import SERVICES, TIME_LIMIT, CheckOptions
from .core.profiles import DEFAULT_PROFILE, NO_PROFILE, PROFILES
from .core.quote import clean
from .core.reader import PolicyError
from .node.paths import POLICY as NODE_POLICY
from .places import SECTIONS
from .schema import load_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .check_host import CheckResult

    Commands = argparse._SubParsersAction[Any]

RUN = "training"
COMPLIES, FALLS_SHORT, REFUSED = 0, 1, 2
INTERRUPTED = 130
"""As a shell has it, of a program that Ctrl-C ended."""


class _Parser(argparse.ArgumentParser):
    """One that says what is wrong, and leaves all that could be right to ``--help``."""

    def error(self, message: str) -> NoReturn:
        from .run_options import is_of_run  # Long, and seldom needed.

        hint = f"; see {self.prog} --help"
        if message.startswith("unrecognized arguments:") and is_of_run(message.split()):
            hint = "; a run is judged by: mlhost-limits preflight"
        self.exit(REFUSED, f"mlhost-limits: {clean(message)}{hint}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: 0 where the host complies, 1 where it falls short, 2 where the question is refused
        or could not be answered whole, 130 after Ctrl-C.
    """
    arguments = _parse_arguments(words)
    try:
        return int(arguments.run(arguments))
    except PolicyError as exc:
        for problem in exc.problems:
            _complain(problem)
    except OSError as exc:
        _complain(f"{exc.filename}: {exc.strerror}" if exc.filename and exc.strerror else str(exc))
    except ValueError as exc:
        _complain(str(exc))
    except KeyboardInterrupt as exc:
        _complain(str(exc) or "interrupted")
        return INTERRUPTED
    return REFUSED


def _complain(text: str) -> None:
    sys.stderr.write(f"mlhost-limits: {clean(text)}\n")


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the words. What runs every few minutes has no time for the options of the others."""
    words = sys.argv[1:] if words is None else words
    parser = _Parser(prog="mlhost-limits", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_node_commands(commands)
    if words[:1] in (["monitor"], ["node-health"]):
        return parser.parse_args(words)
    _add_check(commands)
    preflight = _add_preflight(commands)
    _add_others(commands)
    if words[:1] == ["preflight"]:  # Its files may stand between its options.
        words, command = _split_command(words[1:])
        return preflight.parse_intermixed_args(words, argparse.Namespace(command=command))
    return parser.parse_args(words)


def _split_command(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return our own words, and the run's behind ``--``, if that is there."""
    if "--" not in words:
        return words, None
    at = list(words).index("--")
    return words[:at], words[at + 1 :]


def _add_check(commands: Commands) -> None:
    check = commands.add_parser("check", help="measure this host and judge it against a policy")
    check.add_argument("--profile", default=DEFAULT_PROFILE, choices=sorted(PROFILES))
    check.add_argument("--user", action="append", help="whose sessions; may be repeated")
    check.add_argument("--service", action="append", help="a PAM service; may be repeated")
    check.add_argument("--root", metavar="DIR", default="", help="judge the tree of an image")
    check.add_argument("-v", "--verbose", action="store_true", help="show every finding")
    _add_looks(check)
    check.set_defaults(run=_check)


def _add_looks(parser: argparse.ArgumentParser) -> None:
    """Add what a check of a host and one of a run have in common."""
    parser.add_argument("--policy", metavar="FILE", help="a policy, merged over the profile")
    parser.add_argument("--probe", default="quiet", choices=["quiet", "full", "predict"])
    parser.add_argument("--canary", default="auto", choices=["auto", "always", "never"])
    parser.add_argument(
        "--strict", action="store_true", help="what is unknown or will not last fails"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=TIME_LIMIT,
        metavar="SECONDS",
        help="for the whole check; what did not answer by then is unknown; default: %(default)g",
    )


def _add_preflight(commands: Commands) -> argparse.ArgumentParser:
    from .run_options import add_run_options
    from .try_run import add_try_options

    preflight: argparse.ArgumentParser = commands.add_parser(
        "preflight",
        help="judge a training run before it starts, by the words that start it",
        usage="%(prog)s [OPTION ...] [FILE ...] [-- COMMAND ...]",
    )
    preflight.add_argument(
        "files", nargs="*", metavar="FILE", help="what the run reads, or is started by"
    )
    preflight.add_argument("--profile", default=NO_PROFILE, choices=sorted(PROFILES))
    _add_looks(preflight)
    add_try_options(preflight)
    add_run_options(preflight)
    preflight.set_defaults(run=_preflight)
    return preflight


def _add_others(commands: Commands) -> None:
    from .systemd.limits import MANAGER

    chain = commands.add_parser("explain", help="show who has a say in one limit of one place")
    chain.add_argument("place", help="where, as check names it, such as kernel")
    chain.add_argument("item", help="a limit, such as nofile, or a sysctl")
    chain.add_argument("--json", action="store_true", help="print as JSON")
    chain.set_defaults(run=_explain)
    cause = commands.add_parser("cause", help="say what a code means that a check has named")
    cause.add_argument("code", help="as --json has it, such as pam-user-beats-wildcard")
    cause.set_defaults(run=_tell_cause)
    resolve = commands.add_parser("resolve", help="say what the files of a tree will give")
    resolve.add_argument("--root", default="/", metavar="DIR", help="the tree; by default /")
    resolve.add_argument("--user", help="whose limits; by default those of root and of everyone")
    resolve.add_argument("--service", help="the PAM service that opens the session")
    resolve.add_argument(
        "--unit",
        default=MANAGER,
        help="a systemd unit; by default its managers' system.conf and user.conf",
    )
    resolve.add_argument("--json", action="store_true", help="print as JSON")
    resolve.set_defaults(run=_resolve)
    adopt = commands.add_parser("adopt", help="print the policy that a site's own files amount to")
    adopt.add_argument("--root", default="/", metavar="DIR", help="the tree; by default /")
    adopt.set_defaults(run=_adopt)


def _add_node_commands(commands: Commands) -> None:
    """Add what a timer and Slurm run on a node."""
    monitor = commands.add_parser("monitor", help="check this node for the timer, with metrics")
    monitor.add_argument(
        "--policy", metavar="FILE", default=NODE_POLICY, help="default: %(default)s"
    )
    monitor.add_argument("--metrics", metavar="FILE", default="", help="a file for node_exporter")
    monitor.add_argument("--canary", default="never", choices=["auto", "always", "never"])
    monitor.add_argument(
        "--exit-zero", action="store_true", help="end with 0 also where the host falls short"
    )
    monitor.set_defaults(run=_monitor)
    health = commands.add_parser("node-health", help="drain this node in Slurm if it falls short")
    health.set_defaults(run=_tell_slurm)


def _check(arguments: argparse.Namespace) -> int:
    from .check_within import check_within
    from .core.policy_tree import Tree
    from .policy_file import read_policy_within

    given, told = Tree(None)
    if arguments.policy is not None:
        given, told = read_policy_within(arguments.policy, arguments.time_limit)
    is_run = isinstance(given, dict) and RUN in given
    policy = load_policy(given, arguments.profile, run=is_run, told=told, root=arguments.root)
    is_beside = RUN in policy.asked and not is_run  # A profile of runs tells of hosts as well.
    sections = tuple(name for name in SECTIONS if name != RUN) if is_beside else None
    if is_beside and len(policy.asked) == 1:
        asks = "asks nothing of a host; mlhost-limits preflight judges a run"
        raise ValueError(f"profile: {arguments.profile} {asks}")
    options = CheckOptions(
        sections=sections,
        users=arguments.user,
        services=tuple(arguments.service or SERVICES),
        probe=arguments.probe,
        canary=arguments.canary,
        root=arguments.root,
        time_limit=arguments.time_limit,
    )
    result = check_within(policy, options)
    if arguments.json:
        _print(result.as_result(), True)
    else:
        ours = _name_provision(arguments)
        _print(result.lines if arguments.verbose else result.format_brief(ours))
    return _conclude(result, arguments.strict)


def _name_provision(arguments: argparse.Namespace) -> str:
    """Return the command that makes the policy true that was checked; none of an image."""
    if arguments.root:
        return ""
    words = ["mlhost-limits", "provision"]
    if arguments.profile != DEFAULT_PROFILE:
        words += ["--profile", arguments.profile]
    if arguments.policy is not None:
        words += ["--policy", arguments.policy]
    return shlex.join(words)


def _conclude(result: CheckResult, strict: bool) -> int:
    """Return the exit status: of what could not be seen only where nothing falls short."""
    fail_on = "unknown" if strict else "fail"
    if not result.falls_short(fail_on):
        return COMPLIES
    return FALLS_SHORT if result.has_shortfall(fail_on) else REFUSED


def _preflight(arguments: argparse.Namespace) -> int:
    from .judge_run import judge_run  # Nobody else needs it.

    judged = judge_run(arguments, arguments.command)
    _print(judged.as_result() if arguments.json else judged.lines, arguments.json)
    return _conclude(judged.result, arguments.strict)


def _monitor(arguments: argparse.Namespace) -> int:
    from .monitor import look_at_node  # Nobody else needs it.

    look = look_at_node(arguments.policy, arguments.metrics, arguments.canary)
    if look.verdict.status == "error":
        raise ValueError(look.verdict.failures[0])
    _print(look.lines, False)
    short = look.verdict.status == "fail" and not arguments.exit_zero
    return FALLS_SHORT if short else COMPLIES


def _tell_slurm(_arguments: argparse.Namespace) -> int:
    from .node_health import main as tell_slurm

    return tell_slurm()


def _explain(arguments: argparse.Namespace) -> int:
    from .core.report import format_links
    from .explain import explain  # A check needs none of it.

    links = explain(arguments.place, arguments.item)
    lines = format_links(arguments.place, arguments.item, links)
    _print([link._asdict() for link in links] if arguments.json else lines, arguments.json)
    return COMPLIES


def _tell_cause(arguments: argparse.Namespace) -> int:
    from .cause_codes import describe_code  # It loads every rule there is.

    _print(describe_code(arguments.code), False)
    return COMPLIES


def _resolve(arguments: argparse.Namespace) -> int:
    from .core.resolved import format_entries, format_resolved  # A check needs none of it.
    from .resolve import resolve_tree

    gc.disable()  # Nothing here refers to itself; of 10^6 lines, looking takes a third of the time.
    stated = resolve_tree(arguments.root, arguments.user, arguments.service, arguments.unit)
    _print(list(format_entries(stated) if arguments.json else format_resolved(stated)), False)
    return COMPLIES


def _adopt(arguments: argparse.Namespace) -> int:
    from .adopt import adopt_tree  # A check needs none of it.

    gc.disable()  # As above.
    _print(adopt_tree(arguments.root), False)
    return COMPLIES


def _print(content: Any, as_json: bool = False) -> None:
    """Write lines for people, or JSON. The rules of Ansible forbid print() in these folders."""
    lines = [json.dumps(content, indent=2)] if as_json else map(clean, content or [""])
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
