# SPDX-License-Identifier: GPL-3.0-or-later
"""A report is a list of things to do: a block for each reason, the widest first, each edit once."""

from __future__ import annotations

import pytest
from mlhost_limits.core.brief import _MOST_LINES, Told, format_brief, format_head
from mlhost_limits.core.cause import Cause, Outlook, Remedy, append_line, end_line_before
from mlhost_limits.core.edit import OURS
from mlhost_limits.core.finding import FAIL, PASS, Finding, Observation, Requirement, judge
from mlhost_limits.core.values import Declaration
from mlhost_limits.core.waivers import Waiver

SITE = "/etc/security/limits.d/95-site.conf"
WAYS = ("sshd", "su", "cron")
LINE = Declaration("/etc/security/limits.conf", 7, "alice hard nofile 1024", 1024)


def fail(place: str, item: str, bound: str, *causes: Cause, owner: str = "") -> Finding:
    wanted = Requirement(place, item, bound, 65536)
    return judge(wanted, Observation(1024, "seen"))._replace(causes=causes, owner=owner)


def unstated(line: str, then: str = "log in again") -> Cause:
    text = f"no limits file states {line.split()[2]}"
    return Cause("pam-not-stated", text, append_line(SITE, line, then, is_ended=True))


def stock() -> list[Finding]:
    """Return what two users lack at every login, the kernel, and what is met."""
    found = [
        fail(f"session:{user}@{way}", "nofile", bound, unstated(f"{name} - nofile 65536", then))
        for user, name in (("root", "root"), ("alice", "*"))
        for way in WAYS
        for bound in ("soft", "hard")
        for then in ("the next job has it" if way == "cron" else "log in again",)
    ]
    edit = append_line("/etc/sysctl.d/95-site.conf", "x = 1", is_ended=True)
    kernel = fail("kernel", "x", "value", Cause("sysctl-not-stated", "no file states x", edit))
    good = judge(Requirement("kernel", "y", "value", 1), Observation(2, "seen"))
    return [kernel, *found, good]


def test_what_nobody_states_is_one_block_whoever_lacks_it() -> None:
    assert format_brief(stock(), Told(samples=["alice"])) == [
        "13 of 14 requirements fall short, for 2 reasons",
        "     all of them at once: mlhost-limits provision",
        "1    root and everyone, at every login: nofile 1024, required 65536",
        "     why  no limits file states nofile",
        "     fix  mlhost-limits provision --only sessions # then log in again",
        "     or   printf '%s\\n' 'root - nofile 65536' '* - nofile 65536' >> \\",
        f"            {SITE}",
        "2    kernel: x 1024, required 65536",
        "     why  no file states x",
        "     fix  mlhost-limits provision --only kernel",
        "     or   echo 'x = 1' >> /etc/sysctl.d/95-site.conf",
    ]


def test_where_provision_just_ran_the_edit_is_the_fix() -> None:
    lines = format_brief(stock()[:1], Told(provision=""))
    assert lines[2:] == [
        "     why  no file states x",
        "     run  echo 'x = 1' >> /etc/sysctl.d/95-site.conf",
    ]


def test_a_line_at_fault_is_one_block_and_its_command_stands_there_once() -> None:
    """Who stands for everybody is named where it may be a line about that user alone."""
    cause = Cause("x", "line 7 beats", Remedy("take it out", (("sed", "-i", "7d", "f"),)), LINE)
    found = [
        fail(f"session:alice@{way}", item, "hard", cause)
        for way in WAYS
        for item in ("nofile", "nproc")
    ]
    found += [fail("session:bob@su", "nofile", "hard", unstated("bob - nofile 65536"), cause)]
    lines = format_brief(found, Told(samples=["alice"]))
    assert lines[:6] == [
        "7 of 7 requirements fall short, for 2 reasons",
        "1    alice, at every login: nofile hard 1024, required 65536; nproc hard 1024,",
        "     required 65536",
        "     why  line 7 beats",
        "     fix  take it out",
        "     run  sed -i 7d f",
    ]
    assert lines[6] == "2    bob, at su: nofile hard 1024, required 65536"
    assert sum("sed -i" in line for line in lines) == 1


def test_a_chain_is_done_in_its_order() -> None:
    raised = Cause(
        "kernel-low", "fs.nr_open is low", Remedy("raise it", (("sysctl", "-w", "a=2"),))
    )
    lines = format_brief(
        [fail("session:a@su", "nofile", "hard", unstated("a - nofile 9"), raised)], Told()
    )
    assert lines[3:] == [
        "     fix  raise it",
        f"     run  echo 'a - nofile 9' >> {SITE}",
        "          sysctl -w a=2",
    ]


def test_a_user_s_own_doing_is_a_block_of_its_own() -> None:
    cause = Cause("x", "the own start file says so", Remedy("mend it"), LINE)
    found = [
        fail("session:alice@su", "nofile", "soft", cause),
        fail("session:alice@sshd", "nofile", "soft", cause, owner="alice"),
    ]
    lines = format_brief(found, Told())
    assert lines[0].endswith("for 2 reasons")
    assert "     who  alice: own file or process; the node is not at fault" in lines


def test_what_nobody_knows_says_where_it_was_seen() -> None:
    assert format_brief([fail("process:7", "nofile", "soft")], Told())[1:] == [
        "1    process 7: nofile soft 1024, required 65536",
        "     why  not known; seen in seen",
    ]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (["process:7 (a b)"], ["--pid 7"]),
        (["service:a@b.service"], ["--unit a@b.service"]),
        (["container:docker/job-1"], ["--container job-1"]),
        (["process:7 (a)", "process:8 (a)"], ["--pid 7", "--pid 8"]),
        (["process:7 (a)", "process:8 (a)", "process:9 (a)"], []),
        (["container:podman/alice/job"], []),
        (["new-container:docker"], []),
        (["process:name=a"], []),
        (["session:alice@sshd"], []),
    ],
)
def test_what_runs_may_be_raised_as_it_is(places: list[str], words: list[str]) -> None:
    cause = Cause("old", "it is older than the policy", Remedy("restart it", commands=()))
    told = Told(provision="", heal="heal --policy p")
    for causes in ((cause,), ()):
        found = [fail(place, "nofile", "soft", *causes) for place in places]
        lines = [line.split("live ", 1)[-1].strip() for line in format_brief(found, told)]
        assert [line for line in lines if "--check" in line] == [
            f"heal --policy p {one} --check" for one in words
        ]
    assert not any("heal" in line for line in format_brief(found, Told(provision="")))
    other = [fail(places[0], "shm_size", "value")]
    assert not any("heal" in line for line in format_brief(other, told))


def test_what_nobody_knows_is_asked_of_explain() -> None:
    found = [fail("container:docker/a b", "nofile", "soft")]
    lines = format_brief(found, Told(explain="mlhost-limits explain"))
    assert lines[-1] == "     see  mlhost-limits explain 'container:docker/a b' nofile"


def test_what_does_not_start_is_told_with_what_was_said() -> None:
    wanted = Requirement("new-container:docker", "start", "value", exact="a container that starts")
    found = [judge(wanted, Observation("no space left", "canary container"))]
    lines = format_brief(found, Told(explain="mlhost-limits explain"))
    assert lines == [
        "1 of 1 requirement falls short, for one reason",
        "1    new containers of docker: none could be started: no space left",
        "     why  not known; seen in canary container",
    ]


def test_what_is_met_is_shown_with_its_values() -> None:
    good = stock()[-1:]
    assert format_brief(good, Told()) == ["1 of 1 requirement is met", "ok   kernel: y 2"]
    assert format_brief([], Told()) == ["nothing was judged"]


def test_what_is_met_is_not_shown_beside_what_is_unknown() -> None:
    wanted = Requirement("job:slurm", "nofile", "soft", 1)
    unknown = judge(wanted, Observation(None, "", "no job ran"))
    assert format_brief([*stock()[-1:], unknown], Told()) == [
        "1 of 2 requirements is met; 1 unknown",
        "???  job:slurm: no job ran",
    ]


def test_what_will_not_last_is_unknown_or_waived_is_told() -> None:
    late = stock()[-1]._replace(outlook=Outlook("", "", FAIL), causes=(unstated("a - b 1"),))
    unknown = judge(
        Requirement("job:slurm", "nofile", "soft", 1), Observation(None, "", "no job ran")
    )
    waived = stock()[0]._replace(status="waived", waiver="until 2030")
    assert late.status == PASS
    lines = format_brief([late, unknown, waived], Told(idle=[Waiver("a", "b", "c", "d")]))
    assert lines[:3] == [
        "1 of 3 requirements is met; 1 will fall short after a boot, for one reason; 1",
        "     unknown; 1 waived",
        "1    kernel: y 2 now, not enough after the next boot",
    ]
    assert "???  job:slurm: no job ran" in lines
    assert format_head([unknown]) == "0 of 1 requirement is met; 1 unknown"


def test_many_places_are_counted() -> None:
    cause = Cause("unit-not-stated", "nothing states it", Remedy("state it"))
    found = [fail(f"service:{name}.service", "nofile", "soft", cause) for name in "abcdefg"]
    assert format_brief(found, Told())[1].startswith(
        "1    service a.service, b.service, c.service, d.service and 3 more: nofile soft"
    )


def test_our_own_file_is_provisioned_again_rather_than_edited() -> None:
    cause = Cause("pam-stated-too-low", "a line states too little", Remedy("edit it", (("sed",),)))
    found = [fail("session:bob@su", "nofile", "hard", cause._replace(at=LINE, writer=OURS))]
    assert format_brief(found, Told())[2:] == [
        "     why  a line states too little",
        "     fix  mlhost-limits provision, which writes that file anew",
    ]
    assert "     run  sed" in format_brief(found, Told(provision=""))


def test_what_is_done_alike_is_one_reason_whatever_line_shows_it() -> None:
    raised = Remedy("raise fs.nr_open", (("sysctl", "-w", "fs.nr_open=9"),))
    found = [
        fail(f"session:{user}@su", "nofile", "hard", Cause("pam-above-nr-open", text, raised, at))
        for user, text, at in (
            ("root", "line 7 asks for more", LINE),
            ("bob", "line 8 asks for more", LINE._replace(line=8)),
        )
    ]
    other = Cause("sysctl-set", "something set it", Remedy("set it", raised.commands))
    lines = format_brief([*found, fail("kernel", "fs.nr_open", "value", other)], Told())
    assert lines[1:] == [
        "1    root and bob, at su: nofile hard 1024, required 65536",
        "     why  line 7 asks for more",
        "          line 8 asks for more",
        "     fix  raise fs.nr_open",
        "     run  sysctl -w fs.nr_open=9",
        "2    kernel: fs.nr_open 1024, required 65536",
        "     why  something set it",
        "     fix  set it",
        "     run  # what stands above",
    ]


def test_a_command_that_is_too_wide_is_left_to_the_long_report() -> None:
    cause = Cause("x", "a line says so", Remedy("mend it", (("sh", "-c", f"'{'x' * 90}'"),)), LINE)
    assert format_brief([fail("kernel", "a", "value", cause)], Told())[-1] == (
        "     run  # the commands that -v shows"
    )


@pytest.mark.parametrize("code", ["sysctl-not-stated", "sysctl-later-line-wins"])
@pytest.mark.parametrize(("length", "is_shown"), [(68, True), (69, False)])
def test_a_command_may_be_as_wide_as_the_report(length: int, is_shown: bool, code: str) -> None:
    """A word that follows stands behind twelve blanks, in 80 columns."""
    word = "x" * length
    cause = Cause(code, "a line says so", Remedy("mend it", (("touch", word),)), LINE)
    lines = format_brief([fail("kernel", "a", "value", cause)], Told())
    assert (" " * 12 + word in lines) is is_shown
    assert max(map(len, lines)) <= 80


def test_what_makes_edits_count_comes_after_the_last_of_them() -> None:
    """Of two causes of one reason, and in a reason whose edits another has in front."""
    user = ("sh", "-c", "env -i /sbin/runuser -P -u bob -- systemctl --user restart a.service >&2")
    reload = ("systemctl", "daemon-reload")
    edits = [("sh", "-c", f"echo {name} >> /etc/{name}") for name in "ab"]
    causes = [
        Cause("x", "a line says so", Remedy("mend it", (edit, reload, user)), LINE)
        for edit in edits
    ]
    found = [
        fail("service:a.service", "nofile", "soft", causes[0])._replace(causes=tuple(causes)),
        fail("process:7", "nofile", "hard", causes[1]._replace(code="y", at=None)),
    ]
    then = ["          systemctl daemon-reload", *DEEP_RESTART]
    assert format_brief(found, Told())[3:] == [
        "     run  echo a >> /etc/a",
        "          echo b >> /etc/b",
        *then,
        "2    process 7: nofile hard 1024, required 65536",
        "     why  a line says so",
        "     run  # what stands above",
        *then,
    ]


DEEP_RESTART = (
    "          env -i /sbin/runuser -P -u bob -- systemctl --user restart a.service \\",
    "            >&2",
    "     note a restart ends what runs there",
)


def test_of_two_that_run_the_first_line_is_marked() -> None:
    found = [fail(f"process:{pid} (a)", "nofile", "soft") for pid in (7, 8)]
    lines = format_brief(found, Told(heal="heal"))
    assert lines[-2:] == ["     live heal --pid 7 --check", "          heal --pid 8 --check"]


@pytest.mark.parametrize(("count", "is_shown"), [(_MOST_LINES, True), (_MOST_LINES + 1, False)])
def test_so_many_lines_are_shown_beside_provision(count: int, is_shown: bool) -> None:
    """Of more the way by hand is said in words, without what was said above."""
    commands = tuple(("touch", f"/{number}") for number in range(count))
    remedy = Remedy("state it, then restart docker", commands, "restart docker")
    found = [
        fail("new-container:docker", "nofile", "soft", Cause("docker-not-stated", "x", remedy))
    ]
    lines = format_brief(found, Told())
    assert lines[3] == "     fix  mlhost-limits provision --only docker # then restart docker"
    by_hand = ["     or   touch /0", *(f"          touch /{one}" for one in range(1, count))]
    assert lines[4:] == (by_hand if is_shown else ["     or   state it"])


@pytest.mark.parametrize(("length", "is_beside"), [(23, True), (24, False)])
def test_what_is_left_to_do_stands_beside_provision_where_it_fits(
    length: int, is_beside: bool
) -> None:
    then = "x" * length
    lines = format_brief([fail("session:a@su", "b", "soft", unstated("a - b 9", then))], Told())
    fix = "     fix  mlhost-limits provision --only sessions"
    assert lines[3] == (f"{fix} # then {then}" if is_beside else fix)
    assert is_beside or lines[4] == f"          # then {then}"


@pytest.mark.parametrize(("then", "told"), [("", "do it"), ("log in", "do it, then log in")])
def test_a_section_may_be_made_true_by_something_else(then: str, told: str) -> None:
    found = [fail("session:a@su", "b", "soft", unstated("a - b 9", then))]
    lines = format_brief(found, Told(of_section={"sessions": "do it"}))
    assert lines[3] == f"     fix  {told}"


def test_an_edit_that_stood_beside_provision_is_not_shown_again() -> None:
    silent = stock()[0]
    other = Cause("sysctl-set", "something set it", silent.causes[0].remedy)
    twice = silent._replace(requirement=silent.requirement._replace(bound="hard"))
    lines = format_brief([silent, twice, fail("kernel", "z", "value", other)], Told())
    assert sum("echo 'x = 1'" in line for line in lines) == 1
    assert lines[-1] == "     run  # what stands above"


def test_a_line_is_added_after_an_empty_one_where_the_last_lacks_its_end() -> None:
    words = ("sh", "-c", "echo 'x' >> /etc/a")
    assert end_line_before(words, lambda _path: False) == words
    assert end_line_before(words, lambda path: path == "/etc/a") == (
        *("sh", "-c"),
        "printf '%s\\n' '' 'x' >> /etc/a",
    )
    assert end_line_before(("touch", "/etc/a"), lambda _path: True) == ("touch", "/etc/a")
