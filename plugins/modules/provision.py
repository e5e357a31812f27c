#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a limits policy true on a host in one run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: provision
short_description: Give a training host the resource limits that a policy asks for
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Makes any section of a policy, or all of it, true in one run. Logins through limits.d, the
    kernel's values through sysctl.d and at once, services and user managers through drop-ins of
    systemd, containers through Docker's daemon.json, drop-ins of Podman's containers.conf, of
    CRI-O's crio.conf and of containerd's unit, jobs of Slurm through a drop-in of slurmd, /dev/shm
    through fstab.
  - Refuses before it writes whatever would lock the host or stop a daemon, all problems at once.
    Examples are a nofile above fs.nr_open, or a Docker default that is also a flag of its unit.
  - Writes files of its own. A line of somebody else's that beats them is reported with its file
    and line, and made ineffective only with O(override).
  - Opens a session before and after a change of the limits files. If one that opened does not
    open any more, the old files are put back and the task fails.
  - Must run as root.
extends_documentation_fragment: mlhost.limits.policy
attributes:
  check_mode: {support: full, description: Says what would change and changes nothing.}
  diff_mode:
    support: full
    description: Shows every file and every running value. Secrets in daemon.json are left out.
  idempotent: {support: full, description: A second run changes nothing.}
  platform: {support: full, platforms: linux, description: Needs Python 3.8 or later.}
options:
  sections:
    description:
      - Which parts of the policy to make true. What an earlier run has set in one of them and the
        policy does not ask for any more is taken back.
    type: list
    elements: str
    choices:
      - kernel
      - sessions
      - services
      - containerd
      - docker
      - podman
      - crio
      - slurm
      - shared_memory
    default:
      - kernel
      - sessions
      - services
      - containerd
      - docker
      - podman
      - crio
      - slurm
      - shared_memory
  state:
    description:
      - V(absent) removes what this module has set, and makes lines effective again that
        O(override) made ineffective. Running kernel values stay until the next boot.
    type: str
    choices: [present, absent]
    default: present
  override:
    description:
      - Whether to make lines ineffective that beat ours with less than the policy asks for.
        They become comments, and are restored when this is V(false) again.
      - Only files in directories of root's are changed, and only while they hold what this run
        read; a user's file is never changed.
    type: bool
    default: false
  heal:
    description:
      - Whether to raise what runs already to what the policy asks for, without a restart. Nothing
        is lowered, and what was raised can be put back by C(mlhost-limits heal --undo).
    type: bool
    default: false
  sessions_file:
    description:
      - Where the limits of logins are written. A file in V(/etc/security/limits.d), or
        V(/etc/security/limits.conf) for a marked block inside it.
    type: path
    default: /etc/security/limits.d/90-mlhost.conf
  kernel_file:
    description: Where the kernel's values are written for the next boot.
    type: path
    default: /etc/sysctl.d/90-mlhost.conf
  services_restart:
    description:
      - Services that may be restarted where they run with less than the policy asks for, by their
        whole names, as V(slurmd.service). Others are named in RV(restart_required).
      - If one does not stay up, every file is put back and it is restarted once more.
      - Refused are services that would take the connection with them, such as D-Bus, logind and
        those of the network.
    type: list
    elements: str
    default: []
  docker_restart:
    description:
      - Whether Docker may be restarted where its new defaults need it. Without live-restore this
        ends every running container.
      - If the daemon does not come back, its old configuration is put back.
    type: bool
    default: false
  containerd_restart:
    description:
      - Whether containerd may be restarted where its new limits need it. Containers go on, with
        the limits that they have.
    type: bool
    default: false
  crio_restart:
    description:
      - Whether crio may be restarted where its new limits need it. Containers go on, with the
        limits that they have.
      - If it does not come back, its old drop-in is put back.
    type: bool
    default: false
  slurm_restart:
    description:
      - Whether slurmd may be restarted where its new limits need it. Steps that run go on, with
        their old limits.
      - If it does not come back, its old drop-in is put back.
    type: bool
    default: false
  slurm_conf:
    description:
      - Whether a marked block in slurm.conf may keep logins from deciding the limits of their jobs.
        Slurm then reads it anew. Otherwise the line at fault and the one to write are in C(notes).
      - The file must be the same on every node, so this belongs to a run over all of them.
      - Slurm itself judges the new file before it is written.
    type: bool
    default: false
  display:
    description:
      - Who reads the result. With V(auto) and V(always) what must be restarted, what goes on
        with old limits, and notes are displayed.
      - V(never) displays nothing. So it is with callbacks that write for programs, with C(no_log),
        and with a task that is C(async).
    type: str
    choices: [auto, always, never]
    default: auto
"""

EXAMPLES = r"""
- name: Give a training host what the training profile asks for
  mlhost.limits.provision:

- name: Raise the limits of one group of users, and nothing else
  mlhost.limits.provision:
    profile: none
    sections: [sessions]
    policy:
      sessions:
        - users: ["@ml"]
          limits:
            nofile: {soft: 131072, hard: 1048576}
            memlock: unlimited

- name: Let slurmd and what it starts lock memory, from now on
  mlhost.limits.provision:
    profile: none
    policy:
      services:
        units:
          slurmd.service: {memlock: unlimited, nofile: 131072, tasks: unlimited}
    services_restart: [slurmd.service]

- name: Let new containers have these limits at once
  mlhost.limits.provision:
    sections: [docker]
    docker_restart: true

- name: Give jobs of Slurm these limits, whatever the login has that submits them
  mlhost.limits.provision:
    profile: none
    policy:
      jobs:
        slurm:
          limits: {nofile: 131072, memlock: unlimited}
    slurm_restart: true
    slurm_conf: true

- name: Take everything back
  mlhost.limits.provision:
    state: absent
"""

RETURN = r"""
brief:
  description: What has to be restarted, what goes on with old limits, and notes, as lines of text.
  returned: when it is registered, or O(display=never)
  type: list
  elements: str
  sample: ["todo restart slurmd.service: only then it has the new limits"]
files:
  description: Paths of the files that were, or in check mode would be, written or removed.
  returned: success
  type: list
  elements: str
  sample: [/etc/security/limits.d/90-mlhost.conf]
sysctls:
  description: Running values that were raised.
  returned: success
  type: list
  elements: dict
  sample: [{key: vm.max_map_count, before: "65530", after: "262144"}]
shortfalls:
  description: Lines of others that beat ours with less than the policy asks for.
  returned: success
  type: list
  elements: str
  sample:
    - /etc/security/limits.d/95-x.conf:1 "alice soft nofile 9" beats our "* soft nofile 65536"
restarted:
  description: Services that were restarted.
  returned: success
  type: list
  elements: str
  sample: [docker.service]
in_effect:
  description:
    - The O(mlhost.limits.check#module:sections) that this run has made true. What needs a restart
      that was not allowed is not among them.
  returned: success
  type: list
  elements: str
  sample: [kernel, sessions, services, docker]
raised:
  description: What O(heal) has raised of what runs, or in check mode would raise.
  returned: success
  type: list
  elements: str
  sample: ["session:alice nofile 1024:4096 -> 65536:1048576 (python3 4711 and 7 more)"]
restart_required:
  description: Services that must be restarted before all of the policy is in effect.
  returned: success
  type: list
  elements: str
  sample: [docker.service]
old_limits:
  description:
    - Sessions, services, containers and steps of jobs that go on with less than the policy asks
      for until they end or are restarted.
  returned: success
  type: list
  elements: str
  sample: ["session-3.scope of alice, pid 812: nofile soft 1024, required 65536"]
notes:
  description: What else is worth knowing, such as a section that has no effect yet.
  returned: success
  type: list
  elements: str
problems:
  description: Why the policy was refused, each with its key path or file and line.
  returned: failure
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.spoken import leave
from ..module_utils.verbs import PROVISION_ARGUMENTS, run_provision


def main() -> None:
    module = AnsibleModule(argument_spec=PROVISION_ARGUMENTS, supports_check_mode=True)
    leave(module, run_provision(dict(module.params), module.check_mode))


if __name__ == "__main__":
    main()
