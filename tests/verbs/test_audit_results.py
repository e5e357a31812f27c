# SPDX-License-Identifier: GPL-3.0-or-later
"""Results travel as files, folders and streams; what is odd about one is on the page as such."""

from __future__ import annotations

import gzip
import io
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from mlhost_limits import audit_files, audit_results, audit_stream, cli
from mlhost_limits.audit_results import read_clock, read_hosts
from mlhost_limits.audit_stream import split_documents
from mlhost_limits.fleet import HostResult

FINDING = {"status": "pass", "place": "kernel", "item": "a", "bound": "value", "observed": "1"}


def tell_time(hours: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - hours * 3600))


def make(host: str, hours: float = 0, **more: object) -> dict[str, object]:
    head = {"format": "mlhost.limits/check", "version": 1, "host": host, "policy": "sha256:1"}
    return {**head, "measured": tell_time(hours), "findings": [FINDING], **more}


def read(
    monkeypatch: pytest.MonkeyPatch, content: bytes, hours: float = 24
) -> tuple[list[HostResult], list[str]]:
    """Return what standard input is read as, and the problems with it."""
    stream = io.BufferedReader(io.BytesIO(content))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    problems: list[str] = []
    return list(read_hosts(["-"], read_clock(hours), problems)), problems


def split(content: bytes, most: int = 2**20) -> list[object]:
    """Return the documents, or of one that is garbled the first word of what is wrong."""
    told = split_documents(io.BytesIO(content), most)
    return [problem.split(":")[0] or value for value, problem in told]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", []),
        (b' \n{"a": 1}\n\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        (b'{"a": 1}{"b": "}{"}{"c": 3}', [{"a": 1}, {"b": "}{"}, {"c": 3}]),
        (b'{\n  "a": [\n    {"b": 1}\n  ]\n}\n{"c": 1}\n', [{"a": [{"b": 1}]}, {"c": 1}]),
        (b'{"a": [1, \n{"b": 2}\n', ["is not JSON", {"b": 2}]),
        (b'<html>\n{"b": 2}\nmore', ["is not JSON", {"b": 2}, "is not JSON"]),
        (b'\xff\x00\n{"b": 2}', ["is not JSON", {"b": 2}]),
        (b"[" * 100_000 + b'\n{"b": 2}', ["is not JSON", {"b": 2}]),
        (b'{"a": ' + b"1" * 5000 + b'}\n{"b": 2}', ["is not JSON", {"b": 2}]),
        (b'{"a": NaN}\n{"b": 2}', ["is not JSON", {"b": 2}]),
        (b"x" * 5_000_000 + b'\n{"b": 2}', ["is larger than 1 MiB", {"b": 2}]),
        (b'{"a": "' + b"x" * 2_000_000 + b'"}\n{"b": 2}', ["is larger than 1 MiB", {"b": 2}]),
    ],
)
def test_a_stream_is_split_and_garbage_ends_at_the_next_line_with_a_brace(
    content: bytes, found: list[object]
) -> None:
    assert split(content) == found


def test_documents_may_lie_across_what_is_read_at_once() -> None:
    one = {"a": "x" * 700_000, "b": [{"c": 1}] * 1000}
    for text in (json.dumps(one), json.dumps(one, indent=2) + "\n"):
        assert split(text.encode() * 7) == [one] * 7


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_stream_holds_many_hosts(pack: type[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are joined: each may be compressed alone."""
    parts = [pack(json.dumps(make(f"n{number}")).encode()) for number in range(3)]
    hosts, problems = read(monkeypatch, b"".join(parts))
    assert ([one.name for one in hosts], problems) == (["n0", "n1", "n2"], [])
    assert {one.policy for one in hosts} == {"sha256:1"}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (make("../../etc/x"), "'../../etc/x' is not the name of a host"),
        (make(".."), "'..' is not the name of a host"),
        (make("a\x1b[31m"), "'a\\x1b[31m' is not the name of a host"),
        (make("n" * 300), "is not the name of a host"),
        (make(""), "does not say which host it is of"),
        ({**make("n"), "host": ["n"]}, "does not say which host it is of"),
        (make("n", version=2), "is a result of version 2; 1 is accepted"),
        (make("n", measured=0), "measured: is 0; a text or null is accepted"),
        (make("n", format="x"), "is neither a result of the check nor a report"),
        (make("n", version=[1]), "is a result of version [1]; 1 is accepted"),
        (make("n", findings={}), "findings: is {}; a list is accepted"),
        ([1], "is neither a result of the check nor a report"),
    ],
)
def test_what_is_no_result_is_told_with_its_place_in_the_stream(
    result: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps(one) for one in (make("good"), result, make("last"))]
    hosts, (problem,) = read(monkeypatch, "\n".join(lines).encode())
    assert [one.name for one in hosts] == ["good", "last", "document 2 of standard input"]
    assert [one.state for one in hosts] == ["checked", "checked", "garbled"]
    assert problem.startswith("document 2 of standard input: ")
    assert told in problem


def test_a_result_that_is_old_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "\n".join(json.dumps(one) for one in (make("new", 1), make("old", 30)))
    for hours, states in ((24, ["checked", "stale"]), (48, ["checked", "checked"])):
        hosts, problems = read(monkeypatch, content.encode(), hours)
        assert ([one.state for one in hosts], problems) == (states, [])
    stale = read(monkeypatch, content.encode())[0][1]
    assert stale.status == "unchecked"
    assert stale.reason == f"was measured at {tell_time(30)}, more than 24 hours ago"
    assert not stale.findings


def test_a_clock_that_is_ahead_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, _problems = read(monkeypatch, json.dumps(make("n", -100)).encode())
    assert hosts[0].note.startswith("its clock is ahead: it says ")


def test_a_host_is_there_once_and_its_double_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts, (problem,) = read(monkeypatch, json.dumps(make("n")).encode() * 2)
    assert [(one.name, one.state) for one in hosts] == [
        ("n", "checked"),
        ("n in document 2 of standard input", "garbled"),
    ]
    assert problem.endswith("is of the host n, and so is document 1 of standard input")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["{", make("a"), make("b")], {"a": "checked", "b": "checked", "a in a.json": "garbled"}),
        ([make("a", 30), make("a", 1)], {"a": "checked"}),
        ([make("a", 40), make("a", 30)], {"a": "stale"}),
        (["{", make("a", 30)], {"a": "stale", "a in a.json": "garbled"}),
        ([{"host": "a", "unreachable": True}, make("a")], {"a": "checked"}),
        ([{"host": "a", "failed": True}, make("a", 30)], {"a": "stale"}),
    ],
)
@pytest.mark.parametrize("turns", [False, True])
def test_what_says_nothing_of_a_host_hides_no_result_of_it(
    files: list[object], found: dict[str, str], turns: bool, tmp_path: Path
) -> None:
    names = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json")[: len(files)]]
    for name, one in zip(names, files):
        Path(name).write_text(one if isinstance(one, str) else json.dumps(one))
    told = reversed(names) if turns else names
    hosts = {one.name: one for one in read_hosts(list(told), read_clock(24), [])}
    assert {name: one.state for name, one in hosts.items()} == found
    assert found["a"] == "checked" or hosts["a"].measured > tell_time(35)


def test_a_file_that_is_named_again_and_again_is_so_many_entries(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(make("n")))
    problems: list[str] = []
    names = [one.name for one in read_hosts([f"{tmp_path}/g.json"] * 4, read_clock(24), problems)]
    assert names == ["n", "n in g.json", "n in g.json (2)", "n in g.json (3)"]
    assert len(problems) == 3


def test_much_garbage_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\n{x" * 5000 + b"\n" + json.dumps(make("n")).encode()
    hosts, problems = read(monkeypatch, content)
    assert len(hosts) == 102
    assert hosts[0].state == "checked"
    assert problems[-1] == "standard input: 4900 more documents are no results"
    monkeypatch.setattr(audit_results, "_MOST_GARBLED", 50)
    hosts, problems = read(monkeypatch, content)
    assert (len(hosts), hosts[-1].name) == (51, "standard input")
    assert problems[-1].endswith("50 documents are no results; the rest was not read")


def test_a_stream_without_a_result_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for content in (b"", gzip.compress(b"{}" * 9)[:-9]):
        _hosts, problems = read(monkeypatch, content)
        read(monkeypatch, content)
        monkeypatch.setattr(
            sys,
            "stdin",
            SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content))),
        )
        assert cli.main(["report", "-"]) == 2
        told = [f"mlhost-limits: {one}" for one in [*problems, "no report was written"]]
        assert capsys.readouterr().err.splitlines() == told
    assert not list(tmp_path.iterdir())


def test_a_folder_holds_plain_and_compressed_results(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"findings": [FINDING]}))
    packed = gzip.compress(json.dumps({"findings": [FINDING]}).encode())
    (tmp_path / "b.c.json.gz").write_bytes(packed)
    (tmp_path / "cut.json.gz").write_bytes(packed[:-9])
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 2**25))
    (tmp_path / "vast.json").write_bytes(b"")
    with open(tmp_path / "vast.json", "r+b") as file:
        file.truncate(2**30)
    problems: list[str] = []
    hosts = list(read_hosts([str(tmp_path)], read_clock(24), problems))
    assert {one.name: one.state for one in hosts} == {
        "a": "checked",
        "b.c": "checked",
        "bomb": "garbled",
        "cut": "garbled",
        "vast": "garbled",
    }
    told = [one.rpartition("/")[2] for one in sorted(problems)]
    assert told[0] == "bomb.json.gz: is larger than 16 MiB"
    assert told[1].startswith("cut.json.gz: is not whole: ")
    assert told[2] == "vast.json: is larger than 16 MiB"


def test_a_document_of_many_values_is_refused_before_it_takes_their_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = b'{"format": "mlhost.limits/audit", "version": 1, "hosts": {"a": ['
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(head + b"[]," * 6_000_000 + b"1]}}"))
    monkeypatch.setattr(audit_files.DECODER, "decode", lambda _text: pytest.fail("it was parsed"))
    monkeypatch.setattr(audit_files, "_MOST_MEMORY", 2**30)
    (host,) = read_hosts([str(path)], read_clock(24), [])
    assert host.reason == f"{path}: would take more than 1024 MiB of memory"


def test_a_file_for_which_memory_does_not_suffice_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: object) -> None:
        raise MemoryError

    (tmp_path / "a.json").write_text("{}")
    monkeypatch.setattr(audit_files.DECODER, "decode", fail)
    monkeypatch.setattr(audit_stream.DECODER, "raw_decode", fail)
    (host,) = read_hosts([str(tmp_path)], read_clock(24), [])
    assert host.reason == f"{tmp_path}/a.json: needs more memory than there is"
    _hosts, problems = read(monkeypatch, b"{}")
    assert problems == ["document 1 of standard input: needs more memory than there is"]


def test_many_problems_are_cut_on_the_terminal_and_whole_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/good.json").write_text(json.dumps(make("good")))
    for number in range(30):
        (tmp_path / f"in/bad{number:02d}.json").write_text("{")
    assert cli.main(["report", "in", "-o", "out.json"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert (len(told), told[-1]) == (21, "mlhost-limits: and 10 more; the report has each")
    assert len(json.loads((tmp_path / "out.json").read_text())["hosts"]) == 31


def test_hosts_that_another_policy_judged_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = [make("a"), make("b"), make("c", policy="sha256:2"), make("d", policy="")]
    (tmp_path / "in.json").write_text("\n".join(map(json.dumps, results)))
    with open("in.json", "rb") as file:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
        assert cli.main(["report", "-", "-o", "out.html", "--format", "html,json"]) == 0
    page = (tmp_path / "out.html").read_text()
    assert page.count("it was judged by another policy than most hosts") == 1
    hosts = json.loads((tmp_path / "out.json").read_text())["hosts"]
    assert [one["policy"] for one in hosts.values()] == ["sha256:1", "sha256:1", "sha256:2", ""]


@pytest.mark.parametrize("hours", ["0", "-1", "x", "nan", "1e9"])
def test_an_age_that_is_none_is_refused(hours: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["report", "-", f"--max-age={hours}"])
    assert stopped.value.code == 2
    assert "a number of hours above 0, up to 87600, is accepted" in capsys.readouterr().err


def test_every_writer_gives_the_same_policy_the_same_digest() -> None:
    """Also where a share of this host's memory is stated, and where a run is asked for as well."""
    from mlhost_limits.result import digest_policy
    from mlhost_limits.schema import load_policy, merge_profile

    policy = {"sessions": [{"users": ["*"], "limits": {"memlock": "50%"}}]}
    loaded = load_policy(policy, "dataloader")
    assert loaded.stated["sessions"] == policy["sessions"], "a share is a share on every host"
    first = digest_policy(loaded.stated)
    whole = {**merge_profile(policy, "dataloader")}
    assert "training" in whole
    del whole["training"]
    assert digest_policy(load_policy(whole, "none").stated) == first
    assert digest_policy(load_policy(policy, "training").stated) != first
