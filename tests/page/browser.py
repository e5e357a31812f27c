# SPDX-License-Identifier: GPL-3.0-or-later
"""Open a page of a simulated fleet in Debian's Chromium, without a window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from plugins.module_utils.audit_files import write_reports
from plugins.module_utils.fleet import HostResult, read_host
from tests.bench.fleet import simulate

WRITTEN = "2026-01-02T03:04:05Z"
CHROMIUM = "/usr/bin/chromium"


def list_hosts(count: int) -> Iterator[HostResult]:
    """Yield hosts of two kinds in ten racks."""
    for number, (name, result) in enumerate(simulate(count)):
        groups = ("gpu" if number % 3 else "cpu", f"rack{number // 40 % 10}")
        yield read_host(name, result, groups, WRITTEN)


def write_page(hosts: Iterator[HostResult], folder: Path, name: str = "page") -> Path:
    """Write the page of a fleet and return its path."""
    words = {"title": "Limits of training hosts", "written": WRITTEN}
    write_reports(hosts, folder, name, ["html"], words)
    return folder / f"{name}.html"


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run Chromium; root has no sandbox there."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def open_page(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """Open a page from disk, and return it with what its console complains about."""
    page = browser.new_page(**options)
    told: list[str] = []
    page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: told.append(f"error: {error}"))
    page.on(
        "request", lambda one: told.append(one.url) if not one.url.startswith("file:") else None
    )
    page.goto(path.as_uri())
    return page, told
