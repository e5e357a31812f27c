# SPDX-License-Identifier: GPL-3.0-or-later
"""Compose and pods state the limits that a run will have, and what it starts."""

from __future__ import annotations

import pytest
from mlhost_limits.policy_file import parse_documents
from mlhost_limits.words.docker_run import find_on_host, read_mount, read_pids, split_docker_run
from mlhost_limits.words.facts import Words
from mlhost_limits.words.kinds import START, Context, Text, read_file
from mlhost_limits.words.launchers import read_command

pytest.importorskip("yaml")

COMPOSE = """
services:
  db: {image: postgres}
  train:
    image: trainer
    shm_size: ${SHM:-2gb}
    deploy: {resources: {limits: {memory: 64G, cpus: "8"}}}
    ulimits:
      nofile: {soft: 4096, hard: 8192}
      memlock: -1
    environment: ["OMP_NUM_THREADS=2"]
    volumes:
      - ./out:/out
      - {type: bind, source: /data, target: /data}
    command: torchrun --nproc-per-node 2 train.py --workers 16 --output-dir /out/a
"""
POD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
        - name: sidecar
          image: x
        - name: train
          command: ["torchrun", "--nproc-per-node=4"]
          args: ["train.py", "--workers", "8"]
          env: [{name: OMP_NUM_THREADS, value: "6"}]
          resources: {limits: {memory: 64Gi, cpu: 7500m, nvidia.com/gpu: 4}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes:
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: 16Gi}
"""


def read(text: str, **environment: str) -> Words:
    context = Context(environment, parse_documents)
    return read_file(Text("run.yaml", text, "/srv/run"), context).words


def say(words: Words, *keys: str) -> list[object]:
    facts = {fact.key: fact.value for fact in sorted(words.facts, key=lambda one: one.rank)}
    return [facts.get(key) for key in keys]


def test_the_service_that_trains_is_read() -> None:
    found = read(COMPOSE)
    (stated,) = found.stated
    assert stated[2:] == (64 * 2**30, 2**31, 4096, 2**64 - 1, None, 8.0)
    assert (stated.at["shm"], stated.at["nofile"]) == ("run.yaml:6", "run.yaml:9")
    asked = ("workers", "ranks_per_node", "threads", "output_dir")
    assert say(found, *asked) == [16, 2, 2, "/srv/run/out/a"]
    assert read(COMPOSE, SHM="1g").stated[0].shm == 2**30


def test_a_service_has_64_mib_where_nobody_says_otherwise() -> None:
    (stated,) = read(COMPOSE.replace("shm_size: ${SHM:-2gb}", "restart: always")).stated
    assert (stated.shm, stated.at["shm"]) == (2**26, "run.yaml:5, no shm_size")


@pytest.mark.parametrize(
    ("words", "size"),
    [
        *(("ipc: host", None), ("ipc: host, shm_size: 1g", None), ("ipc: 'service:a'", None)),
        *(("ipc: private", 2**26), ("ipc: shareable, shm_size: 1g", 2**30), ("shm_size: 0", 2**26)),
    ],
)
def test_a_service_has_a_size_where_shared_memory_is_its_own(words: str, size: int | None) -> None:
    (stated,) = read(f"services: {{a: {{command: python t.py, {words}}}}}").stated
    assert (stated.shm, "shm" in stated.at) == (size, size is not None)


def test_several_services_that_train_are_named() -> None:
    both = COMPOSE.replace("{image: postgres}", "{command: python t.py --workers 1}")
    assert read(both).problems == (
        "run.yaml: the services db, train could each be the run; in place of the file give one,"
        " such as -- docker compose -f run.yaml run db",
    )


def test_all_that_a_service_says_wrong_is_told_at_once() -> None:
    text = "services:\n  a:\n    shm_size: huge\n    mem_limit: ${MEM}\n    command: python 'x\n"
    told = read(text).problems
    assert sorted(one.split(": ")[0] for one in told) == ["run.yaml:3", "run.yaml:4", "run.yaml:5"]


def test_the_container_that_trains_is_read_of_a_pod() -> None:
    found = read(POD)
    (stated,) = found.stated
    assert stated.place == "pod:train"
    assert stated[2:] == (2**36, 2**34, None, None, None, 7.5)
    assert stated.at["shm"] == "run.yaml:22"
    assert say(found, "workers", "ranks_per_node", "threads", "gpus.count") == [8, 4, 6, 4]


@pytest.mark.parametrize(
    ("volume", "size"),
    [
        ("emptyDir: {medium: Memory}", None),
        ("emptyDir: {}", None),
        ("emptyDir: {medium: Memory, sizeLimit: 500M}", 500 * 10**6),
    ],
)
def test_the_size_of_a_memory_volume(volume: str, size: int | None) -> None:
    text = POD.replace("emptyDir: {medium: Memory, sizeLimit: 16Gi}", volume)
    assert read(text).stated[0].shm == size


def test_a_pod_without_a_volume_has_64_mib() -> None:
    text = POD.replace("mountPath: /dev/shm", "mountPath: /data")
    assert read(text).stated[0].shm == 2**26


def test_a_volume_counts_wherever_its_mount_stands() -> None:
    text = POD.replace("volumeMounts: [", "volumeMounts: [{name: x, mountPath: /data}, ")
    text = text.replace(
        "      volumes:\n", "      volumes:\n        - name: x\n          emptyDir: {}\n"
    )
    assert read(text).stated[0].shm == 2**34


@pytest.mark.parametrize(
    "text",
    [
        *("services: {a: 1}", "services: {}", "services: {a: {command: [], volumes: 3}}"),
        "services: {a: {volumes: [{}], environment: 3, ulimits: {nofile: {soft: {}}}}}",
        "apiVersion: v1\nkind: Pod\nspec: {containers: [1, {}, {env: 3, volumeMounts: 1}]}",
        "apiVersion: v1\nkind: Pod\nspec: {containers: []}",
        "apiVersion: [v1]\nkind: {}\nspec: 3",
    ],
)
def test_a_file_of_another_shape_is_no_traceback(text: str) -> None:
    assert isinstance(read(text), Words)


@pytest.mark.parametrize(
    ("text", "mounts"),
    [
        ("/a:/b", [("/b", "/a")]),
        ("/a:/b:ro,z", [("/b", "/a")]),
        ("/run=1:/b", [("/b", "/run=1")]),
        ("./a:/b", [("/b", "./a")]),
        ("name:/b", []),
        ("/a", []),
        ("type=bind,source=/a,target=/b", [("/b", "/a")]),
        ("type=bind,src=/a,dst=/b,readonly", [("/b", "/a")]),
        ("type=bind,src=/a,destination=/b", [("/b", "/a")]),
        ("type=volume,source=name,target=/b", []),
        ("type=tmpfs,target=/b", []),
    ],
)
def test_where_a_path_of_the_host_is_seen(text: str, mounts: list[tuple[str, str]]) -> None:
    assert read_mount(text) == mounts


@pytest.mark.parametrize(
    ("old", "new", "keys", "told"),
    [
        ('["OMP_NUM_THREADS=2"]', "{OMP_NUM_THREADS: 3}", ["threads"], [3]),
        ("/out/a", "/data/a", ["output_dir"], ["/data/a"]),
        ("source: /data", "source: name", ["output_dir"], ["/srv/run/out/a"]),
        ("--output-dir /out/a", "--output-dir b\n    working_dir: /out", ["output_dir"],
         ["/srv/run/out/b"]),
        ("--workers 16", "--workers $W", ["workers"], [5]),
        ("--workers 16", "--workers ${W-7}", ["workers"], [5]),
        ("--workers 16", "--workers ${UNSET-7}", ["workers"], [7]),
        ("--workers 16", "--workers ${UNSET}", ["workers"], [None]),
    ],
)  # fmt: skip
def test_variables_and_volumes_of_a_service(
    old: str, new: str, keys: list[str], told: list[object]
) -> None:
    assert say(read(COMPOSE.replace(old, new), W="5"), *keys) == told


def test_a_volume_with_a_name_is_no_path_of_the_host() -> None:
    text = COMPOSE.replace("source: /data", "source: name").replace("/out/a", "/data/a")
    (note,) = read(text).notes
    assert note.endswith("is not mounted from this host")


def test_a_limit_of_a_service_that_is_no_number_is_told() -> None:
    (told,) = read(COMPOSE.replace("memlock: -1", "memlock: many")).problems
    assert told == "run.yaml:10: memlock: 'many' is not a whole number"


@pytest.mark.parametrize(
    ("text", "is_start"),
    [
        ("apiVersion: v1\nkind: Pod", True),
        ("apiVersion: x/v1\nkind: Own\nspec: {containers: [{name: a}]}", True),
        ("apiVersion: v1\nkind: Service", False),
        ("kind: Pod\nspec: {containers: [{name: a}]}", False),
        (f"num_workers: 3\n---{POD}", True),
    ],
)
def test_a_pod_is_told_by_its_kind_or_its_containers(text: str, is_start: bool) -> None:
    found = read_file(Text("run.yaml", text, "/srv"), Context({}, parse_documents))
    assert (found.kind == START) is is_start


@pytest.mark.parametrize(("text", "tasks"), [("-1", None), ("0", None), ("1", 1), ("512", 512)])
def test_a_number_of_tasks_is_one_from_1_on(text: str, tasks: int | None) -> None:
    assert read_pids(text) == tasks


def test_the_deepest_mount_counts() -> None:
    mounts = [("/a", "/srv/some/long/path"), ("/a/b", "/x")]
    assert find_on_host("/a/b/c", mounts) == "/x/c"
    assert find_on_host("/a/c", mounts) == "/srv/some/long/path/c"


def test_all_behind_the_image_starts_in_the_container() -> None:
    made = split_docker_run(["docker", "run", "--rm", "image", "python", "t.py"], "")
    assert (made.image, made.words) == ("image", ("python", "t.py"))


RUN = "torchrun --nproc-per-node 2 train.py --num_workers 3"


@pytest.mark.parametrize(
    ("more", "shm"),
    [
        ("tmpfs: ['/dev/shm:size=8g']", 2**33),
        ("tmpfs: /dev/shm:size=1g,mode=1777", 2**30),
        ("tmpfs: [/run]", 2**26),
        ("volumes: [{type: tmpfs, target: /dev/shm, tmpfs: {size: 4294967296}}]", 2**32),
        ("volumes: ['/dev/shm:/dev/shm']", None),
        ("shm_size: 1g", 2**30),
    ],
)
def test_shared_memory_of_a_service_may_be_a_tmpfs(more: str, shm: int | None) -> None:
    (stated,) = read(f"services:\n  t:\n    {more}\n    command: {RUN}\n").stated
    assert stated.shm == shm
    assert ("shm" in stated.at) == (shm is not None)


@pytest.mark.parametrize(
    ("options", "shm", "tasks"),
    [
        ("--shm-size 16g -v/data:/data --pids-limit=64", 2**34, 64),
        ("-v /data:/data --shm-size=1g", 2**30, None),
        ("-eA=1 -w/x -p80:80 --replace --shm-size=1g", 2**30, None),
        ("-itd --rm --shm-size=1g", 2**30, None),
        ("--mount type=tmpfs,destination=/dev/shm,tmpfs-size=2g", 2**31, None),
        ("--tmpfs /dev/shm:rw,size=512m", 2**29, None),
        ("--tmpfs /dev/shm", None, None),
        ("--mount type=bind,source=/dev/shm,target=/dev/shm", None, None),
    ],
)
def test_options_of_docker_run_may_be_glued(
    options: str, shm: int | None, tasks: int | None
) -> None:
    container = split_docker_run(f"docker run {options} image {RUN}".split(), "")
    assert (container.image, container.stated.shm, container.stated.pids) == ("image", shm, tasks)


@pytest.mark.parametrize(
    ("service", "ranks", "workers"),
    [
        (
            "entrypoint: [torchrun, --nproc_per_node=8]\n    command: [t.py, --num_workers, 16]",
            8,
            16,
        ),
        ("entrypoint: [bash, -c]\n    command: ['torchrun --nproc_per_node 4 t.py']", 4, None),
        ("command: [--num_workers, 48]", None, 48),
        ("environment: {N: 4}\n    command: bash -c 'torchrun --nproc_per_node $$N t.py'", 4, None),
        ("environment: [N=4]\n    command: torchrun --nproc_per_node $$N t.py", 4, None),
    ],
)
def test_what_a_service_starts(service: str, ranks: int | None, workers: int | None) -> None:
    found = read(f"services:\n  t:\n    image: i\n    {service}\n")
    assert say(found, "ranks_per_node", "workers") == [ranks, workers]
    assert not found.problems


@pytest.mark.parametrize(
    "args",
    [
        "['sh', '-c', 'torchrun --nproc_per_node $N t.py']",
        "['torchrun', '--nproc_per_node=$(N)', 't.py']",
        "['sh', '-c', 'torchrun --nproc_per_node ${N} t.py # it is one']",
    ],
)
def test_variables_of_a_pod_are_those_of_its_command(args: str) -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
    found = read(f"{text}    args: {args}\n    env: [{{name: N, value: '8'}}]\n")
    assert (say(found, "ranks_per_node"), found.problems) == ([8], ())


def test_a_pod_that_runs_nothing_is_left_out_beside_one_that_does() -> None:
    board = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - {name: board, image: i}\n"
    found = read(f"{board}---{POD}")
    assert [one.place for one in found.stated] == ["pod:train"]
    assert [one.place for one in read(board).stated] == ["pod:board"]


def test_a_pod_may_share_what_the_host_has() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  hostIPC: true\n  containers:\n  - {name: a, image: i}\n"
    assert read(text).stated[0].shm is None


def test_variables_of_docker_run_are_those_of_its_command() -> None:
    found = read_command(
        ["docker", "run", "-e", "N=4", "image", "bash", "-c", "torchrun --nproc_per_node $N t.py"]
    )
    assert (say(found, "ranks_per_node"), found.problems) == ([4], ())


@pytest.mark.parametrize(
    ("service", "path", "noted"),
    [
        ("volumes: ['./code:/w']\n    working_dir: /w\n    command: t.py --config a.yaml", "/srv/run/code/a.yaml", False),
        ("volumes: ['./code:/w']\n    command: t.py --config /w/b/a.yaml", "/srv/run/code/b/a.yaml", False),
        ("volumes: ['./code:/w']\n    command: t.py --config a.yaml", "a.yaml", False),
        ("volumes: ['./code:/w']\n    command: t.py --config /x/a.yaml", "", True),
        ("command: t.py --config /x/a.yaml", "", True),
        ("volumes: ['./code:/w']\n    command: bash /w/run.sh", "/srv/run/code/run.sh", False),
    ],
)  # fmt: skip
def test_files_are_read_where_a_container_has_them_from(
    service: str, path: str, noted: bool
) -> None:
    found = read(f"services:\n  t:\n    image: i\n    {service}\n".replace("t.py", "python t.py"))
    assert [one.path for one in found.wanted] == [path] * bool(path)
    assert any("is not mounted from this host, and not read" in one for one in found.notes) == noted


@pytest.mark.parametrize(
    ("given", "asked", "has"),
    [("4096", "1024", 1024), ("4096", "8192", 4096), ("4096", "hard", 4096), ("-1", "1024", 1024)],
)
def test_a_container_s_script_lowers_its_own_descriptors(given: str, asked: str, has: int) -> None:
    text = f"ulimit -n {asked}; python t.py"
    said = read_command(
        ["docker", "run", "--ulimit", f"nofile={given}", "image", "bash", "-c", text]
    )
    assert [one.nofile for one in said.stated] == [has]
    assert said.ulimits == ()
    told = f"ulimit -n {asked} (bash -c) is set in a container: not followed"
    assert told in said.notes
