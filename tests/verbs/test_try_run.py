# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's own command shows what is else assumed, leaves nothing behind, and is ended whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits import cli
from mlhost_limits.host.as_user import Ended
from mlhost_limits.training import loader_hook_measure, try_measure

from tests.worlds.loaders import lay_torch

NOBODY, SYSTEM_PYTHON = 65534, "/usr/bin/python3"
TOP = Path(__file__).parents[2]
TRAIN = """
import time
from torch.utils.data import DataLoader
from pathlib import Path
for batch in DataLoader([(1, 2)] * 9, num_workers=2, prefetch_factor=7, persistent_workers=True):
    Path("left").write_text("here")
print(Path("left").read_text())
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter a folder with a stand-in for torch."""
    for name in ("LOCAL_WORLD_SIZE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        lay_torch(Path(name))
        Path(name).chmod(0o755)
        (Path(name) / "train.py").write_text(TRAIN)
        monkeypatch.chdir(name)
        yield Path(name)


def can_confine() -> bool:
    """Tell whether this host gives who runs the tests mounts of their own."""
    source = Path(str(try_measure.__file__)).with_name("confine_measure.py").read_text()
    given = {"confines": True, "folder": "/", "paths": []}
    words = [sys.executable, "-I", "-S", "-c", source, json.dumps(given), "true"]
    done = subprocess.run(words, capture_output=True, check=False, text=True)
    return '"open"' not in done.stdout


confined = pytest.mark.skipif(not can_confine(), reason="this host gives no mounts of our own")


def judge(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the status, what is printed, and what is complained of."""
    status = cli.main(["preflight", *words])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    return status, " ".join(told.out.split()), told.err.strip()


def attempt(
    capsys: pytest.CaptureFixture[str], *words: str, script: str = "train.py"
) -> tuple[int, str, str]:
    return judge(capsys, "--try", "5", *words, "--", sys.executable, script)


@confined
def test_what_is_measured_takes_the_place_of_what_is_assumed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(here.rglob("*"))
    status, told, errors = attempt(capsys)
    assert (status, errors) == (cli.COMPLIES, "")
    assert told.startswith("note workers 2 (measured: 5 batches of train.py), prefetch 7 (measured")
    for one in ("tensors_per_batch 2", "batch_size 12B", "hold 0", "loaders 1", "epochs 1"):
        assert f"{one} (measured)" in told
    assert "sharing file_system (measured)" in told
    assert "assumed" not in told
    assert sorted(here.rglob("*")) == before, "nothing is left"
    assert "can_confine" not in told


def test_what_is_let_write_writes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _errors = attempt(capsys, "--let-write")
    assert status == cli.COMPLIES
    assert "tensors_per_batch 2 (measured)" in told
    assert (here / "left").read_text() == "here"


@confined
def test_a_launcher_and_a_shell_hand_it_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "go.sh").write_text(f"export LOCAL_WORLD_SIZE=2\n{sys.executable} train.py\n")
    status, told, _errors = judge(capsys, "--try", "3", "--", "sh", "go.sh")
    assert status == cli.COMPLIES
    assert "ranks_per_node 2 (measured)" in told


@confined
def test_what_is_stated_counts_and_both_are_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _status, told, _errors = attempt(capsys, "--workers", "4", "--batch-size", "1MiB")
    assert "workers 4 counts, as stated, not 2 (measured: 5 batches of train.py)" in told
    assert "batch_size 1MiB counts, as stated, not 12B (measured: 5 batches of" in told


@pytest.mark.parametrize("number", ["0", "-1", "abc", "1000000000", "1.5", "²"])
def test_a_number_of_batches_is_one(capsys: pytest.CaptureFixture[str], number: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["preflight", "--try", number, "--", "python", "train.py"])
    assert ended.value.code == cli.REFUSED
    told = capsys.readouterr().err
    assert f"{number!r} was given; a whole number from 1 to 10000 is accepted" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--try 3", "--try: no command follows --"),
        ("--try 3 --", "--try: no command follows --"),
        ("--let-write -- python t.py", "--let-write: says how --try runs a command, and --try is"),
        ("--try 3 -- A=1", "--try: no command follows its variables"),
        ("--try 3 -- /no/such train.py", "--try: /no/such: No such file or directory"),
        ("--try 3 -- docker run image python train.py", "--try: docker starts the run where"),
        ("--try 3 -- srun python train.py", "--try: srun starts the run where"),
        ("--try 3 --place job:slurm -- python train.py", "--try: runs the command as place: self"),
    ],
)
def test_a_command_that_cannot_be_tried_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    if "/no/such" in words and not can_confine():
        words = words.replace("--try", "--let-write --try")
    status, _printed, errors = judge(capsys, *words.split())
    assert status == cli.REFUSED
    assert told in errors


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("raise KeyError('no such shard')", "t.py ended with status 1 after 0 of 5 batches: "),
        ("import time; time.sleep(600)", "t.py made 0 of 5 batches within 2 s; --time-limit"),
        ("import os; os.kill(os.getpid(), 9)", "t.py was killed by signal 9 after 0 of 5"),
    ],
)
def test_a_script_that_makes_no_batch_is_no_go(
    here: Path, capsys: pytest.CaptureFixture[str], script: str, told: str
) -> None:
    (here / "t.py").write_text(script)
    words = ["--let-write", "--time-limit", "2"]
    status, _printed, errors = attempt(capsys, *words, script="t.py")
    assert status == cli.REFUSED
    assert f"--try: {told}" in errors


def test_a_script_without_a_loader_is_judged_as_assumed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.py").write_text("print(1)")
    status, told, _errors = attempt(capsys, "--let-write", "--workers", "1", script="t.py")
    assert status == cli.COMPLIES
    assert "t.py: makes no DataLoader: nothing was measured" in told
    assert "tensors_per_batch 8 (assumed" in told


def test_all_that_it_starts_ends_with_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = "subprocess.Popen(['sleep', '677'], start_new_session=True)"
    (here / "t.py").write_text(f"import subprocess, time; {start}; time.sleep(600)")
    attempt(capsys, "--let-write", "--time-limit", "2", script="t.py")
    assert not find_process("sleep\0677\0")


def find_process(words: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [str(path)] if path.read_text() == words else []
        except OSError:
            continue
    return found


def test_it_ends_soon_after_who_asked_was_killed(here: Path) -> None:
    (here / "t.py").write_text("import time; open('began', 'w'); time.sleep(687)")
    start = (
        "import sys; from tests.conftest import load_library; load_library();"
        " from mlhost_limits.cli import main; main(sys.argv[1:])"
    )
    words = ["preflight", "--try", "3", "--let-write", "--", sys.executable, "t.py"]
    asker = subprocess.Popen(
        [sys.executable, "-c", start, *words], env={**os.environ, "PYTHONPATH": str(TOP)}
    )
    wait_for(lambda: (here / "began").exists())
    asker.send_signal(signal.SIGKILL)
    asker.wait()
    wait_for(lambda: not find_process(f"{sys.executable}\0t.py\0"))


def wait_for(is_so: object) -> None:
    assert callable(is_so)
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@confined
def test_a_script_keeps_its_own_way_of_beginning(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "own").mkdir()
    (here / "own" / "sitecustomize.py").write_text("import builtins; builtins.began = 9")
    script = TRAIN.replace("num_workers=2", "num_workers=began")
    (here / "train.py").write_text(f"import sys\nassert 'own' in sys.path[1]\n{script}")
    monkeypatch.setenv("PYTHONPATH", str(here / "own"))
    _status, told, errors = attempt(capsys)
    assert not errors
    assert "workers 9 (measured" in told


@pytest.mark.root
def test_root_runs_nothing_of_a_users(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.chown(here / "train.py", NOBODY, -1)
    status, _told, errors = attempt(capsys)
    assert status == cli.REFUSED
    assert "train.py is nobody's, and root runs nothing of a user's; state --as-user nob" in errors


@pytest.mark.root
@pytest.mark.parametrize(
    "kind",
    [
        "option",
        "variable",
        "inherited",
        "glued",
        "shell",
        "beside",
        "folder",
        "script's",
        "writable",
    ],
)
def test_root_runs_nothing_that_a_user_may_change(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whatever names it, and whoever the file's own owner is."""
    theirs = here / "theirs"
    theirs.mkdir()
    (theirs / "train.py").write_text(TRAIN)
    os.chown(theirs, 0 if kind in ("beside", "folder", "writable") else NOBODY, -1)
    words = {
        "option": ["python3", "train.py", f"--config={theirs}"],
        "variable": [f"PYTHONPATH={here}:{theirs}", "python3", "train.py"],
        "inherited": ["python3", "train.py"],
        "glued": ["python3", f"-I{theirs}", "train.py"],
        "shell": ["sh", "-c", f"cd '{theirs}' && python3 train.py"],
        "script's": ["python3", "theirs/train.py"],
    }
    if kind == "beside":
        (here / "utils.py").write_text("")
        os.chown(here / "utils.py", NOBODY, -1)
    elif kind == "inherited":
        monkeypatch.setenv("PYTHONPATH", f"{here}:{theirs}")
    elif kind == "folder":
        os.chown(here, NOBODY, -1)
    elif kind == "writable":
        here.chmod(0o1777)
    status, told, errors = judge(
        capsys, "--try", "3", "--", *words.get(kind, ["python3", "train.py"])
    )
    assert (status, told) == (cli.REFUSED, "")
    whose = "can be changed by users other than root" if kind == "writable" else "is nobody's"
    assert f"{whose}, and root runs nothing of a user's; state --as-user " in errors


@pytest.mark.parametrize(
    ("status", "said", "late", "told"),
    [
        (0, "[" * 100_000, False, "ended with status 0, so nothing is known"),
        (-9, "", False, "was killed by signal 9, so nothing is known"),
        (-9, "", True, "was late, and ended with all it started"),
        (127, "", False, "cannot run"),
    ],
)
def test_a_watcher_that_says_nothing_is_told_as_it_ended(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    said: str,
    late: bool,
    told: str,
) -> None:
    monkeypatch.setattr(try_measure, "run_as_user", lambda _errand: Ended(status, said, late))
    found, _printed, errors = attempt(capsys)
    assert found == cli.REFUSED
    assert told in errors


@confined
@pytest.mark.parametrize("made", ["os.mkfifo(path)", "open(path, 'w').write('[' * 10**5)"])
def test_a_script_that_writes_among_the_reports_is_told(
    here: Path, capsys: pytest.CaptureFixture[str], made: str
) -> None:
    folder = f"os.environ[{loader_hook_measure.FOLDER!r}]"
    lines = ["import os, time", f"path = {folder} + '/1.json'", made, "time.sleep(60)"]
    (here / "train.py").write_text("\n".join(lines))
    status, _printed, errors = attempt(capsys)
    assert status == cli.REFUSED
    assert errors.endswith("1.json: is not a report of its loaders")


@confined
@pytest.mark.root
def test_no_memory_of_system_v_is_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("/proc/sysvipc/shm").read_text()
    lines = ["import ctypes", "assert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0", TRAIN]
    (here / "train.py").write_text("\n".join(lines))
    status, _told, errors = attempt(capsys)
    assert (status, errors) == (cli.COMPLIES, "")
    assert Path("/proc/sysvipc/shm").read_text() == before


@confined
@pytest.mark.root
@pytest.mark.skipif(not os.path.exists(SYSTEM_PYTHON), reason="needs a Python that others may run")
def test_root_runs_it_as_the_user(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", SYSTEM_PYTHON)
    script = f"import os\nassert os.getuid() == {NOBODY} and 'SECRET' not in os.environ\n{TRAIN}"
    (here / "train.py").write_text(script)
    here.chmod(0o777)
    monkeypatch.setenv("SECRET", "x")
    status, told, errors = attempt(capsys, "--as-user", "nobody")
    assert not errors
    assert status in (cli.COMPLIES, cli.FALLS_SHORT, cli.REFUSED)
    assert "tensors_per_batch 2 (measured)" in told
    assert not (here / "left").exists()
