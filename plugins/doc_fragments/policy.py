# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules say alike about the policy."""

from __future__ import annotations


class ModuleDocFragment:
    """The options that name a policy, and the attributes every module of ours has."""

    DOCUMENTATION = r"""
options:
  profile:
    description:
      - Name of a policy that comes with the collection; V(training@1) is the first version of
        V(training), whose values stay what they are, and the bare name is the newest. A O(policy)
        may name it itself, as C(profile).
      - V(none) is empty, for a O(policy) that stands alone. V(training) is for a host that trains,
        V(multi-node) for one of many that train one model, V(slurm-node) and V(kubernetes-node) for
        one whose jobs or pods Slurm or a kubelet starts, V(inference) for one that serves a model,
        V(workstation) for one person's.
        V(dataloader), V(deepspeed-zero3-offload), V(webdataset), V(simpletuner), V(transformers)
        and V(trl) are each for one kind of training run.
    type: str
    default: training
  policy:
    description:
      - What the host owes its jobs, merged over O(profile). Mappings are merged key by key, lists
        and values replace, and a key set to V(null) is removed.
      - C(sessions) is a list of C(users) (domains as in limits.conf, so V(*) does not mean root)
        and their C(limits).
      - C(kernel) maps the name of a sysctl to its minimum, or to C(min), C(max) and C(exact).
      - C(services) has C(default) (services that state nothing), C(user_default) (those of users'
        managers), C(units) by name, and C(logind.remove_ipc). The first three hold limits by their
        names and C(tasks), the number of tasks of the unit.
      - C(containers.docker) has C(limits) and C(shm_size), the defaults of a new container, and
        C(tasks), how many processes and threads it may hold.
      - C(shared_memory.size) is what /dev/shm of the host must have at least.
      - C(containers.podman) has the same, and C(users) whose rootless containers are checked too.
      - C(containers.containerd) has C(limits), which pods and other containers inherit from it.
      - C(containers.crio) has C(limits) and C(tasks), the defaults of a new container of CRI-O.
      - C(processes) is a list of C(limits) of running processes, chosen by C(user), C(name) or
        C(unit). They are only checked.
      - C(jobs.slurm) has the C(limits) of jobs of Slurm, the C(partitions) in which one is tried
        (by default the default one), and C(propagate), the limits whose soft value a job may take
        over from the login that submits it. V(none) or a list; by default all but those of
        C(limits). C(memory) and C(cpus) are what a job gets that asks for as much; they are only
        checked.
      - C(training) is one training run, whose numbers and directories are checked and never set;
        see the collection's docs/preflight.md.
      - A limit is one value, or C(soft), C(hard) and C(max). Soft and hard are set exactly and
        checked as minima, C(max) is only checked.
      - Sizes are bytes or carry a unit (V(64KiB), V(8GiB)). V(unlimited), V(infinity) and V(-1)
        mean the same.
    type: dict
"""
