"""The page of `fairlead ui` in a browser: keyboard, both colour schemes, 200 % zoom, and texts that try to be more."""

import re
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from pictures.chromium import CHROMIUM
from playwright.sync_api import Browser, Page, expect, sync_playwright

from fairlead.cli.console import browser as opening
from support.cli import gpu_cluster
from support.cli.page import node, pod, policy, write
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.packages import ensure

_WITHIN_MS: Final = 30_000
_HOSTILE: Final = (
    "</textarea><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">{{ 7*7 }}\u202egnp"
)
_SCHEMES: Final = ("light", "dark")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of the distribution."""
    try:
        ensure(CHROMIUM)
    except ClusterError as error:
        pytest.skip(str(error))
    with sync_playwright() as playwright:
        # root has no sandbox; the pages are the project's own
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a cluster with GPUs."""
    snapshot, policies = gpu_cluster.write(tmp_path_factory.mktemp("cluster"), 60, 60)
    yield from _served(["--snapshot", str(snapshot), "--policies", *map(str, policies)])


def _served(options: Sequence[str]) -> Iterator[str]:
    command = [sys.executable, "-m", "fairlead", "ui", "--no-browser", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
            assert process.poll() is None, "it serves until it is stopped"
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT


class _Visit:
    """A page that was opened, and what went wrong on it."""

    def __init__(self, browser: Browser, address: str, **options: object) -> None:
        self.page: Page = browser.new_page(**options)  # type: ignore[arg-type]  # its options have many types
        self.base = address.partition("?")[0]
        self.wrong: list[str] = []
        self.page.set_default_timeout(_WITHIN_MS)
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.on("request", lambda request: self._note_request(request.url))

    def open(self, address: str) -> Page:
        """Open the page, which loses its token from the address."""
        self.page.goto(address)
        self.page.wait_for_url(self.base)
        expect(self.page.locator("footer")).to_be_visible(timeout=_WITHIN_MS)
        return self.page

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(text)

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.base, "file:")):
            self.wrong.append(f"it asked for {url}")


@pytest.mark.parametrize("scheme", _SCHEMES)
def test_nothing_keeps_anyone_from_reading_it(chromium: Browser, address: str, scheme: str) -> None:
    visit = _Visit(chromium, address, color_scheme=scheme)
    page = visit.open(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = Axe().run(page)
    assert [(rule["id"], [each["html"] for each in rule["nodes"]]) for rule in found.response["violations"]] == []
    page.locator("#text").fill("kind: [")
    expect(page.locator("#result .error").first).to_be_visible()
    assert Axe().run(page).violations_count == 0
    assert visit.wrong == []
    page.close()


def test_the_matrix_can_be_walked_with_the_keyboard_alone(chromium: Browser, address: str) -> None:
    visit = _Visit(chromium, address)
    page = visit.open(address)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('td.cell')"):
            break
    said, rows = page.locator("#cell"), page.locator("table.matrix tbody tr")
    first = said.inner_text()
    assert re.fullmatch(r"team-1/new-model-0 and 5 like it on gpu-\d+.*: rejected by a rule, gpu-class/.*", first)
    seen = [first]
    for key in ("ArrowRight", "ArrowDown", "End", "PageDown", "Home", "ArrowLeft", "PageUp"):
        page.keyboard.press(key)
        focused = page.evaluate("document.activeElement.querySelector('.sr').textContent")
        seen.append(said.inner_text())
        assert seen[-1].endswith(f": {focused}")
        assert page.locator('td.cell[tabindex="0"]').count() == 1
    assert seen[1] != seen[0]
    assert seen[5] == seen[6], "there is nothing to the left of the first column"
    assert seen[7] == seen[0]
    assert seen[4].startswith(rows.last.locator(".name").inner_text())
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.matches('td.cell')"), "one key leaves it"
    assert visit.wrong == []
    page.close()


def test_the_pointer_says_the_reason_of_a_cell(chromium: Browser, address: str) -> None:
    page = _Visit(chromium, address).open(address)
    cell = page.locator("td.cell.lost").first
    cell.hover()
    expect(page.locator("#cell")).to_contain_text("in shadow: whole-nodes/not-a-whole-node")
    page.close()


def test_an_edit_is_linted_and_compared_while_one_types(chromium: Browser, address: str) -> None:
    visit = _Visit(chromium, address)
    page = visit.open(address)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    text, result = page.locator("#text"), page.locator("#result")
    written = text.input_value()
    text.fill(written.replace("variables.wanted == 'any'", "variables.wanted in ['any', 'b300']"))
    expect(result).to_contain_text("of 60 pods change")
    expect(result).to_contain_text("had no node and now has one")
    text.fill(written.replace("variables.wanted", "variables.wnted"))
    expect(result.locator(".error").first).to_contain_text("wnted")
    asked.clear()
    text.fill(written)
    text.press_sequentially("# a comment")
    expect(result).to_contain_text("Nothing changes for any of 60 pods")
    assert (asked.count("lint"), asked.count("diff")) == (1, 1), "not for each key"
    page.locator("#policy").select_option("whole-nodes")
    expect(result).to_contain_text("decide nothing")
    assert "whole-nodes" in text.input_value()
    page.locator("#policy").select_option("gpu-class")
    assert text.input_value().endswith("# a comment"), "an edit is kept while another policy is looked at"
    assert visit.wrong == []
    page.close()


def test_at_200_percent_nothing_needs_scrolling_in_two_directions(chromium: Browser, address: str) -> None:
    """Twice the size of text is half the size of the window."""
    page = _Visit(chromium, address, viewport={"width": 640, "height": 400}).open(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("getComputedStyle(document.querySelector('header')).position") == "static"
    page.close()


def test_a_file_that_only_its_owner_reads_leads_to_the_page(
    chromium: Browser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cookie is strict, and the browser comes from elsewhere."""
    opened: list[str] = []
    monkeypatch.setattr(opening, "has_display", lambda: True)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    opening.open_browser(address)
    wait_for("the browser to be opened", lambda: opened)
    path = Path(opened[0].removeprefix("file://"))
    assert path.stat().st_mode & 0o777 == 0o600
    visit = _Visit(chromium, address)
    page = visit.open(opened[0])
    expect(page.get_by_role("heading", level=1)).to_contain_text("9 pods have no node to go to")
    assert visit.wrong == []
    page.close()
    path.unlink()


def test_hostile_names_and_reasons_stay_text(chromium: Browser, tmp_path: Path) -> None:
    objects = [node(_HOSTILE), node("b"), pod(_HOSTILE, job=_HOSTILE), pod("there", on=_HOSTILE)]
    rules = [
        policy("first", ("node.metadata.name == 'c'", _HOSTILE)),
        policy("shadow", ("false", _HOSTILE), mode="Shadow"),
    ]
    for address in _served(write(tmp_path, objects, rules)):
        visit = _Visit(chromium, address)
        page = visit.open(address)
        page.locator("td.cell").first.hover()
        expect(page.locator("#cell")).to_contain_text("<script>document.title='pwned'</script>")
        expect(page.locator("#cell")).to_contain_text("{{ 7*7 }}\\u202egnp")
        page.locator("#text").fill(page.locator("#text").input_value().replace("'c'", "'b'"))
        expect(page.locator("#diff")).to_contain_text("<img src=x onerror=")
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        assert "pwned" not in page.title()
        assert visit.wrong == []
        page.close()
