"""A trainer without torch: a checkpoint is written beside its place and renamed into it.

``save_checkpoint.py FOLDER``
"""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
new = folder / "tmp-checkpoint-100"
new.mkdir(exist_ok=True)
(new / "trainer_state.json").write_text(json.dumps({"global_step": 100}))
new.rename(folder / "checkpoint-100")
print("saved")
