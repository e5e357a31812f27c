#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare a directory for the caches of training jobs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: workspace
short_description: Prepare a directory for the caches of training jobs
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Makes a directory on a local disk or a tmpfs, has systemd make it at each boot and clean it by
    age, and gives each job a directory of its own below it, named by environment variables.
  - Moves damaged files of a cache aside when asked to. Nothing is ever removed.
  - Refuses before it writes whatever is not safe, such as a path on which users other than root may
    write, and files that somebody else wrote.
  - Must run as root.
attributes:
  check_mode: {support: full, description: Says what would change and changes nothing.}
  diff_mode: {support: full, description: "Shows every file, the directory and its mount."}
  idempotent: {support: full, description: A second run changes nothing.}
  platform: {support: full, platforms: linux, description: Needs Python 3.8 or later.}
options:
  path:
    description: The directory. Letters, digits and V(._-) are accepted in its names.
    type: path
    required: true
  state:
    description:
      - V(absent) removes what this module has written, unmounts its tmpfs, and removes the
        directory where it is empty.
    type: str
    choices: [present, absent]
    default: present
  owner:
    description: Who owns the directory.
    type: str
    default: root
  group:
    description: The group of the directory.
    type: str
    default: root
  mode:
    description:
      - The mode of the directory, as an octal number. V(1777) lets every user's jobs make one below
        it that nobody else can take away.
    type: str
    default: "1777"
  tmpfs_size:
    description:
      - Makes it a tmpfs of this size, in bytes or with a unit (V(64GiB)), now and at each boot.
        What is in it counts as memory.
    type: str
  max_age:
    description:
      - Files that nobody used for so long are removed, as tmpfiles.d(5) writes it (V(10d)). Most
        file systems note only once a day that a file was read, so give two days at least.
    type: str
    default: ""
  variables:
    description:
      - Environment variables that name each job's own directory, by the user and the number of the
        job. Logins and batch scripts read them in V(/etc/profile.d/90-mlhost.sh). A host may have
        several workspaces, and one of them has variables.
    type: list
    elements: str
    default: [WIDS_CACHE, WDS_CACHE]
  task_prolog:
    description:
      - Where to write a TaskProlog for Slurm that gives each task a directory of its own. It takes
        effect once slurm.conf names it.
    type: path
  quarantine:
    description:
      - Whether damaged files of known formats below O(path), such as V(.pt), V(.safetensors) and
        V(.tar), are moved to V(.quarantine) in it. A file that is being written stays.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Give jobs a cache on the local disk, cleaned after ten days
  mlhost.limits.workspace:
    path: /scratch/cache
    max_age: 10d

- name: Give jobs a cache in memory
  mlhost.limits.workspace:
    path: /scratch/cache
    tmpfs_size: 64GiB
    task_prolog: /etc/slurm/mlhost-task-prolog.sh

- name: Move damaged embeddings out of the way
  mlhost.limits.workspace:
    path: /scratch/embeddings
    owner: alice
    group: alice
    mode: "0750"
    variables: []
    quarantine: true
"""

RETURN = r"""
files:
  description: Paths of the files that were, or in check mode would be, written or removed.
  returned: success
  type: list
  elements: str
  sample: [/etc/tmpfiles.d/90-mlhost.conf]
quarantined:
  description: Files below O(path) that were, or in check mode would be, moved aside.
  returned: success
  type: list
  elements: str
  sample: [embeddings/17.pt]
notes:
  description: What else is worth knowing.
  returned: success
  type: list
  elements: str
problems:
  description: Why it was refused.
  returned: failure
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.core.reader import PolicyError
from ..module_utils.core.values import parse_quantity
from ..module_utils.host.root import require_root
from ..module_utils.workspace.plan import VARIABLES, Workspace
from ..module_utils.workspace.provision import prepare_workspace


def read_workspace(given: dict) -> Workspace:
    """Return what the options ask for.

    :raises ValueError: If the size is not one.
    """
    size = given["tmpfs_size"]
    return Workspace(
        path=given["path"],
        owner=given["owner"],
        group=given["group"],
        mode=given["mode"],
        size=None if size is None else parse_quantity(size, "bytes"),
        age=given["max_age"],
        variables=tuple(given["variables"]),
        prolog=given["task_prolog"] or "",
        absent=given["state"] == "absent",
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
            "owner": {"type": "str", "default": "root"},
            "group": {"type": "str", "default": "root"},
            "mode": {"type": "str", "default": "1777"},
            "tmpfs_size": {"type": "str"},
            "max_age": {"type": "str", "default": ""},
            "variables": {"type": "list", "elements": "str", "default": list(VARIABLES)},
            "task_prolog": {"type": "path"},
            "quarantine": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        require_root()
        wanted = read_workspace(module.params)
        outcome = prepare_workspace(wanted, module.params["quarantine"], module.check_mode)
    except PolicyError as exc:
        module.fail_json(msg="; ".join(exc.problems), problems=exc.problems)
    except (OSError, ValueError) as exc:
        module.fail_json(msg=str(exc), problems=[str(exc)])
    module.exit_json(**outcome.as_result())


if __name__ == "__main__":
    main()
