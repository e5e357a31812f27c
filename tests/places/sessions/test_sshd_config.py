# SPDX-License-Identifier: GPL-3.0-or-later
"""UsePAM, as sshd reads it: every case was put to ``sshd -T`` of OpenSSH 9.2p1 on Debian 12."""

from __future__ import annotations

import re

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.sessions.sshd_config import MAIN_FILE, find_includes, find_use_pam

DEBIAN_12 = """\
# This is the sshd server system-wide configuration file.
Include /etc/ssh/sshd_config.d/*.conf

KbdInteractiveAuthentication no
UsePAM yes
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem\tsftp\t/usr/lib/openssh/sftp-server
"""


@pytest.mark.parametrize(
    ("text", "line", "value"),
    [
        (DEBIAN_12, 5, "yes"),
        ("UsePAM=yes\n", 1, "yes"),
        ("UsePAM = yes\n", 1, "yes"),
        ('usepam "yes"\n', 1, "yes"),
        ("UsePAM 'yes'\n", 1, "yes"),
        ('UsePAM "ye"s\n', 1, "yes"),
        ('"UsePAM" yes\n', 1, "yes"),
        ("UsePAM yes # because\n", 1, "yes"),
        (" \tUsePAM\tYES\r\n", 1, "yes"),
        ("UsePAM no\nUsePAM yes\n", 1, "no"),
        ("Match all\nUsePAM yes\n", 2, "yes"),
        ("Match user z\nX11Forwarding no\nUsePAM no\nmatch=ALL # x\nUsePAM yes\n", 5, "yes"),
    ],
)
def test_the_first_statement_counts(text: str, line: int, value: str) -> None:
    """Keyword and value in any case, ``=``, quotes and comments as sshd takes them."""
    found = find_use_pam({MAIN_FILE: text})
    assert found == Declaration(MAIN_FILE, line, text.split("\n")[line - 1], value)


@pytest.mark.parametrize(
    "text", ["", "#UsePAM yes\n", "Match user z\nUsePAM yes\n", "UsePAMx yes\n", "%%\n"]
)
def test_no_statement_is_not_a_yes(text: str) -> None:
    """Comments and Match blocks state nothing: sshd then falls back on its own default."""
    assert find_use_pam({MAIN_FILE: text}) is None


def test_a_host_without_sshd_states_nothing() -> None:
    """A missing main file is not an error here."""
    assert find_use_pam({}) is None


@pytest.mark.parametrize(
    ("main", "place"),
    [
        ("Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n", "/etc/ssh/sshd_config.d/B.conf:1"),
        ("Include sshd_config.d/b.conf\n", "/etc/ssh/sshd_config.d/b.conf:2"),
        ("Include=/etc/ssh/*/b.conf\n", "/etc/ssh/sshd_config.d/b.conf:2"),
        (
            'Include "/etc/ssh/sshd_config.d/b.conf" /etc/ssh/sshd_config.d/B.conf\n',
            "/etc/ssh/sshd_config.d/b.conf:2",
        ),
        ("Include /etc/ssh/sshd_config.d/a.conf\nUsePAM yes\n", "/etc/ssh/sshd_config:2"),
        ("Include none*.conf\nUsePAM yes\n", "/etc/ssh/sshd_config:2"),
        (
            "Include /etc/ssh/sshd_config.d/.*.conf\nUsePAM yes\n",
            "/etc/ssh/sshd_config.d/.c.conf:1",
        ),
        ("Match all\nInclude /etc/ssh/sshd_config.d/b.conf\n", "/etc/ssh/sshd_config.d/b.conf:2"),
        (
            "Match user z\nInclude sshd_config.d/b.conf\nMatch all\nUsePAM yes\n",
            "/etc/ssh/sshd_config:4",
        ),
    ],
)
def test_an_include_is_read_where_it_stands(main: str, place: str) -> None:
    """Included files come in the order of their names; their Match blocks end with them."""
    files = {
        "/etc/ssh/sshd_config.d/.c.conf": "UsePAM no\n",
        "/etc/ssh/sshd_config.d/B.conf": "UsePAM no\n",
        "/etc/ssh/sshd_config.d/a.conf": "Match user z\nUsePAM no\n",
        "/etc/ssh/sshd_config.d/b.conf": "#\nUsePAM yes\n",
    }
    found = find_use_pam({**files, MAIN_FILE: main})
    assert found is not None
    assert found.place == place


def test_the_patterns_to_read_are_absolute() -> None:
    """The reader learns which files belong to the configuration, quotes and all."""
    text = 'Include /etc/ssh/sshd_config.d/*.conf "a b" # c\nMatch user x\nInclude z\n'
    assert find_includes(text) == ["/etc/ssh/sshd_config.d/*.conf", "/etc/ssh/a b", "/etc/ssh/z"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("UsePAM true", 1), ("UsePAM yes#c", 1), ("\nUsePAM", 2), ("UsePAM ==yes", 1)],
)
def test_a_value_that_sshd_refuses_is_refused(text: str, line: int) -> None:
    """A configuration that keeps sshd from starting is no answer."""
    rule = "sshd accepts yes or no, and does not start with this"
    message = f"/etc/ssh/sshd_config:{line}: {text.strip()!r}: {rule}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_use_pam({MAIN_FILE: text})


def test_a_loop_of_includes_is_refused() -> None:
    """Files that include each other end in an error, as in sshd."""
    message = "/etc/ssh/sshd_config: includes itself, by way of /etc/ssh/sshd_config"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_use_pam({MAIN_FILE: "Include sshd_config\n"})
