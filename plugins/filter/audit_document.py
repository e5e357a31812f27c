# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather what was found on every host of a play in one document."""

from __future__ import annotations

DOCUMENTATION = r"""
name: audit_document
short_description: Gather the results of mlhost.limits.check of all hosts in one JSON text
version_added: 0.1.0
author: The mlhost.limits founders (@mlhost)
description:
  - Every host of the play is in the document. One that could not be checked says so.
options:
  _input:
    description: Names of the hosts, usually C(ansible_play_hosts_all).
    type: list
    elements: str
    required: true
  hostvars:
    description: The C(hostvars) of the play.
    type: dict
    required: true
  variable:
    description: Name of the variable that holds a host's registered result.
    type: str
    default: audit_check
"""

EXAMPLES = r"""
- name: Show what was found on all hosts
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | mlhost.limits.audit_document(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The JSON text, with C(summary) and C(hosts).
  type: str
"""

import json
from collections.abc import Callable, Mapping

from ..module_utils.policy.audit import gather_audit


def audit_document(
    hosts: list[str], hostvars: Mapping[str, Mapping[str, object]], variable: str = "audit_check"
) -> str:
    results = {host: hostvars[host].get(variable) for host in hosts}
    return json.dumps(gather_audit(results), indent=2) + "\n"


class FilterModule:
    """The filters of this file, by name."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"audit_document": audit_document}
