# SPDX-License-Identifier: GPL-3.0-or-later
"""What a script of a boot runs, loads, starts and goes through is read off its lines."""

from __future__ import annotations

import pytest
from mlhost_limits.kernel.boot_calls import (
    _MOST_COMMANDS,
    find_asked,
    find_called,
    find_calls,
    find_globs,
    find_loaded,
    find_parts,
    find_search_folders,
    find_searched,
    find_words,
    is_crowded,
    is_interpreted,
    join_commands,
    judge_call,
    list_loaded,
    list_paths,
    list_running,
    may_ask,
)

RC, UNIT = "/etc/rc.local", "/etc/systemd/system/x.service"
TUNE = "/opt/site/tune"


@pytest.mark.parametrize(
    ("path", "text", "loaded"),
    [
        (RC, "sysctl -p /a.conf /b.conf\n", ["/a.conf", "/b.conf"]),
        (RC, "sysctl -w a.b=1 /a.conf\n", []),
        (RC, "/usr/lib/systemd/systemd-sysctl /a.conf\n", ["/a.conf"]),
        (RC, "cat -p /a.conf\n", []),
        (RC, "D=/srv\nsysctl -p $D/a.conf\n", ["/srv/a.conf"]),
        (RC, "# sysctl -p /a.conf\n", []),
        (UNIT, "[Service]\nExecStart=/sbin/sysctl -p /a.conf\n", ["/a.conf"]),
        (UNIT, "[Service]\nExecReload=/sbin/sysctl -p /a.conf\n", []),
        (UNIT, "[Service]\nD=/srv\nExecStart=/sbin/sysctl -p $D/a.conf\n", []),
        ("/etc/default/ufw", "IPT_SYSCTL=/etc/ufw/sysctl.conf\n", ["/etc/ufw/sysctl.conf"]),
        ("/etc/default/ufw", "sysctl -p /a.conf\n", []),
        (RC, "IPT_SYSCTL=/etc/ufw/sysctl.conf\n", []),
    ],
)
def test_the_files_that_sysctl_is_given(path: str, text: str, loaded: list[str]) -> None:
    assert find_loaded(path, text) == loaded


def test_a_name_in_quotes_is_the_same_file() -> None:
    assert list_loaded("sysctl --load='/a.conf'") == ["/a.conf"]


@pytest.mark.parametrize(
    ("caller", "interpreted"),
    [
        (f"sh {TUNE}", True),
        (f". {TUNE}", True),
        ("cd /opt/site; bash -e ./tune", True),
        (f"python3 {TUNE}", True),
        (f"{TUNE} --fast", False),
        (f"sh /opt/other {TUNE}", False),
        ("sh /opt/other", False),
    ],
)
def test_what_is_given_to_an_interpreter(caller: str, interpreted: bool) -> None:
    assert is_interpreted(TUNE, caller) is interpreted


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (TUNE, True),
        (f"sh {TUNE}", True),
        ("cd /opt/site && ./tune", True),
        (f"[ -x /gpu ] && {TUNE}", None),
        (f"if x; then\n  {TUNE}\nfi", None),
        (f"run-parts -v {TUNE.rpartition('/')[0]}", True),
        (f"cp {TUNE} /srv", False),
        (f"chmod 755 {TUNE}", False),
        ("for f in /opt/site/t*; do $f; done", None),
        ("ls /opt/site/t*", False),
        ("find /opt/site -name 't*' -exec sh {} +", None),
        ("find /opt/other -name 't*' -exec sh {} +", False),
        (f"{TUNE}r", None),
        ("tune2fs -l", None),
        ("tun -l", False),
    ],
)
def test_whether_a_script_surely_runs_a_file(text: str, sure: bool | None) -> None:
    assert judge_call(RC, f"#!/bin/sh\n{text}\n", TUNE) is sure


@pytest.mark.parametrize(("length", "sure"), [(4096, None), (4097, False)])
def test_no_pattern_is_looked_for_in_a_very_long_line(length: int, sure: bool | None) -> None:
    line = f"for f in {TUNE}*; do $f; done".ljust(length)
    assert find_globs(line) == ({f"{TUNE}*"} if sure is None else set())
    assert judge_call(RC, f"#!/bin/sh\n{line}\n", f"{TUNE}-1") is sure


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        (TUNE, True),
        (f"true; {TUNE} -f", True),
        (f"{TUNE}; true", True),
        ("./tune", True),
        ("tune", True),
        ("/srv/tune", True),
        ("retune", False),
        (f"{TUNE}.old", False),
        (f"{TUNE}/x", True),
        (f"echo {TUNE}", False),
        ("sudo nice -n 5 echo tune", False),
        (f"# {TUNE}", False),
        (f"true # {TUNE}", False),
        ("for f in /opt/site/*; do $f; done", False),
        ("find /opt -type f -exec sh {} +", True),
        ("find /op -type f -exec sh {} +", False),
    ],
)
def test_the_lines_that_run_a_file(line: str, runs: bool) -> None:
    assert find_calls(RC, f"#!/bin/sh\n\n{line}\n", [TUNE]) == [3] * runs
    assert find_calls(RC, f"#!/bin/sh\n\n{line}\n", []) == []


def test_a_folder_with_a_blank_is_found_whole() -> None:
    name = "/srv/my scripts/tune"
    for line in (f'"{name}"', name.replace(" ", "\\ "), "sh '/srv/my scripts/tune' -f"):
        assert find_calls(RC, f"true\n{line}\n", [name]) == [2]
    assert find_calls(RC, "true\nsh '/srv/no scripts/tuned'\n", [name]) == []


def test_a_name_with_a_blank_is_found_behind_a_backslash() -> None:
    name = "/srv/my tune"
    assert find_calls(RC, "true\nsh /srv/my\\ tune\n", [name]) == [2]
    assert judge_call(RC, "#!/bin/sh\nfoo /srv/my\\ tune\n", name) is None
    assert judge_call(RC, "#!/bin/sh\nfoo /srv/my\\ tone\n", name) is False


def test_a_unit_that_does_not_name_a_file_may_run_it() -> None:
    assert judge_call(UNIT, "[Service]\nExecStart=/bin/true\n", TUNE) is None


def test_the_paths_of_a_text_and_those_from_where_it_goes() -> None:
    assert list_paths("cd /opt; ./a/b # /srv/c") == ["/srv/c", "/opt/a/b"]
    assert list_paths("./a/b") == []


def test_more_commands_than_anybody_writes() -> None:
    most = "sysctl /proc/sys\n" * (_MOST_COMMANDS // 2)
    assert not is_crowded(most)
    assert is_crowded(f"{most}sysctl")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("systemctl start a b.timer", {"a.service", "b.timer"}),
        ("systemctl -q --no-block restart a", {"a.service"}),
        ("systemctl enable --now a", {"a.service"}),
        ("systemctl enable a", set()),
        ("systemctl stop a", set()),
        ("service a start", {"a.service"}),
        ("service a restart", {"a.service"}),
        ("systemctl start a # b", {"a.service"}),
        ("# systemctl start a", set()),
        ("systemctl start --no-block a", {"a.service"}),
    ],
)
def test_the_units_that_a_script_starts(text: str, asked: set[str]) -> None:
    assert find_asked(RC, text) == asked


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("systemctl start a", True),
        ("systemctl start $A", False),
        ("systemctl start 5", False),
        ("service a start", True),
        ("systemctl stop a", False),
        ("start a", False),
    ],
)
def test_a_script_that_may_start_a_unit(text: str, may: bool) -> None:
    assert may_ask(text) is may


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("find /srv -type f -exec sh {} +", ["/srv"]),
        ("find -L '/srv/a/' -name x | xargs -r sh", ["/srv/a"]),
        ("find /srv -delete", []),
        ("ls /srv | xargs sh", []),
    ],
)
def test_the_folders_that_are_searched(text: str, folders: list[str]) -> None:
    assert find_searched(text) == folders


def test_a_very_long_text_is_not_looked_through_for_searches() -> None:
    text = "find /srv -type f -exec sh {} +".ljust(2**20)
    assert find_searched(text) == ["/srv"]
    assert find_searched(f"{text} ") == []


def test_of_folders_and_names_the_first_count() -> None:
    folders = "\n".join(f"cd /d{number}" for number in range(21))
    assert find_called(RC, f"{folders}\n./x") == [f"/d{number}/x" for number in range(20)]
    names = "\n".join(f"./n{number}" for number in range(201))
    assert find_called(RC, f"cd /d\n{names}") == [f"/d/n{number}" for number in range(200)]


def test_the_folders_of_commands_and_of_parts() -> None:
    text = 'PATH=/opt/bin/:/usr/bin:$PATH; export PATH="/srv:/sbin"\nMYPATH=/no\nPATH+=:/late\n'
    assert find_search_folders(text) == {"/opt/bin", "/srv", "/late"}
    assert find_parts("run-parts --test /etc/a/\nrun-parts /b\nparts /c") == {"/etc/a", "/b"}


def test_the_words_that_may_be_commands() -> None:
    words = find_words(RC, "#!/bin/sh\n# no\nA=tune x-y /srv/z ./w\n")
    assert words == {"A", "tune", "x-y"}


def test_what_of_a_unit_may_run_something() -> None:
    unit = "[Unit]\nDescription=/a\n[Service]\nExecStart=/b\nEnvironment=C=/c\nNice=/d\n"
    assert join_commands(UNIT, unit).split("\n") == ["/b", "C=/c"]
    assert join_commands(RC, unit) == unit


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("/opt/a/b\n# /opt/c\ntrue # /opt/d\n/opt/e/f # x", ["/opt/a/b", "/opt/e/f"]),
        ("  # /opt/a/b", []),
        ("/opt/a/b", ["/opt/a/b"]),
        ("cd /opt; ./a/b", ["/opt/a/b"]),
        ('true # /opt/c/d\necho "', []),
        ('# /opt/a/b "x', []),
        ("x=/dev/null; /proc/a/b; /sys/a/b; /run/a/b", []),
    ],
)
def test_the_files_that_a_script_runs(text: str, called: list[str]) -> None:
    assert find_called(RC, text) == called


def test_of_a_unit_and_of_a_crontab_what_root_runs() -> None:
    unit = "[Service]\nExecStart=/opt/a/b\nEnvironment=X=/opt/c/d\nExecReload=/opt/e/f\n"
    assert find_called(UNIT, unit) == ["/opt/a/b", "/opt/c/d"]
    jobs = "SHELL=/opt/s/h\n@reboot root /opt/a/b\n@reboot bob /opt/c/d\n0 * * * * bob /opt/e/f\n"
    assert find_called("/etc/crontab", jobs) == ["/opt/s/h", "/opt/a/b"]
    assert find_called("/etc/cron.d/x", jobs) == ["/opt/s/h", "/opt/a/b"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a\nexit 0\nb", [1]),
        ("a\nif x; then\nexit\nfi\nb", [1, 2, 3, 4, 5]),
        ("a\nexec b\nc", [1, 2]),
        ("a\nx &&\nexit\nb", [1, 2, 3, 4]),
        ("echo 'a\nexit\n'\nb", [1, 2, 3, 4]),
        ("cat <<E\nexit\nE\nb", [1, 2, 3, 4]),
        ("(\nexit\n)\nb", [1, 2, 3, 4]),
        ("a\n  exit 0\nb", [1, 2, 3]),
        ("case x in\na) b ;;\nesac\nexit 1\nb", [1, 2, 3, 4, 5]),
        ("echo 'a'\nexit\nb", [1]),
        ('echo "a"\nexit\nb', [1]),
        ("if x; then\na\nfi\nexit\nb", [1, 2, 3]),
        ("# if x\nexit\nb", []),
        ("exit\na\nexit\nb", []),
    ],
)
def test_where_a_script_ends(text: str, numbers: list[int]) -> None:
    assert [number for number, _line in list_running(RC, text)] == numbers
