# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw the pictures of the audit that the documentation shows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.page.browser import list_hosts, open_browser, open_page, write_page

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        path = write_page(list_hosts(400), Path(folder))
        page, _told = open_page(browser, path, viewport={"width": 1240, "height": 760})
        page.locator(".cause summary").first.click()
        page.screenshot(path=IMAGES / "audit-causes.png")
        page.get_by_role("tab", name="Hosts").click()
        page.screenshot(path=IMAGES / "audit.png")


if __name__ == "__main__":
    main()
