#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what was found on many hosts in one page; the action of this name does it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Write what was found on many hosts in one page
version_added: 0.1.0
author: The mlhost.limits founders (!UNKNOWN)
description:
  - Puts the results of M(mlhost.limits.check) of all hosts of a play side by side, in one page that
    opens from disk, and in JSON, JUnit XML or CSV.
  - A host that could not be reached, whose check crashed, or whose result is garbled is in it as
    such, and never left out.
  - Says what to fix first, with the command for the hosts that need it and how many hosts it makes
    green. Counts causes over hosts, and shows values that differ from those of most hosts.
  - Runs on the controller. Reports are written whole, all or none; those that were there before
    stay as they are until then.
attributes:
  check_mode: {support: full, description: It writes nothing and returns the same summary.}
  diff_mode: {support: none, description: A report is new each time.}
  idempotent: {support: none, description: A report holds the time at which it was written.}
  platform: {support: full, platforms: posix, description: The controller's.}
options:
  dest:
    description: Path of the page; the other formats are beside it, each with its own ending.
    type: path
    required: true
  formats:
    description: What is written.
    type: list
    elements: str
    choices: [csv, html, json, junit]
    default: [html, json]
  results:
    description:
      - A directory of results, F(HOST.json) or F(HOST.json.gz) each, as
        C(mlhost-limits check --json) prints them, or the JSON of an earlier report. Without it,
        what the hosts of the play registered. A host is called as its result says, or as its file.
    type: path
  max_age:
    description: Hours after which a result in O(results) counts as none.
    type: float
    default: 24
  previous:
    description:
      - The JSON of an earlier report. The page then says what is newly red and what is mended, by
        host and by cause. It may be a file that this report replaces.
    type: path
  variable:
    description: Name of the variable that holds the registered result of a host.
    type: str
    default: audit_check
  title:
    description: Title of the page.
    type: str
    default: Limits of training hosts
  fail_on:
    description:
      - What makes the task fail, after the reports are written. V(fail) means a failure, or a host
        that was not checked; V(later) also what will not last; V(unknown) also what could not be
        seen.
    type: str
    choices: [fail, later, unknown, never]
    default: fail
"""

EXAMPLES = r"""
- name: Check every host, and hold on to what failed
  mlhost.limits.check:
    fail_on: never
  register: audit_check
  ignore_unreachable: true

- name: Write the page and a report for the CI server
  mlhost.limits.report:
    dest: /srv/reports/limits.html
    formats: [html, junit]
  run_once: true

- name: Write it again, with what changed since
  mlhost.limits.report:
    dest: /srv/reports/limits.html
    previous: /srv/reports/limits.json
  run_once: true

- name: Put together what nodes have left in a shared directory
  mlhost.limits.report:
    results: /srv/limits
    dest: /srv/reports/limits.html
"""

RETURN = r"""
summary:
  description: Number of hosts by their worst status; C(unchecked) have no result.
  returned: always
  type: dict
  sample: {fail: 2, unchecked: 1, unknown: 0, later: 0, waived: 0, pass: 97}
report:
  description: The same in lines, with the causes that most hosts have.
  returned: always
  type: list
  elements: str
  sample: ["100 hosts: 2 fail, 1 unchecked, 97 pass"]
files:
  description: Paths of what was written.
  returned: always
  type: list
  elements: str
  sample: [/srv/reports/limits.html, /srv/reports/limits.json]
"""
