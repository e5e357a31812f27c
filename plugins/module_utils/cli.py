# SPDX-License-Identifier: BSD-2-Clause
"""The command ``mlhost-limits``: check this host, explain it, or say what files will give."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .core.policy import SERVICES, TIME_LIMIT, CheckOptions
from .core.profiles import DEFAULT_PROFILE, PROFILES
from .core.quote import clean
from .core.reader import PolicyError
from .node.paths import POLICY as NODE_POLICY
from .schema import load_policy, merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Any]

RUN = "training"
COMPLIES, FALLS_SHORT, REFUSED = 0, 1, 2
INTERRUPTED = 130
"""As a shell has it, of a program that Ctrl-C ended."""


class _Parser(argparse.ArgumentParser):
    """One that says what is wrong, and leaves all that could be right to ``--help``."""

    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, f"mlhost-limits: {clean(message)}; see {self.prog} --help\n")


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
    if words[:1] not in (["monitor"], ["node-health"]):
        _add_check(commands)
        _add_others(commands)
    return parser.parse_args(words)


def _add_check(commands: Commands) -> None:
    from .run_options import add_run_options

    check = commands.add_parser("check", help="measure this host and judge it against a policy")
    check.add_argument("--profile", default=DEFAULT_PROFILE, choices=sorted(PROFILES))
    check.add_argument("--policy", metavar="FILE", help="a policy, merged over the profile")
    check.add_argument("--user", action="append", help="whose sessions; may be repeated")
    check.add_argument("--service", action="append", help="a PAM service; may be repeated")
    check.add_argument("--root", metavar="DIR", default="", help="judge the tree of an image")
    check.add_argument("--probe", default="quiet", choices=["quiet", "full", "predict"])
    check.add_argument("--canary", default="auto", choices=["auto", "always", "never"])
    check.add_argument(
        "--strict", action="store_true", help="what is unknown or will not last fails"
    )
    check.add_argument("--json", action="store_true", help="print the findings as JSON")
    check.add_argument(
        "--time-limit",
        type=float,
        default=TIME_LIMIT,
        metavar="SECONDS",
        help="for the whole check; what did not answer by then is unknown; default: %(default)g",
    )
    add_run_options(check)
    check.set_defaults(run=_check)


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
    from .policy_file import read_policy
    from .run_options import read_run

    given, told = Tree(None) if arguments.policy is None else read_policy(arguments.policy)
    run = read_run(arguments)
    if run:
        given = _with_run(given, run)
    policy = load_policy(given, arguments.profile, run=True, told=told, root=arguments.root)
    is_run = bool(run) or (arguments.policy is None and RUN in policy.asked)
    options = CheckOptions(
        sections=(RUN,) if is_run else None,
        users=arguments.user,
        services=tuple(arguments.service or SERVICES),
        probe=arguments.probe,
        canary=arguments.canary,
        root=arguments.root,
        time_limit=arguments.time_limit,
    )
    result = check_within(policy, options)
    _print(result.as_result() if arguments.json else result.lines, arguments.json)
    fail_on = "unknown" if arguments.strict else "fail"
    if not result.falls_short(fail_on):
        return COMPLIES
    return FALLS_SHORT if result.has_shortfall(fail_on) else REFUSED


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


def _with_run(given: object, run: dict[str, object]) -> object:
    """Return a policy with what the command line says of a run merged in."""
    if given is not None and not isinstance(given, dict):
        return given  # It is refused as it is.
    stated = (given or {}).get(RUN)
    over = merge(stated, run) if isinstance(stated, dict) else run
    return {**(given or {}), RUN: over}


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


def _print(content: Any, as_json: bool) -> None:
    """Write lines for people, or JSON. The rules of Ansible forbid print() in these folders."""
    lines = [json.dumps(content, indent=2)] if as_json else map(clean, content or [""])
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
