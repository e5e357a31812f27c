# SPDX-License-Identifier: GPL-3.0-or-later
"""The site of the documents can be read by everybody, is searched, and begins with tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.cause_codes import CODES
from playwright.sync_api import Browser

from tests.page.browser import open_page
from tests.page.site import build_site
from tests.page.test_axe import SIZES, find_violations, read_axe

PAGES = (
    "index.html",
    "install.html",
    "first-check.html",
    "policy.html",
    "command.html",
    "causes.html",
    "causes/index.html",
    "causes/pam-user-beats-wildcard.html",
    "collections/index.html",
    "collections/check_module.html",
)
MOST_LINKS = 80
"""On the first page, with its menu."""


@pytest.fixture(scope="module")
def site() -> Path:
    return build_site()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_axe_has_no_complaint_of_the_documents(
    browser: Browser, site: Path, page: str, size: str
) -> None:
    opened, _told = open_page(browser, site / page, viewport=SIZES[size])
    opened.evaluate(read_axe())
    found = find_violations(opened)
    opened.close()
    assert found == []


def test_search_finds_a_limit(browser: Browser, site: Path) -> None:
    page, _told = open_page(browser, site / "index.html")
    page.goto((site / "search.html").as_uri() + "?q=memlock")
    page.wait_for_selector("#search-results li a", timeout=60_000)
    assert page.locator("#search-results li").count() > 5
    page.close()


def test_the_first_page_is_not_a_list_of_codes(browser: Browser, site: Path) -> None:
    page, _told = open_page(browser, site / "index.html")
    words = page.locator("a").all_inner_texts()
    page.close()
    assert len(words) <= MOST_LINKS
    assert not set(words) & set(CODES)
