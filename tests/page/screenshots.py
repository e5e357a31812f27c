# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the pictures of the audit that the documentation shows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from plugins.module_utils.audit_files import write_reports
from plugins.module_utils.fleet_formats import Beside
from plugins.module_utils.fleet_view import Fleet
from tests.page import sample
from tests.page.browser import list_hosts, open_browser, open_page, write_page

SIZE = {"width": 1240, "height": 760}
IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        before = Fleet()
        for host in sample.list_hosts(1):
            before.add(host)
        words = {"title": "Limits of training hosts", "written": sample.WRITTEN}
        beside = Beside(("hosts",), ("fresh",), before, "2026-11-29T12:00:00Z")
        write_reports(sample.list_hosts(), Path(folder), "page", ["html"], words, beside)
        page, _told = open_page(browser, Path(folder) / "page.html", viewport=SIZE)
        page.locator("#fix-never summary").click()
        page.screenshot(path=IMAGES / "audit.png")
        path = write_page(list_hosts(400), Path(folder), "many")
        page, _told = open_page(browser, path, viewport=SIZE)
        page.get_by_role("tab", name="Hosts").click()
        page.screenshot(path=IMAGES / "audit-hosts.png")


if __name__ == "__main__":
    main()
