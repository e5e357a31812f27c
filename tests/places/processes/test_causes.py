# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that is older than its files, changed since, or set by what starts it, is told so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit, User
from mlhost_limits.processes.causes import (
    Moment,
    Run,
    Verdict,
    blame_starter,
    explain_run,
    find_start_causes,
    finish,
    merge_limits,
)
from mlhost_limits.sessions.facts import SessionFacts
from mlhost_limits.sessions.model import Start
from mlhost_limits.sessions.pam_limits import read_lines
from mlhost_limits.sessions.shell_limits import ShellLine
from mlhost_limits.systemd.model import Pam, UnitFacts

from tests.worlds.pasted import paste
from tests.worlds.unit_world import MANAGER, PID_1, UNIT, D, service, unit

WANTED = Limit(65536, 131072)
GOOD, LOW = Rlimit(65536, 131072), Rlimit(1024, 4096)
LINE = "LimitNOFILE=65536:131072"
FACTS = unit({UNIT: service(LINE)})
FILES_LOW = unit({UNIT: service("LimitNOFILE=1024:4096")})
RELOAD, RESTART = (("systemctl", "daemon-reload"),), (("systemctl", "restart", "x.service"),)
T1, T2 = Moment(100, "10:00"), Moment(200, "11:00")
NEVER = Moment(0, "")
SCRIPT = "/etc/x/start"


def nofile(pair: Rlimit) -> dict[str, Rlimit]:
    return {**PID_1, "nofile": pair}


RUN = Run(7, nofile(LOW), 7, nofile(LOW), T1, NEVER, "", RELOAD, RESTART, nofile(GOOD))


def explain(run: Run, facts: UnitFacts = FACTS, booted: UnitFacts | None = None) -> Verdict:
    return explain_run("nofile", WANTED, run, facts, booted or facts)


def codes(verdict: Verdict) -> list[str]:
    return [cause.code for cause in verdict.causes]


def test_a_process_that_is_right_and_stays_so_has_no_cause() -> None:
    run = RUN._replace(limits=nofile(GOOD), main_limits=nofile(GOOD))
    assert explain(run) == Verdict((), GOOD, GOOD)
    assert explain(run._replace(loaded=None)) == Verdict((), GOOD, GOOD)


def test_files_at_fault_end_with_reload_and_restart() -> None:
    verdict = explain(RUN._replace(loaded=nofile(LOW)), FILES_LOW)
    (cause,) = verdict.causes
    assert (cause.code, verdict.next_start, verdict.at_boot) == ("unit-stated-too-low", LOW, LOW)
    assert cause.remedy.commands[-2:] == (*RELOAD, *RESTART)


def test_a_service_that_was_not_restarted() -> None:
    verdict = explain(RUN._replace(changed=T2, changed_path=UNIT))
    (cause,) = verdict.causes
    assert cause.code == "unit-not-restarted"
    told = f"x.service has run since 10:00, and {UNIT} was changed 11:00; it still has 1024:4096"
    assert cause.text == f"{told}, whatever systemctl show says (65536:131072)"
    assert cause.at == Declaration(UNIT, 2, LINE, "65536:131072")
    assert cause.remedy.commands == (*RELOAD, *RESTART)
    assert (verdict.next_start, verdict.at_boot) == (GOOD, GOOD)


def test_where_the_manager_was_not_asked_its_word_is_left_out() -> None:
    verdict = explain(RUN._replace(changed=T2, changed_path=UNIT, loaded=None))
    assert verdict.causes[0].text.endswith("it still has 1024:4096")


def test_a_service_that_was_started_under_a_lower_nr_open() -> None:
    around = MANAGER._replace(nr_open=3000000)
    facts = unit({UNIT: service("LimitNOFILE=2000000")}, around)
    pair, has = Rlimit(2000000, 2000000), Rlimit(1048576, 1048576)
    run = RUN._replace(limits=nofile(has), loaded=nofile(pair))
    run = run._replace(changed=run.started, changed_path=UNIT)
    verdict = explain_run("nofile", Limit(2000000), run, facts, facts)
    assert codes(verdict) == ["unit-not-restarted"]
    assert "and fs.nr_open was raised; it still has 1048576:1048576" in verdict.causes[0].text


def test_a_manager_that_has_not_read_the_files() -> None:
    run = RUN._replace(loaded=nofile(LOW), is_stale=True, changed=T2, changed_path=UNIT)
    verdict = explain(run)
    (cause,) = verdict.causes
    told = "is not read yet: the service manager still has 1024:4096 for x.service"
    assert (cause.code, cause.text) == ("unit-not-reloaded", f'{UNIT}:2 "{LINE}" {told}')
    assert cause.remedy.text == "let the manager read its files, and restart x.service"
    assert cause.remedy.commands == (*RELOAD, *RESTART)
    assert (verdict.next_start, verdict.at_boot) == (LOW, GOOD)


def test_a_line_that_is_gone_may_not_be_read_either() -> None:
    facts = unit({UNIT: service()})
    run = RUN._replace(loaded=nofile(LOW), is_stale=True, changed=T2, changed_path=D)
    verdict = explain_run("nofile", Limit(hard=131072), run, facts, facts)
    assert verdict.causes[0].text.startswith(f"{D}, changed 11:00, is not read yet: ")
    assert verdict.causes[0].at is None
    run = RUN._replace(changed=T2, changed_path=D, loaded=None)
    verdict = explain_run("nofile", Limit(hard=131072), run, facts, facts)
    assert (codes(verdict), verdict.causes[0].at) == (["unit-not-restarted"], None)


def test_a_good_process_whose_files_are_not_read_needs_no_restart() -> None:
    run = RUN._replace(limits=nofile(GOOD), loaded=nofile(LOW), is_stale=True)
    (cause,) = explain(run).causes
    assert (cause.code, cause.remedy.commands) == ("unit-not-reloaded", RELOAD)
    assert cause.remedy.text == "let the manager read its files"
    after = unit({UNIT: service(), D + "/a.conf": service(LINE)})
    (cause,) = explain(run, booted=after).causes
    assert cause.at == Declaration(UNIT, 2, LINE, "65536:131072")


def test_a_manager_that_reads_the_same_files_otherwise_refutes_us() -> None:
    assert explain(RUN._replace(loaded=nofile(Rlimit(5, 6)))) == Verdict()


@pytest.mark.parametrize("loaded", [Rlimit(1024, 524288), Rlimit(1024, 65536)])
def test_systemd_s_default_may_have_been_cut_to_nr_open(loaded: Rlimit) -> None:
    facts = unit({UNIT: service()}, MANAGER._replace(nr_open=65536))
    verdict = explain(RUN._replace(loaded=nofile(loaded)), facts)
    assert codes(verdict)[0] == "unit-not-stated"
    starts = loaded.hard <= 65536
    assert verdict.next_start == (loaded if starts else Rlimit(0, 0))


def test_other_limits_are_not_cut() -> None:
    facts = unit({UNIT: service("LimitMEMLOCK=64K")})
    low = {**PID_1, "memlock": Rlimit(65536, 65536)}
    run = RUN._replace(limits=low, loaded=low)
    verdict = explain_run("memlock", Limit(UNLIMITED, UNLIMITED), run, facts, facts)
    assert codes(verdict) == ["unit-stated-too-low"]


def test_a_process_changed_by_hand() -> None:
    verdict = explain(RUN)
    (cause,) = verdict.causes
    assert cause.code == "process-changed-by-hand"
    told = "no file says so: x.service has run since 10:00 from files that give 65536:131072"
    assert cause.text == f"{told}, and process 7 has 1024:4096 now"
    assert cause.remedy.lines == ["prlimit --pid 7 --nofile=65536:131072"]
    assert (verdict.next_start, verdict.at_boot) == (GOOD, GOOD)


def test_a_program_that_may_set_its_limits_may_do_so_again() -> None:
    verdict = explain(RUN._replace(may_set=True))
    assert codes(verdict) == ["process-changed-by-hand"]
    assert (verdict.next_start, verdict.at_boot) == (None, None)


def test_a_child_that_has_less_than_what_started_it() -> None:
    run = RUN._replace(main_pid=6, main_limits=nofile(GOOD), changed=T2, changed_path=UNIT)
    (cause,) = explain(run).causes
    assert cause.code == "process-changed-by-hand"
    told = "process 7 has 1024:4096, and the one that started it, 6, 65536:131072"
    assert cause.text == told


def test_a_limit_set_in_place_may_have_no_end() -> None:
    facts = unit({UNIT: service("LimitMEMLOCK=infinity")})
    low = {**PID_1, "memlock": Rlimit(65536, 65536)}
    loaded = {**PID_1, "memlock": Rlimit(UNLIMITED, UNLIMITED)}
    run = RUN._replace(limits=low, loaded=loaded)
    verdict = explain_run("memlock", Limit(UNLIMITED, UNLIMITED), run, facts, facts)
    assert verdict.causes[0].remedy.lines == ["prlimit --pid 7 --memlock=unlimited:unlimited"]


def test_a_boot_may_bring_what_is_not_yet() -> None:
    """Two things: the service is old, and what lies in /run goes with a boot."""
    verdict = explain(RUN._replace(changed=T2, changed_path=UNIT), booted=FILES_LOW)
    assert codes(verdict) == ["unit-not-restarted", "unit-stated-too-low"]
    assert verdict.causes[1].remedy.commands[-1:] == RELOAD


def starter(text: str, value: int | str, path: str = UNIT, item: str = "nofile") -> ShellLine:
    return ShellLine(item, ("soft", "hard"), Declaration(path, 3, text, value))


@pytest.mark.parametrize("value", [1024, "$LIMIT"])
def test_what_a_unit_starts_may_set_the_limit(value: int | str) -> None:
    text = f"ExecStart=/bin/sh -c 'ulimit -n {value}; exec x'"
    others = (starter("ulimit -l 5", 5, item="memlock"), starter("ulimit -n 9", 9))
    facts = unit({UNIT: service(LINE, f"{text} ")})
    verdict = explain(RUN._replace(starters=(starter(text, value), *others)), facts)
    (cause,) = verdict.causes
    assert (cause.code, cause.at) == ("unit-start-sets-limit", starter(text, value).at)
    assert len(cause.remedy.commands) == 3
    assert cause.remedy.commands[-2:] == (*RELOAD, *RESTART)
    assert f"ulimit -n {value}" in cause.remedy.commands[0][2]
    assert " $' ]" in cause.remedy.commands[0][2], "the whole line, with the blank at its end"
    assert (verdict.next_start, verdict.at_boot) == (LOW, LOW)


@pytest.mark.parametrize(
    ("text", "path"),
    [("ExecStart=prlimit --nofile=1024 x", UNIT), ("ulimit -n 1024", "/usr/bin/x-start")],
)
def test_what_cannot_be_edited_safely_is_left_to_a_person(text: str, path: str) -> None:
    facts = unit({UNIT: service(LINE, text)})
    (cause,) = explain(RUN._replace(starters=(starter(text, 1024, path),)), facts).causes
    assert cause.remedy.commands == ()


def test_files_and_what_they_start_may_both_be_at_fault() -> None:
    run = RUN._replace(loaded=nofile(LOW), starters=(starter("ulimit -n 1024", 1024),))
    assert codes(explain(run, FILES_LOW)) == ["unit-stated-too-low", "unit-start-sets-limit"]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("ulimit -n 1024", ":"),
        ("ulimit -S -n 1024; exec x", ":; exec x"),
        ("ulimit -n $LIMIT && exec x", ": && exec x"),
        ('ulimit -n "$LIMIT" || exit', ": || exit"),
        ("ExecStart=/bin/sh -c 'ulimit -n 1024; exec x'", "ExecStart=/bin/sh -c ':; exec x'"),
        ('sh -c "ulimit -n 1024"', 'sh -c ":"'),
        ("if true; then ulimit -Hn 5; fi", "if true; then :; fi"),
    ],
)
def test_a_limit_is_taken_out_of_a_line_of_shell(line: str, left: str, tmp_path: Path) -> None:
    (cause,) = explain(RUN._replace(starters=(starter(line, 1024, SCRIPT),))).causes
    (words, *_others) = cause.remedy.commands
    file = tmp_path / SCRIPT[1:]
    file.parent.mkdir(parents=True)
    file.write_text(f"one\ntwo\n{line}\n")
    paste(words, tmp_path)
    assert file.read_text() == f"one\ntwo\n{left}\n"


def test_what_is_right_now_and_wrong_later() -> None:
    run = RUN._replace(limits=nofile(GOOD), loaded=nofile(LOW))
    verdict = explain(run, FILES_LOW)
    assert (codes(verdict), verdict.next_start) == (["unit-stated-too-low"], LOW)
    assert verdict.causes[0].remedy.commands[-1:] == RELOAD
    run = run._replace(loaded=nofile(GOOD))
    verdict = explain(run, FACTS, FILES_LOW)
    assert (codes(verdict), verdict.at_boot) == (["unit-stated-too-low"], LOW)
    verdict = explain(run._replace(loaded=None), FILES_LOW)
    assert verdict.next_start == LOW
    verdict = explain(run._replace(loaded=None), FILES_LOW, unit({UNIT: service()}))
    assert codes(verdict) == ["unit-stated-too-low"]


@pytest.mark.parametrize("change", [{"may_set": True}, {"starters": (starter("x", 1),)}])
def test_a_program_that_raises_its_own_limit_is_no_false_alarm(change: dict[str, Any]) -> None:
    run = RUN._replace(limits=nofile(GOOD), loaded=nofile(LOW), **change)
    assert explain(run, FILES_LOW) == Verdict()


def test_a_unit_that_cannot_be_loaded_does_not_start() -> None:
    verdict = explain(RUN._replace(loaded=None), unit({UNIT: f"[Service\n{LINE}\n"}))
    assert (codes(verdict), verdict.next_start) == (["unit-not-loaded"], Rlimit(0, 0))


def through_pam(line: str, limits_conf: str = "", resets: bool = True) -> UnitFacts:
    dialect = Dialect(1023, wildcard_root=False)
    lines = tuple(read_lines({"/etc/security/limits.conf": limits_conf}, dialect))
    start = Start({}, PID_1, 0, resets)
    session = SessionFacts(User("alice", 1000, 1000), dialect, lines, start)
    at = Declaration(UNIT, 9, "PAMName=login", "login")
    return unit({UNIT: service(line)})._replace(pam=Pam(at, session))


def test_a_unit_through_pam_has_what_pam_says() -> None:
    facts = through_pam(LINE)
    assert facts.pam
    (cause,) = find_start_causes("nofile", WANTED, facts)
    assert (cause.code, cause.at) == ("unit-pam-decides", facts.pam.line)
    assert cause.text.startswith(f'{UNIT}:9 "PAMName=login" lets PAM decide: no limits file states')
    assert [one.place for one in cause.shadows] == [f"{UNIT}:2"]
    assert re.match("echo .* >> /etc/security/limits.d/", cause.remedy.lines[0])
    assert cause.remedy.then == ""


def test_of_two_lines_of_a_unit_pam_shadows_the_one_that_counts() -> None:
    facts = through_pam(f"LimitNOFILE=5\n{LINE}")
    (cause,) = find_start_causes("nofile", WANTED, facts)
    assert [one.place for one in cause.shadows] == [f"{UNIT}:3"]


def test_a_line_of_the_limits_files_keeps_its_own_code() -> None:
    facts = through_pam(LINE, "alice soft nofile 5\nalice hard nofile 200000\n")
    (cause,) = find_start_causes("nofile", WANTED, facts)
    assert cause.code == "pam-stated-too-low"
    assert cause.at is not None
    assert cause.at.place == "/etc/security/limits.conf:1"


@pytest.mark.parametrize(("has", "line"), [(LOW, 2), (Rlimit(5, 200000), 1)])
def test_a_unit_through_pam_may_be_older_than_a_line_of_the_limits_files(
    has: Rlimit, line: int
) -> None:
    facts = through_pam(LINE, "alice soft nofile 65536\nalice hard nofile 200000\n")
    run = RUN._replace(limits=nofile(has), changed=T2, changed_path="/etc/security/limits.conf")
    (cause,) = explain(run, facts).causes
    assert (cause.code, cause.at and cause.at.place) == (
        "unit-not-restarted",
        f"/etc/security/limits.conf:{line}",
    )


def test_where_pam_states_nothing_the_unit_s_line_counts() -> None:
    facts = through_pam(LINE, resets=False)
    (cause,) = explain(RUN._replace(changed=T2, changed_path=UNIT), facts).causes
    assert cause.at is not None
    assert cause.at.place == f"{UNIT}:2"


def test_both_bounds_are_stated_once_where_pam_states_none() -> None:
    limit = Limit(UNLIMITED, UNLIMITED)
    causes = find_start_causes("memlock", limit, through_pam("LimitMEMLOCK=infinity"))
    assert [cause.remedy.text.split('"')[1] for cause in causes] == ["alice - memlock unlimited"]


def test_one_line_that_is_too_low_has_one_edit_for_both_bounds() -> None:
    limit = Limit(soft=900, hard=1000)
    causes = find_start_causes("nofile", limit, through_pam(LINE, "alice - nofile 500\n"))
    assert [cause.remedy.text.split('"')[1] for cause in causes] == ["alice - nofile 1000"]


def test_a_hard_line_that_is_too_low_is_named_once() -> None:
    facts = through_pam(LINE, "alice soft nofile 5\nalice hard nofile 6\n")
    causes = find_start_causes("nofile", WANTED, facts)
    assert [cause.at and cause.at.line for cause in causes] == [1, 2]
    assert [cause.code for cause in causes] == ["pam-stated-too-low"] * 2


def test_where_pam_changes_nothing_the_unit_is_at_fault() -> None:
    facts = through_pam("LimitNOFILE=1024:4096", resets=False)
    (cause,) = find_start_causes("nofile", WANTED, facts)
    assert cause.code == "unit-stated-too-low"


@pytest.mark.parametrize("line", ["LimitNOFILE=131072", "[Service"])
def test_a_unit_that_does_not_start_never_reaches_pam(line: str) -> None:
    facts = through_pam(line)._replace(manager=MANAGER._replace(nr_open=5000))
    assert find_start_causes("nofile", WANTED, facts)[-1].code.startswith(("unit-ref", "unit-ab"))


def test_what_is_left_to_a_person_stays_so() -> None:
    (cause,) = explain(RUN._replace(changed=T2, changed_path=UNIT)).causes
    left = cause._replace(remedy=cause.remedy._replace(then="log in again"))
    assert finish([left], RELOAD)[0].remedy.then == "log in again"
    assert finish([left], RELOAD, "start it")[0].remedy.then == "start it"


def test_a_process_of_the_second_of_the_change_is_not_older() -> None:
    (cause,) = explain(RUN._replace(changed=T1, changed_path=UNIT)).causes
    assert cause.code == "process-changed-by-hand"


def test_a_process_whose_starter_has_as_little_is_as_old() -> None:
    run = RUN._replace(main_pid=6, changed=T2, changed_path=UNIT)
    assert codes(explain(run)) == ["unit-not-restarted"]


def test_another_program_that_sets_a_limit_is_left_to_a_person() -> None:
    (cause,) = explain(RUN._replace(starters=(starter("softlimit -o 1024 x", 1024),))).causes
    assert (cause.code, cause.remedy.commands) == ("unit-start-sets-limit", ())


def test_a_line_without_a_number_is_left_to_a_person() -> None:
    at = Declaration(UNIT, 0, "ulimit -n 1024", 1024)
    assert blame_starter(at, FACTS).remedy.commands == ()


def test_nothing_is_finished_where_nothing_is_wrong() -> None:
    assert finish([], RELOAD) == ()


def test_rules_about_one_process_are_asked_together() -> None:
    merged = merge_limits(
        [
            {"nofile": Limit(5, 6, 100), "memlock": Limit(1)},
            {"nofile": Limit(3, 9, 50), "core": Limit(max=0)},
        ]
    )
    assert merged == {"nofile": Limit(5, 9, 50), "memlock": Limit(1), "core": Limit(max=0)}


def test_a_unit_whose_session_pam_refuses_is_told_by_the_line_that_the_kernel_refuses() -> None:
    facts = through_pam(LINE, "alice - nofile 2000000\n")
    assert facts.pam
    session = facts.pam.session._replace(dialect=Dialect(1023))
    (cause,) = find_start_causes(
        "memlock", Limit(1, 1), facts._replace(pam=facts.pam._replace(session=session))
    )
    assert (cause.code, cause.at and cause.at.line) == ("pam-above-nr-open", 1)
    assert "PAM then refuses the login" in cause.text
