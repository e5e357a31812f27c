# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documents leave to their reader: what words stand for, what is there, what comes of it.

A command that is not named here is run as it stands and must end with 0. In a document, `sh` is
what is typed, `console` what is typed behind `$ ` and what comes of it, `text` what is printed,
`ini` settings of others; a block that is a file has its name as a comment in the first line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

DESK, GUEST = "desk", "guest"
"""Where commands run: here, in a copy of the project; or on the host, as root."""

FIRST = ("README.md",)
LAST = ("tests/host/README.md",)
CHANGELOG = "CHANGELOG.md"
"""What was, and no instruction."""

PROGRAMS: Mapping[str, str] = {
    **dict.fromkeys(("ansible", "ansible-builder", "ansible-doc", "ansible-galaxy"), DESK),
    **dict.fromkeys(("ansible-inventory", "ansible-playbook", "ansible-pull"), DESK),
    **dict.fromkeys(("ansible-runner", "make", "molecule", "pip", "pytest"), DESK),
    **dict.fromkeys(("python", "python3"), DESK),
    "mlhost-limits": GUEST,
}
"""Programs whose commands count within sentences as well, with the place where each runs."""

VALUES: Mapping[str, str] = {
    "FILE": "policy.json",
    "KEY": "vm.max_map_count",
    "NAME": "$MACHINE",
    "P": "training",
    "U": "alice",
    "UNIT": "ssh.service",
}
"""What placeholders stand for in every document."""

MACHINE: Mapping[str, str] = {"policy.json": '{"kernel": {"vm.max_map_count": 60000}}\n'}
"""Files where commands run on the host."""


TRAINS = "systemctl is-active -q train || systemd-run --quiet --unit train sleep 999"
"""A unit runs by the name that documents have for one."""


class Way(NamedTuple):
    """How one command is run, where that is not simply as it stands."""

    status: int = 0
    before: str = ""
    """Shell that the command's own shell runs first."""
    after: str = ""
    """Shell that runs when all is over, in the same folder."""
    place: str = ""
    prints: tuple[str, ...] = ()
    """What is among what it prints; by default the first line that the document shows."""
    instead: str = ""
    """What is run in its place, for a reason."""
    reason: str = ""
    """Why it is not run as it stands; nothing is run where nothing is in its place."""

    @property
    def runs(self) -> bool:
        return bool(self.instead or not self.reason)


class Document(NamedTuple):
    """What is special about one document."""

    values: Mapping[str, str] = {}
    ways: Mapping[str, Way] = {}
    place: str = ""
    """Where programs run that are not ours."""
    changes_machine: bool = False
    """Whether the host is stock no more after it."""
    has_guests: bool = False
    """Whether it starts guests itself, in the place of ours."""
    python: str = GUEST
    preamble: str = ""
    """What blocks of Python take for granted."""


def somebodys(verb: str) -> Way:
    """Leave alone the guest that has no name of its own, which may be somebody's."""
    return Way(
        instead=f"python3 -m tests.host {verb} --help",
        reason="the guest without a name may be somebody's; the document names one as well",
    )


FALLS_SHORT = Way(status=1)
"""A stock host does not meet the profile."""
RED = Way(status=2)
"""The same, as Ansible says it."""
OWN_ENVIRONMENT = "python3 -m venv environment && . environment/bin/activate"
IN_AN_ENVIRONMENT = Way(
    instead="python3 -m venv environment && environment/bin/pip install --quiet '.[yaml]'"
    " && environment/bin/mlhost-limits --version",
    reason="it would change this machine; pipx does the same in a folder of its own",
    prints=("mlhost-limits ",),
)
REMOVES = Way(reason="it would take away what the next documents need")
RESULTS = """
mkdir -p srv/limits
python3 -m tests.host ssh "$MACHINE" -- mlhost-limits check --json > srv/limits/node1.json || true
"""
ON_HOST = """
mkdir -p "$PWD/srv/limits"
mlhost-limits check --json > "$PWD/srv/limits/node1.json" || true
"""
PLAN = """
name=$(ansible all -i hosts --list-hosts | tail -n 1 | tr -d ' ')
printf '{"format": "mlhost.limits/plan", "version": 1, "written": "today",
"fixes": [{"kind": "never", "text": "provision", "cost": "ends work", "drains": true, "hosts": ["%s"]}],
"waves": [{"name": "canary", "batches": [["%s"]], "most_failed": 0}]}' "$name" "$name" > plan.json
"""
"""Of the host that the inventory has."""
ROLLOUT = (
    "ansible-playbook mlhost.limits.rollout -i hosts -e mlhost_limits_plan=plan.json"
    " -e mlhost_limits_drain=slurm"
)
ROLLS_OUT = Way(
    before=PLAN,
    instead=f"{ROLLOUT} --check",
    reason="the host has no Slurm that could drain it",
    prints=("PLAY [Wave 1]",),
)
PLANNED = Way(status=1, before=ON_HOST, place=GUEST)
RUNNER = """
python3 -m pip install --quiet --target="$PWD/runner" 'ansible-runner>=2.4,<3'
export PATH="$PWD/runner/bin:$PATH" PYTHONPATH="$PWD/runner"
mkdir -p project/inventory reports && cp hosts project/inventory/
"""
PULLED = """
sed -i "s|/srv|$PWD/srv|" local.yml
mkdir -p srv/limits pulled && cp local.yml pulled/ && git -C pulled init --quiet
git -C pulled add . && git -C pulled -c user.name=a -c user.email=a@localhost commit --quiet -m a
"""
WITHOUT_LOCKS = """
mlhost-limits() { setpriv --bounding-set -ipc_lock /usr/local/bin/mlhost-limits "$@"; }
ulimit -Sl 64
"""
OTHER_RUN = """
mkdir -p /srv/run
python3 -c 'import time; time.sleep(300)' /srv/run > /dev/null 2>&1 &
trap 'kill $!' EXIT
"""
SLURM_CONF = """
mkdir -p /etc/slurm
printf 'ClusterName=a\\nNodeName=n CPUs=1\\nPartitionName=gpu Nodes=n\\n' > /etc/slurm/slurm.conf
trap 'rm -r /etc/slurm' EXIT
"""
JOB = """
mkdir job && cd job
echo '{"zero_optimization": {"stage": 0}}' > ds_config.json
echo 'python train.py --num_workers 0' > sbatch.sh
"""
NEEDS_TORCH = "needs torch; `make seeds` runs it"

TREE = """
mkdir -p /srv/image/etc /srv/image/usr/bin
touch /srv/image/usr/bin/dockerd
cp -a /etc/passwd /etc/group /etc/os-release /etc/security /etc/pam.d /etc/ssh /srv/image/etc/
"""
IN_REPOSITORY = Way(status=1, before=TREE + "cp -a /srv/image rootfs")

TUTORIAL = """
hosts=$(python3 -m tests.host list --json | python3 -c 'import json, sys
print(next(one["inventory"] for one in json.load(sys.stdin) if one["instance"] == "tutorial"))')
"""
"""What the reader's shell still knows of the steps before."""

DOCUMENTS: Mapping[str, Document] = {
    "docs/tutorial.md": Document(
        place=DESK,
        has_guests=True,
        ways={
            'ansible-playbook -i "$hosts" mlhost.limits.provision --diff -e mlhost_limits_docker_restart=true': Way(
                before=TUTORIAL, prints=("changed: [tutorial]",)
            ),
            'ansible all -i "$hosts" -m mlhost.limits.check': Way(
                status=2, before=TUTORIAL, prints=("requirements fall short, for",)
            ),
            'ansible-playbook -i "$hosts" mlhost.limits.audit': Way(
                status=2, before=TUTORIAL, prints=("1 host: 1 fail",)
            ),
            'ansible all -i "$hosts" -m mlhost.limits.check -a \'{"policy": {"waivers": [{"what": "nofile soft",'
            ' "where": "session:alice@*",'
            ' "why": "the vendor mends it in January", "until": "2027-01-31"}]}}\'': Way(
                before=TUTORIAL, prints=("43 of 48 requirements are met; 5 waived",)
            ),
            'ansible-playbook -i "$hosts" mlhost.limits.provision --diff -e mlhost_limits_state=absent': Way(
                before=TUTORIAL, prints=("failed=0",)
            ),
        },
    ),
    "docs/adopt.md": Document(
        ways={
            "mlhost-limits adopt --root /srv/image": Way(before=TREE),
            "mlhost-limits check --profile none --policy policy.yml": Way(
                before="printf 'kernel:\\n  vm.max_map_count: 1\\n' > policy.yml"
            ),
        }
    ),
    "docs/watch.md": Document(
        ways={
            "mlhost-limits why --last": Way(
                status=2, prints=("no run is known to have died here",)
            ),
            "mlhost-limits watch -- COMMAND ...": Way(instead="mlhost-limits watch -- true"),
            "mlhost-limits watch --report run.json -- COMMAND ...": Way(
                instead="mlhost-limits watch --report run.json -- true && cat run.json",
                prints=('"format": "mlhost.limits/watch"',),
            ),
            "mlhost-limits why run.json": Way(
                status=0,
                before="mlhost-limits watch --report run.json -- sh -c 'sleep 1; kill -15 $$' || true",
                prints=("no limit: somebody ended it by a signal",),
            ),
            "mlhost-limits why train.log run.json": Way(
                status=1,
                before="echo 'OSError: [Errno 24] Too many open files' > train.log;"
                " mlhost-limits watch --report run.json -- false || true",
                prints=("limit: the process had as many files open",),
            ),
        }
    ),
    "docs/why.md": Document(
        ways={
            "mlhost-limits why train.log rank1.log": Way(
                status=1,
                before="echo step 1 > train.log;"
                " echo 'OSError: [Errno 24] Too many open files' > rank1.log",
                prints=("line 1 of rank1.log",),
            ),
            "mlhost-limits why run.json": Way(
                before="mlhost-limits watch --report run.json -- sh -c 'kill -15 $$' || true",
                prints=("no limit: somebody ended it by a signal",),
            ),
            "mlhost-limits why 'Bus error'": Way(status=2, prints=("perhaps a limit",)),
            "mlhost-limits why 'unable to mmap 68 bytes from file </torch_149_4174_65282>:"
            " Cannot allocate memory (12)'": FALLS_SHORT,
        }
    ),
    "docs/heal.md": Document(
        ways={
            "sudo mlhost-limits heal --unit train.service --check": Way(
                place=GUEST, before=TRAINS, prints=("would raise kernel: vm.max_map_count",)
            ),
            "sudo mlhost-limits heal --unit train.service": Way(
                place=GUEST, before=TRAINS, prints=("raised kernel: vm.max_map_count",)
            ),
            "sudo mlhost-limits heal --undo": Way(
                place=GUEST, prints=("put back kernel: vm.max_map_count",)
            ),
            "mlhost-limits heal --pid 4711": Way(
                instead="mlhost-limits heal --pid $$", reason="a process of the reader's"
            ),
        }
    ),
    "docs/image-builds.md": Document(
        values={"/mnt/image": "/srv/image"},
        ways={
            "mlhost-limits check --root /mnt/image": Way(
                status=1, before=TREE, prints=("unknown until the first boot",)
            ),
            "mlhost-limits check --root rootfs --format sarif > limits.sarif": IN_REPOSITORY,
            "mlhost-limits adopt --root rootfs --format sarif > left-out.sarif": Way(
                before=IN_REPOSITORY.before
            ),
            "mlhost-limits check --root rootfs --format inspec > limits.json": IN_REPOSITORY,
        },
    ),
    "tests/releases/README.md": Document(
        ways={
            "python3 -m tests.releases releases --only trixie --scenario services"
            " --scenario podman": Way(
                instead="python3 -m tests.releases releases --help",
                reason="hours on hosts of its own",
                prints=("--only", "--scenario"),
            ),
            "python3 -m tests.releases controllers --only newest": Way(
                instead="python3 -m tests.releases controllers --help",
                reason="minutes on a host of its own",
                prints=("--only",),
            ),
            "MLHOST_RELEASE=trixie molecule test": Way(
                instead="MLHOST_RELEASE=trixie molecule list",
                reason="a scenario with a guest of its own, which is there",
            ),
        }
    ),
    "docs/supported.md": Document(
        ways={
            "MLHOST_RELEASE=like-rhel9 molecule test": Way(
                instead="MLHOST_RELEASE=like-rhel9 molecule list",
                reason="a scenario with a guest of its own, which is there; Debian 12 has it run",
            ),
        }
    ),
    "README.md": Document(
        values={"DIR": "/", "S": "sshd", "N": "ssh"},
        changes_machine=True,
        ways={
            "mlhost-limits check": FALLS_SHORT,
            "mlhost-limits check --profile P --policy FILE --json": FALLS_SHORT,
            "mlhost-limits preflight -- torchrun --nproc-per-node 8 train.py"
            " --num-workers 16": FALLS_SHORT,
            "mlhost-limits watch -- python train.py": Way(
                before="ln -sf /usr/bin/python3 /usr/local/bin/python; touch train.py"
            ),
            "mlhost-limits heal --user alice": Way(
                before="su alice -c 'ulimit -Sn 500; sleep 99 > /dev/null 2>&1 &'",
                prints=("session:alice",),
            ),
            "mlhost-limits why train.log": Way(
                status=1,
                before="echo 'OSError: [Errno 24] Too many open files' > train.log",
                prints=("limit: the process had as many files open as its soft limit allows",),
            ),
            # Docker has not been restarted, and what it gives new containers falls short.
            "ansible-playbook mlhost.limits.audit -i hosts": RED,
            "ansible all -i hosts -b -m mlhost.limits.check": RED,
        },
    ),
    "docs/audit.md": Document(
        values={"/srv/limits": "$PWD/srv/limits"},
        ways={
            "ansible-playbook mlhost.limits.audit -i hosts": RED,
            "mlhost-limits check --json": FALLS_SHORT,
            'ansible localhost -m mlhost.limits.report -a "results=/srv/limits dest=limits.html"': Way(
                status=2, before=RESULTS
            ),
            "mlhost-limits report /srv/limits -o limits.html": Way(status=1, before=ON_HOST),
            "cat /srv/limits/*.json | mlhost-limits report - -o limits.html": Way(
                status=1, before=ON_HOST, place=GUEST
            ),
        },
    ),
    "docs/kubernetes.md": Document(
        ways={
            "mlhost-limits node-health --npd": Way(
                status=2, before="rm -rf /run/mlhost-limits", prints=("the check failed: ",)
            )
        }
    ),
    "docs/plan.md": Document(
        values={"/srv/limits": "$PWD/srv/limits"},
        ways={
            "mlhost-limits plan /srv/limits": Way(status=1, before=ON_HOST),
            "mlhost-limits plan /srv/limits --green 90% --at-once 2 --groups partitions.txt"
            " --json > plan.json": Way(
                status=1, before=ON_HOST + 'echo "$(hostname) gpu" > partitions.txt\n'
            ),
            "mlhost-limits plan /srv/limits --json > plan.json": PLANNED,
            ROLLOUT: ROLLS_OUT,
        },
    ),
    "roles/rollout/README.md": Document(
        values={"/srv/limits": "$PWD/srv/limits"},
        ways={
            "mlhost-limits plan /srv/limits --json > plan.json": PLANNED,
            ROLLOUT: ROLLS_OUT,
        },
    ),
    "docs/command.md": Document(
        changes_machine=True,
        ways={
            "mlhost-limits check": FALLS_SHORT,
            "mlhost-limits provision": Way(prints=("changed", "requirements are met")),
        },
    ),
    "docs/first-check.md": Document(
        ways={
            "mlhost-limits check": FALLS_SHORT,
            "mlhost-limits check -v": FALLS_SHORT,
            "ansible all -i hosts -b -m mlhost.limits.check": RED,
        },
    ),
    "docs/provision.md": Document(
        changes_machine=True,
        ways={
            "mlhost-limits provision --check --diff": Way(prints=("would change",)),
            "mlhost-limits provision": Way(prints=("changed", "requirements are met")),
        },
    ),
    "docs/install.md": Document(
        place=DESK,
        ways={
            "make zipapp && scp build/mlhost-limits.pyz root@node1:/usr/local/bin/mlhost-limits": Way(
                instead="make zipapp && python3 build/mlhost-limits.pyz --version",
                reason="there is no such host",
                prints=("mlhost-limits ",),
            ),
            "pipx install '.[yaml]'": IN_AN_ENVIRONMENT,
            "sudo env PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/usr/local/bin"
            " pipx install '.[yaml]'": IN_AN_ENVIRONMENT,
            "python3 -m venv /opt/mlhost-limits &&"
            " /opt/mlhost-limits/bin/pip install '.[yaml]'": IN_AN_ENVIRONMENT,
            "mlhost-limits check": FALLS_SHORT,
            "ansible localhost -m mlhost.limits.check": RED,
        },
    ),
    "docs/removing.md": Document(
        changes_machine=True,
        ways={
            "mlhost-limits provision --absent --check --diff": Way(
                before="mlhost-limits provision", prints=("would change",)
            ),
            "pipx uninstall mlhost-limits": REMOVES,
            "rm -f /usr/local/bin/mlhost-limits": REMOVES,
            "rm -rf ~/.ansible/collections/ansible_collections/mlhost": REMOVES,
        },
    ),
    "docs/cases.md": Document(
        ways={
            "mlhost-limits preflight --profile dataloader --workers 2 --prefetch 8"
            " --tensors-per-batch 16 --epochs 1": Way(status=1, before="ulimit -Sn 160"),
            "python load_batches.py --workers 2 ...": Way(reason=NEEDS_TORCH),
            "mlhost-limits preflight --profile deepspeed-zero3-offload --parameters 50331648"
            " --largest-layer 16777216 --gpus-per-node 2 --ranks-per-node 2 --workers 0": Way(
                status=1, prints=("FAIL process:self: model_states", "required 1296MiB")
            ),
            "mlhost-limits preflight --profile deepspeed-zero3-offload --workers 0 --pinned-buffer 4194304"
            " --only memory": Way(status=1, before=WITHOUT_LOCKS),
            "mlhost-limits preflight --profile webdataset --workers 2 --shards 2"
            " --cache-dir /srv/cache": Way(
                status=1, before="mkdir -p /srv/cache; export SLURM_JOB_ID=4711"
            ),
            "mlhost-limits preflight --profile simpletuner --cache-dir /srv/embeddings": Way(
                status=1,
                before="mkdir -p /srv/embeddings; printf 'PK\\3\\4' > /srv/embeddings/sample-0.pt",
            ),
            "mlhost-limits preflight --profile transformers --output-dir /srv/run": Way(
                status=1, before=OTHER_RUN, prints=("FAIL path:/srv/run: other runs pid",)
            ),
            "molecule test --scenario-name workspace": Way(
                instead="molecule list --scenario-name workspace",
                reason="a scenario with a guest of its own, which is there",
            ),
        },
    ),
    "docs/causes.md": Document(ways={"mlhost-limits check --json": FALLS_SHORT}),
    "docs/preflight.md": Document(
        changes_machine=True,
        ways={
            "ansible-playbook mlhost.limits.preflight -i hosts -e mlhost_limits_profile=dataloader"
            ' -e \'{"mlhost_limits_training":'
            ' {"workers": 16, "prefetch": 4, "tensors_per_batch": 8, "batch_size": "64MiB",'
            ' "user": "alice"}}\'': RED,
            "mlhost-limits preflight -- torchrun --nproc-per-node 8 train.py --config run.yaml": Way(
                status=1,  # Eight processes have no room in the guest.
                before="printf 'dataloader_num_workers: 0\\n' > run.yaml",
            ),
            "mlhost-limits preflight --try 20 -- python3 train.py": Way(
                status=1,  # Nor have eight workers.
                before="printf 'print(1)\\n' > train.py",
                prints=("train.py: makes no DataLoader: nothing was measured",),
            ),
            "mlhost-limits preflight ds_config.json sbatch.sh": Way(before=JOB),
            "mlhost-limits preflight": Way(before=JOB),
            "mlhost-limits preflight --profile dataloader --workers 16 --prefetch 4"
            " --tensors-per-batch 8 --batch-size 64MiB --output-dir /srv/run-17 --as-user alice": Way(
                status=1, before="install -d -o alice /srv/run-17"
            ),
            "mlhost-limits preflight --profile dataloader --workers 8 --prefetch 4"
            " --tensors-per-batch 4": Way(
                status=1,
                before="ulimit -Sn 160",
                prints=("FAIL process:self: nofile soft 160, required 161",),
            ),
        },
    ),
    "docs/recipes.md": Document(
        values={
            "DIR": "project",
            "URL": '"$PWD/pulled"',
            "/srv/limits": "$PWD/srv/limits",
            "/srv/reports": "$PWD/reports",
        },
        ways={
            'ansible localhost -m mlhost.limits.report -a "results=/srv/limits dest=limits.html"': RED,
            'ansible-pull -U URL -i "$(hostname)," local.yml': Way(before=PULLED),
            "ansible-runner run DIR -p mlhost.limits.audit"
            ' --cmdline "-e mlhost_limits_audit_dest=/srv/reports/limits.html"': Way(
                status=2, before=RUNNER
            ),
        },
    ),
    "docs/slurm.md": Document(
        ways={"mlhost-limits explain job:slurm/gpu memlock": Way(before=SLURM_CONF)},
    ),
    "docs/training-code.md": Document(
        preamble="class DataLoader(list):\n"
        "    def __init__(self, dataset, **_more): self.sampler = dataset\n"
        "dataset, train = [], print",
        ways={"pip install .": Way(before=OWN_ENVIRONMENT)},
    ),
    "tests/faults/README.md": Document(
        ways={"python -m tests.faults --list": Way(prints=("pam: ", "docker: "))}
    ),
    "tests/hostile/README.md": Document(
        preamble="from tests.hostile.attack import Attack", place=DESK, python=DESK
    ),
    "tests/host/README.md": Document(
        values={"COMMAND": "id -un"},
        place=DESK,
        python=DESK,
        has_guests=True,
        ways={
            "apt-get install --no-install-recommends $(cat tests/host/packages.txt)": Way(
                instead="apt-get install --simulate --no-install-recommends"
                " $(cat tests/host/packages.txt)",
                reason="it would change this machine",
            ),
            "python3 -m tests.host ssh NAME -u alice -- COMMAND": Way(prints=("alice",)),
            **{f"python3 -m tests.host {verb}": somebodys(verb) for verb in ("up", "ssh", "down")},
            "python3 -m tests.host clean": Way(before='export MLHOST_CACHE="$PWD/empty"'),
        },
    ),
    "tests/bench/README.md": Document(
        ways={
            "mlhost-limits monitor": Way(
                before="install -D policy.json /etc/mlhost-limits/monitor.json"
            )
        }
    ),
    "CONTRIBUTING.md": Document(
        ways={
            "python -m tests.host up": somebodys("up"),
        }
    ),
}
