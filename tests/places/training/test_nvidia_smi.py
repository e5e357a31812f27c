# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi prints is read, whatever it leaves out.

The outputs are written by hand after the manual of nvidia-smi; none was captured, for no GPU was at
hand.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlhost_limits.core.finding import Finding
from mlhost_limits.training.gpus_check import (
    Gpu,
    GpuProcess,
    choose_visible,
    judge_gpus,
    leave_unknown,
    parse_gpus,
    parse_processes,
)

GIB = 2**30
TWO = """0, GPU-5a1b0000-aaaa, NVIDIA A100-SXM4-80GB, 81920, 4, Enabled, Disabled
1, GPU-5a1b0000-bbbb, NVIDIA A100-SXM4-80GB, 81920, 73728, Enabled, Disabled
"""
CONSUMER = "0, GPU-77, NVIDIA GeForce RTX 3090, 24576, 310, Disabled, [N/A]\n"
ODD = "0, GPU-1, Tesla K80, Not, a real name, [Not Supported], [N/A], [Unknown Error], [N/A]\n"
BUSY = "GPU-5a1b0000-bbbb, 4711, /home/alice/venv/bin/python, 73700\n"


def test_gpus_are_read() -> None:
    first, second = parse_gpus(TWO)
    assert first == Gpu(
        0, "GPU-5a1b0000-aaaa", "NVIDIA A100-SXM4-80GB", 80 * GIB, 4 * 2**20, True, False
    )
    assert second.used == 72 * GIB
    assert parse_gpus(CONSUMER)[0][5:] == (False, None)
    assert parse_gpus("") == []


def test_what_the_driver_does_not_tell_is_unknown() -> None:
    expected = Gpu(0, "GPU-1", "Tesla K80, Not, a real name", None, None, None, None)
    assert parse_gpus(ODD) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "No devices were found\n",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n",
        'Field "mig.mode.current" is not a valid field to query.\n',
    ],
)
def test_a_message_is_no_gpu(text: str) -> None:
    with pytest.raises(ValueError, match="nvidia-smi says: "):
        parse_gpus(text)


@given(st.text(max_size=200))
def test_whatever_it_prints_is_read_or_refused(text: str) -> None:
    parse_processes(text)
    with contextlib.suppress(ValueError):
        assert all(isinstance(one.number, int) for one in parse_gpus(text))


def test_processes_are_read() -> None:
    text = BUSY + "GPU-1, 12, [Insufficient Permissions], [N/A]\nNo running processes found\n\n"
    assert parse_processes(text) == [
        GpuProcess("GPU-5a1b0000-bbbb", 4711, "python", 73700 * 2**20),
        GpuProcess("GPU-1", 12, "[Insufficient Permissions]", None),
    ]


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        (None, [0, 1]),
        ("", []),
        ("1", [1]),
        ("1,0", [1, 0]),
        ("0, 1", [0, 1]),
        ("0,7,1", [0]),
        ("1,1", [1]),
        ("GPU-5a1b0000-b", [1]),
        ("GPU-5a1b", []),
        ("-1", []),
    ],
)
def test_cuda_sees_what_the_variable_names(visible: str | None, numbers: list[int]) -> None:
    assert [one.number for one in choose_visible(parse_gpus(TWO), visible)] == numbers


def look(text: str, number: int = 1, memory: int | None = None, busy: str = "") -> list[Finding]:
    return list(judge_gpus(parse_gpus(text), parse_processes(busy), number, memory))


def told(findings: list[Finding]) -> list[str]:
    return [
        f"{one.status} {one.requirement.place} {one.requirement.item}"
        + "".join(f" {cause.code}" for cause in one.causes)
        for one in findings
    ]


def test_enough_pass() -> None:
    assert told(look(TWO, 2)) == ["pass gpu number", "pass gpu persistence"]
    assert told(look(TWO, 1, 79 * GIB)) == [
        "pass gpu number",
        "pass gpu:0 free memory",
        "pass gpu persistence",
    ]
    assert look(CONSUMER)[1].observation.value == "off on 0: the first use of each takes seconds"
    assert told(look(ODD)) == ["pass gpu number"]


def test_too_few_fail() -> None:
    found = look(CONSUMER, 2)
    assert told(found)[0] == "fail gpu number gpu-too-few"
    assert found[0].causes[0].text == (
        "2 GPUs are needed, and there are: 0 (NVIDIA GeForce RTX 3090)"
    )
    assert look("", 1)[0].causes[0].text.endswith("there are: none")


@pytest.mark.parametrize(
    ("memory", "busy", "code", "text"),
    [
        (70 * GIB, BUSY, "gpu-in-use", "GPU 1 is used by python (pid 4711)"),
        (
            70 * GIB,
            "",
            "gpu-little-memory",
            "GPU 1 (NVIDIA A100-SXM4-80GB) has 80GiB, 8GiB of it free; 70GiB are needed;"
            " it is tight: what holds the rest may have ended by then",
        ),
        (
            81 * GIB,
            BUSY,
            "gpu-little-memory",
            "GPU 1 (NVIDIA A100-SXM4-80GB) has 80GiB, 8GiB of it free; 81GiB are needed",
        ),
    ],
)
def test_what_holds_the_memory_is_named(memory: int, busy: str, code: str, text: str) -> None:
    finding = look(TWO, 2, memory, busy)[2]
    assert finding.requirement.place == "gpu:1"
    assert (finding.causes[0].code, finding.causes[0].text) == (code, text)


def test_memory_that_is_not_told_is_unknown() -> None:
    assert look(ODD, 1, GIB)[1].observation.reason == "GPU 0 does not tell its memory"
    split = TWO.splitlines()[0].replace("Disabled", "Enabled")
    assert look(split, 1, GIB)[1].observation.reason == "GPU 0 is split by MIG"


def test_no_driver_is_unknown() -> None:
    assert leave_unknown(2, "nvidia-smi is not installed").status == "unknown"
