"""The page in a headless Chromium: what a person sees, by keyboard and screen reader too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sleuth.agent import Agent
from sleuth.types import Passage
from support.browser import NEEDS_CHROMIUM, look, violations
from support.contracts import QUESTION, SEARCHES, agent_that

pytestmark = NEEDS_CHROMIUM
Serve = Callable[..., Any]


def ask(page: Any, url: str, question: str = QUESTION) -> None:
    page.goto(url)
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def test_an_answer_appears_with_its_searches_and_evidence(page: Any, serve: Serve):
    ask(page, serve().url)
    page.get_by_text("Supported by the documents").first.wait_for()
    assert page.get_by_text("who signed the 2019 contract", exact=True).is_visible()
    assert page.get_by_text("Doc 1 names the signer.", exact=True).is_visible()
    claim = page.get_by_role("button", name="Ann Bell, evidence 1")
    assert page.locator(".evidence mark").inner_text() == "Ann Bell signed the 2019 contract."
    assert page.locator(".evidence li.active").count() == 0
    claim.hover()
    assert page.locator(".evidence li.active").count() == 1
    assert page.get_by_role("status").first.inner_text().startswith("Supported by the documents. Ann Bell")
    look(page, "answer")
    assert page.faults == []


def test_it_works_by_keyboard_alone(page: Any, serve: Serve):
    page.goto(serve().url)
    page.get_by_label("Your question").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    while page.evaluate("document.activeElement.id") != "question":
        page.keyboard.press("Tab")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".claim").wait_for()
    for _ in range(30):
        page.keyboard.press("Tab")
        if "claim" in page.evaluate("document.activeElement.className"):
            break
    assert page.locator(".evidence li.active").count() == 1


ATTACK = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>[x](javascript:alert(1))"


def test_markup_in_answers_and_documents_stays_text(page: Any, serve: Serve):
    document = Passage("<b>id</b>", f"Contract {ATTACK}", f"The 2019 contract was signed by {ATTACK} Ann.")
    writes = [SEARCHES[0], f"<evaluate>{ATTACK}</evaluate><answer>{ATTACK}</answer>"]
    ask(page, serve({"contracts": agent_that(writes, documents=[document])}).url)
    page.locator(".claim").wait_for()
    assert "<img src=x" in page.locator(".claim").inner_text()
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hacked") is None
    look(page, "markup")
    assert page.faults == []


def test_the_quote_is_marked_after_letters_that_javascript_counts_twice(page: Any, serve: Serve):
    document = Passage(
        "p1", "Contract", "It was drafted 🎉𝒜 in May. Ann Bell signed the 2019 contract. It ends 🎉."
    )
    ask(page, serve({"contracts": agent_that(documents=[document])}).url)
    page.locator(".claim").wait_for()
    assert page.locator(".evidence mark").inner_text() == "Ann Bell signed the 2019 contract."
    assert page.locator(".evidence p.text").inner_text() == document.text


def many(count: int) -> Sequence[Passage]:
    return [
        Passage(f"p{i}", f"Contract {i}", f"Tom {i} signed the 2019 contract number {i}. " * 5)
        for i in range(count)
    ]


def test_two_hundred_passages_are_shown_at_once(page: Any, serve: Serve):
    agent = agent_that([SEARCHES[0], "<evaluate>x</evaluate><answer>Tom 7</answer>"], documents=many(200))
    wide = Agent(agent.recipe.sized(top_k=200, max_passage_tokens=90_000), agent.engine, agent.retriever)
    ask(page, serve({"contracts": wide}).url)
    page.locator(".claim").wait_for()
    summary = page.get_by_text("Found 200 passages")
    summary.click()
    assert page.locator("details[open] > ol > li").count() == 200
    assert page.faults == []


def test_two_methods_answer_side_by_side(page: Any, serve: Serve):
    other = agent_that([SEARCHES[0], "<evaluate>x</evaluate><answer>Tom Reed</answer>"])
    page.goto(serve({"contracts": agent_that(), "other": other}).url)
    page.get_by_label("Compare with").select_option("other")
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("Unsupported: the documents do not show this").first.wait_for()
    page.get_by_text("Supported by the documents").first.wait_for()
    assert page.locator("article").count() == 2
    look(page, "two")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_no_rule_of_accessibility_is_broken(scheme: str, width: int, page: Any, serve: Serve):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    ask(page, serve().url)
    page.locator(".claim").wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    look(page, f"answer-{scheme}-{width}")
    page.get_by_role("link", name="Episodes").click()
    page.get_by_role("button", name=QUESTION).first.click()
    page.get_by_role("heading", name=QUESTION).wait_for()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    look(page, f"episode-{scheme}-{width}")


def test_a_broken_connection_is_shown_and_can_be_tried_again(page: Any, serve: Serve):
    url = serve().url
    page.route("**/v1/responses", lambda route: route.abort(), times=1)
    ask(page, url)
    page.get_by_text("The connection to the server broke.").wait_for()
    page.get_by_role("button", name="Try again").click()
    page.locator(".claim").wait_for()


def test_a_stream_that_stops_early_is_not_taken_for_an_answer(page: Any, serve: Serve):
    url = serve().url
    event = 'data: {"type": "response.output_item.added", "item": {"type": "message", "id": "m"}}\n\n'
    page.route("**/v1/responses", lambda route: route.fulfill(body=event, content_type="text/event-stream"))
    ask(page, url)
    page.get_by_text("The connection broke before the answer was complete.").wait_for()


def test_an_error_of_the_server_is_shown(page: Any, serve: Serve):
    ask(page, serve({"contracts": agent_that([])}).url)
    assert "the script has 0 replies" in page.get_by_role("alert").inner_text()


def test_a_correction_is_stored(page: Any, serve: Serve):
    served = serve()
    ask(page, served.url)
    page.get_by_role("button", name="Right", exact=True).click()
    page.get_by_text("Stored.").wait_for()
    page.get_by_label("Right answer").fill("Ann B.")
    page.get_by_role("button", name="Correct it").click()
    page.wait_for_timeout(200)
    lines = (served.store / "feedback.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"correction":"Ann B."' in lines[1]
    page.get_by_role("link", name="Episodes").click()
    page.get_by_role("button", name=QUESTION).click()
    assert page.get_by_role("cell", name="Ann Bell").first.is_visible()


def test_a_token_is_asked_for_once(page: Any, serve: Serve):
    page.on("dialog", lambda dialog: dialog.accept("secret"))
    page.goto(serve(token="secret").url)
    page.get_by_label("Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".claim").wait_for()


def test_a_follow_up_is_sent_with_its_conversation_and_a_new_one_without(page: Any, serve: Serve):
    sent: list[Any] = []
    page.on("request", lambda each: sent.append(each.post_data_json) if each.method == "POST" else None)
    ask(page, serve({"contracts": agent_that(), "other": agent_that()}).url)
    page.get_by_text("Supported by the documents").first.wait_for()
    page.get_by_label("Method").select_option("other")
    page.get_by_label("Your question").fill("And when?")
    page.keyboard.press("Enter")
    page.get_by_role("group").filter(has_text="And when?").locator(".claim").wait_for()
    assert page.get_by_role("heading", name=QUESTION).is_visible()
    assert page.locator("details.round[open]").count() == 1
    assert violations(page) == []
    look(page, "conversation")
    page.get_by_role("button", name="New conversation").click()
    assert page.locator(".claim").count() == 0
    page.get_by_label("Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".claim").wait_for()
    turns = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Ann Bell [1]"},
        {"role": "user", "content": "And when?"},
    ]
    assert [each["input"] for each in sent] == [QUESTION, turns, QUESTION]
    assert page.faults == []
