# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the profile ``training``, and what is given besides, true on this host, without Ansible."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, "/opt")

from mlhost_limits.core.policy import ProvisionOptions
from mlhost_limits.provision import provision
from mlhost_limits.schema import load_policy


def main() -> None:
    given = json.loads(sys.argv[1]) if sys.argv[1:] else None
    options = ProvisionOptions(
        switches={"docker_restart": True, "slurm_restart": True, "slurm_conf": True}
    )
    provision(load_policy(given, "training"), options)


if __name__ == "__main__":
    main()
