# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for limits files gives logins what the policy asks, touches no line of others
unasked, names those in its way, and can be taken back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, User
from mlhost_limits.sessions.pam_limits import (
    DROP_IN,
    LIMITS_CONF,
    LIMITS_D,
    Dialect,
    read_lines,
    resolve_limits,
)
from mlhost_limits.sessions.plan import SessionsOptions, plan_sessions
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.sessions.rules import find_limits

DEBIAN = Dialect(1023, wildcard_root=False)
RED_HAT = Dialect(1023)
NR_OPEN = 1048576
LATER = f"{LIMITS_D}/99-vendor.conf"
STOCK = "# /etc/security/limits.conf\n#<domain> <type> <item> <value>\n\n# End of file\n"


def rule(users: str, **limits: Limit) -> SessionRule:
    return SessionRule(tuple(users.split()), limits)


NOFILE = rule("* root", nofile=Limit(65536, 1048576))


def plan(
    rules: list[SessionRule],
    files: dict[str, str] | None = None,
    dialect: Dialect = DEBIAN,
    nr_open: int | None = NR_OPEN,
    **options: object,
) -> SectionPlan:
    files = {LIMITS_CONF: STOCK} if files is None else files
    return plan_sessions(tuple(rules), files, dialect, nr_open, SessionsOptions(**options))


def apply(files: dict[str, str], planned: SectionPlan) -> dict[str, str]:
    after = dict(files)
    for edit in planned.edits:
        assert edit.changes
        assert (edit.before or b"") == files.get(edit.path, "").encode("latin-1")
        after.pop(edit.path, None)
        if edit.after is not None:
            after[edit.path] = edit.after.decode("latin-1")
    return after


def shortfalls(
    foreign: str,
    *users: str,
    path: str = LATER,
    dialect: Dialect = DEBIAN,
    limit: Limit | None = None,
) -> list[str]:
    """Return the lines of a foreign file that are told where these users have this nofile."""
    rules = [rule(name, nofile=limit or Limit(65536, 65536)) for name in users]
    return [
        shortfall.foreign.text for shortfall in plan(rules, {path: foreign}, dialect).shortfalls
    ]


def test_the_drop_in() -> None:
    rules = [
        NOFILE,
        rule("@ml", memlock=Limit(UNLIMITED, UNLIMITED), core=Limit(hard=0), cpu=Limit(max=5)),
    ]
    assert apply({LIMITS_CONF: STOCK}, plan(rules)) == {
        LIMITS_CONF: STOCK,
        DROP_IN: f"{HEADER}\n"
        "* soft nofile 65536\n* hard nofile 1048576\n"
        "root soft nofile 65536\nroot hard nofile 1048576\n"
        "@ml soft memlock unlimited\n@ml hard memlock unlimited\n@ml hard core 0\n",
    }


def test_the_block() -> None:
    files = {LIMITS_CONF: "# no line end"}
    after = apply(files, plan([rule("*", core=Limit(0, 0))], files, target=LIMITS_CONF))
    assert after == {
        LIMITS_CONF: "# no line end\n# BEGIN mlhost.limits (the line before had no line end)\n"
        "* soft core 0\n* hard core 0\n# END mlhost.limits\n"
    }


@pytest.mark.parametrize("target", [DROP_IN, LIMITS_CONF])
@pytest.mark.parametrize(
    "rules", [[], [rule("*", nofile=Limit(max=5))]], ids=["no rule", "only a maximum"]
)
def test_nothing_to_set_writes_nothing(rules: list[SessionRule], target: str) -> None:
    for files in ({}, {LIMITS_CONF: STOCK}):
        assert plan(rules, files, target=target) == SectionPlan()


def test_moving_from_file_to_file_leaves_one() -> None:
    rules, files = [NOFILE], {LIMITS_CONF: STOCK}
    for target in (DROP_IN, f"{LIMITS_D}/50-a.conf", LIMITS_CONF, DROP_IN):
        files = apply(files, plan(rules, files, target=target))
        assert set(files) == {LIMITS_CONF, target}
        assert (files[LIMITS_CONF] == STOCK) is (target != LIMITS_CONF)


@pytest.mark.parametrize(("dialect", "left"), [(DEBIAN, {LIMITS_CONF: ""}), (Dialect(), {})])
def test_a_limits_conf_of_our_making(dialect: Dialect, left: dict[str, str]) -> None:
    """It stays as an empty file where an older PAM refuses every login without it, or else goes."""
    after = apply({}, plan([NOFILE], {}, dialect, target=LIMITS_CONF))
    assert apply(after, plan([], after, dialect, target=LIMITS_CONF, absent=True)) == left


def test_what_somebody_added_to_a_file_of_our_making_stays() -> None:
    after = apply({}, plan([NOFILE], {}, Dialect(), target=LIMITS_CONF))
    after[LIMITS_CONF] += "* - core 0\n"
    again = apply(after, plan([NOFILE], after, Dialect(), target=LIMITS_CONF))
    assert again == after
    left = apply(after, plan([], after, Dialect(), target=LIMITS_CONF, absent=True))
    assert left == {LIMITS_CONF: "* - core 0\n"}


@pytest.mark.parametrize("absent", [False, True])
def test_a_file_of_somebody_else_is_not_overwritten(absent: bool) -> None:
    problem = f"{DROP_IN}: was not written by mlhost.limits; name another sessions_file"
    assert plan([NOFILE], {DROP_IN: "* - nofile 5\n"}, absent=absent) == SectionPlan(
        problems=(problem,)
    )


def test_a_damaged_block_is_not_touched() -> None:
    planned = plan([NOFILE], {LIMITS_CONF: "# BEGIN mlhost.limits\n* - nofile 5\n"})
    problem = f"{LIMITS_CONF}: '# BEGIN mlhost.limits' and '# END mlhost.limits' must stand there once each, in order"
    assert planned == SectionPlan(problems=(problem,))


@pytest.mark.parametrize(
    "target",
    [
        f"{LIMITS_D}/a",
        f"{LIMITS_D}/x/a.conf",
        f"{LIMITS_D}/.a.conf",
        "/etc/limits.conf",
        "a.conf",
        f"{LIMITS_D}/a.CONF",
    ],
)
def test_a_file_that_pam_does_not_read_is_refused(target: str) -> None:
    problem = (
        f"sessions_file: {target!r} is not read by pam_limits;"
        " accepted are /etc/security/limits.conf and /etc/security/limits.d/NAME.conf"
    )
    assert plan([NOFILE], target=target) == SectionPlan(problems=(problem,))


ABOVE = "so logins would be refused or keep their old limit"


@pytest.mark.parametrize(
    ("limits", "problems"),
    [
        ({"nofile": Limit(NR_OPEN, NR_OPEN)}, []),
        (
            {"nofile": Limit(5, 1048577)},
            [
                f"nofile: hard 1048577 is above fs.nr_open 1048576, {ABOVE}; lower it or raise kernel.fs.nr_open"
            ],
        ),
        (
            {"nofile": Limit(soft=2000000)},
            [
                f"nofile: soft 2000000 is above fs.nr_open 1048576, {ABOVE}; lower it or raise kernel.fs.nr_open"
            ],
        ),
        (
            {"nofile": Limit(hard=UNLIMITED)},
            [f"nofile: hard 'unlimited' is above fs.nr_open, {ABOVE}; a number is accepted"],
        ),
        ({"memlock": Limit(1000, 1024)}, ["memlock: 1000 bytes is not a whole number of KiB"]),
        ({"cpu": Limit(60, 90)}, ["cpu: 90 seconds is not a whole number of minutes"]),
    ],
)
def test_what_would_lock_logins_out_is_refused(
    limits: dict[str, Limit], problems: list[str]
) -> None:
    planned = plan([NOFILE, rule("alice", **limits)])
    assert list(planned.problems) == [f"sessions[1].limits.{problem}" for problem in problems]
    assert bool(planned.edits) is not bool(problems)


def test_all_problems_are_told_at_once() -> None:
    rules = [
        rule("*", nofile=Limit(5, UNLIMITED), memlock=Limit(1, 1)),
        rule("root", cpu=Limit(1, 1)),
    ]
    planned = plan(rules, {LIMITS_CONF: "# END mlhost.limits"}, target="/x")
    assert [problem.partition(": ")[0] for problem in planned.problems] == [
        "sessions_file",
        "sessions[0].limits.memlock",
        "sessions[0].limits.nofile",
        "sessions[1].limits.cpu",
        LIMITS_CONF,
    ]


def test_an_item_that_pam_does_not_know_yet_is_noted() -> None:
    note = (
        "sessions[1].limits.rttime: has no effect on logins, since this host's pam_limits skips it"
    )
    assert plan([NOFILE, rule("*", rttime=Limit(5, 5))]).notes == (note,)
    assert plan([NOFILE]).notes == ()


def test_an_unknown_nr_open_allows_any_number() -> None:
    assert plan([rule("*", nofile=Limit(5, 2**40))], nr_open=None).problems == ()


@pytest.mark.parametrize(
    ("line", "users", "told"),
    [
        ("* soft nofile 1024", ["*"], True),
        ("* hard nofile 1024", ["*"], True),
        ("* - nofile 1024", ["*"], True),
        ("*  SOFT\tNoFile 64K # said\r", ["*"], True),
        ("* - nofile 65536", ["*"], False),
        ("* - nofile 1000000", ["*"], False),
        ("* - nofile unlimited", ["*"], False),
        ("* - nofile 2000000", ["*"], True),  # Above fs.nr_open the kernel gives nothing.
        ("* - nofile -5", ["*"], True),
        ("* - nofile 0x10000", ["*"], True),
        ("* - nofile many", ["*"], False),
        ("* both nofile 5", ["*"], False),
        ("* - core 0", ["*"], False),
        ("# * - nofile 5", ["*"], False),
        ("* -", ["*"], False),
        ("alice soft nofile 5", ["*"], True),
        ("@ml soft nofile 5", ["*"], True),
        ("1000: soft nofile 5", ["*"], True),
        ("%ml - nofile 5", ["*"], False),
        ("root - nofile 5", ["*"], False),
        (":0 - nofile 5", ["*"], False),
        ("alice -", ["*"], True),
        ("@ml -", ["*"], True),
        ("root -", ["*"], False),
        ("* - nofile 5", ["root"], False),
        ("@wheel - nofile 5", ["root"], False),
        ("@wheel -", ["root"], True),  # A line of two fields knows root's groups everywhere.
        ("root - nofile 5", ["root"], True),
        (":0 - nofile 5", ["root"], True),
        ("0:0 - nofile 5", ["root"], True),
        ("0: - nofile 5", ["root"], True),
        ("0:500 - nofile 5", ["root"], True),
        ("1:500 - nofile 5", ["root"], False),
        ("root - nofile 5", ["0:0"], True),
        ("root - nofile 5", ["0:60000"], True),
        ("bob - nofile 5", ["alice"], False),
        ("alice - nofile 5", ["alice"], True),
        ("* - nofile 5", ["alice"], False),
        ("@ml - nofile 5", ["alice"], False),
        ("1000:2000 - nofile 5", ["alice"], True),
        ("alice - nofile 5", ["@ml"], True),
        ("@hpc - nofile 5", ["@ml"], True),
        ("* - nofile 5", ["@ml"], False),
        ("alice - nofile 5", ["1000:"], True),
        ("alice - nofile 5", ["*", "alice"], True),
        ("bob - nofile 5", ["*", "alice"], True),
    ],
)
def test_a_later_line_that_gives_less_is_told(line: str, users: list[str], told: bool) -> None:
    assert shortfalls(line, *users) == ([line] if told else [])


@pytest.mark.parametrize(
    ("line", "users", "told"),
    [
        ("* - nofile 5", ["*"], False),
        ("@ml - nofile 5", ["*"], True),
        ("alice - nofile 5", ["*"], True),
        ("alice - nofile 5", ["alice"], False),
        ("1000: - nofile 5", ["alice"], False),
        ("@hpc - nofile 5", ["@ml"], False),
        ("alice - nofile 5", ["*", "alice"], False),
        ("root - nofile 5", ["*", "root"], False),
        ("alice -", ["alice"], True),
    ],
)
def test_an_earlier_line_beats_only_a_weaker_one_of_ours(
    line: str, users: list[str], told: bool
) -> None:
    for dialect in (DEBIAN, RED_HAT):
        assert bool(shortfalls(line, *users, path=LIMITS_CONF, dialect=dialect)) is told


@pytest.mark.parametrize(("dialect", "told"), [(DEBIAN, False), (RED_HAT, True)])
def test_where_the_wildcard_means_root_a_line_for_root_beats_it(
    dialect: Dialect, told: bool
) -> None:
    assert bool(shortfalls("root - nofile 5", "*", dialect=dialect)) is told
    assert bool(shortfalls("@wheel - nofile 5", "root", dialect=dialect)) is False


def test_an_unlimited_nofile_falls_short_where_the_kernel_refuses_it() -> None:
    line = "* - nofile unlimited"
    assert shortfalls(line, "*", dialect=DEBIAN._replace(reads_nr_open=False)) == [line]


def test_an_answer_for_one_bound_leaves_the_other() -> None:
    rules = [rule("*", nofile=Limit(9, 9)), rule("alice", nofile=Limit(soft=9))]
    planned = plan(rules, {LIMITS_CONF: "alice - nofile 5"})
    assert [shortfall.ours for shortfall in planned.shortfalls] == ["* hard nofile 9"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("* hard nofile 5", True),
        ("@ml - nofile 5", True),
        ("* hard nofile 70000", False),
        ("* hard nofile 2000000", True),  # The kernel refuses it, and ours with it.
        ("* hard core 5", False),
        ("* hard nofile 99999999", True),  # The kernel refuses it, and the soft one with it.
    ],
)
def test_a_hard_limit_caps_a_soft_one_that_stands_alone(line: str, told: bool) -> None:
    found = shortfalls(line, "alice", path=LIMITS_CONF, limit=Limit(soft=65536))
    assert found == ([line] if told else [])


def test_a_shortfall_names_both_lines() -> None:
    files = {LATER: "# vendor\n  alice soft nofile 1024  # ours\r\n"}
    text = f'{LATER}:2 "alice soft nofile 1024  # ours" beats our "* soft nofile 65536"'
    assert [str(shortfall) for shortfall in plan([NOFILE], files).shortfalls] == [text]
    assert plan([NOFILE], files).shortfalls[0].foreign.value == "1024"
    overridden = plan([NOFILE], files, override=True)
    assert [str(one) for one in overridden.shortfalls] == [text.replace("beats", "was beating")]
    assert (
        apply(files, overridden)[LATER]
        == "# vendor\n#mlhost.limits#   alice soft nofile 1024  # ours\r\n"
    )


@pytest.mark.parametrize("target", [DROP_IN, LIMITS_CONF])
def test_override_is_taken_back_when_it_is_not_asked_for_again(target: str) -> None:
    files = {LIMITS_CONF: "alice - nofile 5\n", LATER: "@ml -"}
    overridden = apply(files, plan([NOFILE], files, override=True, target=target))
    assert overridden[LATER] == "#mlhost.limits# @ml -"
    assert "#mlhost.limits# alice - nofile 5\n" in overridden[LIMITS_CONF]
    restored = apply(overridden, plan([NOFILE], overridden, target=target))
    assert restored[LATER] == files[LATER]
    assert restored[LIMITS_CONF].startswith(files[LIMITS_CONF])


@pytest.mark.parametrize("text", ["#" + " " * 1022 + "* - nofile 5", "* - nofile 5".ljust(1001)])
def test_a_line_that_a_comment_sign_would_not_silence_is_left(text: str) -> None:
    planned = plan([NOFILE], {LATER: text}, override=True)
    assert [shortfall.neutralized for shortfall in planned.shortfalls] == [False]
    assert [edit.path for edit in planned.edits] == [DROP_IN]


DOMAINS = st.sampled_from(
    [
        "*",
        "*",
        "alice",
        "bob",
        "root",
        "@ml",
        "@hpc",
        "@wheel",
        "1000:",
        ":1001",
        "0:",
        "0:0",
        ":0",
        "@2001:",
        "@:10",
        "0:1001",
    ]
)
FOREIGN_LINES = st.one_of(
    st.tuples(
        DOMAINS | st.sampled_from(["%ml", "%1000:", "x", "\xff"]),
        st.sampled_from(["soft", "hard", "-", "HARD", "both"]),
        st.sampled_from(["nofile", "nofile", "core", "Core", "maxlogins"]),
        st.sampled_from(["1", "5", "9", "9k", "100", "unlimited", "x", "99999999"]),
    ).map(" ".join),
    DOMAINS.map(lambda domain: f"{domain} -"),
    st.sampled_from(["", "# note", " \t", "* - nofile 7 # said", "#mlhost", "\xe9", "a b c"]),
)
TEXTS = st.tuples(
    st.lists(FOREIGN_LINES, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans()
).map(lambda parts: parts[1].join(parts[0]) + (parts[1] if parts[2] else ""))
HOSTS = st.fixed_dictionaries(
    {LIMITS_CONF: TEXTS}, optional={LATER: TEXTS, f"{LIMITS_D}/10-a.conf": TEXTS}
)
BOUNDS = st.tuples(st.integers(2, 9), st.integers(9, 20)).flatmap(
    lambda pair: st.sampled_from([Limit(*pair), Limit(soft=pair[0]), Limit(hard=pair[1])])
)
KIB = BOUNDS.map(lambda limit: Limit(*(value and value * 1024 for value in limit[:2])))
RULES = st.lists(
    st.builds(
        SessionRule,
        st.lists(DOMAINS, min_size=1, max_size=3).map(tuple),
        st.fixed_dictionaries({}, optional={"nofile": BOUNDS, "core": KIB}),
    ),
    max_size=3,
)
TARGETS = st.sampled_from([DROP_IN, LIMITS_CONF, f"{LIMITS_D}/00-first.conf"])
DIALECTS = st.sampled_from([DEBIAN, RED_HAT, Dialect(0, wildcard_root=False)])


@given(HOSTS, RULES, RULES, TARGETS, TARGETS, st.booleans())
def test_what_was_provisioned_can_be_taken_back(
    files: dict[str, str],
    rules: list[SessionRule],
    then: list[SessionRule],
    first: str,
    second: str,
    override: bool,
) -> None:
    after = apply(files, plan(rules, files, target=first, override=override))
    after = apply(after, plan(then, after, target=second, override=not override))
    assert apply(after, plan(rules, after, target=second, absent=True)) == files


@given(HOSTS, RULES, TARGETS, DIALECTS, st.booleans())
def test_a_second_run_changes_nothing(
    files: dict[str, str], rules: list[SessionRule], target: str, dialect: Dialect, override: bool
) -> None:
    first = plan(rules, files, dialect, target=target, override=override)
    second = plan(rules, apply(files, first), dialect, target=target, override=override)
    assert second == first._replace(edits=())


@given(HOSTS, RULES, TARGETS)
def test_foreign_lines_keep_their_bytes_and_order(
    files: dict[str, str], rules: list[SessionRule], target: str
) -> None:
    after = apply(files, plan(rules, files, target=target))
    for path, text in files.items():
        assert after[path].startswith(text)
    assert set(after) <= {*files, target}


USERS = [
    User("root", 0, 0, frozenset({"root", "wheel"}), frozenset({0, 10})),
    User("alice", 1001, 2001, frozenset({"ml", "wheel"}), frozenset({2001, 10})),
    User("bob", 1002, 2002, frozenset({"hpc", "ml"}), frozenset({2002, 2001})),
    User("carol", 999, 999),
]


@given(HOSTS, RULES, TARGETS, DIALECTS, st.booleans())
def test_every_user_gets_what_is_owed_or_the_line_in_its_way_is_told(
    files: dict[str, str], rules: list[SessionRule], target: str, dialect: Dialect, override: bool
) -> None:
    assume(not (dialect.wildcard_root and any("@" in name for one in rules for name in one.users)))
    planned = plan(rules, files, dialect, target=target, override=override)
    assume(all(shortfall.neutralized for shortfall in planned.shortfalls))
    after = apply(files, planned)
    for user in USERS:
        found = resolve_limits(read_lines(after, dialect), user, dialect, NR_OPEN)
        for item, limit in find_limits(rules, user).items():
            given = {
                kind: bound.winner.value
                for (name, kind), bound in found.bounds.items()
                if name == item
            }
            hard = given.get("hard", UNLIMITED)
            assert limit.soft is None or min(given["soft"], hard) >= limit.soft
            assert limit.hard is None or hard >= limit.hard
            assert item != "nofile" or hard <= NR_OPEN or "hard" not in given
