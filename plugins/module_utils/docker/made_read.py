# SPDX-License-Identifier: BSD-2-Clause
"""Find out whether an earlier run changed a daemon.json here, by the records that it keeps."""

from __future__ import annotations

import os

from ..host.files import under

_RECORDS = "/var/lib/mlhost-limits"


def is_made(root: str) -> bool:
    """Tell whether there is a record of ours."""
    found = os.walk(under(_RECORDS, root))
    return any(name.endswith(".record") for _base, _folders, files in found for name in files)
