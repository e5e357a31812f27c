# SPDX-License-Identifier: BSD-2-Clause
"""Run one command of ``mlhost-limits``; its words are those of ``command_line.py``."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from .command_line import NAME, REFUSED, WELCOME, parse_words
from .core.option_names import FLAG, NamedWith
from .core.policy import SERVICES, TIME_LIMIT, CheckOptions, Policy
from .core.quote import clean, say_error
from .core.reader import PolicyError
from .places import SECTIONS
from .schema import load_policy
from .streams import flush_streams, open_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .check_host import CheckResult
    from .core.policy_tree import Tree
    from .terminal import Progress

RUN = "training"
COMPLIES, FALLS_SHORT = 0, 1
_MOST_PROBLEMS = 20
INTERRUPTED = 130
"""As a shell has it, of a program that Ctrl-C ended."""

RUN_FORMAT, VERSION = "mlhost.limits/preflight", 1
"""Of what ``preflight --json`` prints, see docs/preflight.schema.json. Keys may be added."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :returns: 0 where the host complies, 1 where it falls short, 2 where the question is refused,
        is missing, or its answer could not be given whole, 130 after Ctrl-C.
    """
    open_streams()
    try:
        status = _run(sys.argv[1:] if words is None else words)
    except SystemExit as exc:  # Of the parser.
        raise SystemExit(_settle(exc.code)) from None
    return int(_settle(status))


def _settle(status: Any) -> Any:
    """Return the status, once all that was said has been taken."""
    problem = flush_streams()
    if problem and not isinstance(problem, BrokenPipeError):
        _complain(f"the answer could not be written: {problem.strerror}")
        flush_streams()
    return REFUSED if problem else status


def _run(words: Sequence[str]) -> int:
    try:
        if not words:
            sys.stdout.write(WELCOME)
            return REFUSED  # Nothing was checked, and a script may take 0 for a good host.
        arguments = parse_words(words)
        with NamedWith(FLAG):
            return _COMMANDS[arguments.command](arguments)
    except BrokenPipeError:
        pass  # Who reads has seen enough.
    except PolicyError as exc:
        for problem in exc.problems:
            _complain(problem)
    except (OSError, ValueError, RecursionError) as exc:
        _complain(say_error(exc))
    except KeyboardInterrupt as exc:
        _complain(str(exc) or "interrupted")
        return INTERRUPTED
    return REFUSED


def _complain(text: str) -> None:
    with suppress(OSError):  # It may be full or closed; the status says the same.
        sys.stderr.write(f"{NAME}: {clean(text)}\n")


def _check(arguments: argparse.Namespace) -> int:
    given, told = _read_given(arguments.policy, arguments.time_limit)
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
    result = _look(policy, options)
    if arguments.json or arguments.format:
        from .result import make_result

        _print_json(_shape(make_result(result, arguments.root), arguments))
    elif arguments.verbose:
        _print(result.lines, paints=True)
    else:
        from .command_options import name_other

        ours, heal = (name_other(verb, arguments) for verb in ("provision", "heal"))
        explain = f"{NAME} explain" if ours else ""
        _print(result.format_brief(provision=ours, explain=explain, heal=heal), paints=True)
    return _conclude(result, arguments.strict)


def _shape(result: dict[str, object], arguments: argparse.Namespace) -> dict[str, object]:
    """Return a result in the format that is asked for."""
    if not arguments.format:
        return result
    from .standard_formats import make_inspec, make_sarif  # Few ask for them.

    is_sarif = arguments.format == "sarif"
    return make_sarif(result, arguments.root) if is_sarif else make_inspec(result)


def _read_given(path: str | None, seconds: float = TIME_LIMIT) -> Tree:
    """Return the policy in a file, and what is wrong with it; none where no file is named."""
    from .core.policy_tree import Tree
    from .policy_file import read_policy_within

    return Tree(None) if path is None else read_policy_within(path, seconds)


def _watch(look: Callable[[Progress], Any]) -> Any:
    """Return what a look found; somebody who waits at a terminal is told how far it is."""
    from .terminal import Progress

    progress = Progress(sys.stderr)
    try:
        return look(progress)
    finally:
        progress.clear()


def _conclude(result: CheckResult, strict: bool = False) -> int:
    """Return the exit status: of what could not be seen only where nothing falls short."""
    fail_on = "unknown" if strict else "fail"
    if not result.falls_short(fail_on):
        return COMPLIES
    return FALLS_SHORT if result.has_shortfall(fail_on) else REFUSED


def _provision(arguments: argparse.Namespace) -> int:
    from .core.outcome_lines import format_outcome  # A check needs none of it.
    from .provision import provision
    from .provision_options import read_provision

    given, told = _read_given(arguments.policy)
    options = read_provision(arguments)
    policy = load_policy(given, arguments.profile, told=told)
    outcome = provision(policy, options)
    shown = outcome.as_result()
    if not arguments.json:
        _print(format_outcome(shown, options.check_mode, arguments.diff), paints=True)
        sys.stdout.flush()
    ends = options.check_mode or options.absent or arguments.no_verify or not outcome.in_effect
    result = None
    try:
        result = None if ends else _look(policy, CheckOptions(sections=outcome.in_effect))
    finally:  # What was done is told, whatever becomes of the check.
        if arguments.json:
            from .result import make_provisioned

            _print_json(make_provisioned(shown, options.check_mode, arguments.diff, result))
    if result and not arguments.json:
        _print(result.format_brief(provision=""), paints=True)
    short = FALLS_SHORT if outcome.shortfalls else COMPLIES
    return short or (_conclude(result) if result else COMPLIES)


def _look(policy: Policy, options: CheckOptions) -> CheckResult:
    from .check_within import check_within

    seen: CheckResult = _watch(lambda progress: check_within(policy, options, progress=progress))
    return seen


def _preflight(arguments: argparse.Namespace) -> int:
    from .judge_run import judge_run  # Nobody else needs it.

    judged = _watch(lambda progress: judge_run(arguments, arguments.words, progress))
    if arguments.json:
        head = {"format": RUN_FORMAT, "version": VERSION, "host": os.uname().nodename}
        _print_json({**head, **judged.as_result()})
    else:
        _print(judged.lines, paints=True)
    return _conclude(judged.result, arguments.strict)


def _monitor(arguments: argparse.Namespace) -> int:
    from .monitor import look_at_node  # Nobody else needs it.
    from .write.cache import FOLDER

    if os.geteuid():
        raise PermissionError(f"must run as root: what it finds is kept in {FOLDER}, for all jobs")
    look = look_at_node(arguments.policy, arguments.metrics, arguments.canary)
    if look.verdict.status == "error":
        raise ValueError(look.verdict.failures[0])
    _print(look.lines)
    short = look.verdict.status == "fail" and not arguments.exit_zero
    return FALLS_SHORT if short else COMPLIES


def _tell_scheduler(arguments: argparse.Namespace) -> int:
    if arguments.npd:
        from .node_problem import tell_detector

        status, line = tell_detector()
        _print([line], paints=True)
        return status
    from .node_health import main as tell_slurm

    return tell_slurm()


def _explain(arguments: argparse.Namespace) -> int:
    from .core.report import format_links
    from .explain import describe_links, explain  # A check needs none of it.

    links = explain(arguments.place, arguments.item)
    if arguments.json:
        _print_json(describe_links(arguments.place, arguments.item, links))
    else:
        _print(format_links(arguments.place, arguments.item, links))
    return COMPLIES


def _tell_why(arguments: argparse.Namespace) -> int:
    from .judge_end import judge_end  # Nobody else needs it.

    answer = judge_end(arguments)
    if arguments.json:
        _print_json(answer.as_dict())
    else:
        _print(answer.lines, paints=True)
    is_limit = answer.verdict.is_limit
    return REFUSED if is_limit is None else FALLS_SHORT if is_limit else COMPLIES


def _heal(arguments: argparse.Namespace) -> int:
    from .raise_living import heal, undo  # Nobody else needs it.

    if arguments.undo:
        healed = undo()
    else:
        given, told = _read_given(arguments.policy)
        healed = heal(load_policy(given, arguments.profile, told=told), arguments)
    if arguments.json:
        _print_json(healed.as_dict())
    else:
        _print([*healed.lines, *(healed.list_all() if arguments.diff else ())], paints=True)
    return FALLS_SHORT if healed.short or healed.problems else COMPLIES


def _watch_run(arguments: argparse.Namespace) -> int:
    from .watch_run import watch_run  # Nobody else needs it.

    return watch_run(arguments, arguments.words)


def _tell_cause(arguments: argparse.Namespace) -> int:
    from .cause_codes import describe_code  # It loads every rule there is.

    _print(describe_code(arguments.code))
    return COMPLIES


def _resolve(arguments: argparse.Namespace) -> int:
    from .core.resolved import format_entries, format_resolved  # A check needs none of it.
    from .resolve import resolve_tree

    gc.disable()  # Nothing here refers to itself; of 10^6 lines, looking takes a third of the time.
    stated = resolve_tree(arguments.root, arguments.user, arguments.service, arguments.unit)
    _print(list(format_entries(stated) if arguments.json else format_resolved(stated)))
    return COMPLIES


def _adopt(arguments: argparse.Namespace) -> int:
    from .adopt import adopt_tree, list_left  # A check needs none of it.

    gc.disable()  # As above.
    if arguments.format:
        from .standard_formats import make_sarif_of_left

        _print_json(make_sarif_of_left(list_left(arguments.root), arguments.root))
        return COMPLIES
    _print(adopt_tree(arguments.root))
    return COMPLIES


def _report(arguments: argparse.Namespace) -> int:
    from .audit_report import FALLING_SHORT, report  # Nobody else needs it.

    made = report(
        arguments.files,
        arguments.output,
        arguments.format,
        arguments.title,
        arguments.previous,
        arguments.max_age,
    )
    _complain_of_some(made.problems, "the report")
    _print(made.lines)
    if made.problems:
        return REFUSED
    return FALLS_SHORT if any(made.counts[status] for status in FALLING_SHORT) else COMPLIES


def _plan(arguments: argparse.Namespace) -> int:
    from .fleet_plan import make_plan  # Nobody else needs it.

    if arguments.at_once < 1:
        raise ValueError(f"--at-once: {arguments.at_once} was given; 1 or more is accepted")
    plan = make_plan(
        arguments.files, arguments.green, arguments.at_once, arguments.groups, arguments.max_age
    )
    _complain_of_some(plan.problems, "the plan as JSON")
    for note in plan.notes:
        _complain(note)
    if arguments.json:
        _print_json(plan.as_dict())
    else:
        _print(plan.lines)
    return REFUSED if plan.problems else FALLS_SHORT if plan.needy else COMPLIES


def _complain_of_some(problems: Sequence[str], whole: str) -> None:
    for problem in problems[:_MOST_PROBLEMS]:
        _complain(problem)
    if len(problems) > _MOST_PROBLEMS:
        _complain(f"and {len(problems) - _MOST_PROBLEMS} more; {whole} has each")


def _complete(arguments: argparse.Namespace) -> int:
    from .completion import write_completion  # Nobody else needs it.

    sys.stdout.write(write_completion(arguments.shell))
    return COMPLIES


_COMMANDS: Mapping[str, Callable[[Any], int]] = {
    "adopt": _adopt,
    "cause": _tell_cause,
    "check": _check,
    "completion": _complete,
    "explain": _explain,
    "heal": _heal,
    "monitor": _monitor,
    "node-health": _tell_scheduler,
    "plan": _plan,
    "preflight": _preflight,
    "provision": _provision,
    "report": _report,
    "resolve": _resolve,
    "watch": _watch_run,
    "why": _tell_why,
}


def _print_json(content: object) -> None:
    sys.stdout.write(f"{json.dumps(content, indent=2)}\n")


def _print(content: Sequence[str], paints: bool = False) -> None:
    """Write lines for people. The rules of Ansible forbid print() in these folders.

    :param paints: Whether a terminal gets them in color. What is for people alone is printed also
        where the encoding has no sign for all of it: the status must not depend on that.
    """
    lines: Iterable[str] = map(clean, content or [""])
    if paints:
        from .terminal import paint, wants_color

        code = sys.stdout.encoding or "utf-8"
        lines = (line.encode(code, "replace").decode(code) for line in lines)
        lines = paint(lines) if wants_color(sys.stdout) else lines
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
