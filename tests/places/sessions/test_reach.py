# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever keeps pam_limits out of a service's sessions is named by its line, and can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.values import Declaration
from mlhost_limits.sessions.reach import (
    CODES,
    Hindrance,
    ends_with_limits,
    find_bypass,
    find_earlier,
    find_hindrances,
)

from tests.worlds.pasted import find_scripts, paste

DEBIAN_12 = Dialect(1023, wildcard_root=False)
PAM = "/etc/pam.d"
COMMON = "session required pam_unix.so\n"
CALL = "session required pam_limits.so\n"
FINE = {f"{PAM}/sshd": f"@include common-session\n{CALL}", f"{PAM}/common-session": COMMON}


def find(
    files: dict[str, str], missing: set[str] | None = None, confs: dict[str, str] | None = None
) -> list[Hindrance]:
    return list(find_hindrances("sshd", files, missing or set(), confs or {}, DEBIAN_12))


FAULTS = {
    "missing": (
        {f"{PAM}/sshd": "@include common-session\n"}, "pam-limits-missing", f"{PAM}/sshd",
    ),
    "commented out": (
        {f"{PAM}/sshd": f"# a\n#  {CALL}"}, "pam-limits-missing", f"{PAM}/sshd:2",
    ),
    "elsewhere": (
        {f"{PAM}/sshd": "session required pam_limits.so conf=/etc/x.conf debug\n"},
        "pam-limits-elsewhere", f"{PAM}/sshd:1",
    ),
    "no file of limits.d": (
        {f"{PAM}/sshd": "session required pam_limits.so conf=/etc/security/limits.conf\n"},
        "pam-limits-elsewhere", f"{PAM}/sshd:1",
    ),
    "a file that is missing for the first of two": (
        {f"{PAM}/sshd": f"session required pam_limits.so conf=/etc/gone\n{CALL}"},
        "pam-limits-fails", f"{PAM}/sshd:1",
    ),
    "a file that is missing": (
        {f"{PAM}/sshd": "session optional pam_limits.so conf=/etc/gone\n"}, "pam-limits-fails",
        f"{PAM}/sshd:1",
    ),
    "a module that is missing": (
        {f"{PAM}/sshd": "session optional /usr/lib/pam_limits.so\n"}, "pam-limits-fails",
        f"{PAM}/sshd:1",
    ),
    "an end before it": (
        {f"{PAM}/sshd": f"session sufficient pam_permit.so\n{CALL}"}, "pam-limits-skipped",
        f"{PAM}/sshd:1",
    ),
    "a jump over it": (
        {f"{PAM}/sshd": f"session [success=1 default=ignore] pam_permit.so\n{CALL}"},
        "pam-limits-skipped", f"{PAM}/sshd:1",
    ),
    "an end in a file that is included": (
        {f"{PAM}/common-session": "session [success=done] pam_permit.so\n",
         f"{PAM}/sshd": f"@include common-session\n{CALL}"},
        "pam-limits-skipped", f"{PAM}/common-session:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "code", "place"), FAULTS.values(), ids=FAULTS.keys())
def test_the_line_is_named_and_the_remedy_works(
    files: dict[str, str], code: str, place: str, tmp_path: Path
) -> None:
    files = {**FINE, **files}
    missing = {"/usr/lib/pam_limits.so"}
    confs = {"/etc/x.conf": "alice - nofile 5\n", "/etc/security/limits.conf": ""}
    (found,) = find(files, missing, confs)
    assert (found.cause.code, found.cause.at and found.cause.at.place) == (code, place)
    assert code in CODES
    assert place in found.cause.text
    assert (found.lines is not None) == (code == "pam-limits-elsewhere")
    fixed = follow(found, files, tmp_path)
    assert find(fixed, missing, confs) == []


def follow(found: Hindrance, files: dict[str, str], folder: Path) -> dict[str, str]:
    """Carry out a remedy on copies of the files."""
    for path, text in files.items():
        copy = folder / path[1:]
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    assert found.cause.remedy.commands
    for words in found.cause.remedy.commands:
        if words[0] != "systemctl":
            paste(words, folder)
    return {path: (folder / path[1:]).read_text() for path in files}


HARMLESS = {
    "as it is": FINE,
    "a jump that is short": {
        f"{PAM}/sshd": f"session [success=1 default=ignore] pam_permit.so\n{COMMON}{CALL}"
    },
    "an end within a substack": {
        f"{PAM}/sshd": f"session substack sub\n{CALL}",
        f"{PAM}/sub": "session sufficient pam_permit.so\n",
    },
}


@pytest.mark.parametrize("files", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_harms_nobody_is_not_blamed(files: dict[str, str]) -> None:
    assert find({**FINE, **files}, confs={"/etc/security/limits.conf": ""}) == []


def test_a_service_without_a_file() -> None:
    (found,) = find({f"{PAM}/other": COMMON})
    assert found.cause.code == "pam-service-missing"
    assert found.cause.remedy.lines == [
        "[ ! -e /etc/pam.d/sshd ] && { cat /etc/pam.d/other; echo;"
        " echo 'session required pam_limits.so'; } > /etc/pam.d/sshd || ! echo /etc/pam.d/sshd"
        " exists by now: nothing was done. >&2"
    ]


@pytest.mark.parametrize(
    ("start", "missing", "ends"),
    [
        ("session required", (), True),
        ("-session required", (), True),
        ("session requisite", ("m",), True),
        ("-session requisite", ("m",), False),
        ("session optional", (), False),
        ("session sufficient", ("m",), False),
        ("session [default=bad service_err=ignore]", (), False),
        ("session [default=bad service_err=ignore]", ("m",), True),
        ("session [default=ignore module_unknown=die]", ("m",), True),
    ],
)
def test_what_keeps_a_session_from_opening(
    start: str, missing: tuple[str, ...], ends: bool
) -> None:
    module = "pam_limits.so"
    (found,) = find(
        {f"{PAM}/sshd": f"{start} {module} conf=/etc/gone\n"}, {module for _one in missing}
    )
    assert found.ends == ends
    assert found.cause.text.endswith("no session opens" if ends else "the stack goes on without it")


def test_a_call_that_fails_where_the_stack_goes_on_keeps_the_last_from_nothing() -> None:
    assert find({f"{PAM}/sshd": f"session optional pam_limits.so conf=/etc/gone\n{CALL}"}) == []


def test_a_call_that_fails_and_ends_every_login() -> None:
    (found,) = find({f"{PAM}/sshd": "session required pam_limits.so conf=/etc/gone\n"})
    assert found.cause.text.endswith("fails, since /etc/gone is missing, and no session opens")


@pytest.mark.parametrize(
    ("line", "lines"), [(12, ["12c\\UsePAM yes"]), (0, ["1i\\UsePAM yes"])], ids=["no", "nothing"]
)
def test_sshd_without_pam(line: int, lines: list[str]) -> None:
    stated = Declaration("/etc/ssh/sshd_config", line, "UsePAM no # wäre", "no")
    found = find_bypass(stated, "ssh.service")
    assert found
    assert found.cause.code == "sshd-without-pam"
    edit, restart = found.cause.remedy.commands
    assert find_scripts([edit]) == lines
    assert restart == ("systemctl", "reload-or-restart", "ssh.service")


def test_sshd_told_on_its_command_line() -> None:
    """What starts it is left to a person."""
    stated = Declaration("command line of pid 7", 0, "-o UsePAM=no", "no")
    found = find_bypass(stated, "ssh.service")
    assert found
    assert found.cause.remedy.commands == ()


def test_sshd_with_pam() -> None:
    stated = Declaration("/etc/ssh/sshd_config", 1, "UsePAM yes", "yes")
    assert find_bypass(stated, "ssh.service") is None


TWO = "session required pam_limits.so conf=/a\n"


@pytest.mark.parametrize(
    ("stack", "confs", "earlier"),
    [
        (CALL, {}, []),
        (CALL * 2, {}, []),
        (f"{TWO}{CALL}", {"/a": "alice - nofile 5\n"}, [(["5"], True)]),
        (f"{TWO}{CALL}", {}, []),
        (f"{CALL}{TWO}", {"/a": ""}, [(None, True)]),
        (f"{TWO.replace('required', 'optional')}{CALL}", {"/a": ""}, [([], False)]),
        (f"session sufficient pam_permit.so\n{TWO}{CALL}", {"/a": ""}, []),
    ],
)
def test_calls_before_the_last_that_read_other_files(
    stack: str, confs: dict[str, str], earlier: list[tuple[list[str] | None, bool]]
) -> None:
    found = find_earlier("sshd", {f"{PAM}/sshd": stack}, confs, DEBIAN_12)
    values = [one.lines and [line.fields[3] for line in one.lines] for one in found]
    told = [None if one.lines is None else list(read or ()) for one, read in zip(found, values)]
    assert list(zip(told, [one.is_fatal for one in found])) == earlier


@pytest.mark.parametrize(
    ("stack", "ends"),
    [
        ("", False),
        (CALL, True),
        (CALL.replace("required", "optional"), False),
        (f"{CALL}{CALL.replace('required', 'optional')}", True),
        (f"{TWO}{CALL.replace('required', 'optional')}", False),
        (f"session sufficient pam_permit.so\n{CALL}", False),
    ],
)
def test_whether_a_limit_that_is_refused_ends_the_session(stack: str, ends: bool) -> None:
    assert ends_with_limits("sshd", {f"{PAM}/sshd": stack}) is ends


# As authselect 1.2 writes it.
GENERATED = (
    "# Generated by authselect\n# Do not modify this file manually, use authselect instead. "
    "Any user changes will be overwritten.\n"
)


@pytest.mark.parametrize("head", [GENERATED, "# ours\n#\n"], ids=["authselect", "ours"])
def test_the_remedy_says_that_authselect_will_undo_it(head: str) -> None:
    files = {
        f"{PAM}/sshd": "session include password-auth\n",
        f"{PAM}/password-auth": f"{head}session sufficient pam_permit.so\n{CALL}",
    }
    (found,) = find(files)
    assert found.cause.at
    assert found.cause.at.place == f"{PAM}/password-auth:3"
    told = found.cause.remedy.text
    assert found.cause.remedy.commands
    more = f"; authselect writes {PAM}/password-auth, and its next apply-changes undoes this"
    assert (more in told) == (head == GENERATED)
    assert ("/etc/authselect/custom" in told) == (head == GENERATED)


def test_a_call_that_is_not_reached_fails_nobody() -> None:
    end, gone = "session sufficient pam_permit.so\n", "session required /gone/pam_limits.so\n"
    found = find({**FINE, f"{PAM}/sshd": f"{end}{gone}{CALL}"}, {"/gone/pam_limits.so"})
    assert [one.cause.code for one in found] == ["pam-limits-skipped"]


@pytest.mark.parametrize(("length", "told"), [(1000, True), (1001, False)])
def test_what_authselect_writes_says_so_in_its_first_thousand_letters(
    length: int, told: bool
) -> None:
    text = "# Generated by authselect".rjust(length)
    (found,) = find({**FINE, f"{PAM}/sshd": f"{text}\n{COMMON}"})
    assert ("authselect writes" in found.cause.remedy.text) is told
