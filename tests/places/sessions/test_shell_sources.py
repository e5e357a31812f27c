# SPDX-License-Identifier: GPL-3.0-or-later
"""What a startup file has a shell run or read, and what no look can follow."""

from __future__ import annotations

import pytest
from mlhost_limits.sessions.shell_sources import find_sources


@pytest.mark.parametrize(
    "text",
    [
        'eval "$(cat /etc/defaults.sh)"',
        "eval `/usr/bin/make-limits -x`",
        "x=$(/opt/site/limits)\neval $x",
        'x="`/opt/site/limits`"\n[ -n "$x" ] && eval "$x"',
        'a=1; eval "$(LC_ALL=C command /opt/site/dircolors.sh)"',
        'eval "$(dircolors; /opt/site/limits)" # both\neval "$(dircolors)" `cat /x`',
        "eval $(\\\n  /opt/site/limits)",
    ],
)
def test_a_text_that_a_program_prints_is_not_followed(text: str) -> None:
    assert find_sources(text, "/etc/profile.d/a.sh", "/root").unclear


@pytest.mark.parametrize(
    "text",
    [
        'eval "$(dircolors -b)"',
        'eval "`/usr/bin/dircolors --sh $TMP 2>/dev/null`"',
        '[ -x /usr/bin/lesspipe ] && eval "$(SHELL=/bin/sh lesspipe)"',
        "__conda_setup=\"$('/opt/conda/bin/conda' 'shell.bash' 'hook' 2> /dev/null)\"\n"
        'if [ $? -eq 0 ]; then\n    eval "$__conda_setup"\nfi',
        'eval "$1=\\$2"',
        "# eval $(cat /etc/x)",
        "medieval $(cat /etc/x)",
        "eval `/usr/bin/modulecmd bash autoinit`",
        'eval "$(/home/linuxbrew/.linuxbrew/bin/brew shellenv)"',
    ],
)
def test_what_prints_no_limits_is_let_be(text: str) -> None:
    assert not find_sources(text, "/etc/profile.d/a.sh", "/root").unclear


def test_many_texts_that_are_kept_and_run_end() -> None:
    """Neither is looked at once for each of the other: a user's script may hold thousands."""
    text = "a=`x`\n" * 2500 + "eval $a$a$a$a$a$a\n" * 700
    assert len(find_sources(text, "/opt/a", "/root").unclear) == 700
