# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of trainers, of DeepSpeed and of accelerate are told from each other, and read."""

from __future__ import annotations

import pytest
from mlhost_limits.policy_file import parse_documents
from mlhost_limits.words.kinds import Context, Read, Text, read_file
from mlhost_limits.words.tree import read_line, read_scalar


def read(text: str, name: str = "run.json", kind: str = "") -> Read:
    return read_file(Text(name, text, "/srv"), Context({}, parse_documents), kind)


def say(text: str, name: str = "run.json", kind: str = "") -> dict[str, object]:
    return {fact.key: fact.value for fact in read(text, name, kind).words.facts}


ZERO = """{
 "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4,
 "zero_optimization": {
  "stage": %s,
  "offload_optimizer": {"device": "cpu"},
  "offload_param": {"device": "%s", "buffer_count": 3, "buffer_size": 1e8}
 }
}"""


def test_stage_3_with_nvme_locks_its_buffers() -> None:
    assert say(ZERO % (3, "nvme")) == {
        "gradient_accumulation": 4,
        "zero": 3,
        "deepspeed.stage": 3,
        "deepspeed.offload_optimizer": True,
        "deepspeed.offload_parameters": True,
        "pinned_buffer": 6 * 10**8,
    }
    assert "pinned_buffer" not in say(ZERO % (3, "cpu"))


@pytest.mark.parametrize(("word", "pinned"), [("true", True), ("false", False), ('"auto"', None)])
def test_what_is_offloaded_may_be_pinned(word: str, pinned: bool | None) -> None:
    text = (ZERO % (3, "cpu")).replace('{"device"', f'{{"pin_memory": {word}, "device"', 1)
    assert say(text).get("deepspeed.pin_memory") is pinned


def test_stage_1_has_no_floor() -> None:
    assert set(say(ZERO % (1, "none"))) == {"gradient_accumulation", "zero"}


def test_a_stage_that_is_none_is_told_with_its_line() -> None:
    (problem,) = [one.problem for one in read(ZERO % ('"x"', "cpu")).words.facts if one.problem]
    assert problem == "run.json:4: stage: 'x'; 0 to 3 is accepted"


def test_origins_have_the_line_of_the_value() -> None:
    (fact,) = read('{\n"a": 1,\n\n"num_workers":\n 3}').words.facts
    assert (fact.value, fact.where) == (3, "run.json:5")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.toml", "[train]\nnum_workers = 3\noutput_dir = '/o'\n", {"workers": 3, "output_dir": "/o"}),
        ("config.py", "num_workers = 3 # x\nbatch_size = 4 * 2\nout_dir = 'o'\nprint(1)\n", {"workers": 3, "output_dir": "o"}),
        ("a.json", '{"--dataloader_num_workers": 3}', {"workers": 3}),
        ("a.json", '{"update_freq": [4, 8]}', {"gradient_accumulation": 4}),
        ("a.json", '{"train": {"num_workers": 3}, "val": {"num_workers": 8}}', {"workers": 3, "loaders": 2}),
        ("a.json", '{"a": {"num_workers": 3}, "b": {"num_workers": 8}}', {"workers": 8}),
        ("a.json", '{"persistent_workers": true, "num_workers": 2}', {"epochs": 1, "workers": 2}),
        ("a.json", '{"persistent_workers": false}', {}),
        ("a.json", '{"num_workers": null, "prefetch_factor": "auto", "save_total_limit": 0}', {}),
        ("a.json", '{"resume_from_checkpoint": "checkpoint-10"}', {"resume": "checkpoint-10"}),
        ("a.json", '{"resume": ""}', {}),
        ("a.json", '{"input_size": [3, 224, 448]}', {"pixels": 448}),
        ("a.json", '{"resolution": 1.0}', {}),
        ("a.json", '{"img_size": 16}', {"pixels": 16}),
        ("a.json", '{"img_size": 15}', {}),
        ("a.json", '{"zero_optimization": {"stage": "3"}}', {"zero": 3, "deepspeed.stage": 3}),
        ("a.json", '{"zero_optimization": {"stage": 2, "cpu_offload": true}}', {"zero": 2, "deepspeed.stage": 2, "deepspeed.offload_optimizer": True}),
        ("a.json", '{"zero_optimization": {"stage": 2, "cpu_offload": false}}', {"zero": 2, "deepspeed.stage": 2}),
        ("a.json", '{"num_workers": -1}', {}),
        ("a.json", '{"devices": -1}', {"ranks_per_node": "auto"}),
        ("a.json", '{"resume_from_checkpoint": true}', {"resume": True}),
        ("a.json", '{"resume_from_checkpoint": false}', {"resume": False}),
        ("a.json", '{"trainer": {"devices": [0, 1]}}', {"ranks_per_node": 2}),
        ("a.json", '{"devices": "0,1"}', {"ranks_per_node": 2}),
        ("a.json", '{"multiprocessing_context": "spawn"}', {"start_method": "spawn"}),
        ("a.json", '{"multiprocessing_context": "x"}', {}),
        ("a.json", '{"a": "x-{0005..0009}.tar"}', {"shards": 5}),
        ("a.json", '{"a": "x-{5..2}.tar"}', {"shards": 1}),
        ("a.json", '{"a": "{0..9999}-{0..999}.tar"}', {"shards": 10**6}),
        ("a.json", '{"a": "x-{5..9}.json"}', {}),
        ("a.json", '{"deepspeed": "zero2"}', {"zero": 2, "deepspeed.stage": 2}),
        ("a.json", '{"deepspeed": "zero1_offload"}', {"zero": 1, "deepspeed.offload_optimizer": True}),
        ("a.json", '{"deepspeed": "zero2_offload"}', {"zero": 2, "deepspeed.stage": 2, "deepspeed.offload_optimizer": True}),
        ("a.json", '{"deepspeed": "zero3"}', {"zero": 3, "deepspeed.stage": 3}),
        ("a.json", '{"optimizer": "zero3"}', {}),
        ("a.json", '{"val": {"output_dir": "/x"}}', {}),
        ("a.json", '{"a": {"num_workers": 8}, "b": {"num_workers": 3}}', {"workers": 8}),
        ("a.json", '{"deepspeed": {"zero_optimization": {"stage": 2}}, "num_workers": 3}', {"workers": 3, "zero": 2, "deepspeed.stage": 2}),
        ("a.json", '{"devices": "auto"}', {"ranks_per_node": "auto"}),
        ("a.json", '{"deepspeed": {"zero_optimization": {"stage": 2}}}', {"zero": 2, "deepspeed.stage": 2}),
    ],
)  # fmt: skip
def test_what_files_say(name: str, text: str, found: dict[str, object]) -> None:
    assert say(text, name) == found


@pytest.mark.parametrize(
    ("name", "text", "library"),
    [
        ("a.toml", "per_device_train_batch_size = 2\n", "transformers"),
        ("a.toml", "[train]\nper_device_train_batch_size = 2\n", "transformers"),
        ("a.toml", "num_workers = 2\n", ""),
        ("a.json", '{"per_device_train_batch_size": 2}', "transformers"),
        ("a.json", '{"num_workers": 2}', ""),
    ],
)
def test_names_of_options_show_whose_loop_it_is(name: str, text: str, library: str) -> None:
    assert read(text, name).words.library == library


def test_accelerate_s_file_is_told_from_others() -> None:
    pytest.importorskip("yaml")
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 2\n"
        "num_processes: 16\nmachine_rank: 0\ndeepspeed_config:\n  deepspeed_config_file: d.json\n"
    )
    found = read(text, "a.yaml")
    assert say(text, "a.yaml") == {"nodes": 2, "world": 16}
    assert [(one.path, one.kind) for one in found.words.wanted] == [("d.json", "zero")]
    assert found.words.library == "accelerate"


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("", "a.json", "a.json: is empty"),
        ('{"a": 1,\n "b"}', "a.json", "a.json:2: is not JSON: Expecting ':' delimiter"),
        ("[" * 100_000, "a.json", "a.json: is nested deeper than 20 levels"),
        ("3", "a.json", "a.json: holds a single value; a mapping is accepted"),
        ('{"num_workers": {{ n }}}', "a.json", "a.json:1: is not JSON: Expecting property name enclosed in double quotes; it holds a template: give the file that it becomes"),
        ("a = \x07", "a.toml", "a.toml:1: a control character"),
    ],
)  # fmt: skip
def test_a_broken_file_is_a_sentence(text: str, name: str, told: str) -> None:
    assert read(text, name).words.problems == (told,)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("num_workers: '{{ n }}'", "a.yml:1: num_workers: '{{ n }}' is not known here: it is a template, or a variable that is not set"),
        ("\nnum_workers: many", "a.yml:2: num_workers: 'many' is not a whole number"),
        ("num_workers: -2", "a.yml:1: num_workers: -2 is not a whole number"),
        ("output_dir: ''", "a.yml:1: output_dir: is empty"),
        ("num_workers: 1.5", "a.yml:1: num_workers: '1.5' is not a whole number"),
    ],
)  # fmt: skip
def test_a_value_that_is_none_is_a_sentence_with_its_line(text: str, told: str) -> None:
    pytest.importorskip("yaml")
    assert [one.problem for one in read(text, "a.yml").words.facts] == [told]


def test_a_yaml_that_nests_too_deeply_is_a_sentence() -> None:
    pytest.importorskip("yaml")
    told = read("- " * 100_000, "a.yml").words.problems
    assert told == ("a.yml:1: is nested deeper than 20 levels",)


OFF = '{"id": "a", "type": "local", "cache_dir": "/off", "disabled": true}'
USED = '{"id": "b", "type": "local", "cache_dir_vae": "/vae", "cache_dir": "/raw"}'
TEXT = '{"id": "c", "type": "local", "cache_dir": "/text"}'
SAME = '{"id": "d", "cache_dir_vae": "/vae"}'


@pytest.mark.parametrize(
    ("backends", "cache", "others"),
    [
        ([OFF], None, []),
        ([OFF, USED], "/vae", []),
        ([USED, SAME], "/vae", []),
        ([OFF, USED, TEXT], "/vae", ["/text (run.json:3)"]),
    ],
)
def test_the_caches_of_the_backends_in_use_are_told(
    backends: list[str], cache: str | None, others: list[str]
) -> None:
    words = read("[" + ",\n".join(backends) + "]").words
    assert next((fact.value for fact in words.facts), None) == cache
    told = [note.partition("; ")[0].partition(": ")[2] for note in words.notes]
    assert (told, words.library) == (others, "accelerate")


@pytest.mark.parametrize(
    "text", ["[]", f"[{SAME}]", f"[{TEXT}, 3]", '[{"type": "local", "cache_dir": "/a"}]', TEXT]
)
def test_a_list_of_something_else_is_not_one_of_backends(text: str) -> None:
    assert read(text).words.library == ""


@pytest.mark.parametrize(
    ("name", "text", "kind", "told"),
    [
        ("a.json", '{"num_workers": 3}', "", "settings"),
        ("a.json", '{"config": "a.yaml"}', "", "settings"),
        ("a.json", '{"a": 1}', "", ""),
        ("a.sbatch", "python t.py --num_workers 3", "", "script"),
        ("a", "python t.py --num_workers 3", "script", "script"),
        ("a", "#!/bin/sh\npython t.py --num_workers 3", "", "script"),
        ("a.sh", "echo", "", ""),
    ],
)
def test_what_a_file_is(name: str, text: str, kind: str, told: str) -> None:
    assert read(text, name, kind).kind == told


def test_a_line_of_python_has_its_number() -> None:
    assert [one.where for one in read("num_workers = 3", "config.py").words.facts] == [
        "config.py:1"
    ]


def test_a_file_that_is_named_in_a_file_is_wanted() -> None:
    (one,) = read('{"deepspeed": "d.json"}').words.wanted
    assert (one.path, one.kind) == ("d.json", "zero")


@pytest.mark.parametrize(
    ("buffers", "pinned"),
    [
        ("", 10**9),
        (', "buffer_count": 1, "buffer_size": 1', 2),
        (', "buffer_count": true, "buffer_size": "1e2"', 1000),
        (', "buffer_count": 0, "buffer_size": -1', 10**9),
        (f', "buffer_count": 1, "buffer_size": {10**15}', 2 * 10**8),
        (f', "buffer_count": 1, "buffer_size": {10**15 - 1}', 2 * 10**15 - 2),
        (', "buffer_count": [], "buffer_size": "x"', 10**9),
    ],
)
def test_the_buffers_that_are_locked_are_counted(buffers: str, pinned: int) -> None:
    param = f'{{"device": "nvme"{buffers}}}'
    text = f'{{"zero_optimization": {{"stage": 3, "offload_param": {param}}}}}'
    assert say(text)["pinned_buffer"] == pinned


@pytest.mark.parametrize(
    ("stage", "told"), [("4", False), ("-1", False), ("true", False), ("0", True)]
)
def test_a_stage_is_one_of_four(stage: str, told: bool) -> None:
    facts = read(ZERO % (stage, "cpu")).words.facts
    assert any(one.problem for one in facts) is not told


def test_accelerate_s_file_says_what_deepspeed_does() -> None:
    pytest.importorskip("yaml")
    text = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
        "  zero_stage: 3\n  offload_optimizer_device: cpu\n  offload_param_device: none\n"
        "  gradient_accumulation_steps: 4\n  zero3_init_flag: true\n"
    )
    assert say(text, "a.yaml") == {
        "deepspeed.stage": 3,
        "deepspeed.offload_optimizer": True,
        "deepspeed.zero_init": True,
        "gradient_accumulation": 4,
    }


def test_what_is_no_value_has_no_line() -> None:
    assert read_scalar({}) == (None, 0)
    assert read_line({}) == 0
