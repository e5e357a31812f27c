# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel holds the library that Ansible ships, without a copy, and its command works."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the project into an environment of its own, as a user would."""
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / "venv", with_pip=True)
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", str(TOP)], check=True, cwd=folder)
    return folder / "venv/bin/mlhost-limits"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def test_the_installed_library_is_the_file_ansible_ships(command: Path) -> None:
    code = "import mlhost_limits.schema as s; print(open(s.__file__).read(), end='')"
    shipped = (TOP / "plugins/module_utils/schema.py").read_text()
    assert run(command.parent / "python", "-c", code).stdout == shipped


def test_every_file_that_ansible_ships_can_be_imported(command: Path) -> None:
    library = TOP / "plugins/module_utils"
    paths = [one.relative_to(library).with_suffix("") for one in library.rglob("*.py")]
    names = sorted(".".join(("mlhost_limits", *one.parts)) for one in paths)
    lines = [f"import {name.removesuffix('.__init__')}" for name in names]
    assert len(lines) > 500
    run_checked(command.parent / "python", "-I", "-c", "\n".join(lines))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["why", "OSError: [Errno 24] Too many open files"], "nofile"),
        (["watch", "--", "true"], ""),
        (["heal", "--all", "--check", "--profile", "none", "--policy", "-"], "nothing"),
        (["preflight", "--", "python", "train.py"], "workers"),
    ],
)
def test_verbs_with_folders_of_their_own_run(command: Path, words: list[str], told: str) -> None:
    policy = '{"kernel": {"fs.file-max": 1}}'
    done = subprocess.run([command, *words], input=policy, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert told in done.stdout


def test_check_says_what_it_saw_and_exits_with_the_verdict(command: Path) -> None:
    done = run(command, "check", "--json", "--canary", "never")
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["summary"]["fail"] else 0)
    assert found["findings"][0]["place"] == "kernel"


def test_unknown_counts_only_when_asked(command: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"processes": [{"name": "no-such-name", "limits": {"nofile": 1}}]}')
    words = (command, "check", "--profile", "none", "--policy", policy)
    assert run(*words).returncode == 0
    assert run(*words, "--strict").returncode == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty, so nothing would be required"),
        ("[]", "policy: a list was given; a mapping is accepted"),
        ('{"kernel": {"vm.max_map_count": {"mim": 1}}}', "kernel.vm.max_map_count.mim: is unknown"),
    ],
)
def test_a_bad_policy_is_refused_in_a_sentence(
    command: Path, tmp_path: Path, text: str, message: str
) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(text)
    done = run(command, "check", "--policy", policy)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_resolve_names_the_line_that_wins_and_what_it_shadows(
    command: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "etc/security/limits.d"
    folder.mkdir(parents=True)
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n"
    )
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
    (folder.parent / "limits.conf").write_text("# nothing\n")
    (folder / "10-a.conf").write_text("* soft nofile 4096\n")
    (folder / "20-b.conf").write_text("alice soft nofile 1024\n")
    done = run(command, "resolve", "--root", tmp_path, "--user", "alice", "--json")
    (stated,) = json.loads(done.stdout)["statements"]
    assert stated["value"] == "1024"
    assert stated["declared"]["file"] == "/etc/security/limits.d/20-b.conf"
    assert [line["file"] for line in stated["shadows"]] == ["/etc/security/limits.d/10-a.conf"]


def test_resolve_refuses_a_tree_that_is_not_there(command: Path) -> None:
    done = run(command, "resolve", "--root", "/no/such/tree")
    assert (done.returncode, done.stderr) == (
        2,
        "mlhost-limits: /no/such/tree: is not a directory\n",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("kitchen", "nofile"),
            "'kitchen' is not a place to explain; accepted are kernel, session:USER@",
        ),
        (("session:root@su", "cake"), "'cake' is not a limit; accepted are cpu, fsize"),
        (("session:no-such@su", "nofile"), "no user 'no-such' on this host"),
        (("session:root@no-such", "nofile"), "no PAM service 'no-such' on this host"),
    ],
)
def test_what_cannot_be_explained_is_told(
    command: Path, words: tuple[str, ...], message: str
) -> None:
    done = run(command, "explain", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"mlhost-limits: {message}" in done.stderr


def test_the_wheel_would_be_taken_where_wheels_are_shared(tmp_path: Path) -> None:
    build = ["pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run_checked(sys.executable, "-m", *build, "--wheel-dir", tmp_path, TOP)
    (wheel,) = tmp_path.glob("*.whl")
    assert "PASSED" in run_checked(sys.executable, "-m", "twine", "check", "--strict", wheel)


def run_checked(*words: object) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
