# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the guest, and write the audit's page, JSON, JUnit and CSV of it; tell of raw bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/opt")

RESULTS, REPORTS = Path("/root/hostile/results"), Path("/root/hostile/reports")
for folder in (RESULTS, REPORTS):
    folder.mkdir(exist_ok=True)
words = ["python3", "/root/hostile/command.py", "check", "--json", "--policy", sys.argv[1]]
done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
(RESULTS / "host.json").write_bytes(done.stdout)

from ansible_collections.mlhost.limits.plugins.module_utils import (  # type: ignore[import-not-found]
    audit_files,
    audit_results,
)

hosts = list(audit_results.read_folder(RESULTS, audit_results.read_clock(24)))
formats = list(audit_files.ENDINGS)
words_of_page = {"title": "Audit", "written": "2026-11-30T12:00:00Z"}
audit_files.write_reports(hosts, REPORTS, "audit", formats, words_of_page)
for name in sorted(os.listdir(REPORTS)):
    content = (REPORTS / name).read_bytes()
    for found in set(re.findall(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", content)):
        print(f"raw byte {found!r} in {name}")
    is_markup = name.endswith((".html", ".xml"))  # In JSON and CSV nobody takes it for any.
    if (is_markup and b"<script>evil" in content) or b"\n=cmd|" in content:
        print(f"markup of a user in {name}")
print(hosts[0].state, done.returncode)
raise SystemExit(0 if done.returncode in (0, 1) else done.returncode)
