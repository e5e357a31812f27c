#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow a plan in waves; the action of this name does it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: waves
short_description: Say which hosts of a plan come next, and when to stop
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Reads what C(mlhost-limits plan --json) has printed, and returns the waves with the hosts that
    are left. The playbook C(mlhost.limits.rollout) goes by them.
  - A plan is made of results, in which hosts name themselves. One with a host that the
    inventory of this run has not is refused.
  - Notes the hosts that are through in a file beside the plan. The same run then goes on where it
    was stopped. A new plan begins anew.
  - Runs on the controller.
  - With O(step) it drains the node of Slurm or Kubernetes that a host is, or gives it back. A node
    that somebody else keeps from work stays so, and one that is down is refused. Commands are run
    on the host that the task is delegated to.
attributes:
  check_mode:
    support: full
    description: It notes and drains nothing, and says what it would. A red node is a warning.
  diff_mode: {support: full, description: "It shows the notes, and the state of a node."}
  idempotent: {support: full, description: A host is noted once; a drained node stays drained.}
  platform: {support: full, platforms: posix, description: The controller's.}
options:
  plan:
    description: Path of the plan. Either this or O(step) is needed.
    type: path
  record:
    description: Path of the notes; by default that of the plan with C(.done) behind it.
    type: path
  by_hand:
    description: Whether to go on though the plan has edits of lines that are not ours.
    type: bool
    default: false
  override:
    description: Whether provision may make them, so that nobody else has to.
    type: bool
    default: false
  wave:
    description:
      - The number of the wave that this play is, from 1. Hosts of the batch that have not failed
        are noted as through, and the task fails where more hosts of the play failed, or were not
        reached, than may.
    type: int
  rollout:
    description:
      - What a task with O(plan) returned. O(step) needs it. A task with O(wave) notes nothing in a
        plan that was written since.
    type: dict
  step:
    description:
      - What to do with the node where a fix ends its work; other hosts are skipped.
      - V(drain) drains it and waits until it has no work left. V(give_back) lets it have work
        again, and fails where it is down then. V(take_back) drains it again, waits for nothing,
        and fails with O(why).
    type: str
    choices: [drain, give_back, take_back]
  drain:
    description: What starts the work of the nodes; nothing is drained without it.
    type: str
    choices: ["", kubernetes, slurm]
    default: ""
  drain_wait:
    description: Seconds to wait until a node has no work left.
    type: int
    default: 86400
  node:
    description:
      - What Slurm or Kubernetes calls the host; by default its short name in the inventory. A host
        that is an address in the inventory needs it.
    type: str
    default: ""
  reboot:
    description: Whether a host may be rebooted that a fix reboots.
    type: bool
    default: false
  why:
    description: Why a node is taken back.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read the plan, and which hosts are through
  mlhost.limits.waves:
    plan: /srv/limits/plan.json
  register: plan

- name: Note those that are green, and stop where too many are not
  mlhost.limits.waves:
    plan: /srv/limits/plan.json
    wave: 1
    rollout: "{{ plan }}"
  run_once: true
  any_errors_fatal: true

- name: Drain the node, where a fix ends its work
  mlhost.limits.waves:
    step: drain
    drain: slurm
    rollout: "{{ plan }}"
  delegate_to: login1
"""

RETURN = r"""
waves:
  description:
    - Four waves, each with its name, its hosts in their order, the sizes of its batches, and how
      many may stay red. One with nothing left has a pattern that matches no host.
  returned: with O(plan)
  type: list
  elements: dict
  sample: [{name: canary, hosts: [a01, b01], serial: [2], most_failed: 0}]
drains:
  description: The hosts whose work a fix ends.
  returned: with O(plan)
  type: list
  elements: str
  sample: [a01]
reboots:
  description: The hosts that a fix reboots.
  returned: with O(plan)
  type: list
  elements: str
  sample: []
by_hand:
  description: The fixes that are edits of lines that are not ours.
  returned: with O(plan)
  type: list
  elements: str
  sample: []
through:
  description: The hosts of the plan that are through.
  returned: with O(plan)
  type: list
  elements: str
  sample: [a02]
written:
  description: When the plan was written.
  returned: with O(plan)
  type: str
  sample: "2026-11-26T12:00:00Z"
reboot:
  description: Whether a fix reboots the host, and O(reboot) allows it.
  returned: with O(step)
  type: bool
  sample: false
shows_jobs:
  description: Whether the node is of Slurm and takes work, so that a check can start a job.
  returned: with O(step)
  type: bool
  sample: true
msg:
  description: How far the plan has come, or what became of the node.
  returned: always
  type: str
  sample: "2 of 4 hosts are through; next: wave 10 %, 2 hosts"
"""
