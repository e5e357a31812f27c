#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a host check itself, by a timer and for Slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: monitor
short_description: Let a host check itself, by a timer and for Slurm
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Installs the library as one file that Python runs, the policy as JSON, and a timer of systemd
    that checks the host and writes metrics for the textfile collector of node_exporter.
  - C(/usr/local/lib/mlhost-limits/node-health) is for C(HealthCheckProgram) and C(Prolog) of Slurm.
  - The policy is refused as by M(mlhost.limits.check) before anything is written.
  - Must run as root.
extends_documentation_fragment: mlhost.limits.policy
attributes:
  check_mode: {support: full, description: Says what would change and changes nothing.}
  diff_mode: {support: full, description: "Shows every file; of the program, the size."}
  idempotent: {support: full, description: A second run changes nothing.}
  platform: {support: full, platforms: linux, description: Needs Python 3.8 or later.}
options:
  state:
    description: V(absent) stops the timer and removes all that was installed, the metrics too.
    type: str
    choices: [present, absent]
    default: present
  interval:
    description: Time between two checks, as C(30s), C(5min) or C(1h).
    type: str
    default: 5min
  textfile_directory:
    description:
      - The directory that node_exporter reads (C(--collector.textfile.directory)), which must be
        there. Where it is empty, no metrics are written.
    type: path
    default: /var/lib/prometheus/node-exporter
  canary:
    description:
      - With V(never) the timer starts no container, service or job, and what a new one would get
        is unknown. V(auto) and V(always) as in M(mlhost.limits.check).
    type: str
    choices: [auto, always, never]
    default: never
  first_boot:
    description:
      - Whether a check of all places runs once, after the first boot of an image, and leaves its
        result in C(/var/lib/mlhost-limits/first-boot.json).
    type: bool
    default: false
  black_box:
    description:
      - Whether a service watches all that runs, tells of limits before they are reached, in the
        journal and in metrics, and keeps in C(/var/lib/mlhost-limits/ends) what runs died of, for
        C(mlhost-limits why). What it has kept stays where V(absent) removes it.
    type: bool
    default: false
  drain_on_error:
    description:
      - Whether Slurm drains a node whose check could not be made. By default it does not, because
        that says nothing of the node; C(node-health) says why on stderr.
    type: bool
    default: false
seealso:
  - module: mlhost.limits.check
"""

EXAMPLES = r"""
- name: Check the host every five minutes, for node_exporter
  mlhost.limits.monitor:

- name: Let Slurm alone ask
  mlhost.limits.monitor:
    textfile_directory: ""
    interval: 10min
"""

RETURN = r"""
files:
  description: Paths of the files that were, or in check mode would be, written or removed.
  returned: success
  type: list
  elements: str
  sample: [/usr/local/lib/mlhost-limits/mlhost-limits.pyz]
problems:
  description: Why it was refused.
  returned: failure
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.spoken import leave
from ..module_utils.verbs import MONITOR_ARGUMENTS, run_monitor


def main() -> None:
    module = AnsibleModule(argument_spec=MONITOR_ARGUMENTS, supports_check_mode=True)
    leave(module, run_monitor(dict(module.params), module.check_mode))


if __name__ == "__main__":
    main()
