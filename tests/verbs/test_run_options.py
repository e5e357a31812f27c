# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line describes a run in the words of the policy."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest
from mlhost_limits import cli
from mlhost_limits.run_options import add_run_options, read_run
from mlhost_limits.training.policy import DEEPSPEED, KEYS, read_training


def parse(line: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    return dict(read_run(parser.parse_args(line.split())))


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("", {}),
        ("--workers 16 --prefetch 4", {"workers": "16", "prefetch": "4"}),
        ("--tensors-per-batch 8 --hold 1", {"tensors_per_batch": "8", "hold": "1"}),
        ("--cache-dir c --output-dir /o", {"cache_dir": f"{os.getcwd()}/c", "output_dir": "/o"}),
        ("--as-user alice --place job:slurm", {"user": "alice", "place": "job:slurm"}),
        ("--only cpus --only memory", {"checks": ["cpus", "memory"]}),
        ("--deep", {"deep": True}),
        ("--resume no", {"resume": False}),
        ("--sharing file_system", {"sharing": "file_system"}),
        (
            "--stage 2 --parameters 7e9 --offload-optimizer yes --zero-init no",
            {
                "deepspeed": {
                    "stage": "2",
                    "parameters": "7e9",
                    "offload_optimizer": True,
                    "zero_init": False,
                }
            },
        ),
        ("--gpus 8 --gpu-memory 80GiB", {"gpus": {"count": "8", "memory": "80GiB"}}),
        (
            "--package torch>=2,<3 --package trl --package !",
            {"packages": {"torch": ">=2,<3", "trl": "", "!": ""}},
        ),
        (f"--python {sys.executable}", {"python": os.path.abspath(sys.executable)}),
    ],
)
def test_what_is_given_is_said_and_nothing_else(line: str, run: dict[str, object]) -> None:
    assert parse(line) == run


def test_every_key_of_a_run_is_an_option() -> None:
    """Of its own name, but for those that are spelled as people write them."""
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    options = {flag[2:].replace("-", "_") for flag in parser._option_string_actions}
    spelled = {"checks": "only", "packages": "package", "user": "as_user"}
    left = {key for key in (*KEYS, *DEEPSPEED) if spelled.get(key, key) not in options}
    assert left == {"needs", "deepspeed"}


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("prefetch", "batches that each worker prefetches; by default 2"),
        ("zero_init", "whether the model is made under zero.Init"),
        ("hold", "batches that the program keeps beside the current one"),
    ],
)
def test_an_option_tells_what_the_policy_says_of_its_key(option: str, told: str) -> None:
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    assert next(one.help for one in parser._actions if one.dest == option) == told


def test_the_run_alone_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["preflight", "--profile", "dataloader", "--workers", "1", "--tensors-per-batch", "1"]
    assert cli.main(words) == cli.COMPLIES
    assert "session:" not in capsys.readouterr().out


def test_a_run_that_cannot_work_is_no_go(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["preflight", "--profile", "none", "--workers", "1", "--worker-memory", "100TiB"]
    assert cli.main(words) == cli.FALLS_SHORT
    assert "memory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--profile", "webdataset", "--shards", "2"], ["cache_dir", "workers"]),
        (["--profile", "webdataset", "--workers", "-3"], ["workers", "cache_dir"]),
    ],
)
def test_all_that_is_wrong_or_missing_is_told_at_once(
    words: list[str], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["preflight", *words]) == cli.REFUSED
    lines = capsys.readouterr().err.splitlines()
    assert {line.split(": ")[1] for line in lines} == {f"training.{key}" for key in told}


@pytest.mark.parametrize("option", ["--cache-dir", "--output-dir"])
def test_an_empty_path_is_not_the_current_directory(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["preflight", "--profile", "none", option, ""]) == cli.REFUSED
    assert "'' was given; an absolute path is accepted" in capsys.readouterr().err


def test_a_run_as_nobody_known_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["preflight", "--profile", "none", "--workers", "1", "--as-user", "nosuchuser"]
    assert cli.main(words) == cli.REFUSED
    assert "this host has no user nosuchuser" in capsys.readouterr().out


def test_an_option_wins_over_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"training": {"workers": 4, "worker_memory": "100TiB"}}')
    words = ["preflight", "--policy", str(path)]
    assert cli.main(words) == cli.FALLS_SHORT
    assert "4 workers" in capsys.readouterr().out
    assert cli.main([*words, "--workers", "0"]) == cli.COMPLIES


def test_a_check_has_no_options_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["check", "--workers", "1"])
    told = capsys.readouterr().err
    assert "unrecognized arguments: --workers" in told
    assert "a run is judged by: mlhost-limits preflight" in told


def test_a_profile_that_is_of_runs_alone_asks_nothing_of_a_host(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["check", "--profile", "webdataset"]) == cli.REFUSED
    assert "mlhost-limits preflight judges a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("64M", 2**26), ("64m", 2**26), ("1.5GiB", 3 * 2**29), ("8 GB", 2**33), ("4096", 4096)],
)
def test_sizes_are_read_as_people_type_them(typed: str, meant: int) -> None:
    parser = argparse.ArgumentParser()
    add_run_options(parser)
    run = read_run(parser.parse_args(["--batch-size", typed]))
    problems: list[str] = []
    training = read_training(run, problems)
    assert (training.batch_size if training else None, problems) == (meant, [])


def test_seven_b_is_a_number_of_parameters() -> None:
    assert parse("--parameters 7B") == {"deepspeed": {"parameters": 7 * 10**9}}


def test_a_size_that_would_be_a_few_bytes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Samples, to whoever types --batch-size 64; GiB, to whoever types --worker-memory 4."""
    words = ["--batch-size", "64", "--worker-memory", "4", "--workers", "1"]
    assert cli.main(["preflight", *words]) == cli.REFUSED
    told = capsys.readouterr().err
    unit = "was given; a size with a unit, such as"
    assert f"training.batch_size: '64' {unit} 64MiB or 64B, is accepted" in told
    assert f"training.worker_memory: '4' {unit} 4MiB or 4B, is accepted" in told
    assert cli.main(["preflight", "--workers", "0", "--worker-memory", "64B"]) == cli.COMPLIES


@pytest.mark.parametrize("name", ["second_me", "zero3_offload", "embedding_cache", "checkpoints"])
def test_a_profile_that_is_not_there_is_refused_with_those_that_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["preflight", "--profile", name])
    told = capsys.readouterr().err
    assert f"invalid choice: '{name}'" in told
    assert "deepspeed-zero3-offload" in told
