# SPDX-License-Identifier: GPL-3.0-or-later
"""The site of the documents can be read by everybody, is searched, and begins with tasks."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

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
    "why.html",
    "audit.html",
    "policy.html",
    "command.html",
    "causes.html",
    "causes/index.html",
    "causes/pam-user-beats-wildcard.html",
    "collections/index.html",
    "collections/check_module.html",
)
MOST_LINKS = 90
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


def search(browser: Browser, site: Path, words: str) -> list[str]:
    """Return the titles of what is found, best first."""
    page, _told = open_page(browser, site / "index.html")
    page.goto(f"{(site / 'search.html').as_uri()}?{urlencode({'q': words})}")
    page.wait_for_function("document.querySelector('.search-summary')?.innerText.includes('found')")
    titles = page.locator("#search-results li a").all_inner_texts()
    page.close()
    return titles


@pytest.mark.parametrize("words", ["memlock", "shm", "ulimit", "/dev/shm"])
def test_search_finds_a_limit(browser: Browser, site: Path, words: str) -> None:
    assert len(search(browser, site, words)) > 5


@pytest.mark.parametrize(
    "words", ["too many open files", "No space left on device", "cannot allocate memory"]
)
def test_the_words_of_a_failure_lead_to_what_a_run_died_of(
    browser: Browser, site: Path, words: str
) -> None:
    assert "When a run has died" in search(browser, site, words)[:2]


def test_the_first_page_is_not_a_list_of_codes(browser: Browser, site: Path) -> None:
    page, _told = open_page(browser, site / "index.html")
    words = page.locator("a").all_inner_texts()
    page.close()
    assert len(words) <= MOST_LINKS
    assert not set(words) & set(CODES)
