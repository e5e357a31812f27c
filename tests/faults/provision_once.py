# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the profile ``training`` true on this host, without Ansible."""

from __future__ import annotations

import sys

sys.path.insert(0, "/opt")

from mlhost_limits.policy.schema import load_policy
from mlhost_limits.provision import Options, provision

provision(load_policy(None, "training"), Options(docker_restart=True))
