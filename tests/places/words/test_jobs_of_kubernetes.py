# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of Kubernetes says for all its pods how many there are and how many ranks are in each."""

from __future__ import annotations

import pytest
from mlhost_limits.policy_file import parse_documents
from mlhost_limits.words.facts import Words
from mlhost_limits.words.kinds import Context, Text, read_file
from mlhost_limits.words.precedence import take

pytest.importorskip("yaml")

PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  {processes}
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers:
            - name: pytorch
              command: {command}
              resources: {{limits: {{memory: 64Gi, nvidia.com/gpu: 4}}}}
    Worker:
      replicas: 3
      template:
        spec:
          containers:
            - name: pytorch
              command: {command}
              resources: {{limits: {{memory: {memory}, nvidia.com/gpu: 4}}}}
"""
MPI = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
spec:
  {slots}
  mpiReplicaSpecs:
    Launcher:
      template: {{spec: {{containers: [{{name: l, command: {command},
        resources: {{limits: {{memory: 1Gi}}}}}}]}}}}
    Worker:
      replicas: 2
      template: {{spec: {{containers: [{{name: w, resources: {{limits: {{memory: 256Gi}}}}}}]}}}}
"""
TRAIN = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    numProcPerNode: 4
    command: [torchrun, train.py]
    resourcesPerNode: {limits: {memory: 32Gi}}
"""


def read(text: str) -> Words:
    return read_file(Text("job.yaml", text, "/srv"), Context({}, parse_documents)).words


def count(text: str) -> tuple[object, object]:
    """Return the ranks of a node, and of all."""
    section = take(read(text), {}, "/srv").section
    return section["ranks_per_node"], section.get("world_size")


TORCHRUN = "[torchrun, train.py]"


@pytest.mark.parametrize(
    ("processes", "command", "ranks"),
    [
        ('nprocPerNode: "8"', TORCHRUN, (8, 32)),
        ("nprocPerNode: auto", TORCHRUN, (4, 16)),
        ("", TORCHRUN, (4, 16)),
        ('nprocPerNode: "8"', "[torchrun, --nproc-per-node, '2', train.py]", (2, 8)),
        ('nprocPerNode: "8"', "[python, -m, torch.distributed.run, train.py]", (8, 32)),
        ('nprocPerNode: "8"', "[python, train.py]", (1, 4)),
        ('nprocPerNode: "8"', "[bash, -c, torchrun train.py]", (8, 32)),
    ],
)
def test_torchrun_has_its_processes_from_the_operator(
    processes: str, command: str, ranks: tuple[int, int]
) -> None:
    assert count(PYTORCH.format(processes=processes, command=command, memory="64Gi")) == ranks


@pytest.mark.parametrize(("memory", "sizes"), [("64Gi", [64]), ("32Gi", [64, 32])])
def test_workers_that_have_less_than_the_master_are_judged_too(
    memory: str, sizes: list[int]
) -> None:
    said = read(PYTORCH.format(processes="", command=TORCHRUN, memory=memory))
    assert [one.memory for one in said.stated] == [size * 2**30 for size in sizes]


@pytest.mark.parametrize(
    ("slots", "command", "ranks"),
    [
        ("slotsPerWorker: 8", "[mpirun, python, train.py]", (8, 16)),
        ("", "[mpirun, python, train.py]", (1, 2)),
        ("slotsPerWorker: 8", "[mpirun, -np, '8', python, train.py]", (4, 8)),
    ],
)
def test_ranks_of_mpi_live_in_the_workers(slots: str, command: str, ranks: tuple[int, int]) -> None:
    text = MPI.format(slots=slots, command=command)
    assert count(text) == ranks
    assert [(one.place, one.memory) for one in read(text).stated] == [("pod:w", 256 * 2**30)]


def test_what_the_runtime_of_a_job_adds_is_said_to_be_unread() -> None:
    assert count(TRAIN) == (4, 8)
    said = read(TRAIN)
    assert [(one.place, one.memory, one.shm) for one in said.stated] == [
        ("pod:torch-distributed", 32 * 2**30, None)
    ]
    assert said.notes == (
        "job.yaml:5: not read: the pod of the runtime torch-distributed, such as its /dev/shm",
    )


def test_torchrun_of_a_train_job_takes_every_gpu() -> None:
    text = TRAIN.replace("    numProcPerNode: 4\n", "").replace("32Gi", "32Gi, nvidia.com/gpu: 8")
    assert count(text) == (8, 16)


def test_a_launcher_that_is_a_worker_is_a_node() -> None:
    text = MPI.format(slots="runLauncherAsWorker: true", command="[mpirun, python, t.py]")
    assert count(text) == (1, 3)


def test_variables_of_the_operator_are_known() -> None:
    command = (
        "[bash, -c, 'torchrun --nnodes $PET_NNODES --nproc-per-node $PET_NPROC_PER_NODE t.py']"
    )
    text = PYTORCH.format(processes="nprocPerNode: 2", command=command, memory="64Gi")
    assert count(text) == (2, 8)


POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
    - {name: a, command: [python, a.py, --num_workers=0]}
    - name: b
      command: [bash, -c, "python b.py --num_workers ${W:-2}"]
      resources: {limits: {memory: 1Gi}}
      %s
"""


@pytest.mark.parametrize(
    ("given", "workers", "problem"),
    [
        ("env: [{name: W, value: '16'}]", 16, False),
        ("env: [{name: W, valueFrom: {fieldRef: {fieldPath: x}}}]", 8, True),
        ("envFrom: [{configMapRef: {name: big}}]", 2, False),
    ],
)
def test_what_the_cluster_holds_is_no_default(given: str, workers: int, problem: bool) -> None:
    said = read(POD % given)
    taken = take(said, {}, "/srv")
    assert (taken.section.get("workers"), bool(taken.problems)) == (workers, problem)
    assert [one.place for one in said.stated] == ["pod:a", "pod:b"]
    told = "job.yaml:10: not read: envFrom, whose variables the command may use"
    assert (told in said.notes) == ("envFrom" in given)


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "gpu.intel.com/i915"]
)
def test_a_pod_has_gpus_by_any_name(name: str) -> None:
    text = PYTORCH.format(processes="", command=TORCHRUN, memory="64Gi")
    assert count(text.replace("nvidia.com/gpu", f'"{name}"')) == (4, 16)


def test_a_template_of_argo_has_one_container() -> None:
    said = read(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {templates: [{name: t, container:"
        " {image: x, command: [torchrun, --nproc-per-node, '4', t.py],"
        " resources: {limits: {memory: 1e11}}}}]}"
    )
    assert [one.memory for one in said.stated] == [10**11]
    assert take(said, {}, "/srv").section["ranks_per_node"] == 4


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob", "TrainJob"])
@pytest.mark.parametrize("spec", ["3", "{}", "{pytorchReplicaSpecs: 1, trainer: []}", "[1]"])
def test_a_job_of_another_shape_is_no_traceback(kind: str, spec: str) -> None:
    read(f"apiVersion: a/v1\nkind: {kind}\nspec: {spec}")
