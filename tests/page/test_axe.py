# SPDX-License-Identifier: GPL-3.0-or-later
"""axe finds nothing to complain of in any view: light and dark, on a desk and on a phone."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from plugins.module_utils.audit_files import write_reports
from plugins.module_utils.fleet_formats import Beside
from plugins.module_utils.fleet_view import Fleet
from tests.page import sample
from tests.page.browser import open_page

SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
RUN = "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"


def read_axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found is not None, "axe-playwright-python is missing: see requirements-dev.txt"
    return (Path(str(found.origin)).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, before = tmp_path_factory.mktemp("page"), Fleet()
    for host in sample.list_hosts(1):
        before.add(host)
    words = {"title": "Limits", "written": sample.WRITTEN}
    beside = Beside(("/srv/hosts",), (), before, "2026-11-29T12:00:00Z")
    write_reports(sample.list_hosts(), folder, "page", ["html"], words, beside)
    return folder / "page.html"


def find_violations(page: Page) -> list[str]:
    return [
        f"{one['id']}: {node['html'][:120]}" for one in page.evaluate(RUN) for node in one["nodes"]
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_complaint_of_the_page(
    browser: Browser, path: Path, scheme: str, size: str
) -> None:
    page, told = open_page(browser, path, viewport=SIZES[size], color_scheme=scheme)
    page.evaluate(read_axe())
    assert find_violations(page) == []
    for summary in page.locator(".fix summary").all():
        summary.click()
    assert find_violations(page) == []
    for view in ("Causes", "Hosts", "Drift", "Changes"):
        page.get_by_role("tab", name=view).click()
        for summary in page.locator(".cause summary:visible").all():
            summary.click()
        assert find_violations(page) == [], view
    page.get_by_role("tab", name="Hosts").click()
    page.locator("#map td.fail").first.click()
    assert find_violations(page) == []
    page.close()
    assert not told


def test_axe_complains_where_there_is_cause(browser: Browser, path: Path) -> None:
    page, _told = open_page(browser, path)
    page.evaluate(read_axe())
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert [one.partition(":")[0] for one in find_violations(page)] == ["html-has-lang"]
    page.close()
