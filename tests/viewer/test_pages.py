"""Pages agree with the scores, lead from a figure to its answers, and show every text as text."""

from __future__ import annotations

import html
import json
import re
import time
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from memarena.evaluation import evaluate
from memarena.log.store import LogWriter
from memarena.report.answer_list import Filter, values_of
from memarena.scoring.run import ScoredRun
from memarena.viewer.queries import SORTS

from ..support import grid_run
from .conftest import EVIDENCE_TURN, LONG, SCRIPT, SECRET_GOLD, Site

FAMILIES = {
    "family": "d7_qa",
    "dimension": "D6",
    "outcome": "failed",
    "stage": "any",
    "action": "deny",
    "label": "kept",
}


@pytest.fixture(scope="module")
def scored(lab: Path) -> ScoredRun:
    return evaluate(lab, resamples=0)


def said(text: str) -> tuple[int, int]:
    """How many answers a page lists, and how many of them are right."""
    found = re.search(r'<p class="said">([\d,]+) (?:answers?|questions?): ([\d,]+) right', text)
    if found is None:
        assert "No answer is like that." in text
        return 0, 0
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


# ------------------------------------------------------------------ runs


def test_every_run_is_listed_with_its_state_beside_those_it_can_be_compared_with(site: Site) -> None:
    text = site.ask("/").plain
    for name in ("lab", "again", "hostile", "writing", "damaged", "newer"):
        assert f" {name} " in text
    assert "completed" in text
    assert "being written" in text
    assert "this memarena reads up to" in text
    assert "6 runs in 5 groups" in text
    assert "these 2 runs can be compared" in text


@pytest.mark.parametrize(
    ("name", "words"), [("damaged", "damaged|malformed|cannot be read"), ("newer", "update memarena")]
)
@pytest.mark.parametrize("page", ["", "/questions", "/charts", "/progress"])
def test_a_log_that_cannot_be_read_has_a_page_that_says_so(site: Site, name: str, words: str, page: str) -> None:
    answer = site.page(site.run(name, page))
    assert answer.status == 422
    assert re.search(words, answer.plain)
    assert "Traceback" not in answer.text


def test_what_is_not_there_is_a_page_that_says_so(site: Site) -> None:
    for path in ("/run/none", "/nothing", site.question("lab", "no_such")):
        assert site.page(path).status == 404
    assert "Not here" in site.ask("/nothing").plain


# ------------------------------------------------------------------ grid


def test_each_figure_of_the_grid_is_the_share_of_the_answers_that_it_leads_to(site: Site) -> None:
    columns = "&".join(f"column={key}" for key in ("all", "D1", "D3", "D5", "P"))
    text = site.page(site.run("lab", f"?{columns}")).text
    links = re.findall(r'class="figure" href="([^"]+)"[^>]*>([\d.]+)</a>', text)
    assert len(links) >= 40
    for link, figure in links[::4]:
        listed, right = said(site.ask(html.unescape(link)).text)
        assert 100 * right / listed == pytest.approx(float(figure), abs=0.06), link


def test_the_grid_has_every_row_once_with_the_figure_of_the_report(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "?column=all")).text
    shown = dict(re.findall(r'questions\?cell=([^"&]+)"[^>]*>([\d.]+)</a>', text))
    assert len(scored.scores.rows) == 10
    for row in scored.scores.rows:
        right = row.metrics["all"].value
        assert right is not None
        assert shown[row.label.replace("@", "%40")] == f"{100 * right:.1f}"


def test_runs_that_asked_the_same_share_a_grid_and_lead_to_their_own_answers(site: Site) -> None:
    path, other = site.run("lab", "?column=all"), site.keys["again"]
    assert f'name="with" value="{other}"' in site.page(path).text
    assert 'name="with"' not in site.page(site.run("hostile")).text
    alone, both = site.page(path).text, site.page(f"{path}&with={other}").text
    own = re.findall(r'class="figure" href="([^"]+)"[^>]*>~?([\d.]+)</a>', alone)
    links = re.findall(r'class="figure" href="([^"]+)"[^>]*>~?([\d.]+)</a>', both)
    assert set(own) <= set(links)
    assert len(links) == 2 * len(own)
    assert "~ over the questions asked so far" in both
    elsewhere = [each for each in links if each not in own]
    assert {link.split("/")[2] for link, _ in elsewhere} == {other}
    for link, figure in elsewhere[:3]:
        listed, right = said(site.ask(html.unescape(link)).text)
        assert 100 * right / listed == pytest.approx(float(figure), abs=0.06)
    assert site.page(f"{path}&with={site.keys['hostile']}").text.count('class="figure"') == len(own)


def test_rows_are_sorted_within_their_reader(site: Site) -> None:
    text = site.page(site.run("lab", "?column=all&sort=all")).text
    for body in text.split('<tr class="reader">')[1:3]:
        figures = [float(f) for f in re.findall(r'questions\?cell=[^"&]+"[^>]*>([\d.]+)</a>', body)]
        assert figures == sorted(figures)


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(("key", "value"), [*FAMILIES.items(), ("lag", "1–3"), ("outcome", "wrong")])
def test_a_filter_lists_what_memarena_show_lists(site: Site, scored: ScoredRun, key: str, value: str) -> None:
    wanted = Filter(None, **{key: value})
    asked = [q for q in scored.questions if q.outcome is not None and wanted.admits(q)]
    assert asked
    got = said(site.page(site.run("lab", f"/questions?{key}={value}".replace("–", "%E2%80%93"))).text)
    assert got == (len(asked), sum(q.correct for q in asked))


def test_filters_offer_every_value_with_its_count(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/questions")).text
    for key in ("family", "stage", "label", "lag"):
        choices = re.search(rf'<select name="{key}">(.*?)</select>', text, re.DOTALL)
        assert choices is not None
        offered = set(re.findall(r'<option value="([^"]+)"', choices[1]))
        assert offered >= {v for q in scored.questions for v in values_of(q, key)}


def test_filters_together_narrow_and_each_can_be_left_out(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/questions?family=d7_qa&outcome=wrong&cell=bm25%40large-8b")).text
    wanted = [q for q in scored.questions if (q.cell_id, q.family) == ("bm25@large-8b/s1", "d7_qa") and not q.correct]
    assert said(text)[0] == len(wanted)
    chips = re.findall(r'<li><a href="\?([^"]+)">', text)
    left = [dict(parse_qsl(html.unescape(chip))) for chip in chips[:2]]
    assert {"family", "outcome"} == {key for pairs in left for key in pairs} - {"cell"}


@pytest.mark.parametrize("sort", [key for key in SORTS if key not in ("question", "found")])
def test_rows_come_in_the_order_asked_for(site: Site, sort: str) -> None:
    pattern = {
        "search": r"Search ([\d.,]+) ms", "ttft": r"TTFT ([\d.,]+) ms", "tokens": r"([\d,]+) tokens",
        "day": r"after day (\d+)", "lag": r", (\d+) days? after",
    }[sort]  # fmt: skip
    for sign, turned in (("", False), ("-", True)):
        text = site.page(site.run("lab", f"/questions?sort={sign}{sort}")).text
        figures = [float(f.replace(",", "")) for f in re.findall(pattern, text.partition("<ol")[2])]
        assert len(figures) >= 20
        assert figures == sorted(figures, reverse=turned)


def test_pages_hold_every_answer_once(site: Site, scored: ScoredRun) -> None:
    total = sum(q.outcome is not None for q in scored.questions)
    seen: list[str] = []
    for page in range(1, total // 50 + 2):
        text = site.page(site.run("lab", f"/questions?sort=-ttft&page={page}")).text
        seen += re.findall(r'<p class="ask"><a href="([^"]+)"', text)
    assert len(seen) == len(set(seen)) == total


@pytest.mark.parametrize("agreement", ["", "same", "differ", "first"])
def test_memories_stand_side_by_side_on_the_same_question(site: Site, scored: ScoredRun, agreement: str) -> None:
    cells = ("bm25@large-8b/s1", "memobase@large-8b/s1")
    ended = {(q.cell_id, q.instance_id): q.outcome for q in scored.questions}
    pairs = [(ended[cells[0], i], ended[cells[1], i]) for cell, i in ended if cell == cells[0]]
    wanted = {
        "": pairs,
        "same": [p for p in pairs if p[0] is p[1]],
        "differ": [p for p in pairs if p[0] is not p[1]],
        "first": [p for p in pairs if p[0] is not None and p[0].value == "correct" and p[1] is not p[0]],
    }[agreement]
    query = f"?cell=bm25%40large-8b/s1&cell=memobase%40large-8b&view=side&agreement={agreement}"
    text = site.page(site.run("lab", f"/questions{query}")).text
    assert said(text)[0] == len(wanted) > 0
    first = re.search(r'<div class="got">(.*?)</li>', text, re.DOTALL)
    assert first is not None
    assert [c for c in cells if c in first[1]] == list(cells)


def test_text_is_found_as_it_stands_with_signs_that_a_pattern_would_take(site: Site) -> None:
    for typed, count in (("50%25", 1), ("of_it", 1), ("ofxit", 0), ("%25%25", 0), ("WHERE TO", 5)):
        text = site.page(site.run("hostile", f"/questions?q={typed.replace(' ', '%20')}")).text
        assert said(text)[0] == count, typed


def test_what_is_not_understood_is_told_and_left_out(site: Site) -> None:
    text = site.page(site.run("lab", "/questions?nonsense=1&sort=height&cell=none%40x&page=zero")).plain
    for name in ("nonsense", "sort=height", "cell=none@x", "page=zero"):
        assert f"not understood: {name}" in text


# ------------------------------------------------------------------ one question


def test_gold_and_reasons_are_shown_on_demand_only(site: Site) -> None:
    path = site.question("hostile", "q_ansi")
    without = site.page(path)
    assert without.status == 200
    assert SECRET_GOLD not in without.text
    assert SECRET_GOLD in site.page(f"{path}?gold=1").text
    assert SECRET_GOLD not in site.page(site.run("hostile", "/questions")).text


def test_evidence_is_marked_in_the_prompt_and_shown_in_full(site: Site) -> None:
    text = site.page(site.question("hostile", "q_ansi")).text
    marked = re.findall(r"<mark>(.*?)</mark>", text, re.DOTALL)
    assert [html.unescape(m) for m in marked] == [EVIDENCE_TURN]
    assert "Evidence, in full" in text


def test_a_question_shows_every_cell_that_asked_it_and_those_chosen_in_full(site: Site, scored: ScoredRun) -> None:
    ident = "ego_03_q002"
    text = site.page(site.question("lab", ident, "?cell=bm25%40large-8b/s1&cell=oracle%40small-0.6b")).text
    ended = [q for q in scored.questions if q.instance_id == ident]
    right = sum(q.correct for q in ended)
    assert f"Right in {right} of {len(ended)} cells" in text
    assert re.findall(r'<h2 id="cell-\d">([^<]+)</h2>', text) == ["bm25@large-8b/s1", "oracle@small-0.6b/s1"]
    assert 'rel="prev"' in text
    assert 'rel="next"' in text


@pytest.mark.parametrize("name", ["q/1?&#", "q_ansi", "q_rtl", "q_long", "q_50%"])
def test_nothing_in_a_text_acts_or_hides(site: Site, name: str) -> None:
    for path in (
        site.question("hostile", name, "?gold=1"),
        site.run("hostile", "/questions?gold=1"),
        site.run("hostile"),
    ):
        answer = site.page(path)
        assert answer.status == 200
        assert "<script>" not in answer.text
        assert "<i>Chen" not in answer.text
        assert not set(answer.text) & {"\x1b", "\u202e"}
        assert len(answer.text) < 200_000
    text = html.unescape(site.page(site.question("hostile", name)).text)
    assert SCRIPT in text
    assert "␛[31mred" in text
    assert "user[U+202E]gnp.exe" in text


def test_a_long_answer_is_cut_and_its_whole_is_one_link_away(site: Site) -> None:
    text = site.page(site.question("hostile", "q_long")).text
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+part=answer)"', text)]
    assert len(links) == 1
    whole = site.ask(links[0])
    assert whole.text == LONG
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"
    missing = urlsplit(links[0])._replace(query="cell=x&part=answer").geturl()
    assert site.ask(missing).status == 404


# ------------------------------------------------------------------ charts, progress


def test_charts_have_their_figures_as_tables(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/charts")).text
    figures = re.findall(r'<figure id="([^"]+)">(.*?)</figure>', text, re.DOTALL)
    names = {"privacy-utility", "right-ttft", "right-tokens", "ttft-split", "latency", "growth", "right-lag"}
    assert {key for key, _ in figures} == names
    for key, drawn in figures:
        assert drawn.count("<svg") == 1, key
        assert drawn.count('<th scope="row">') >= len(scored.scores.rows), key
    table = dict(figures)["right-ttft"]
    for row in scored.scores.rows:
        right = row.metrics["all"].value
        assert right is not None
        assert f'<td class="n">{100 * right:.1f}</td>' in table


def test_a_run_that_is_being_written_says_so_and_its_pages_grow_with_it(site: Site, writing: LogWriter) -> None:
    path = site.run("writing", "/questions")
    before = site.page(path)
    assert "This run is being written" in before.plain
    count = said(before.text)[0]
    rest = [r for r in grid_run.records(1, prompt_words=20) if r.kind != "run_ended"]
    writing.append(*rest[len(rest) // 2 :])
    assert "The log has grown since" in site.page(path).plain
    for _ in range(300):
        after = site.page(path)
        if "The log has grown since" not in after.plain:
            break
        time.sleep(0.1)
    assert said(after.text)[0] == 120 > count
    assert "120 of 120 questions asked" in site.page(site.run("writing", "/progress")).plain


def test_progress_is_told_as_it_happens(site: Site, lab: Path) -> None:
    answer = site.ask(site.run("lab", "/events"))
    assert answer.headers["Content-Type"] == "text/event-stream"
    (line,) = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    told = json.loads(line.removeprefix("data: "))
    assert told["state"] == "completed"
    assert told["asked"] == told["planned"] == 1440
