# SPDX-License-Identifier: GPL-3.0-or-later
"""PAM service files: parsed as libpam parses them, flattened, and made quiet."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlhost_limits.sessions import pam_stack
from mlhost_limits.sessions.pam_stack import (
    LimitsOptions,
    PamLine,
    find_pam_limits,
    find_service_file,
    find_unknown_modules,
    flatten,
    parse_pam_service,
    quiet_stack,
    read_limits_options,
)

COMMON_SESSION = """\
session\t[default=1]\t\t\tpam_permit.so
# here's the fallback if no module succeeds
session\trequisite\t\t\tpam_deny.so
session\trequired\t\t\tpam_permit.so
session\trequired\tpam_unix.so
session\toptional\tpam_systemd.so
"""

DEBIAN_12 = {  # Debian 12: libpam-runtime 1.5.2-6, openssh-server 9.2p1, most comments left out.
    "/etc/pam.d/common-session": COMMON_SESSION,
    "/etc/pam.d/common-account": """\
account\t[success=1 new_authtok_reqd=done default=ignore]\tpam_unix.so
account\trequisite\t\t\tpam_deny.so
account\trequired\t\t\tpam_permit.so
""",
    "/etc/pam.d/common-auth": "auth\trequired\tpam_unix.so nullok\n",
    "/etc/pam.d/common-password": "password\trequired\tpam_unix.so\n",
    "/etc/pam.d/other": "@include common-auth\n@include common-account\n@include common-session\n",
    "/etc/pam.d/sshd": """\
# Standard Un*x authentication.
@include common-auth
account    required     pam_nologin.so
@include common-account
session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so close
session    required     pam_loginuid.so
session    optional     pam_keyinit.so force revoke
@include common-session
session    optional     pam_motd.so  motd=/run/motd.dynamic
session    optional     pam_motd.so noupdate
session    optional     pam_mail.so standard noenv # [1]
session    required     pam_limits.so
session    required     pam_env.so # [1]
session    required     pam_env.so user_readenv=1 envfile=/etc/default/locale
session [success=ok ignore=ignore module_unknown=ignore default=bad]        pam_selinux.so open
@include common-password
""",
    "/etc/pam.d/su": (
        "session    required   pam_limits.so\n@include common-account\n@include common-session\n"
    ),
    "/etc/pam.d/su-l": "session\toptional\tpam_keyinit.so force revoke\nsession\tinclude\tsu\n",
    "/usr/lib/pam.d/systemd-user": "@include common-account\nsession  required pam_limits.so\n",
}


def names(lines: list[PamLine]) -> list[str]:
    return [line.name for line in lines]


@pytest.mark.parametrize(
    ("text", "kind", "control", "module", "args"),
    [
        ("session required pam_limits.so", "session", "required", "pam_limits.so", ()),
        (
            "SESSION Required pam_limits.so set_all",
            "session",
            "Required",
            "pam_limits.so",
            ("set_all",),
        ),
        (
            "session\t[success=1 default=ignore]\tpam_x.so",
            "session",
            "success=1 default=ignore",
            "pam_x.so",
            (),
        ),
        ("session [required] pam_x.so", "session", "required", "pam_x.so", ()),
        ("session required pam_x.so [a b] c", "session", "required", "pam_x.so", ("a b", "c")),
        ("session required pam_x.so [a\\]b]c", "session", "required", "pam_x.so", ("a]b", "c")),
        ("session required pam_x.so []", "session", "required", "pam_x.so", ("",)),
        ("session required pam_x.so a[b c]", "session", "required", "pam_x.so", ("a[b", "c]")),
        ("session required pam_x.so [open", "session", "required", "pam_x.so", ("open",)),
        ("session required pam_x.so a#b", "session", "required", "pam_x.so", ("a",)),
        ("session Include su", "session", "include", "su", ()),
        ("@include common-session", "@include", "", "common-session", ()),
        ("session required", "session", "required", "", ()),
        ("session\\\nrequired\\\npam_x.so", "session", "required", "pam_x.so", ()),
        ("session", "session", "", "", ()),
        ("sesion required pam_x.so", "sesion", "required", "pam_x.so", ()),
    ],
)
def test_a_line_is_split_as_libpam_splits_it(
    text: str, kind: str, control: str, module: str, args: tuple[str, ...]
) -> None:
    """A line's words are what libpam's tokenizer makes of them."""
    assert parse_pam_service("f", text) == [PamLine("f", 1, kind, control, module, args)]


def test_a_leading_dash_only_silences_a_missing_module() -> None:
    """``-session`` is a session line."""
    assert parse_pam_service("f", "-session optional pam_x.so") == [
        PamLine("f", 1, "session", "optional", "pam_x.so", (), silent=True)
    ]


def test_a_continued_line_has_the_number_of_its_first_part() -> None:
    """Backslashes join lines, over blank and comment lines, unless a comment precedes them."""
    text = "\n session \\ \n\n# c\n required \\\n pam_x.so a\nsession optional \\ # c\n pam_y.so"
    assert [
        (line.line, line.kind, line.control, line.module) for line in parse_pam_service("f", text)
    ] == [
        (2, "session", "required", "pam_x.so"),
        (7, "session", "optional", "\\"),
        (8, "pam_y.so", "", ""),
    ]


def test_a_file_that_ends_in_a_continuation_is_refused() -> None:
    """What libpam drops as incomplete is not read as if it were complete."""
    with pytest.raises(
        ValueError, match=r"^f:2: the file ends in a continued line: libpam refuses it$"
    ):
        parse_pam_service("f", "\nsession required \\\n")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("pam_limits.so", "pam_limits"),
        ("/lib/security/$ISA/pam_limits.so", "pam_limits"),
        ("pam_limits", "pam_limits"),
    ],
)
def test_a_module_is_known_by_its_bare_name(module: str, name: str) -> None:
    """Directory and suffix do not hide which module runs."""
    assert PamLine("f", 1, "session", "required", module).name == name


@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("sshd", "/etc/pam.d/sshd"),
        ("systemd-user", "/usr/lib/pam.d/systemd-user"),
        ("/etc/pam.d/su", "/etc/pam.d/su"),
        ("/etc/pam.d/slurm", None),
        ("slurm", None),
    ],
)
def test_a_service_is_looked_up_in_libpams_order(service: str, path: str | None) -> None:
    """The administrator's directory comes first, the vendor's after it."""
    assert find_service_file(service, DEBIAN_12) == path


def test_the_administrators_file_hides_the_vendors() -> None:
    """Only the first file found counts."""
    files = {**DEBIAN_12, "/etc/pam.d/systemd-user": "session required pam_deny.so\n"}
    assert names(flatten("systemd-user", "session", files)) == ["pam_deny"]


def test_debians_sshd_session_in_order() -> None:
    """@include puts the lines of this kind where it stands; each keeps its own file and line."""
    lines = flatten("sshd", "session", DEBIAN_12)
    assert names(lines) == [
        "pam_selinux",
        "pam_loginuid",
        "pam_keyinit",
        "pam_permit",
        "pam_deny",
        "pam_permit",
        "pam_unix",
        "pam_systemd",
        "pam_motd",
        "pam_motd",
        "pam_mail",
        "pam_limits",
        "pam_env",
        "pam_env",
        "pam_selinux",
    ]
    assert [line.place for line in lines[3:5]] == [
        "/etc/pam.d/common-session:1",
        "/etc/pam.d/common-session:3",
    ]
    assert names(flatten("sshd", "account", DEBIAN_12)) == [
        "pam_nologin",
        "pam_unix",
        "pam_deny",
        "pam_permit",
    ]


@pytest.mark.parametrize(
    ("service", "places"),
    [
        ("sshd", ["/etc/pam.d/sshd:12"]),
        ("su", ["/etc/pam.d/su:1"]),
        ("su-l", ["/etc/pam.d/su:1"]),
        ("systemd-user", ["/usr/lib/pam.d/systemd-user:2"]),
        ("slurm", []),
    ],
)
def test_pam_limits_is_found_where_debian_has_it(service: str, places: list[str]) -> None:
    """Whether a service sets limits is answered with the line that does it."""
    assert [
        line.place for line in find_pam_limits(flatten(service, "session", DEBIAN_12))
    ] == places


def test_a_service_without_lines_of_a_kind_uses_those_of_other() -> None:
    """``su-l`` above has no account line: libpam takes those of ``other``; without it, none."""
    assert names(flatten("su-l", "account", DEBIAN_12)) == ["pam_unix", "pam_deny", "pam_permit"]
    assert flatten("su-l", "account", {"/etc/pam.d/su-l": "session required pam_permit.so\n"}) == []


def test_a_substack_is_announced_and_its_lines_are_one_level_deeper() -> None:
    """Jumps count a substack as one, so it stays recognizable."""
    files = {
        "/etc/pam.d/a": "session substack b\nsession required pam_limits.so\n",
        "/etc/pam.d/b": "session include c\n",
        "/etc/pam.d/c": "auth required pam_unix.so\nsession sufficient pam_permit.so\n",
    }
    assert flatten("a", "session", files) == [
        PamLine("/etc/pam.d/a", 1, "session", "substack", "b"),
        PamLine("/etc/pam.d/c", 2, "session", "sufficient", "pam_permit.so", level=1),
        PamLine("/etc/pam.d/a", 2, "session", "required", "pam_limits.so"),
    ]


def test_a_substack_called_pam_limits_is_not_the_module() -> None:
    """A file's name is not a module."""
    assert find_pam_limits([PamLine("f", 1, "session", "substack", "pam_limits")]) == []


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("session include gone\n", "session", [("default=bad", "")]),
        ("session substack gone\n", "session", [("substack", "gone"), ("default=bad", "")]),
        ("sesion required pam_x.so\n", "session", []),
        ("sesion required pam_x.so\n", "auth", [("default=bad", "")]),
        ("session include b\n", "session", [("default=bad", ""), ("required", "pam_permit.so")]),
    ],
)
def test_what_libpam_cannot_use_fails_where_it_stands(
    text: str, kind: str, expected: list[tuple[str, str]]
) -> None:
    """A missing include or a misspelled type is a failing line, not an absent one."""
    files = {
        "/etc/pam.d/a": text,
        "/etc/pam.d/b": "sesion required pam_x.so\nsession required pam_permit.so\n",
    }
    assert [(line.control, line.module) for line in flatten("a", kind, files)] == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"/etc/pam.d/a": "@include a\n"}, "/etc/pam.d/a: includes itself, by way of /etc/pam.d/a"),
        (
            {"/etc/pam.d/a": "session include b\n", "/etc/pam.d/b": "session substack a\n"},
            "/etc/pam.d/a: includes itself, by way of /etc/pam.d/a, /etc/pam.d/b",
        ),
        (
            {"/etc/pam.d/a": "\n@include gone\n"},
            "/etc/pam.d/a:2: @include gone: no such file: libpam refuses the service",
        ),
    ],
)
def test_files_that_libpam_cannot_load_are_refused(files: dict[str, str], message: str) -> None:
    """Loops and missing @include files are an error with the place, never an endless search."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        flatten("a", "session", files)


def test_what_is_included_again_and_again_counts_though_it_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pam_stack, "_MOST_LINES", 55)
    files = {
        "/etc/pam.d/a": "session include b\n" * 5,
        "/etc/pam.d/b": "session include c\n" * 5,
        "/etc/pam.d/c": "auth required pam_deny.so\n",
    }
    assert flatten("a", "session", files) == []
    monkeypatch.setattr(pam_stack, "_MOST_LINES", 54)
    with pytest.raises(ValueError, match=r"^/etc/pam\.d/a: includes more than 54 lines$"):
        flatten("a", "session", files)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ("", LimitsOptions(None, set_all=False, unknown=())),
        ("set_all debug noaudit", LimitsOptions(None, set_all=True, unknown=())),
        (
            "conf=/a conf=/b utmp_early",
            LimitsOptions("/b", set_all=False, unknown=()),
        ),
        (
            "SET_ALL change_uid",
            LimitsOptions(None, set_all=False, unknown=("SET_ALL", "change_uid")),
        ),
    ],
)
def test_the_arguments_of_pam_limits(args: str, options: LimitsOptions) -> None:
    """Arguments are case-sensitive, the last ``conf=`` counts, unknown ones are named."""
    (line,) = parse_pam_service("f", f"session required pam_limits.so {args}")
    assert read_limits_options(line) == options


def test_debians_sshd_made_quiet() -> None:
    """Positions and controls stay; only modules that decide on entry or limits run."""
    lines = flatten("sshd", "account", DEBIAN_12) + flatten("sshd", "session", DEBIAN_12)
    stack = quiet_stack(lines, "/run/x/sshd")
    assert stack.text == (
        "account [required] pam_nologin.so\n"
        "account [success=1 new_authtok_reqd=done default=ignore] pam_unix.so\n"
        "account [requisite] pam_deny.so\n"
        "account [required] pam_permit.so\n"
        "session [success=ok ignore=ignore module_unknown=ignore default=bad] pam_permit.so\n"
        "session [required] pam_permit.so\n"
        "session [optional] pam_permit.so\n"
        "session [default=1] pam_permit.so\n"
        "session [requisite] pam_deny.so\n"
        "session [required] pam_permit.so\n"
        "session [required] pam_permit.so\n"
        "session [optional] pam_permit.so\n"
        "session [optional] pam_permit.so\n"
        "session [optional] pam_permit.so\n"
        "session [optional] pam_permit.so\n"
        "session [required] pam_limits.so\n"
        "session [required] pam_permit.so\n"
        "session [required] pam_permit.so\n"
        "session [success=ok ignore=ignore module_unknown=ignore default=bad] pam_permit.so\n"
    )
    assert stack.modules == (
        "pam_nologin.so",
        "pam_unix.so",
        "pam_deny.so",
        "pam_permit.so",
        "pam_limits.so",
    )
    assert (stack.substacks, stack.skipped) == ({}, ())


def test_a_module_that_leaves_a_trace_runs_where_it_is_asked_for() -> None:
    lines = parse_pam_service(
        "f", "account required pam_slurm_adopt.so a\nsession x pam_systemd.so"
    )
    stack = quiet_stack(lines, "/x", besides=("pam_slurm_adopt",))
    assert stack.text.splitlines()[0] == "account [required] pam_slurm_adopt.so a"
    assert (stack.modules, stack.skipped) == (("pam_slurm_adopt.so",), ())
    quiet = quiet_stack(lines, "/x")
    assert quiet.text.splitlines()[0] == "account [required] pam_permit.so"
    assert quiet.skipped == ()  # It sets no limit.
    lines = parse_pam_service("f", "account required pam_site.so")
    assert quiet_stack(lines, "/x").skipped == ("pam_site.so",)


def test_modules_that_nobody_knows() -> None:
    text = "session substack b\nsession include gone\nsession required pam_site.so\n"
    files = {"/etc/pam.d/a": text, "/etc/pam.d/b": "session required pam_motd.so\n"}
    found = find_unknown_modules(flatten("a", "session", files))
    assert [line.module for line in found] == ["pam_site.so"]


def test_a_quiet_substack_is_a_file_of_its_own() -> None:
    """Inside a substack jumps and endings stay inside, at any depth, for each kind apart."""
    text = "session substack b\nsession required pam_limits.so\naccount substack b\n"
    inner = (
        "session [default=die] pam_exec.so x\nsession substack c\nsession required pam_deny.so\n"
    )
    files = {
        "/etc/pam.d/a": text,
        "/etc/pam.d/b": inner,
        "/etc/pam.d/c": "-session required pam_systemd.so [a b]\n",
    }
    stack = quiet_stack(flatten("a", "account", files) + flatten("a", "session", files), "/x/a")
    assert stack.text == (
        "account [substack] /x/a-account-1\n"
        "session [substack] /x/a-session-2\n"
        "session [required] pam_limits.so\n"
    )
    assert stack.substacks == {
        "/x/a-account-1": "",
        "/x/a-session-2": (
            "session [default=die] pam_permit.so\n"
            "session [substack] /x/a-session-3\n"
            "session [required] pam_deny.so\n"
        ),
        "/x/a-session-3": "-session [required] pam_permit.so\n",
    }
    assert stack.skipped == ("pam_exec.so",)


def test_what_fails_in_the_real_stack_fails_in_the_quiet_one() -> None:
    """A module that the host lacks and a line that libpam cannot use are kept as they are."""
    text = "session required pam_gone.so x\nsession include gone\nsession required pam_mount.so\n"
    stack = quiet_stack(
        flatten("a", "session", {"/etc/pam.d/a": text}), "/x/a", missing=["pam_gone.so"]
    )
    assert stack.text == (
        "session [required] pam_gone.so x\n"
        "session [default=bad]\n"
        "session [required] pam_permit.so\n"
    )
    assert (stack.modules, stack.skipped) == ((), ("pam_mount.so",))


WORD = st.text(st.characters(exclude_characters="\0\n\r#", codec="ascii"), min_size=1, max_size=6)


@example(["0[\\", "0"], "required")
@given(
    st.lists(WORD, max_size=4),
    st.sampled_from(["required", "[success=1 default=ignore]", "[a\\]b]"]),
)
def test_a_line_survives_being_written_and_read(args: list[str], control: str) -> None:
    """Whatever libpam reads as arguments, the quiet line passes on unchanged."""
    text = " ".join(["session", control, "pam_limits.so", "[]", *args]).rstrip("\\ \t")
    lines = parse_pam_service("f", text)
    assert parse_pam_service("f", quiet_stack(lines, "/x").text) == lines
