# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of Compose has its variables from files, its GPUs from a list, and a name."""

from __future__ import annotations

import shlex

import pytest
from mlhost_limits.policy_file import parse_documents
from mlhost_limits.words.container_gpus import read_gpus
from mlhost_limits.words.env_file import read_env_file
from mlhost_limits.words.facts import VARIABLES, Words
from mlhost_limits.words.kinds import Context, Text, read_file
from mlhost_limits.words.launchers import read_command
from mlhost_limits.words.precedence import take

pytest.importorskip("yaml")

COMPOSE = """
services:
  train:
    command: torchrun --nproc-per-node ${RANKS} train.py --num_workers $$WORKERS
    shm_size: ${SHM:-64m}
    env_file: %s
"""
FILES = {"/srv/.env": "RANKS=8\nSHM=8g", "/srv/run.env": "WORKERS=4"}


def read(text: str, kind: str = "", **environment: str) -> Words:
    def read_beside(folder: str, path: str) -> str:
        return FILES.get(f"{folder}/{path}", "")

    context = Context(environment, parse_documents, read_beside)
    return read_file(Text("run.yaml", text, "/srv"), context, kind).words


@pytest.mark.parametrize("named", ["run.env", "[run.env]", "[{path: run.env, required: true}]"])
@pytest.mark.parametrize(("environment", "ranks"), [({}, 8), ({"RANKS": "2"}, 2)])
def test_variables_come_from_the_files_beside_it(
    named: str, environment: dict[str, str], ranks: int
) -> None:
    said = read(COMPOSE % named, **environment)
    taken = take(said, {}, "/srv")
    assert taken.problems == ()
    assert (taken.section["ranks_per_node"], taken.section["workers"]) == (ranks, 4)
    assert said.stated[0].shm == 2**33


@pytest.mark.parametrize(
    ("named", "problems"),
    [
        ("gone.env", ("run.yaml:6: env_file: gone.env: cannot be read, or empty",)),
        ("[{path: gone.env, required: false}]", ()),
    ],
)
def test_a_file_of_variables_that_is_missing_is_told(named: str, problems: tuple[str]) -> None:
    assert read(COMPOSE % named).problems == problems


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\n# B=2\n\nexport C = 3 # three\n", {"A": "1", "C": "3"}),
        ("A='x # $B'\nB=\"y #\" # z\nC=p#q", {"A": "x # $B", "B": "y #", "C": "p#q"}),
        ("A=1\nB=${A}2\nA=3\nC: $D", {"A": "3", "B": "12", "C": "known"}),
        ("A=\nno sign\n=1\n1A=2\nB=#", {"A": "", "B": ""}),
    ],
)
def test_a_file_of_variables_is_read_as_compose_does(text: str, found: dict[str, str]) -> None:
    assert read_env_file(text, {"D": "known"}) == found


DEVICES = "deploy: {resources: {reservations: {devices: [%s]}}}"


@pytest.mark.parametrize(
    ("given", "ranks"),
    [
        (DEVICES % "{count: 2, capabilities: [gpu]}", 2),
        (DEVICES % "{device_ids: ['0', '3', '5'], capabilities: [gpu]}", 3),
        (DEVICES % "{count: 2, capabilities: [tpu]}", 8),
        (DEVICES % "{count: all, capabilities: [gpu]}", 8),
        ("gpus: [{count: 2}, {device_ids: ['GPU-1']}]", 3),
        ("gpus: all", 8),
        ("gpus: 2", 2),
        ("devices: ['nvidia.com/gpu=0', 'nvidia.com/gpu=1', /dev/fuse]", 2),
        ("devices: [/dev/fuse]", 8),
        ("environment: {NVIDIA_VISIBLE_DEVICES: '0,1'}", 2),
        ("environment: {NVIDIA_VISIBLE_DEVICES: all}", 8),
    ],
)
def test_a_launcher_takes_the_gpus_of_its_service(given: str, ranks: int) -> None:
    said = read(f"services: {{a: {{command: accelerate launch t.py, {given}}}}}")
    assert take(said, {}, "/srv").section["ranks_per_node"] == ranks


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["2"], 2),
        (["all"], None),
        (['"device=0,1"'], 2),
        (["device=GPU-a"], 1),
        (['"device=0,2,3",capabilities=utility'], 3),
        (["count=2,capabilities=gpu"], 2),
        (["nvidia.com/gpu=0", "nvidia.com/gpu=1"], 2),
        (["nvidia.com/gpu=all"], None),
        (["none"], None),
        ([], None),
    ],
)
def test_options_of_docker_run_give_gpus(options: list[str], number: int | None) -> None:
    found = [fact.value for fact in read_gpus(options, "here")]
    assert found == ([] if number is None else [number])


def test_docker_run_names_a_file_of_variables() -> None:
    said = read_command(shlex.split("docker run --env-file a.env --gpus 2 image torchrun t.py"))
    assert [(one.path, one.kind) for one in said.wanted] == [("a.env", VARIABLES)]
    facts = read("OMP_NUM_THREADS=3\nOTHER=x", VARIABLES).facts
    assert [(fact.key, fact.value) for fact in facts] == [("threads", 3)]


TWO = "services: {a: {command: python a.py --workers 1}, b: {command: python b.py --workers 2}}"


def test_one_of_several_services_is_asked_for() -> None:
    assert read(TWO).problems == (
        "run.yaml: the services a, b could each be the run; in place of the file give one, such"
        " as -- docker compose -f run.yaml run a",
    )
    assert take(read(TWO, "compose:b"), {}, "/srv").section["workers"] == 2
    assert read(TWO, "compose:c").problems == ("run.yaml: has no service c",)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("docker compose run --rm train", [("*compose.y*ml", "compose:train")]),
        ("docker compose -f a.yml up -d train", [("a.yml", "compose:train")]),
        ("docker-compose --file=a.yml up", [("a.yml", "compose:")]),
        ("docker compose run -e A=1 -v /a:/b train", [("*compose.y*ml", "compose:train")]),
    ],
)
def test_a_command_of_compose_names_its_files(command: str, wanted: list[tuple[str, str]]) -> None:
    said = read_command(shlex.split(command))
    assert [(one.path, one.kind) for one in said.wanted] == wanted
    assert bool(said.notes) == (" -e " in command)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("docker compose", "docker compose: starts no service; such as docker compose run SERVICE"),
        (
            "docker compose run",
            "docker compose run: starts no service; such as docker compose run SERVICE",
        ),
        (
            "docker compose run a bash",
            "docker compose run a: the command behind it is not read; state it in the file",
        ),
        *(
            (
                f"docker compose {given} up",
                "docker compose: several files, profiles and --env-file are not read; give the one"
                f" file that docker compose {given} config prints",
            )
            for given in ("-f a.yml -f b.yml", "--env-file x.env", "--profile train")
        ),
    ],
)
def test_a_command_of_compose_that_is_not_understood_is_refused(command: str, told: str) -> None:
    assert read_command(shlex.split(command)).problems == (f"command line: {told}",)


HINT = "not read; give the one file that docker compose config prints"


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (
            "services:\n  a:\n    extends: {file: b.yml, service: c}\n    command: python t.py",
            "run.yaml",
            f"run.yaml:3: extends: the other service is {HINT}",
        ),
        (
            "include: [b.yml]\nservices: {a: {command: python t.py}}",
            "run.yaml",
            f"run.yaml:1: include: other files are {HINT}",
        ),
        (
            "services: {a: {command: python t.py}}",
            "docker-compose.yml",
            f"docker-compose.yml: docker-compose.override.yml changes it, and is {HINT}",
        ),
        ("services: {a: {command: python t.py}}", "run.yaml", ""),
    ],
)
def test_other_files_that_change_a_service_are_not_passed_by(
    text: str, name: str, told: str
) -> None:
    beside = {"docker-compose.override.yml": "services: {a: {shm_size: 1g}}"}
    context = Context({}, parse_documents, lambda _folder, path: beside.get(path, ""))
    assert read_file(Text(name, text, "/srv"), context).words.problems == ((told,) if told else ())


@pytest.mark.parametrize(
    ("value", "environment", "size"),
    [
        ("${SHM:?state it}", {"SHM": "4gb"}, 2**32),
        ("${SHM-2g}", {"SHM": "4gb"}, 2**32),
        ("${SHM:-2g}", {"SHM": ""}, 2**31),
        ("${BIG+8g}", {"BIG": ""}, 2**33),
        ("${BIG:+8g}", {"BIG": ""}, 2**26),
    ],
)
def test_variables_are_put_in_as_compose_does(
    value: str, environment: dict[str, str], size: int
) -> None:
    text = f"services: {{a: {{command: python t.py, shm_size: '{value}'}}}}"
    (stated,) = read(text, **environment).stated
    assert stated.shm == size


def test_of_services_that_need_a_profile_none_is_the_run_beside_another() -> None:
    text = TWO.replace("b: {", "b: {profiles: [eval], ")
    assert take(read(text), {}, "/srv").section["workers"] == 1
    assert take(read(text, "compose:b"), {}, "/srv").section["workers"] == 2


@pytest.mark.parametrize("given", ["deploy: {replicas: 4}", "scale: 4"])
def test_copies_of_a_container_are_told(given: str) -> None:
    said = read(f"services: {{a: {{command: python t.py, {given}}}}}")
    assert said.notes == (
        "run.yaml:1: 4 of the container run at once: one is judged, and the host needs 4 times as"
        " much",
    )


@pytest.mark.parametrize(
    ("command", "shm", "ranks"),
    [
        ("docker --context far run image torchrun --nproc-per-node 4 t.py", 2**26, 4),
        ("docker -H ssh://h --debug run --shm-size 1g image python t.py", 2**30, 1),
        ("nerdctl -n k8s.io run image python t.py", 2**26, 1),
        ("podman --storage-driver overlay container run image python t.py", 2**26, 1),
        ("docker create --shm-size 1g image python t.py", 2**30, 1),
        ("docker run --entrypoint sh image -c 'torchrun --nproc-per-node 4 t.py'", 2**26, 4),
        ("docker run -v shm:/dev/shm image python t.py", None, 1),
        ("docker run --mount type=volume,source=shm,target=/dev/shm image python t.py", None, 1),
        ("docker run --ipc none image python t.py", 0, 1),
    ],
)
def test_a_container_is_found_in_each_form(command: str, shm: int | None, ranks: int) -> None:
    said = read_command(shlex.split(command))
    assert [one.shm for one in said.stated] == [shm]
    assert take(said, {}, "/srv").section["ranks_per_node"] == ranks


def test_limits_that_are_not_judged_are_told() -> None:
    said = read_command(shlex.split("docker run --ulimit nproc=20:20 image python t.py"))
    assert "docker run: not judged: --ulimit nproc=20:20" in said.notes
    inside = read_command(shlex.split("docker exec -it box torchrun t.py"))
    assert inside.problems == (
        "command line: docker exec: runs in a container that there is; state --place"
        " container:docker/NAME, and the command that runs in it",
    )
