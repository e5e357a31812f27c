#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the limits in effect on a host and judge them against a policy."""

from __future__ import annotations

DOCUMENTATION = r"""
module: check
short_description: Check the resource limits that jobs on a training host really get
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Measures in one run the kernel's values, fresh sessions of users through each way in, running
    services, processes and containers, and what a new service, a new container and a job of Slurm
    would get.
  - Judges each against a policy as pass, fail or unknown. What could not be observed is unknown
    with the reason, and never a pass.
  - What the policy's C(waivers) let pass is waived, until the day they name.
  - Names for each failure the line at fault and the fix, and says whether it will be right at
    the next session, after a restart and after a boot.
  - Says of one training run, whose numbers are the policy's C(training), whether it will survive,
    and the largest number of workers that fits.
  - Changes no configuration. A session is opened in a child process through the real PAM
    library and ends at once; the new service sleeps and is stopped; the new container has no
    network, no image of yours and is removed; the job of Slurm takes a moment and is canceled
    where it does not run.
  - Must run as root to see sessions and containers.
extends_documentation_fragment: mlhost.limits.policy
attributes:
  check_mode: {support: full, description: This module does not modify the target.}
  diff_mode: {support: N/A, description: This module does not modify the target.}
  idempotent: {support: full, description: Asking twice changes nothing.}
  platform: {support: full, platforms: linux, description: Needs Python 3.8 or later.}
options:
  sections:
    description: Which places to look at.
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
      - slurm_steps
      - shared_memory
      - processes
      - training
    default:
      - kernel
      - sessions
      - services
      - containerd
      - docker
      - podman
      - crio
      - slurm
      - slurm_steps
      - shared_memory
      - processes
      - training
  users:
    description:
      - Users whose sessions are measured. By default those that the policy names, the user that
        Ansible connects as, and one ordinary login user to stand for V(*).
      - The first of them that is not root submits the jobs of Slurm, from the session that it gets.
    type: list
    elements: str
  services:
    description:
      - Ways in, by the names of their PAM services. V(cron) stands for C(crond) on Red Hat as well.
    type: list
    elements: str
    default: [sshd, su, sudo, cron, login]
  probe:
    description:
      - V(quiet) runs the modules of the real PAM stack that decide limits, V(full) runs them
        all, with their messages, logs and mounts, and V(predict) opens nothing and reports what
        the files say as unknown.
    type: str
    choices: [quiet, full, predict]
    default: quiet
  canary:
    description:
      - Whether to start a container, and a service where the policy speaks of new ones, to see what
        a new one gets. For containers V(auto) uses the last result while the daemon and its
        configuration have not changed.
      - With V(never) no job of Slurm is submitted either; with the others one is each time, in each
        partition, and waits 10 seconds for room.
    type: str
    choices: [auto, always, never]
    default: auto
  fail_on:
    description:
      - What makes the task fail. V(later) means a failure, or what is right now and will not be
        after a restart or a boot; V(unknown) means both, or anything that could not be seen.
    type: str
    choices: [fail, later, unknown, never]
    default: fail
  root:
    description:
      - The tree of an image, which is judged by what its files will give; nothing of it runs. Its
        findings fail or are unknown until the first boot, with C(after_boot) as the forecast.
      - In a chroot, or in a container that an image is built in, this is what happens anyway.
    type: path
    default: ""
  time_limit:
    description:
      - Seconds that the whole look may take. A section that did not answer by then is unknown,
        with that reason, and so is one that crashed; the others stand.
      - Such a section makes the task fail, unless O(fail_on=never).
    type: float
    default: 110.0
  provisioned:
    description:
      - Whether this policy was provisioned just before, as a role does it. The report does not
        advise to provision then.
    type: bool
    default: false
  display:
    description:
      - Who reads the result. With V(auto) the report is displayed where the host falls short, in a
        command C(ansible -m), and with C(-v), where it names every finding. Data that nobody
        registers is left out of the result then, so that what Ansible prints is short.
      - V(always) displays the report of a host that does not fall short too.
      - V(never) displays nothing, and the result holds all data. So it is with callbacks that
        write for programs, such as C(ansible.posix.json), C(null) and C(--one-line), and
        with C(--tree).
      - Nothing is displayed with C(no_log), and nothing of a task that is C(async).
    type: str
    choices: [auto, always, never]
    default: auto
"""

EXAMPLES = r"""
- name: Fail unless jobs on this host get what the training profile asks for
  mlhost.limits.check:

- name: Look at two users and take what could not be seen for a failure
  mlhost.limits.check:
    users: [alice, slurm]
    fail_on: unknown

- name: Judge the tree of an image that is being built
  mlhost.limits.check:
    root: /mnt/image

- name: Check what jobs of Slurm get, and that no login decides it
  mlhost.limits.check:
    profile: none
    policy:
      jobs:
        slurm:
          limits: {nofile: 131072, memlock: unlimited}
          partitions: [gpu, long]
          propagate: none

- name: Say whether a run will survive on this host, before it starts
  mlhost.limits.check:
    profile: dataloader
    policy:
      training: {workers: 16, prefetch: 4, tensors_per_batch: 8, batch_size: 64MiB, user: alice}
    sections: [training]
"""

RETURN = r"""
findings:
  description:
    - Every requirement of the policy, judged. Where it falls short, now or after a boot, C(causes)
      name what to change, what comes first first, each with a stable C(code), the declaration at
      fault (C(at)), those that state enough and lose to it (C(shadows)), who else writes that file
      (C(writer)) and a fix (C(remedy)), whose C(commands) are lists of words to run as root. Of a
      run C(verdict) is C(cannot) where no run survives it, C(tight) where an estimate says so.
    - C(next_session), C(next_restart) and C(after_boot) are C(pass), C(fail), C(unknown), or empty
      where the question has no meaning.
    - C(owner) is the user whose own file or process decides the value, such as the owner of a start
      file of a shell; it is empty where root decides. Such a finding counts for O(fail_on) as any
      other, and never drains a node of Slurm.
  returned: when it is registered, or O(display=never)
  type: list
  elements: dict
  sample:
    - status: fail
      place: session:alice@sshd
      item: nofile
      bound: soft
      required: "65536"
      observed: "1024"
      how: libpam session of sshd, inherited from sshd (pid 714)
      reason: ""
      waiver: ""
      owner: ""
      next_session: fail
      next_restart: ""
      after_boot: fail
      causes:
        - code: pam-user-beats-wildcard
          text: >-
            /etc/security/limits.d/95-vendor.conf:3 "alice soft nofile 1024" (user) beats
            /etc/security/limits.d/90-mlhost.conf:2 "* soft nofile 65536" (wildcard)
          at:
            file: /etc/security/limits.d/95-vendor.conf
            line: 3
            text: alice soft nofile 1024
          shadows:
            - file: /etc/security/limits.d/90-mlhost.conf
              line: 2
              text: "* soft nofile 65536"
          writer: ""
          verdict: ""
          remedy:
            text: "comment out 95-vendor.conf:3, or provision with override"
            commands:
              - - sh
                - "-c"
                - >-
                  f=$(readlink -f /etc/security/limits.d/95-vendor.conf | grep ^/etc/) && [ -f
                  "$f" ] && [ "$(sed -n '3l 0' "$f")" = 'alice soft nofile 1024$' ] && sed -i
                  '3s/^/# /' "$f" || ! echo /etc/security/limits.d/95-vendor.conf:3 has changed
                  since the check: nothing was done. Run the check again. >&2
            then: log in again
format:
  description: What this is, wherever it is taken; C(mlhost-limits report) reads it.
  returned: when the host was judged
  type: str
  sample: mlhost.limits/check
version:
  description: Of the format; keys may be added without.
  returned: when the host was judged
  type: int
  sample: 1
host:
  description: The host's own name; empty for the tree of an image.
  returned: when the host was judged
  type: str
  sample: gpu001
policy:
  description: Digest of profile and policy together; two spellings of a value are two.
  returned: when the host was judged
  type: str
  sample: sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945
summary:
  description:
    - Number of findings of each status; C(later) counts those that pass now and will not after a
      restart or a boot, C(waived) those that the policy's C(waivers) let pass.
  returned: when the host was judged
  type: dict
  sample: {pass: 40, fail: 2, unknown: 0, waived: 1, later: 0}
report:
  description: Every finding as lines of text, at most 80 columns wide.
  returned: when it is registered, or O(display=never)
  type: list
  elements: str
brief:
  description: What is to do, as lines of text, at most 80 columns wide. This is what is displayed.
  returned: when it is registered, or O(display=never)
  type: list
  elements: str
  sample:
    - 2 of 48 requirements fall short, for one reason
    - "1    alice, at every login: nofile soft 1024, required 65536"
reasons:
  description: What falls short, now or after a boot, in a sentence for each reason.
  returned: when the host was judged
  type: list
  elements: str
  sample: ["alice, at every login: nofile soft 1024, required 65536"]
measured:
  description: When it was measured, in UTC by the host's clock.
  returned: when the host was judged
  type: str
  sample: "2026-11-30T12:00:00Z"
connection:
  description:
    - Limits of the process that Ansible runs on the target, by item as C(soft:hard). Says
      nothing of new sessions, because a connection that is kept open keeps its old limits.
  returned: when it is registered, or O(display=never)
  type: dict
  sample: {nofile: "1024:1048576"}
samples:
  description: Users who stand for everybody that the policy does not name.
  returned: when it is registered, or O(display=never)
  type: list
  elements: str
  sample: [alice]
idle_waivers:
  description: Waivers that nothing on this host needs; empty where sections are left out.
  returned: when it is registered, or O(display=never)
  type: list
  elements: str
  sample: ["nofile in container:docker/old-* (until 2026-12-31: the vendor ships a new image)"]
connection_causes:
  description:
    - Why that process has less than a fresh session of its user, which has enough; in the form of
      the C(causes) of a finding. It is not a finding.
  returned: when it is registered, or O(display=never)
  type: list
  elements: dict
  sample: []
problems:
  description: Why the policy was refused, each with its key path.
  returned: when it is refused
  type: list
  elements: str
  sample: ["policy.sesions: is unknown; accepted are kernel, sessions, services"]
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.spoken import leave
from ..module_utils.verbs import CHECK_ARGUMENTS, run_check


def main() -> None:
    module = AnsibleModule(argument_spec=CHECK_ARGUMENTS, supports_check_mode=True)
    leave(module, run_check(dict(module.params), module.check_mode))


if __name__ == "__main__":
    main()
