# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which limits files give a session less is named by its line, and its remedy works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit, User
from mlhost_limits.kernel.sysctl_conf import LARGEST_NR_OPEN
from mlhost_limits.sessions.causes import CODES, find_session_causes
from mlhost_limits.sessions.facts import SessionFacts, predict_session
from mlhost_limits.sessions.model import Start
from mlhost_limits.sessions.pam_limits import read_lines
from mlhost_limits.sessions.reach import Hindrance
from mlhost_limits.sessions.unread import find_unread

from tests.worlds.pasted import edit, paste

CONF, D = "/etc/security/limits.conf", "/etc/security/limits.d"
OURS = f"{D}/90-mlhost.conf"
DEBIAN_12 = Dialect(1023, wildcard_root=False)
UPSTREAM = Dialect()
ALICE = User("alice", 1000, 1000, frozenset({"alice", "ml"}), frozenset({1000, 2000}))
ROOT = User("root", 0, 0, frozenset({"root"}), frozenset({0}))
LOW = {name: Rlimit(8192, 2**40) for name in RLIMITS}
PID_1 = {**LOW, "nofile": Rlimit(1048576, 1048576), "memlock": Rlimit(2**20, 2**20)}
START = Start({**LOW, "nofile": Rlimit(1024, 524288)}, PID_1, 1048576, resets=True)
SOFT = Requirement("session:alice@sshd", "nofile", "soft", 65536)
HARD = Requirement("session:alice@sshd", "nofile", "hard", 600000, 1048576)
GOOD = (
    "* soft nofile 65536\n* hard nofile 1048576\nroot soft nofile 65536\nroot hard nofile 1048576\n"
)


def gather(files: dict[str, str], user: User = ALICE, dialect: Dialect = DEBIAN_12) -> SessionFacts:
    read = {path: text for path, text in files.items() if path.endswith(".conf")}
    others = {path: text for path, text in files.items() if path not in read}
    unread = tuple(find_unread(read, others, dialect))
    return SessionFacts(user, dialect, tuple(read_lines(read, dialect)), START, (), unread)


FAULTS = {
    "user beats wildcard": (
        {OURS: GOOD, f"{D}/95-vendor.conf": "\n\nalice soft nofile 1024\n"},
        ALICE, SOFT, "pam-user-beats-wildcard", f"{D}/95-vendor.conf:3",
    ),
    "an earlier user line beats a later wildcard": (
        {CONF: "alice soft nofile 1024\n", OURS: GOOD}, ALICE, SOFT, "pam-user-beats-wildcard",
        f"{CONF}:1",
    ),
    "range of uids": (
        {CONF: "1000:1002 soft nofile 1024\n", OURS: GOOD}, ALICE, SOFT,
        "pam-user-beats-wildcard", f"{CONF}:1",
    ),
    "user beats group": (
        {CONF: "alice soft nofile 1\n@ml soft nofile 70000\n"}, ALICE, SOFT,
        "pam-user-beats-group", f"{CONF}:1",
    ),
    "group beats wildcard": (
        {OURS: GOOD, f"{D}/10-a.conf": "@ml soft nofile 512\n"}, ALICE, SOFT,
        "pam-group-beats-wildcard", f"{D}/10-a.conf:1",
    ),
    "later file": (
        {OURS: GOOD, f"{D}/91.conf": "* soft nofile 512\n"}, ALICE, SOFT, "pam-later-file-wins",
        f"{D}/91.conf:1",
    ),
    "later line": (
        {OURS: f"{GOOD}* soft nofile 512\n"}, ALICE, SOFT, "pam-later-line-wins", f"{OURS}:5",
    ),
    "dash": ({OURS: f"{GOOD}* - nofile 512\n"}, ALICE, HARD, "pam-dash-wins", f"{OURS}:5"),
    "too low": ({CONF: "alice soft nofile 999\n"}, ALICE, SOFT, "pam-stated-too-low", f"{CONF}:1"),
    "too high": (
        {CONF: "alice hard nofile 1048576\n"}, ALICE, HARD._replace(maximum=600001),
        "pam-stated-too-high", f"{CONF}:1",
    ),
    "hard clamps soft": (
        {OURS: GOOD, f"{D}/95.conf": "alice hard nofile 2048\n"}, ALICE, SOFT,
        "pam-hard-clamps-soft", f"{D}/95.conf:1",
    ),
    "hard clamps soft, and no other hard": (
        {CONF: "* soft nofile 65536\n* hard nofile 2048\n"}, ALICE, SOFT, "pam-hard-clamps-soft",
        f"{CONF}:2",
    ),
    "two fields": ({CONF: "alice -\n", OURS: GOOD}, ALICE, SOFT, "pam-two-field-line", f"{CONF}:1"),
    "above nr_open": (
        {OURS: GOOD, f"{D}/99.conf": "* hard nofile 2000000\n"}, ALICE, SOFT,
        "pam-above-nr-open", f"{D}/99.conf:1",
    ),
    "above nr_open, and no other": (
        {CONF: "* soft nofile 65536\n* hard nofile 2000000\n"}, ALICE, SOFT, "pam-above-nr-open",
        f"{CONF}:2",
    ),
    "far above nr_open": (
        {CONF: "* soft nofile 65536\n* hard nofile 9999999999\n"}, ALICE, SOFT,
        "pam-above-nr-open", f"{CONF}:2",
    ),
    "root": (
        {CONF: "* soft nofile 65536\n* hard nofile 1048576\n"}, ROOT, SOFT,
        "pam-root-not-covered", f"{CONF}:1",
    ),
    "a file of another name": (
        {f"{D}/limits.conf.bak2": GOOD}, ALICE, SOFT, "pam-file-not-read",
        f"{D}/limits.conf.bak2:1",
    ),
    "a file that is hidden": (
        {f"{D}/.a.CONF": GOOD}, ALICE, SOFT, "pam-file-not-read", f"{D}/.a.CONF:1",
    ),
    "quotes": (
        {CONF: '* soft nofile "65536"\n* hard nofile 1048576\n'}, ALICE, SOFT, "pam-line-skipped",
        f"{CONF}:1",
    ),
    "three fields": (
        {CONF: "alice nofile 65536\n"}, ALICE, SOFT, "pam-line-skipped", f"{CONF}:1",
    ),
    "a file without an ending": (
        {f"{D}/90-mlhost": GOOD}, ALICE, SOFT, "pam-file-not-read", f"{D}/90-mlhost:1",
    ),
    "a file kept as a copy": (
        {f"{OURS}.bak": GOOD}, ALICE, SOFT, "pam-file-not-read", f"{OURS}.bak:1",
    ),
    "a word for a number": (
        {CONF: "* hard nofile 1048576\n* soft nofile max\n"}, ALICE, SOFT, "pam-line-skipped",
        f"{CONF}:2",
    ),
    "an item that is none": (
        {CONF: "* hard nofile 1048576\n* soft nofiles 65536\n"}, ALICE, SOFT,
        "pam-line-skipped", f"{CONF}:2",
    ),
    "a uid without its colon": (
        {CONF: "0 soft nofile 65536\n"}, ROOT, SOFT, "pam-line-skipped", f"{CONF}:1",
    ),
    "a gid without its colon": (
        {CONF: "@2000 soft nofile 65536\n"}, ALICE, SOFT, "pam-line-skipped", f"{CONF}:1",
    ),
    "equals sign": (
        {CONF: "alice soft nofile=65536\n"}, ALICE, SOFT, "pam-line-skipped", f"{CONF}:1",
    ),
    "nothing": ({CONF: "# nothing\n"}, ALICE, SOFT, "pam-not-stated", ""),
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "user", "wanted", "code", "place"), FAULTS.values(), ids=FAULTS.keys()
)
def test_the_line_at_fault_is_named(
    files: dict[str, str], user: User, wanted: Requirement, code: str, place: str
) -> None:
    cause = find_session_causes(wanted, gather(files, user))[0]
    assert (cause.code, cause.at.place if cause.at else "") == (code, place)
    assert code in CODES
    assert place in cause.text
    assert cause.at is None or re.fullmatch("[0-9]*|unlimited", str(cause.at.value))


@pytest.mark.parametrize(
    ("files", "user", "wanted"), [fault[:3] for fault in FAULTS.values()], ids=FAULTS.keys()
)
def test_the_remedies_work_to_the_letter(
    files: dict[str, str], user: User, wanted: Requirement, tmp_path: Path
) -> None:
    """Each is carried out by a shell, and what is then first is next."""
    (tmp_path / D[1:]).mkdir(parents=True)
    for path, text in files.items():
        (tmp_path / path[1:]).write_text(text)
    raised = START
    for _attempt in range(6):
        now = {f"/{path.relative_to(tmp_path)}": path.read_text() for path in find_files(tmp_path)}
        facts = gather(now, user)._replace(start=raised)
        causes = find_session_causes(wanted, facts)
        if not causes:
            break
        for words in causes[0].remedy.commands:
            if "sysctl -w " in words[-1]:
                raised = START._replace(nr_open=int(words[-1].rpartition("=")[2]))
            else:
                run(words, tmp_path)
    pair = predict_session(facts)["nofile"]
    assert (pair.soft if wanted.bound == "soft" else pair.hard) >= (wanted.minimum or 0)
    assert not causes


def find_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "security" in str(path)]


def run(words: tuple[str, ...], folder: Path) -> None:
    """Run a command with its paths moved into a folder."""
    (folder / "etc/sysctl.d").mkdir(exist_ok=True)
    paste(words, folder)


LEFT_ALONE = {
    "a line of another user": {f"{D}/a.off": "bob soft nofile 65536\n"},
    "a line of another item, and one of too little": {
        f"{D}/a.off": "* - core 0\n* soft nofile 5\n"
    },
    "what nobody can guess": {
        CONF: "nofile for all is fine\n@ml soft nofile lots\n* soft what 5 6\n"
    },
    "an item that we do not know": {CONF: "* soft newthing 65536\n"},
    "what is no line of limits": {f"{D}/README": "see the manual page\n* maybe nofile 65536\n"},
}


@pytest.mark.parametrize("files", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
@pytest.mark.parametrize("user", [ALICE, ROOT])
def test_what_was_meant_otherwise_is_not_blamed(files: dict[str, str], user: User) -> None:
    assert [cause.code for cause in find_session_causes(SOFT, gather(files, user))] == [
        "pam-not-stated"
    ]


def test_two_faults_are_both_named() -> None:
    files = {
        OURS: GOOD,
        f"{D}/95.conf": "alice soft nofile 1024\n",
        f"{D}/96.conf": "@ml soft nofile 2048\n",
    }
    causes = find_session_causes(SOFT, gather(files))
    assert [cause.code for cause in causes] == [
        "pam-user-beats-wildcard", "pam-group-beats-wildcard",
    ]  # fmt: skip
    assert [one.place for one in causes[0].shadows] == [f"{OURS}:1"]


@pytest.mark.parametrize("user", [ALICE, ROOT])
def test_what_is_met_has_no_cause(user: User) -> None:
    for wanted in (SOFT, HARD):
        assert find_session_causes(wanted, gather({OURS: GOOD}, user)) == []


def test_a_soft_limit_alone() -> None:
    start = START._replace(of_pid_1={**PID_1, "memlock": Rlimit(2**20, 2**20)})
    facts = gather({CONF: "* soft memlock unlimited\n"})._replace(start=start)
    wanted = Requirement("session:alice@su", "memlock", "soft", UNLIMITED, unit="bytes")
    (cause,) = find_session_causes(wanted, facts)
    assert cause.code == "pam-soft-alone"
    assert cause.remedy.lines == [
        "echo 'alice hard memlock unlimited' >> /etc/security/limits.d/95-site.conf"
    ]


def test_a_dash_line_is_not_to_blame_where_it_states_too_little() -> None:
    files = {CONF: "@ml - nofile 5\nalice hard nofile 10\nalice soft nofile 5\n"}
    assert find_session_causes(HARD, gather(files))[0].code == "pam-stated-too-low"


def test_a_dash_line_that_lost_its_hard_half() -> None:
    files = {CONF: "alice soft nofile 65536\n@ml - nofile 700000\n"}
    start = START._replace(of_pid_1={**PID_1, "nofile": Rlimit(1024, 4096)})
    (cause,) = find_session_causes(HARD, gather(files)._replace(start=start))
    assert (cause.code, cause.at and cause.at.place) == ("pam-dash-loses-hard", f"{CONF}:2")
    assert cause.at
    assert cause.at.value == "700000"
    assert cause.remedy.text == 'add "@ml hard nofile 700000" below it'


def test_without_a_way_out_nothing_is_blamed() -> None:
    """Where the inherited hard limit is what the kernel refuses, no line is at fault."""
    start = START._replace(resets=False, nr_open=100)
    facts = gather({CONF: ""}, dialect=UPSTREAM)._replace(start=start)
    assert find_session_causes(SOFT, facts) == []


def test_no_more_than_a_dozen_causes() -> None:
    files = {CONF: GOOD + "alice soft nofile 5\n" * 20}
    assert len(find_session_causes(SOFT, gather(files))) == 12


def test_where_pam_has_no_say_that_is_first() -> None:
    """A session without pam_limits keeps what it inherits; one that reads another file has that."""
    cause = Cause("x", "", Remedy(""))
    other = tuple(read_lines({CONF: "alice soft nofile 5\n"}, DEBIAN_12))
    for lines, seen in ((None, 1024), (other, 5)):
        facts = gather({OURS: GOOD})._replace(hindrances=(Hindrance(cause, lines),))
        assert predict_session(facts)["nofile"].soft == seen
        assert find_session_causes(SOFT, facts) == [cause]
    both = (Hindrance(cause, other), Hindrance(cause._replace(code="y"), None))
    facts = facts._replace(hindrances=both)
    assert [one.code for one in find_session_causes(SOFT, facts)] == ["x", "y"]


def test_a_cause_as_data() -> None:
    facts = gather({OURS: GOOD, f"{D}/95.conf": "alice soft nofile 9 # Bj\xc3\xb6rn\n"})
    (cause,) = find_session_causes(SOFT, facts)
    assert cause.as_dict() == {
        "code": "pam-user-beats-wildcard",
        "text": f'{D}/95.conf:1 "alice soft nofile 9 # Björn" (user) beats'
        f' {OURS}:1 "* soft nofile 65536" (wildcard)',
        "at": {"file": f"{D}/95.conf", "line": 1, "text": "alice soft nofile 9 # Björn"},
        "shadows": [{"file": OURS, "line": 1, "text": "* soft nofile 65536"}],
        "writer": "",
        "verdict": "",
        "remedy": {
            "text": "comment out 95.conf:1, or provision with override",
            "commands": [
                list(edit(f"{D}/95.conf", 1, "alice soft nofile 9 # Bj\xc3\xb6rn", "s/^/# /"))
            ],
            "then": "log in again",
        },
    }


def test_a_file_whose_name_nobody_can_type_is_left_to_a_person() -> None:
    facts = gather({OURS: GOOD, f"{D}/95\x1b.conf": "alice soft nofile 9\n"})
    (cause,) = find_session_causes(SOFT, facts)
    assert cause.remedy.commands == ()
    assert "\x1b" not in cause.text


def test_who_may_not_raise_a_hard_limit_is_told_so() -> None:
    """What the kernel refuses stays as it was: no line of a file can help in a container."""
    facts = gather({OURS: GOOD})
    confined = facts._replace(start=START._replace(may_raise=False))
    for wanted in (SOFT, HARD):
        (cause,) = find_session_causes(wanted, confined)
        assert cause.code == "pam-may-not-raise"
        assert cause.at
        assert cause.at.place == f"{OURS}:2"
        assert cause.text.endswith("the kernel refuses it, and the session keeps 1024:524288")
        assert "--ulimit nofile=65536:1048576, or" in cause.remedy.text
        assert cause.remedy.commands == ()


def test_what_is_not_stated_is_told_before() -> None:
    confined = gather({})._replace(start=START._replace(may_raise=False))
    wanted = Requirement("session:alice@sshd", "memlock", "hard", UNLIMITED)
    stated, refused = find_session_causes(wanted, confined)
    assert (stated.code, refused.code) == ("pam-not-stated", "pam-may-not-raise")
    assert "--ulimit memlock=1048576:-1, or" in refused.remedy.text


def test_what_process_1_has_may_be_out_of_reach() -> None:
    """On Debian PAM starts over from its limits, which a container's sshd may not have."""
    confined = gather({})._replace(start=START._replace(may_raise=False))
    wanted = Requirement("session:alice@sshd", "nofile", "hard", 600000)
    (cause,) = find_session_causes(wanted, confined)
    assert (cause.code, cause.at) == ("pam-may-not-raise", None)
    assert cause.text.startswith("what process 1 has is above the hard limit")


@pytest.mark.parametrize(("at_boot", "commands"), [(0, 2), (65536, 2), (1048576, 1)])
def test_no_file_lowers_nr_open(at_boot: int, commands: int) -> None:
    """What was lowered by hand is raised by hand, where the files give enough."""
    facts = gather({CONF: "* hard nofile 131072\n"}, ALICE)
    start = facts.start._replace(nr_open=70000)
    (cause, *_more) = find_session_causes(
        SOFT, facts._replace(start=start, nr_open_at_boot=at_boot)
    )
    assert cause.code == "pam-above-nr-open"
    assert cause.remedy.commands[0][-1].endswith("-ge 131072 ] || sysctl -w fs.nr_open=131072")
    assert len(cause.remedy.commands) == commands


REFUSED = {CONF: "* - nofile 2000000\n* - memlock unlimited\n"}
MEMLOCK = Requirement("session:alice@sshd", "memlock", "hard", UNLIMITED)


def test_but_for_debian_a_refused_limit_ends_the_session_whatever_else_is_asked() -> None:
    """Upstream's pam_limits fails; Debian's goes on, so that another limit is as stated."""
    (cause,) = find_session_causes(MEMLOCK, gather(REFUSED, dialect=UPSTREAM))
    assert (cause.code, cause.at and cause.at.place) == ("pam-above-nr-open", f"{CONF}:1")
    assert cause.text.endswith("the kernel refuses it, and PAM then refuses the login")
    assert cause.remedy.commands[0][-1].endswith("sysctl -w fs.nr_open=2000000")
    assert not find_session_causes(MEMLOCK, gather(REFUSED))


MOST = LARGEST_NR_OPEN
RAISED = f"raise fs.nr_open to {MOST}, now and at boot"


@pytest.mark.parametrize(
    ("nofile", "wanted", "text"),
    [
        (MOST, MEMLOCK, RAISED),
        (MOST + 1, MEMLOCK, "comment out limits.conf:1"),
        (MOST, HARD._replace(maximum=None), RAISED),
        (MOST + 1, HARD._replace(maximum=None), 'make limits.conf:1 "* - nofile 600000"'),
    ],
)
def test_what_no_nr_open_allows_is_taken_out_for_the_sake_of_another_limit(
    nofile: int, wanted: Requirement, text: str
) -> None:
    files = {CONF: f"* - nofile {nofile}\n* - memlock unlimited\n"}
    (cause,) = find_session_causes(wanted, gather(files, dialect=UPSTREAM))
    assert cause.remedy.text == text


@pytest.mark.parametrize(
    ("lines", "wanted", "text"),
    [  # What states enough is not taken away, and no other line is lost.
        (
            "* hard nofile 65536\nalice hard nofile 2000000\n",
            HARD._replace(minimum=2000000),
            "raise fs.nr_open to 2000000, now and at boot",
        ),
        (
            "* - nofile 2000000\n",
            HARD._replace(minimum=None, maximum=65536),
            'make limits.conf:1 "* hard nofile 65536"',
        ),
        (
            "* soft nofile 65536\n* hard nofile 3000000000\n",
            SOFT,
            'make limits.conf:2 "* hard nofile 65536"',
        ),
        (
            "* hard nofile 1500000\nalice hard nofile 2000000\n",
            HARD._replace(maximum=None),
            "raise fs.nr_open to 2000000, now and at boot",
        ),
        ("* hard nofile 700000\nalice hard nofile 2000000\n", HARD, "comment out limits.conf:2"),
        ("* hard nofile 1048576\nalice hard nofile 1048577\n", HARD, "comment out limits.conf:2"),
    ],
)
def test_the_fix_of_a_refused_nofile_keeps_what_is_right(
    lines: str, wanted: Requirement, text: str
) -> None:
    cause = find_session_causes(wanted, gather({CONF: lines}, dialect=UPSTREAM))[0]
    assert cause.remedy.text == text


def test_what_is_no_resource_limit_has_the_cause_as_well() -> None:
    wanted = Requirement("session:alice@sshd", "maxlogins", "value", 10)
    (cause,) = find_session_causes(wanted, gather(REFUSED, dialect=UPSTREAM))
    assert cause.code == "pam-above-nr-open"


def test_a_container_without_the_capability_gets_no_session_but_on_debian() -> None:
    facts = gather(REFUSED, dialect=UPSTREAM)
    start = facts.start._replace(may_raise=False, nr_open=2000000)
    first, *_more = find_session_causes(MEMLOCK, facts._replace(start=start))
    assert first.code == "pam-may-not-raise"
    assert first.text.endswith("the kernel refuses it, and PAM then refuses the login")


def test_a_line_for_both_bounds_goes_on_to_state_both() -> None:
    """The one that was met is not lost, and of both bounds the remedy is one and the same edit."""
    facts = gather({CONF: "alice - nofile 3000\n"})._replace(asked=Limit(2000, 4000))
    soft, hard = SOFT._replace(minimum=3500), HARD._replace(minimum=4000)
    expected = edit(CONF, 1, "alice - nofile 3000", "c\\alice - nofile 4000")
    for wanted in (soft, hard):
        (cause,) = find_session_causes(wanted, facts)
        assert cause.remedy.commands == (expected,)


@pytest.mark.parametrize(
    ("domain", "user", "written"),
    [("*", ALICE, "*"), ("@ml", ALICE, "@ml"), ("", ALICE, "alice"), ("*", ROOT, "root")],
)
def test_what_nobody_states_is_stated_for_whom_the_policy_asks_it(
    domain: str, user: User, written: str
) -> None:
    """Unless that does not mean the user here, as ``*`` does not mean root on Debian."""
    facts = gather({}, user)._replace(domain=domain)
    (cause,) = find_session_causes(SOFT, facts)
    added = f"echo '{written} soft nofile 65536' >> {D}/95-site.conf"
    assert cause.remedy.commands == (("sh", "-c", added),)


@pytest.mark.parametrize(
    ("asked", "hard"),
    [
        (None, 65536),
        (Limit(65536), 65536),
        (Limit(65536, 131072), 131072),
        (Limit(65536, 4096), 65536),
    ],
)
def test_a_hard_limit_that_clamps_is_raised_to_what_is_asked_of_it(
    asked: Limit | None, hard: int
) -> None:
    facts = gather({CONF: "* soft nofile 65536\n* hard nofile 2048\n"})._replace(asked=asked)
    (cause,) = find_session_causes(SOFT, facts)
    assert cause.code == "pam-hard-clamps-soft"
    assert f'"* hard nofile {hard}"' in cause.remedy.text
