# SPDX-License-Identifier: GPL-3.0-or-later
"""The first screen says what to fix first, and what is shown is in the address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from plugins.module_utils.audit_files import write_reports
from plugins.module_utils.fleet import HostResult, read_host
from plugins.module_utils.fleet_formats import Beside
from plugins.module_utils.fleet_view import Fleet
from tests.page import sample
from tests.page.browser import list_hosts, open_page

EVIL = "<img src=x onerror=alert(1)></script>"
DESK = {"width": 1280, "height": 800}


def write(
    hosts: Iterator[HostResult], folder: Path, before: Iterator[HostResult] | None = None
) -> Path:
    fleet = Fleet()
    for host in before or ():
        fleet.add(host)
    beside = Beside(("/srv/hosts",), ("fresh",), fleet if before else None, "2026-11-29T12:00:00Z")
    words = {"title": "Limits", "written": sample.WRITTEN}
    write_reports(hosts, folder, "page", ["html"], words, beside)
    return folder / "page.html"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(sample.list_hosts(), tmp_path_factory.mktemp("page"), sample.list_hosts(1))


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Page]:
    opened, told = open_page(browser, path, viewport=DESK)
    yield opened
    opened.close()
    assert not told


def list_titles(page: Page) -> list[str]:
    return page.locator(".fix strong").all_inner_texts()


def follow(page: Page, address: str) -> None:
    """Open the page anew with an address, as somebody who was sent it."""
    page.goto("about:blank")
    page.goto(address)


def unfold(page: Page, selector: str) -> None:
    """Open what is folded, and wait until the address says so: a toggle is told of later."""
    page.locator(selector).locator("summary").click()
    name = page.locator(selector).get_attribute("id")
    page.wait_for_function("(name) => location.hash.includes(name)", arg=name)


def test_the_first_screen_holds_the_verdict_the_counters_and_the_fixes(page: Page) -> None:
    told = page.inner_text(".verdict")
    assert "17 of 26 hosts are red. These 4 fixes make 17 of 17 red hosts green." in told
    assert "6 of them have never been provisioned, 11 have been. 1 host was not checked." in told
    assert page.locator(".counts li").all_inner_texts() == ["17 fail", "1 unchecked", "8 pass"]
    for name in (".verdict", ".counts", "#fix-list"):
        box = page.locator(name).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= DESK["height"], name


def test_fixes_are_in_the_order_of_what_they_make_green_for_their_cost(page: Page) -> None:
    rows = [" ".join(one.split()) for one in page.locator(".fix summary").all_inner_texts()]
    wanted = [
        ("Comment that line out", "next login", "6 hosts, 5 green by it alone 5 of 17"),
        ("6 hosts have never been", "ends running", "6 hosts, 6 green by it alone 11 of 17"),
        ("Restart docker.service", "ends running", "5 hosts, 4 green by it alone 16 of 17"),
        ("Take it out of GRUB", "reboot", "1 host, 1 green by it alone 17 of 17"),
    ]
    assert len(rows) == len(wanted)
    for row, words in zip(rows, wanted):
        assert all(word in row for word in words), row


def test_a_fix_opens_to_hosts_and_a_command_that_is_copied(page: Page) -> None:
    fix = page.locator("#fix-never")
    fix.locator("summary").click()
    told = fix.inner_text()
    assert "new01, new02, new03, new04, new05, new06" in told
    assert "log in again; restart dockerd" in told
    fix.locator(".copy").click()
    for _twice in range(2):
        expect(fix.locator(".copy")).to_have_text("Copied")
        fix.locator(".copy").click()
    expect(fix.locator(".copy")).to_have_text("Copy")
    page.get_by_role("tab", name="Hosts").click()
    page.locator("#text").focus()
    page.keyboard.press("Control+V")
    command = "ansible-playbook mlhost.limits.provision -i /srv/hosts --limit fresh"
    assert page.input_value("#text") == command


def test_copied_names_stand_one_in_a_line(browser: Browser, path: Path) -> None:
    page, _told = open_page(browser, path)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: {writeText(words) {"
                  " globalThis.copied = words; }}})")  # fmt: skip
    page.locator("#fix-never summary").click()
    page.locator("#fix-never .copy-names").click()
    assert page.evaluate("copied").split("\n") == [f"new0{number}" for number in range(1, 7)]
    page.close()


def test_another_order_counts_anew(browser: Browser, tmp_path: Path) -> None:
    page, told = open_page(browser, write(list_hosts(300), tmp_path))
    best, total = list_rows(page), int(page.inner_text(".counts .fail").split()[0])
    page.select_option("#sort", "hosts")
    rows = list_rows(page)
    assert rows != best
    assert [row[0] for row in rows] == list(range(1, len(best) + 1))
    assert [row[1] for row in rows] == sorted((row[1] for row in best), reverse=True)
    sums = [row[2] for row in rows]
    assert sums == sorted(sums)
    assert sums[-1] == best[-1][2] == total
    page.select_option("#sort", "cost")
    assert page.locator(".cost").all_inner_texts()[:4] == ["counts at once"] * 4
    page.select_option("#sort", "best")
    assert list_rows(page) == best
    page.close()
    assert not told


def list_rows(page: Page) -> list[tuple[int, int, int]]:
    """Return each fix's place, its hosts, and how many are green so far."""
    texts = [page.locator(one).all_inner_texts() for one in (".rank", ".gain b", ".sofar")]
    ranks, counts, sums = ([int(one.split()[0]) for one in some] for some in texts)
    return list(zip(ranks, counts, sums))


def test_counters_are_filters_that_add_up_and_are_taken_back(page: Page) -> None:
    page.get_by_role("link", name="fail").click()
    expect(page.locator("#shown")).to_have_text("17 of 26 hosts")
    page.get_by_role("link", name="pass").click()
    expect(page.locator("#shown")).to_have_text("25 of 26 hosts")
    assert page.url.endswith("#view=hosts&status=fail,pass")
    page.get_by_role("link", name="fail").click()
    expect(page.locator("#shown")).to_have_text("8 of 26 hosts")
    page.go_back()
    expect(page.locator("#shown")).to_have_text("25 of 26 hosts")


def test_a_view_can_be_sent(page: Page) -> None:
    page.select_option("#sort", "cost")
    unfold(page, "#fix-never")
    titles = list_titles(page)
    follow(page, page.url)
    assert list_titles(page) == titles
    expect(page.locator("#fix-never .inside")).to_be_visible()
    page.locator("#fix-never .to-map").click()
    page.fill("#text", "NEW")
    page.select_option("#order", "name")
    page.locator("#fold").click()
    shown, columns = page.inner_text("#shown"), page.locator("#map thead th").count()
    assert shown == "6 of 26 hosts"
    follow(page, page.url)
    assert page.inner_text("#shown") == shown
    assert page.locator("#map thead th").count() == columns
    assert page.inner_text("#only").startswith("Only: 6 hosts have never been provisioned")
    assert page.input_value("#text") == "NEW"


def test_a_cause_can_be_sent_and_names_its_fix(page: Page) -> None:
    page.get_by_role("tab", name="Causes").click()
    unfold(page, ".cause:has-text('docker-not-stated')")
    follow(page, re.sub("view=causes&", "", page.url))
    cause = page.locator(".cause[open]")
    assert "docker-not-stated" in cause.inner_text()
    cause.get_by_role("link", name="fix 2").click()
    expect(page.locator("#fix-never .inside")).to_be_visible()


@pytest.mark.parametrize(
    "address",
    [
        f"#view={EVIL}&status={EVIL}&only={EVIL}&open={EVIL},map&sort={EVIL}&group={EVIL}",
        "#view=__proto__&only=constructor&open=toString&columns=x&order=y",
        "#%E0%A4%A&&&=",
    ],
)
def test_an_address_that_nobody_wrote_shows_the_first_screen(
    browser: Browser, path: Path, address: str
) -> None:
    page, told = open_page(browser, path)
    follow(page, path.as_uri() + address)
    expect(page.locator("#fix-list")).to_be_visible()
    assert page.locator("img").count() == 0
    page.close()
    assert not told


def test_columns_that_never_differ_are_folded(page: Page) -> None:
    page.get_by_role("tab", name="Hosts").click()
    heads = page.locator("#map thead th").all_inner_texts()
    assert heads[-1] == "7 alike on all hosts"
    assert len(heads) == 1 + 11 + 1
    page.locator("#map tbody tr").first.locator("td").last.click()
    assert page.locator("#detail article").count() == 7
    page.keyboard.press("Escape")
    page.locator("#fold").click()
    assert page.locator("#map thead th").count() == 1 + 18


def test_a_fold_of_what_falls_short_is_red(browser: Browser, tmp_path: Path) -> None:
    short: dict[tuple[str, str], object] = {("session", "nofile"): sample.NOFILE}
    hosts = [read_host(name, {"findings": sample.find_all(short)}) for name in "ab"]
    page, told = open_page(browser, write(iter(hosts), tmp_path))
    page.get_by_role("tab", name="Hosts").click()
    assert page.locator("#map tbody tr").first.inner_text().split() == ["✗a", "✗", "✓"]
    page.close()
    assert not told


def test_two_runs_stand_side_by_side(page: Page) -> None:
    assert "1 newly red, 8 no longer red, 16 still red" in page.inner_text(".since")
    page.get_by_role("link", name="Since").click()
    expect(page.locator("#changes")).to_be_visible()
    told = page.inner_text("#changes")
    assert "Changes since 2026-11-29 12:00 UTC" in told
    assert re.search(r"1\s+Newly red\s+boot01", told)
    assert re.search(r"sysctl-at-boot\s+new on 1\s+boot01", told)
    assert re.search(r"pam-user-beats-wildcard\s+mended on 8\s+good01, good02", told)


def test_values_that_were_not_seen_are_not_called_green(browser: Browser, tmp_path: Path) -> None:
    short: dict[tuple[str, str], object] = {("session", "nofile"): sample.BEATS}
    result = {"findings": sample.find_all(short, unseen="container")}
    page, told = open_page(browser, write(iter([read_host("a", result)]), tmp_path))
    told_of = page.inner_text(".verdict")
    assert "1 of 1 host is red. This fix makes 1 of 1 red host mended." in told_of
    assert "1 of the 1 has values that could not be seen" in told_of
    page.close()
    assert not told


def test_without_the_script_fixes_causes_and_changes_are_read(browser: Browser, path: Path) -> None:
    page, _told = open_page(browser, path, java_script_enabled=False)
    page.locator("#fix-never summary").click()
    assert "--limit fresh" in page.inner_text("#fix-never")
    for name in ("#causes", "#changes"):
        expect(page.locator(name)).to_be_visible()
    assert page.locator("button:visible").count() == 0
    page.close()


def test_no_text_of_a_host_becomes_code(browser: Browser, tmp_path: Path) -> None:
    remedy = {"text": EVIL, "commands": [[EVIL]], "then": EVIL}
    cause = {"code": EVIL, "text": EVIL, "at": {"file": EVIL, "line": 1}, "remedy": remedy}
    finding = {"status": "fail", "place": EVIL, "item": EVIL, "bound": EVIL, "causes": [cause]}
    result = {"findings": [finding]}
    before = [read_host(EVIL, {"findings": []}), read_host("old" + EVIL, result)]
    page, told = open_page(
        browser, write(iter([read_host(EVIL, result, (EVIL,))]), tmp_path, iter(before))
    )
    page.on("dialog", lambda _dialog: told.append("a dialog"))
    page.locator(".fix summary").click()
    page.locator(".fix .to-map").click()
    page.select_option("#group", index=1)
    follow(page, page.url)
    assert EVIL in page.inner_text("#only") + page.inner_text("#map")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    page.close()
    assert not told
