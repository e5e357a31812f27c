# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a fleet works from disk in a real browser: by mouse, by keyboard, on a phone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from plugins.module_utils.audit_files import write_reports
from plugins.module_utils.fleet import HostResult, read_host
from tests.page.browser import list_hosts, open_page, write_page

EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(list_hosts(300), tmp_path_factory.mktemp("page"))


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Page]:
    opened, told = open_page(browser, path)
    yield opened
    opened.close()
    assert not told


def count_rows(page: Page) -> int:
    return page.locator("#map tbody tr").count()


def open_hosts(page: Page) -> None:
    page.get_by_role("tab", name="Hosts").click()


def test_a_cause_shows_the_line_the_fix_and_its_hosts(page: Page) -> None:
    page.get_by_role("tab", name="Causes").click()
    cause = page.locator(".cause").first
    cause.locator("summary").click()
    told = cause.inner_text()
    assert "/etc/security/limits.d/95-vendor.conf:3" in told
    assert "f=$(readlink -f /etc/security/limits.d/95-vendor.conf | grep ^/etc/)" in told
    shown = " ".join(told.replace("\\\n", " ").split())  # A command is broken to fit.
    assert "sed -i '3s/^/# /' \"$f\"" in shown
    hosts = int(cause.locator(".count").inner_text().split()[0])
    cause.get_by_role("button", name="Show on the heat map").click()
    assert page.locator("#shown").inner_text() == f"{hosts} of 300 hosts"
    page.locator("#only").click()
    expect(page.locator("#shown")).to_have_text("300 of 300 hosts")


def test_filters_narrow_the_heat_map(page: Page) -> None:
    open_hosts(page)
    page.fill("#text", "gpu00017")
    assert page.locator("#map tbody tr").inner_text().startswith("∅")
    page.fill("#text", "95-VENDOR.conf:3")
    assert 0 < count_rows(page) <= 70
    page.fill("#text", "")
    page.select_option("#group", label="rack3")
    expect(page.locator("#shown")).to_have_text("40 of 300 hosts")
    page.get_by_role("link", name="unchecked").click()
    page.wait_for_function("location.hash.includes('unchecked')")
    shown = page.locator("#shown").inner_text()
    page.get_by_role("link", name="fail").click()
    expect(page.locator("#shown")).not_to_have_text(shown)
    page.fill("#text", "no such host")
    expect(page.locator("#shown")).to_have_text("0 of 300 hosts")


def test_the_worst_host_comes_first_or_the_first_name(page: Page) -> None:
    open_hosts(page)
    assert page.locator("#map tbody tr").first.locator("td.fail").count() >= 5
    page.select_option("#order", "name")
    assert "gpu00000" in page.locator("#map tbody th").first.inner_text()


def test_more_hosts_are_drawn_when_asked(page: Page) -> None:
    open_hosts(page)
    assert count_rows(page) == 50
    page.get_by_role("button", name="Show more").click()
    assert count_rows(page) == 100


def test_a_click_opens_the_finding(page: Page) -> None:
    open_hosts(page)
    page.fill("#text", "vendor")
    column = page.locator("#map thead th").all_inner_texts().index("session:*@sshd nofile soft")
    rows = page.locator("#map tbody tr")
    cell = rows.locator(f"> :nth-child({column + 1}).fail").first
    cell.click()
    told = page.locator("#detail").inner_text()
    for words in (
        "required",
        "1024",
        "pam-user-beats-wildcard",
        "95-vendor.conf:3",
        "log in again",
    ):
        assert words in told.lower()
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_hidden()


def test_the_keyboard_reaches_every_finding(page: Page) -> None:
    page.get_by_role("tab", name="Fixes").focus()
    for _press in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#hosts")).to_be_visible()
    page.locator(".map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    place = page.evaluate(
        "[document.activeElement.cellIndex, document.activeElement.parentElement.rowIndex]"
    )
    assert place == [1, 2]
    page.keyboard.press("Enter")
    expect(page.locator("#detail")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.cellIndex") == 1
    for _press in range(60):
        page.keyboard.press("ArrowDown")
    assert count_rows(page) == 100


def test_drift_names_who_differs(page: Page) -> None:
    page.get_by_role("tab", name="Drift").click()
    told = page.locator("#drifts").inner_text()
    assert "kernel vm.max_map_count" in told
    assert "65530" in told


def test_no_meaning_is_in_colour_alone(page: Page) -> None:
    open_hosts(page)
    marks = {
        kind: set(page.locator(f"#map td.{kind}").all_inner_texts()) for kind in ("fail", "pass")
    }
    assert marks == {"fail": {"✗"}, "pass": {"✓"}}
    assert "falls short" in str(page.locator("#map td.fail").first.get_attribute("title"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_the_map_and_not_the_page(
    browser: Browser, path: Path, scheme: str
) -> None:
    size = {"width": 360, "height": 740}
    page, told = open_page(browser, path, viewport=size, color_scheme=scheme)
    open_hosts(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(246, 247, 249)") == (scheme == "light")
    page.close()
    assert not told


def test_without_the_script_causes_are_there(browser: Browser, path: Path) -> None:
    page, _told = open_page(browser, path, java_script_enabled=False)
    expect(page.locator(".fix").first.locator("summary")).to_be_visible()
    expect(page.locator(".cause").first.locator("summary")).to_be_visible()
    assert "need JavaScript" in page.inner_text("main")
    page.close()


def test_no_text_of_a_host_becomes_code(browser: Browser, tmp_path: Path) -> None:
    def hosts() -> Iterator[HostResult]:
        at = {"file": EVIL, "line": 3, "text": EVIL}
        cause = {
            "code": EVIL,
            "text": EVIL,
            "at": at,
            "remedy": {"text": EVIL, "commands": [[EVIL]]},
        }
        finding = {"status": "fail", "place": EVIL, "item": EVIL, "bound": EVIL, "reason": EVIL}
        yield read_host(EVIL, {"findings": [{**finding, "causes": [cause]}]}, (EVIL,))
        yield read_host("b", {"unreachable": True, "msg": EVIL})

    page, told = open_page(browser, write_page(hosts(), tmp_path))
    page.on("dialog", lambda _dialog: told.append("a dialog"))
    page.locator(".fix summary").first.click()
    page.get_by_role("tab", name="Causes").click()
    page.locator(".cause summary").first.click()
    open_hosts(page)
    page.locator("#map td.fail").first.click()
    assert EVIL in page.locator("#detail-title").inner_text()
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    page.close()
    assert not told


def test_a_fleet_without_a_shortfall_says_so(browser: Browser, tmp_path: Path) -> None:
    finding = {"status": "pass", "place": "kernel", "item": "a", "bound": "value", "observed": "1"}
    page, told = open_page(
        browser, write_page(iter([read_host("a", {"findings": [finding]})]), tmp_path)
    )
    assert page.inner_text(".verdict") == "Nothing falls short on any host."
    assert page.inner_text("#fixes").endswith("There is nothing to fix.")
    page.close()
    assert not told


def test_an_old_page_stays_whole_where_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    words = {"title": "t", "written": "now"}
    write_page(list_hosts(3), tmp_path)
    before = (tmp_path / "page.html").read_bytes()

    def hosts() -> Iterator[HostResult]:
        yield from list_hosts(2)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_reports(hosts(), tmp_path, "page", ["html", "json"], words)
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_bytes() == before


FULL = """
import sys
from pathlib import Path
from tests.page.browser import list_hosts, write_page
folder = Path(sys.argv[1])
page = write_page(list_hosts(3), folder)
before = page.read_bytes()
try:
    write_page(list_hosts(2000), folder)
except OSError as exc:
    print(exc.strerror)
print(page.read_bytes() == before, [one.name for one in folder.iterdir()])
"""


def test_on_a_full_disk_the_old_page_stays_whole(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=128k tmpfs {tmp_path} && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", FULL]
    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["No space left on device", "True ['page.html']"]


def test_of_two_reports_at_once_one_is_there_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        pages = [pool.submit(write_page, list_hosts(count), tmp_path) for count in (30, 40, 50)]
    texts = {one.result().read_text() for one in pages}
    assert len(texts) == 1
    text = texts.pop()
    assert text.rstrip().endswith("</html>")
    assert sum(f"{count} hosts, written" in text for count in (30, 40, 50)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
