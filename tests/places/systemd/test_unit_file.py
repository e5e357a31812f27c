# SPDX-License-Identifier: GPL-3.0-or-later
"""Units, drop-ins, command lines, environment files and limits are read as systemd reads them."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlhost_limits.systemd.unit_file import (
    Setting,
    Source,
    expand_word,
    list_dropin_folders,
    list_user_directories,
    merge_units,
    order_dropins,
    parse_environment,
    parse_environment_file,
    parse_unit,
    scan_unit,
    split_words,
)

QUIET = settings(deadline=None)  # A busy machine is not a failure.

DOCKER = """\
[Unit]
Description=Docker Application Container Engine

[Service]
Type=notify
# the default is not to use systemd for cgroups
EnvironmentFile=-/etc/default/docker
ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock $DOCKER_OPTS
LimitNOFILE=1048576
"""  # Debian 12, docker.io 20.10.24+dfsg1, shortened.

UNITS = {
    "comments": ("[S]\n# a\n ; b\n#c=1\nx=1 # kept\n", [("S", "x", "1 # kept", 5)]),
    "white space": ("[S]\n  x \t=\t a  b \n", [("S", "x", "a  b", 2)]),
    "CRLF": ("[S]\r\nx=1\r\n", [("S", "x", "1", 2)]),
    "byte order mark": ("\xef\xbb\xbf[S]\nx=1", [("S", "x", "1", 2)]),
    "empty value": ("[S]\nx=\n", [("S", "x", "", 2)]),
    "outside a section": ("x=1\n[S]\ny=2", [("S", "y", "2", 3)]),
    "no assignment": ("[S]\nx\n=1\ny=2", [("S", "y", "2", 4)]),
    "a late byte order mark": (
        "[S]\n\xef\xbb\xbfx=1\n\xef\xbb\xbfy=2",
        [("S", "x", "1", 2), ("S", "\xef\xbb\xbfy", "2", 3)],
    ),
    "line ends": (
        "[S]\rx=1\n\ry=2\0z=3",
        [("S", "x", "1", 2), ("S", "y", "2", 3), ("S", "z", "3", 4)],
    ),
    "UTF-8": ("[S]\nx=\xc3\xa4", [("S", "x", "\xc3\xa4", 2)]),
    "next to what Unicode never uses": (
        "[S]\nx=\xef\xb7\x8f\xef\xb7\xb0",
        [("S", "x", "\xef\xb7\x8f\xef\xb7\xb0", 2)],
    ),
    "continued": ("[S]\nx=a \\\n  b\\\nc\ny=1", [("S", "x", "a    b c", 2), ("S", "y", "1", 5)]),
    "a comment inside": ("[S]\nx=a \\\n# no\\\n  b", [("S", "x", "a    b", 2)]),
    "escaped backslash": ("[S]\nx=a\\\\\ny=1", [("S", "x", "a\\\\", 2), ("S", "y", "1", 3)]),
    "continued to the end": ("[S]\nx=a\\", [("S", "x", "a", 2)]),
    "two sections": ("[S]\nx=1\n[T]\nx=2", [("S", "x", "1", 2), ("T", "x", "2", 4)]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), UNITS.values(), ids=UNITS.keys())
def test_unit_syntax(text: str, expected: list[tuple[str, str, str, int]]) -> None:
    """Every assignment has its section and the line where it begins."""
    found = [(s.section, s.key, s.value, s.line) for s in parse_unit(text, "u")]
    assert found == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((line, "is not a section header") for line in ("[T", "[", "[T]x", "[T'U]", "[\x01]")),
        *((line, "is not UTF-8") for line in ("y=\xff", "y=\xc3", "[\xe4]", "y=\xef\xbf\xbf")),
        ("y=\xef\xb7\x90", "is not UTF-8"),
        ("y=\xef\xb7\xaf", "is not UTF-8"),
    ],
)
def test_systemd_reads_no_further_than_a_line_it_cannot_bear(line: str, reason: str) -> None:
    settings, fault = scan_unit(f"w=0\n[S]\nx=1\n{line}\ny=2\n", "u")
    assert [(s.section, s.key) for s in settings] == [("", "w"), ("S", "x")]
    assert fault == Setting("S", line, reason, "u", 4)


def test_a_setting_names_its_place() -> None:
    """A place is file:line, or the file alone where there are no lines."""
    setting = parse_unit(DOCKER, "/u/docker.service")[-1]
    assert setting == ("Service", "LimitNOFILE", "1048576", "/u/docker.service", 9)
    assert setting.place == "/u/docker.service:9"
    assert setting._replace(line=0).place == "/u/docker.service"


ETC, RUN, LOCAL, USR = "/etc", "/run", "/usr/local/lib", "/usr/lib"


def dropin(base: str, name: str, text: str = "", folder: str = "x.service.d") -> Source:
    return Source(f"{base}/systemd/system/{folder}/{name}", text)


def test_dropins_apply_by_base_name_over_all_folders() -> None:
    """The base name decides the order whatever the folder; of one name the strongest counts.

    Measured on systemd 252: service.d/99 in /etc beats x.service.d/50 in /etc and 60 in /run.
    """
    generic = dropin(ETC, "99-z.conf", folder="service.d")
    same = [dropin(base, "50-a.conf") for base in (ETC, RUN, LOCAL, USR)]
    other = dropin(RUN, "60-b.conf")
    assert order_dropins([*same, other, generic]) == [same[0], other, generic]
    assert order_dropins(same[2:]) == [same[2]]


def names_of(*units: str) -> list[str]:
    """Return the folders of drop-ins below /etc/systemd/system, without its path."""
    start = "/etc/systemd/system/"
    folders = list_dropin_folders(units)
    return [folder[len(start) :] for folder in folders if folder.startswith(start)]


@pytest.mark.parametrize(
    ("unit", "names"),
    [
        ("a.service", ["a.service", "service"]),
        ("a-b-c.socket", ["a-b-c.socket", "a-b-.socket", "a-.socket", "socket"]),
        ("a-.service", ["a-.service", "service"]),
        ("a-b-.service", ["a-b-.service", "a-.service", "service"]),
        ("a--b.service", ["a--b.service", "a--.service", "a-.service", "service"]),
        ("-a.service", ["-a.service", "service"]),
        ("a@i.service", ["a@i.service", "a@.service", "service"]),
        (
            "a-b@c-d.service",
            [
                "a-b@c-d.service",
                "a-b@.service",
                "a-.service",
                "a-@c-d.service",
                "a-@.service",
                "service",
            ],
        ),
    ],
)
def test_a_unit_has_dropins_under_wider_names_too(unit: str, names: list[str]) -> None:
    assert names_of(unit) == [f"{name}.d" for name in names]


def test_the_dropins_of_an_alias_are_weaker_than_those_of_the_name() -> None:
    assert names_of("a.service", "b.service") == ["a.service.d", "b.service.d", "service.d"]
    folders = list_dropin_folders(["a-b.service"])
    later = "/usr/lib/systemd/system/a-b.service.d"
    assert folders.index("/etc/systemd/system/a-.service.d") < folders.index(later)


def values(settings: list[Setting], key: str) -> list[str]:
    return [setting.value for setting in settings if setting.key == key]


def test_an_empty_value_resets_a_list_only() -> None:
    """An empty ExecStart forgets the earlier ones; an empty limit is not a statement that resets."""
    main = Source("/usr/lib/systemd/system/x.service", DOCKER)
    reset = "[Service]\nExecStart=\nExecStart=/bin/a\nLimitNOFILE=\n[Unit]\nDescription=\n"
    merged = merge_units(main, [dropin(ETC, "a.conf", reset)])
    assert values(merged, "ExecStart") == ["/bin/a"]
    assert values(merged, "LimitNOFILE") == ["1048576", ""]
    assert values(merged, "EnvironmentFile") == ["-/etc/default/docker"]
    other = dropin(ETC, "b.conf", "[Other]\nExecStart=\n")
    assert len(values(merge_units(main, [other]), "ExecStart")) == 1


def test_a_masked_unit_states_nothing() -> None:
    """A link to /dev/null masks: a unit with all its drop-ins, a drop-in its namesakes below."""
    some = dropin(USR, "a.conf", "[Service]\nLimitNOFILE=5\n")
    main = Source("/etc/systemd/system/x.service", "")
    assert merge_units(main, [some]) == []
    assert merge_units(None, [some]) == []
    main = Source("/usr/lib/systemd/system/x.service", DOCKER)
    assert values(merge_units(main, [some]), "LimitNOFILE") == ["1048576", "5"]
    assert values(merge_units(main, [dropin(ETC, "a.conf"), some]), "LimitNOFILE") == ["1048576"]


WORDS = {
    "plain": (" a  b\tc ", ["a", "b", "c"]),
    "quotes": ("\"a b\" 'c d' e\" f\"'g h'", ["a b", "c d", "e fg h"]),
    "empty word": ("a '' \"\"", ["a", "", ""]),
    "the other quote": ("\"it's\" '\"'", ["it's", '"']),
    "escapes": (r"a\x20b \101 \s \t\" \\ \q", ["a b", "A", " ", '\t"', "\\", "q"]),
    "escapes in quotes": (r""""a\"b" 'c\'d' """, ['a"b', "c'd"]),
    "latin-1 bytes": ("a\xa0b", ["a\xa0b"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("value", "expected"), WORDS.values(), ids=WORDS.keys())
def test_words(value: str, expected: list[str]) -> None:
    """Words end at white space outside quotes; quotes and C escapes go."""
    assert split_words(value) == expected


@pytest.mark.parametrize("value", ['a "b', "'", "a\\"])
def test_an_open_quote_is_refused(value: str) -> None:
    """A quote or an escape that is not closed is refused as systemd refuses it."""
    message = f"{value!r} is not a list of words: a quote or an escape is not closed"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        split_words(value)


@QUIET
@given(st.lists(st.text(alphabet="ab '\"\\$#\t", max_size=5)))
def test_words_survive_quoting(words: list[str]) -> None:
    """Quoted words come back as they were."""
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    assert split_words(" ".join(f'"{word}"' for word in escaped)) == words


WORDS = {
    "a word of its own splits": ("$OPTS", ["--a", "b c"]),
    "braces never split": ("${OPTS}", ["--a 'b c'"]),
    "braces inside a word": ("-H${HOST}", ["-Hfd://"]),
    "inside a word it stays": ("-H$HOST", ["-H$HOST"]),
    "unset": ("$NO", []),
    "unset in braces": ("${NO}", [""]),
    "a dollar alone": ("$", []),
    "dollars": ("a$$", ["a$"]),
}


@pytest.mark.parametrize(("word", "expected"), WORDS.values(), ids=WORDS.keys())
def test_variables(word: str, expected: list[str]) -> None:
    """Words of ExecStart become what the program gets."""
    assert expand_word(word, {"OPTS": "--a 'b c'", "HOST": "fd://"}) == expected


def test_a_variable_of_many_words() -> None:
    """A variable that is a word of its own is split like a command line."""
    assert expand_word("$A", {"A": ' x  "y z" '}) == ["x", "y z"]


def test_environment_line() -> None:
    """Each variable of an Environment line has that line's place."""
    setting = Setting("Service", "Environment", "A=1 'B=x y' \"C=\" D", "u", 3)
    assert parse_environment(setting) == [
        Setting("Service", "A", "1", "u", 3),
        Setting("Service", "B", "x y", "u", 3),
        Setting("Service", "C", "", "u", 3),
    ]


ENVIRONMENT_FILES = {
    "plain": ("A=1\nB = two words  \n", [("A", "1", 1), ("B", "two words", 2)]),
    "comments": ("# A=1\n ; B=2\nC=3 # kept\n", [("C", "3 # kept", 3)]),
    "quotes": ("A=\"x  y\"\nB='z $A'\n", [("A", "x  y", 1), ("B", "z $A", 2)]),
    "two quotes": ("A=\"x\" 'y'z\n", [("A", "xyz", 1)]),
    "quotes inside": ('A=x"y z"\n', [("A", 'x"y z"', 1)]),
    "escapes": (
        r"""A=a\"b
B="a\"b\q"
C='a\b'""",
        [("A", 'a"b', 1), ("B", 'a"b\\q', 2), ("C", "a\\b", 3)],
    ),
    "continued": (
        'A=a \\\n b\nB="c \\\nd"\nC=1',
        [("A", "a  b", 1), ("B", "c d", 3), ("C", "1", 5)],
    ),
    "quoted line end": ('A="a\nb"\nB=1', [("A", "a\nb", 1), ("B", "1", 3)]),
    "open quote": ('A="a\nB=1\n', [("A", "a\nB=1", 1)]),
    "CRLF": ("A=1\r\nB=2\r\n", [("A", "1", 1), ("B", "2", 2)]),
    "a shell's export": ("export A=1\nB=2", [("B", "2", 2)]),
    "empty": ("A=\nB=1", [("A", "", 1), ("B", "1", 2)]),
    "byte order mark": ("\xef\xbb\xbfA=1", [("A", "1", 1)]),
}


@pytest.mark.parametrize(
    ("text", "expected"), ENVIRONMENT_FILES.values(), ids=ENVIRONMENT_FILES.keys()
)
def test_environment_file(text: str, expected: list[tuple[str, str, int]]) -> None:
    """An EnvironmentFile is read with its quotes and escapes, each variable with its line."""
    found = parse_environment_file(text, "/etc/default/x")
    assert [(s.key, s.value, s.line) for s in found] == expected
    assert {s.path for s in found} <= {"/etc/default/x"}


@QUIET
@given(st.text(alphabet="ab '\"=#;", max_size=8))
def test_single_quoted_value_is_kept(value: str) -> None:
    """Whatever stands in single quotes is kept as it is."""
    value = value.replace("'", "")
    assert [s.value for s in parse_environment_file(f"A={shlex.quote(value + ' ')}")] == [
        value + " "
    ]


def test_a_user_s_units_are_stronger_the_closer_they_are_to_the_user() -> None:
    folders = list_user_directories("/home/alice", 1000)
    ranked = [
        "/home/alice/.config/systemd/user",
        "/etc/systemd/user",
        "/run/user/1000/systemd/user",
        "/usr/lib/systemd/user",
    ]
    assert sorted(ranked, key=folders.index) == ranked
    dropins = list_dropin_folders(["x.service"], folders)
    assert dropins[4] == "/home/alice/.config/systemd/user/x.service.d"
