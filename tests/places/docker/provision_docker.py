# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a guest: make the section of Docker true, with a restart, and print what was said."""

from __future__ import annotations

import json
import sys

from mlhost_limits.core.policy import ProvisionOptions
from mlhost_limits.provision import provision
from mlhost_limits.schema import load_policy


def main() -> None:
    chosen = ProvisionOptions(sections=("docker",), switches={"docker_restart": True})
    json.dump(provision(load_policy(None, "training"), chosen).as_result(), sys.stdout)


if __name__ == "__main__":
    main()
