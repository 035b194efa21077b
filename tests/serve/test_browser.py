"""The page in a real browser: found, judged and exported as a person would."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from relwalk.experiment import train
from relwalk.graph.graph import Graph
from relwalk.graph.judgements import read_judgements
from relwalk.graph.vocabulary import Vocabulary
from relwalk.serve.app import create_app
from relwalk.serve.opened import Shelf, open_folder
from relwalk.serve.server import Server, bound
from tests.conftest import TEST, TRAIN, VALID, make_graph

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the page was not opened")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("no Chromium is installed: the page was not opened in a browser", allow_module_level=True)
WAIT = 60_000  # milliseconds, on a machine with other work
NAMES = ("<script>alert(1)</script>", "a & b", '"><img src=x onerror=alert(1)>', "../../etc/passwd", "e")


class Site:
    """A service on a socket, in a thread of its own."""

    def __init__(self, *folders: Path, token: str | None = None) -> None:
        app = create_app(Shelf([open_folder(folder, folder.name) for folder in folders]), token=token)
        self.socket = bound("127.0.0.1", 0)
        sock = self.socket.__enter__()
        self.where = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        self.server = Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=5))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [sock]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.__exit__(None, None, None)


@pytest.fixture(scope="module")
def site(learned: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site") / "world"
    shutil.copytree(learned, folder)
    one = Site(folder)
    yield one
    one.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, site: Site) -> Iterator[Any]:
    """A tab that fails the test for any complaint on its console, and for a request to another place."""
    yield from opened(browser, site)


def opened(browser: Any, site: Site, **how: Any) -> Iterator[Any]:
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce", **how)
    context.set_default_timeout(WAIT)
    tab = context.new_page()
    tab.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on(
        "request",
        lambda asked: None if asked.url.startswith((site.where, "data:", "blob:")) else complaints.append(asked.url),
    )
    tab.on("dialog", lambda shown: complaints.append(f"dialog {shown.message}"))
    yield tab
    context.close()
    assert [words for words in complaints if "status of 40" not in words and "ERR_FAILED" not in words] == []


def go(page: Any, site: Site, view: str = "#/") -> None:
    page.goto("about:blank")
    page.goto(site.where + view)
    page.wait_for_selector("html[data-view]", state="attached")


def test_one_searches_reads_a_card_and_clicks_through(page: Any, site: Site) -> None:
    go(page, site)
    page.locator("main input[type=search]").press_sequentially("Austri", delay=20)
    page.locator("[role=option]:first-child", has_text="Austria").wait_for()  # not the list of what was typed before
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Austria", level=1).wait_for()
    assert "name=Austria" in page.url and page.title() == "Austria · relwalk"
    assert page.locator(".facts .measure").count() >= 5 and "%" in page.locator(".measure .words").first.inner_text()
    page.get_by_role("region", name="Known facts").get_by_role("link", name="Austria borders Germany").click()
    page.get_by_role("heading", name="Germany", level=1).wait_for()
    page.go_back()
    page.get_by_role("heading", name="Austria", level=1).wait_for()
    page.reload()
    page.get_by_role("heading", name="Austria", level=1).wait_for()


def test_a_neighbourhood_is_drawn_and_expands(page: Any, site: Site) -> None:
    go(page, site, "#/entity?name=France")
    page.wait_for_selector(".drawing svg[data-still]")
    before = page.locator(".node").count()
    assert page.locator("line.new").count() >= 3 and page.locator("line.known").count() >= 10
    dashes = page.locator(".drawing line.new").first.evaluate("line => getComputedStyle(line).strokeDasharray")
    assert dashes != "none"
    page.locator('.node[data-name="Spain"], .node[data-name="Germany"], .node[data-name="Lyon"]').first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => document.querySelectorAll('.node').length > {before}")


def test_a_prediction_is_explained(page: Any, site: Site) -> None:
    go(page, site, "#/entity?name=Austria")
    page.get_by_role("button", name="Why").first.click()
    page.wait_for_selector(".why .facts li")
    assert page.locator(".why .checks dt").first.inner_text() == "with all facts"


def test_links_are_judged_by_keys_and_exported(page: Any, site: Site, tmp_path: Path) -> None:
    go(page, site, "#/judge?relation=borders")
    page.wait_for_selector(".link-card .button.accept")
    judged = []
    for key, word in zip("arla", ("accept", "reject", "later", "accept"), strict=True):
        names = page.locator(".link-card > .fact").locator("a").all_inner_texts()
        judged.append((*names, word))
        page.keyboard.press(key)
        page.wait_for_function(
            "old => document.querySelector('.link-card > .fact').innerText !== old", arg=" ".join(names)
        )
        page.wait_for_function(f"() => document.querySelector('#left').innerText === '{300 - len(judged)}'")
    page.keyboard.press("u")
    page.wait_for_function("() => document.querySelector('#left').innerText === '297'")
    for form in ("TSV", "JSONL"):
        with page.expect_download() as found:
            page.get_by_role("button", name=f"Export {form}").click()
        path = tmp_path / f"out.{form.lower()}"
        found.value.save_as(path)
        said = [(one.head, one.relation, one.tail, one.verdict) for one in read_judgements(path)]
        assert said == [one for one in judged[:2]]
    page.reload()
    page.wait_for_function("() => document.querySelector('#accepted')?.innerText === '1'")
    page.get_by_role("button", name="Take back").last.click()
    page.wait_for_function("() => document.querySelector('#accepted').innerText === '0'")


def test_two_tabs_see_the_same(page: Any, site: Site) -> None:
    go(page, site, "#/judge?relation=speaks")
    page.wait_for_selector(".link-card .button.accept")
    first = page.locator(".link-card > .fact").inner_text()
    other = page.context.new_page()
    go(other, site, "#/judge?relation=speaks")
    other.wait_for_selector(".link-card .button.accept")
    assert other.locator(".link-card > .fact").inner_text() == first
    other.get_by_role("button", name="Reject").first.click()
    other.wait_for_function("old => document.querySelector('.link-card > .fact').innerText !== old", arg=first)
    page.bring_to_front()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.wait_for_function("old => document.querySelector('.link-card > .fact').innerText !== old", arg=first)


def test_a_relation_and_a_question_have_pages(page: Any, site: Site) -> None:
    go(page, site, "#/relations")
    page.get_by_role("link", name="borders", exact=True).click()
    page.get_by_role("heading", name="borders", level=1).wait_for()
    assert page.locator("img[alt^='Heat map']").evaluate("image => image.naturalWidth") == 16
    go(page, site, "#/ask?head=Kyoto&relation=near&coverage=0.8")
    page.get_by_role("heading", name="in 80% of cases").wait_for()
    go(page, site, "#/ask?head=France&tail=Spain")
    page.get_by_role("heading", name="France ? Spain").wait_for()


def test_two_runs_answer_a_question_side_by_side(browser: Any, learned: Path, five: Graph, tmp_path: Path) -> None:
    again, other = Path(shutil.copytree(learned, tmp_path / "again")), tmp_path / "five"
    train(five, dim=4, epochs=1, threads=1, out=other)
    two = Site(learned, again, other)
    try:
        for page in opened(browser, two):
            go(page, two, "#/ask?head=Kyoto&relation=near&k=4&beside=again")
            panels = page.locator("main section.panel")
            panels.nth(1).wait_for(timeout=WAIT)
            assert [panels.nth(i).locator("h2").inner_text() for i in (0, 1)] == [
                "world: Kyoto near ?",
                "again: Kyoto near ?",
            ]
            facts = [panels.nth(i).locator("li .fact").all_inner_texts() for i in (0, 1)]
            assert facts[0] == facts[1] and len(facts[0]) == 4
            assert "place 1 in again" in panels.nth(0).locator("li").first.inner_text()
            page.get_by_label("Another run beside this one").select_option("five")
            page.get_by_role("button", name="Ask").click()
            page.get_by_text("Kyoto", exact=False).first.wait_for(timeout=WAIT)
            page.locator("main .problem").wait_for(timeout=WAIT)
            assert "Kyoto" in page.locator("main .problem").inner_text(), "the other graph has no such entity"
            assert panels.nth(0).locator("li").count() == 4
    finally:
        two.close()


def test_mistakes_have_words_and_ways_on(page: Any, site: Site) -> None:
    go(page, site, "#/entity?name=Kyotto")
    page.get_by_role("alert").get_by_role("link", name="Kyoto").click()
    page.get_by_role("heading", name="Kyoto", level=1).wait_for()
    go(page, site, "#/nowhere")
    page.get_by_role("heading", name="Nothing is here").wait_for()
    go(page, site)
    page.locator("main input[type=search]").fill("qqqqzzzz")
    page.get_by_text("Nothing is called").wait_for()
    page.route("**/api/v1/entity?*", lambda route: route.abort())
    page.evaluate("location.hash = '#/entity?name=Kyoto'")
    page.get_by_role("alert").get_by_text("does not answer").wait_for()
    page.unroute("**/api/v1/entity?*")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name="Kyoto", level=1).wait_for()


def test_names_that_are_markup_are_shown_as_they_are(browser: Any, tmp_path: Path) -> None:
    plain = make_graph(TRAIN, VALID, TEST)
    names = {"entities": Vocabulary("entity", NAMES), "relations": Vocabulary("relation", NAMES[:2])}
    train(
        Graph(name="<i>graph", train=plain.train, valid=plain.valid, test=plain.test, **names),
        dim=4,
        epochs=1,
        threads=1,
        out=tmp_path / "run",
    )
    site = Site(tmp_path / "run")
    try:
        for page in opened(browser, site):
            for view in ("#/", "#/judge", "#/map", "#/relations", f"#/entity?name={NAMES[0]}"):
                go(page, site, view)
                page.wait_for_timeout(300)
                assert page.locator("main script, main img[src=x], main i:not(.meter i):not(.legend i)").count() == 0
            page.get_by_role("heading", name=NAMES[0], level=1).wait_for()
    finally:
        site.close()


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Any, learned: Path) -> None:
    site = Site(learned, token="open-sesame-1")
    try:
        for page in opened(browser, site):
            page.goto(site.where)
            page.get_by_label("Token").fill("wrong-wrong")
            page.keyboard.press("Enter")
            page.get_by_text("That was not it").wait_for()
            page.get_by_label("Token").fill("open-sesame-1")
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="world", level=1).wait_for()
            page.reload()
            page.get_by_role("heading", name="world", level=1).wait_for()
            assert "sesame" not in page.url
    finally:
        site.close()


def test_the_map_is_made_drawn_and_searched(page: Any, site: Site) -> None:
    go(page, site, "#/map")
    page.wait_for_selector("canvas", timeout=4 * WAIT)
    page.wait_for_function("() => document.querySelector('canvas').dataset.drawn === '2737'")
    page.get_by_label("Find on the map").press_sequentially("Kyoto", delay=20)
    page.get_by_role("option", name="Kyoto").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('canvas').dataset.found === 'Kyoto'")
    page.wait_for_function("() => Number(document.querySelector('canvas').dataset.drawn) < 2737")
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("html[data-view=entity]", state="attached")


VIEWS = (
    "#/",
    "#/entity?name=Kyoto",
    "#/judge?relation=borders",
    "#/relation?name=borders",
    "#/relations",
    "#/ask?head=Kyoto&relation=near",
    "#/entity?name=Kyotto",
    "docs",
)
COLOURS = {"runOnly": ["color-contrast"]}  # all that differs in the dark


def test_axe_finds_nothing_serious(page: Any, site: Site) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    for view in VIEWS:
        page.emulate_media(color_scheme="light")
        go(page, site, view)
        page.wait_for_function("() => !document.querySelector('.waiting')")
        for scheme, rules in (("light", None), ("dark", COLOURS)):
            page.emulate_media(color_scheme=scheme)
            found = axe.Axe().run(page, options=rules).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            told = [(s["id"], s["nodes"][0]["html"], s["nodes"][0].get("failureSummary")) for s in serious]
            assert serious == [], (view, scheme, json.dumps(told))


def test_a_phone_has_all_of_it_without_scrolling_sideways(browser: Any, site: Site) -> None:
    for page in opened(browser, site):
        page.set_viewport_size({"width": 390, "height": 844})
        for view in ("#/", "#/entity?name=Kyoto", "#/judge?relation=borders", "#/relation?name=borders", "docs"):
            go(page, site, view)
            page.wait_for_function("() => !document.querySelector('.waiting')")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
