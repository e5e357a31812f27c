# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the policy of the test true on the guest, or say what would be done."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, "/root/hostile")

from command import take_out  # type: ignore[import-not-found]

take_out()

from mlhost_limits.core.policy import ProvisionOptions
from mlhost_limits.provision import provision
from mlhost_limits.schema import load_policy

with open("/root/hostile/whole.json", encoding="ascii") as file:
    given = json.load(file)
options = ProvisionOptions(
    switches={"docker_restart": True, "slurm_restart": True, "slurm_conf": True},
    override="override" in sys.argv,
    check_mode="check" in sys.argv,
)
try:
    done = provision(load_policy(given, "training"), options)
except (OSError, ValueError) as exc:
    print(f"refused: {exc}")
    raise SystemExit(1) from None
json.dump(done.as_result(), sys.stdout, default=str)
