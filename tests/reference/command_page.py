# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the page of the command out of its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mlhost_limits.command_line import (
    INTERNAL,
    describe,
    list_commands,
    list_options,
    make_parser,
)

from .manual import spell

PAGE = Path(__file__).parents[2] / "docs" / "command.md"
HEAD = """\
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Made by python -m tests.reference -->
# The command

The command does on one host what the collection does on many, with the same code.
[Installing](install.md) it is one line. Without words it says what it is and what to type.

```sh
mlhost-limits check                # what falls short here, why, and the fix
mlhost-limits provision --check    # what would change to make it so
mlhost-limits provision            # make it so, and check what is in effect
```

**Exit status.** 0 if all is as the policy asks. 1 if something falls short; for `provision` also if
a line of somebody else beats ours. 2 if the question was refused or could not be answered: a wrong
word, a policy with an error, no root, a section that could not be looked at, no command at all. 130
after Ctrl-C. With `provision --check` the status says whether the plan is whole, not whether
there is something to change.

**Policies.** `--policy` takes a file, JSON or (with PyYAML) YAML. `-` is standard input, which has to
end within 30 seconds. What is wrong with a policy is told all at once, each with its line or key.

**JSON.** `check --json` prints one object with `format`, `version`, `host` and `policy`, as
[check.schema.json](check.schema.json) has it; `preflight --json` one by
[preflight.schema.json](preflight.schema.json), and `why --json` one by [why.schema.json](why.schema.json);
[provision](provision.schema.json), [heal](heal.schema.json), [plan](plan.schema.json),
[explain](explain.schema.json), [resolve](resolve.schema.json) and the report of [watch](watch.schema.json) have theirs.
Keys may be added; the version grows when a reader of the version before would be wrong.

**Terminals.** Reports have colors on a terminal and none in a pipe. `NO_COLOR` takes them away
and wins; `FORCE_COLOR` gives them to a pipe as well. While a look takes longer than a second, a line on
standard error says what is looked at; it is gone at the end, and pipes never get it.

**Reports of many hosts.** `report` reads what `check --json` printed, what the module `check` returned,
and the JSON of an earlier report; compressed by gzip or not; `-` is standard input. A host is called as the file says, else as the file is called.
A file that is not a result is told in a sentence, is in the report as a host that was not checked,
and makes the exit status 2. An output that is there is replaced only if it is a report of ours,
and always as a whole.

**Completion.** Bash: `eval "$(mlhost-limits completion bash)"` in `~/.bashrc`. Zsh: the same with `zsh`,
below `compinit` in `~/.zshrc`. Fish: write what `mlhost-limits completion fish` prints to
`~/.config/fish/completions/mlhost-limits.fish`.

**Manual.** The package brings `mlhost-limits(1)`, made of the same words as this page.
"""
_BELOW = "Run by a timer and by Slurm, seldom by a person."


def format_command_page() -> str:
    """Return the page: what all commands have in common, then each with its options."""
    return "\n".join([HEAD, *_write()])


def _write() -> Iterator[str]:
    for name, _text, parser in list_commands(make_parser()):
        yield f"## {name}"
        yield ""
        yield f"{parser.description} {_BELOW if name in INTERNAL else ''}".strip()
        yield ""
        options = list_options(parser)
        if options:
            yield from ("| word | what it says |", "|---|---|")
            yield from map(_write_row, options)
            yield ""


def _write_row(action: argparse.Action) -> str:
    cells = (f"`{spell(action)}`", describe(action))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
