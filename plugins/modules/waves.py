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
attributes:
  check_mode: {support: full, description: It notes nothing.}
  diff_mode: {support: none, description: The notes are its own.}
  idempotent: {support: full, description: A host is noted once.}
  platform: {support: full, platforms: posix, description: The controller's.}
options:
  plan:
    description: Path of the plan.
    type: path
    required: true
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
  run_once: true
  any_errors_fatal: true
"""

RETURN = r"""
waves:
  description:
    - Four waves, each with its name, its hosts in their order, the sizes of its batches, and how
      many may stay red. One with nothing left has a pattern that matches no host.
  returned: always
  type: list
  elements: dict
  sample: [{name: canary, hosts: [a01, b01], serial: [2], most_failed: 0}]
drains:
  description: The hosts whose work a fix ends.
  returned: always
  type: list
  elements: str
  sample: [a01]
reboots:
  description: The hosts that a fix reboots.
  returned: always
  type: list
  elements: str
  sample: []
by_hand:
  description: The fixes that are edits of lines that are not ours.
  returned: always
  type: list
  elements: str
  sample: []
through:
  description: The hosts of the plan that are through.
  returned: always
  type: list
  elements: str
  sample: [a02]
"""
