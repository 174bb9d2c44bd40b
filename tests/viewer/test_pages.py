"""Tests the viewer's pages: figures agree with the scores and link to their answers; texts are escaped."""

from __future__ import annotations

import html
import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from memarena.cli.scores import report_run
from memarena.evaluation import evaluate
from memarena.log.records import AnyRecord, HeldText
from memarena.log.store import LogWriter, log_path, read_records
from memarena.report.answer_list import Filter, values_of
from memarena.report.brief import brief_groups
from memarena.report.question_view.making import asker_of
from memarena.report.render.html import to_html
from memarena.scoring.run import ScoredRun
from memarena.viewer.found_runs import find_runs
from memarena.viewer.grid import COLUMNS, LOSS_STAGES, grid_cell
from memarena.viewer.selection import SORTS
from memarena.viewer.server import make_app
from memarena_dataset.model import Family

from ..support import grid_run
from ..support.logs import (
    make_asked,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_run,
    text_gold,
    write_log,
)
from .conftest import EVIDENCE_TURN, LONG, SCRIPT, SECRET_GOLD, Site, served

NAMES_OF_CHARTS = (
    "avg", "recall", "right-ttft", "right-tokens", "privacy", "f1-pu", "deny", "ttft", "end-to-end", "search",
    "history", "days", "ingest", "lag",
)  # fmt: skip
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
    match = re.search(r'<p class="said">([\d,]+) (?:answers?|questions?): ([\d,]+) right', text)
    if match is None:
        assert "No answer is like that." in text
        return 0, 0
    return int(match[1].replace(",", "")), int(match[2].replace(",", ""))


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


def test_the_list_of_runs_shows_the_best_memory_as_the_grid_does(site: Site, scored: ScoredRun) -> None:
    site.page(site.run("lab"))
    row = re.search(rf'<tr data-run="{site.keys["lab"]}".*?</tr>', site.ask("/").text, re.DOTALL)
    assert row is not None
    rows = [each for each in scored.scores.rows if not each.diagnostic]
    best = max(rows, key=lambda each: (each.metrics["answerable"].value or 0, each.metrics["all"].value or 0))
    right, answerable = best.metrics["all"].value, best.metrics["answerable"].value
    assert right is not None
    assert answerable is not None
    assert f'<td class="n">{100 * answerable:.1f}</td>\n<td class="n">{100 * right:.1f}</td>' in row[0]
    assert f"<td>{best.backend}" in row[0]
    damaged = re.search(rf'<tr data-run="{site.keys["damaged"]}".*?</tr>', site.ask("/").text, re.DOTALL)
    assert damaged is not None
    assert 'class="n"' not in damaged[0]


def test_what_is_not_there_is_a_page_that_says_so(site: Site) -> None:
    for path in ("/run/none", "/nothing", site.question("lab", "no_such")):
        assert site.page(path).status == 404
    assert "Not here" in site.ask("/nothing").plain


def test_a_run_below_the_folder_is_named_by_its_path_and_those_alike_lead_to_one_grid(site: Site, lab: Path) -> None:
    (inner,) = find_runs([lab.parent.parent])[:1]
    assert inner.name.startswith("runs/")
    assert [run.name for run in find_runs([lab])] == ["lab"]
    link = re.search(r'<a href="(/run/[^"]+)">In one grid</a>', site.ask("/").text)
    assert link is not None
    assert site.page(html.unescape(link[1])).text.count('class="figure"') == 2 * site.page(site.run("lab")).text.count(
        'class="figure"'
    )


def test_a_log_that_turned_out_damaged_is_listed_as_such(lab: Path, tmp_path: Path) -> None:
    run = shutil.copytree(lab, tmp_path / "runs" / "torn")
    with sqlite3.connect(log_path(run)) as db:
        db.execute("DROP TRIGGER records_no_update")
        db.execute("UPDATE records SET body = body || ' ' WHERE kind = 'asked'")
    db.close()
    with served(lambda door: make_app([tmp_path / "runs"], "value", door, tmp_path)) as door:
        own = Site(tmp_path, tmp_path, door, {each.name: each.key for each in find_runs([run])})
        answer = own.page(own.run("torn"))
        assert answer.status == 422
        overview = own.ask("/").plain
        assert "torn damaged" in overview
        assert "completed" not in overview
        assert "does not match its checksum" in overview
        shutil.rmtree(tmp_path / "runs")
        for path in ("/", own.run("torn"), own.run("torn", "/events")):
            page = own.ask(path)
            assert page.status == 404
            assert "no such folder" in page.plain


# ------------------------------------------------------------------ grid


def test_what_can_be_had_without_memory_stands_with_every_choice_of_columns(site: Site, scored: ScoredRun) -> None:
    base = next(each for each in scored.scores.baselines if each.name == "best constant")
    share = base.scores["D1"]
    assert share is not None
    for query in ("", "?column=all&column=D1"):
        text = site.page(site.run("lab", query)).text
        (row,) = re.findall(r">best constant</th>(.*?)</tr>", text, re.DOTALL)
        assert f">{100 * share:.1f}</td>" in row


def test_each_figure_of_the_grid_is_the_share_of_the_answers_that_it_leads_to(site: Site) -> None:
    columns = "&".join(f"column={key}" for key in ("all", "D1", "D3", "D5", "P"))
    text = site.page(site.run("lab", f"?{columns}")).text
    links = re.findall(r'class="figure" href="([^"]+)"[^>]*>([\d.]+)</a>', text)
    assert len(links) >= 40
    for link, figure in links[::4]:
        answer_count, right = said(site.ask(html.unescape(link)).text)
        assert 100 * right / answer_count == pytest.approx(float(figure), abs=0.06), link


def test_the_grid_has_every_row_once_with_the_figure_of_the_report(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "?column=all")).text
    figures = dict(re.findall(r'questions\?cell=([^"&]+)"[^>]*>([\d.]+)</a>', text))
    assert len(scored.scores.rows) == 10
    for row in scored.scores.rows:
        right = row.metrics["all"].value
        assert right is not None
        assert figures[row.label.replace("@", "%40")] == f"{100 * right:.1f}"


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
        answer_count, right = said(site.ask(html.unescape(link)).text)
        assert 100 * right / answer_count == pytest.approx(float(figure), abs=0.06)
    assert site.page(f"{path}&with={site.keys['hostile']}").text.count('class="figure"') == len(own)


def test_the_grid_begins_like_the_report_and_each_loss_leads_to_its_answers(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab")).text
    assert [text.index(f'<figure id="{key}">') for key in ("ranked-right", "recall-bars", "error-split")]
    links = re.findall(r'<a href="([^"]+stage=[^"]+)">([\d,]+)</a>', text)
    counts = [getattr(row.errors, stage) for row in scored.scores.rows if row.errors for stage in LOSS_STAGES]
    assert len(links) == sum(count > 0 for count in counts) > 4
    for link, count in links[::5]:
        assert said(site.ask(html.unescape(link)).text) == (int(count), 0), link


def test_rows_of_d6_name_the_asker_and_the_relation(site: Site, lab: Path) -> None:
    questions = {q.instance.instance_id: q for q in read_records(lab, "question") if q.kind == "question"}
    text = site.page(site.run("lab", "/questions?dimension=D6")).text
    rows = re.findall(r'<p class="where">D6 [^·]+· (\S+) ·.*? · asked by ([^<]+)</p>', text)
    assert rows and len(rows) == text.count('<p class="where">')
    assert {(name, html.unescape(asker)) for name, asker in rows} <= {(n, asker_of(q)) for n, q in questions.items()}
    assert "asked by" not in site.page(site.run("lab", "/questions?dimension=D3")).text


def test_a_share_of_fewer_than_five_questions_is_left_out_of_the_grid(lab: Path) -> None:
    [(_, [row, *_])] = brief_groups([report_run(lab)])
    column = next(column for column in COLUMNS if column.key == "P")
    for deny, text in ((4, "n<5"), (5, column.cell(row).figure)):
        assert grid_cell(replace(row, deny=deny), column).text == text


def test_rows_are_sorted_within_their_reader(site: Site) -> None:
    text = site.page(site.run("lab", "?column=all&sort=all")).text
    for body in text.split('<tr class="reader">')[1:3]:
        figures = [float(f) for f in re.findall(r'questions\?cell=[^"&]+"[^>]*>([\d.]+)</a>', body)]
        assert figures == sorted(figures)


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(("key", "value"), [*FAMILIES.items(), ("lag", "1–3"), ("outcome", "wrong")])
def test_a_filter_lists_what_memarena_show_lists(site: Site, scored: ScoredRun, key: str, value: str) -> None:
    row_filter = Filter(None, **{key: value})
    questions = [q for q in scored.questions if q.outcome is not None and row_filter.admits(q)]
    assert questions
    got = said(site.page(site.run("lab", f"/questions?{key}={value}".replace("–", "%E2%80%93"))).text)
    assert got == (len(questions), sum(q.correct for q in questions))


def test_filters_offer_every_value_with_its_count(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/questions")).text
    for key in ("family", "stage", "label", "lag"):
        choices = re.search(rf'<select name="{key}"[^>]*>(.*?)</select>', text, re.DOTALL)
        assert choices is not None
        offered = set(re.findall(r'<option value="([^"]+)"', choices[1]))
        assert offered >= {v for q in scored.questions for v in values_of(q, key)}


def test_filters_together_narrow_and_each_can_be_left_out(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/questions?family=d7_qa&outcome=wrong&cell=bm25%40large-8b")).text
    questions = [
        q for q in scored.questions if (q.cell_id, q.family) == ("bm25@large-8b/s1", "d7_qa") and not q.correct
    ]
    assert said(text)[0] == len(questions)
    chips = re.findall(r'<li><a href="\?([^"]+)">', text)
    queries = [dict(parse_qsl(html.unescape(chip))) for chip in chips[:2]]
    assert {"family", "outcome"} == {key for pairs in queries for key in pairs} - {"cell"}


@pytest.mark.parametrize("sort", [key for key in SORTS if key not in ("question", "found")])
def test_rows_come_in_the_order_asked_for(site: Site, sort: str) -> None:
    pattern = {
        "search": r"Search\+floor ([\d.,]+) ms", "ttft": r"TTFT ([\d.,]+) ms", "tokens": r"([\d,]+) tokens",
        "day": r"after day (\d+)", "lag": r", (\d+) days? after",
    }[sort]  # fmt: skip
    for sign, turned in (("", False), ("-", True)):
        text = site.page(site.run("lab", f"/questions?sort={sign}{sort}")).text
        figures = [float(f.replace(",", "")) for f in re.findall(pattern, text.partition("<ol")[2])]
        assert len(figures) >= 20
        assert figures == sorted(figures, reverse=turned)


def test_pages_hold_every_answer_once(site: Site, scored: ScoredRun) -> None:
    total = sum(q.outcome is not None for q in scored.questions)
    addresses: list[str] = []
    for page in range(1, total // 50 + 2):
        text = site.page(site.run("lab", f"/questions?sort=-ttft&page={page}")).text
        addresses += re.findall(r'<p class="ask"><a href="([^"]+)"', text)
    assert len(addresses) == len(set(addresses)) == total


@pytest.mark.parametrize("agreement", ["", "same", "differ", "first"])
def test_memories_stand_side_by_side_on_the_same_question(site: Site, scored: ScoredRun, agreement: str) -> None:
    cells = ("bm25@large-8b/s1", "memobase@large-8b/s1")
    ended = {(q.cell_id, q.instance_id): q.outcome for q in scored.questions}
    pairs = [(ended[cells[0], i], ended[cells[1], i]) for cell, i in ended if cell == cells[0]]
    expected_pairs = {
        "": pairs,
        "same": [p for p in pairs if p[0] is p[1]],
        "differ": [p for p in pairs if p[0] is not p[1]],
        "first": [p for p in pairs if p[0] is not None and p[0].value == "correct" and p[1] is not p[0]],
    }[agreement]
    query = f"?cell=bm25%40large-8b/s1&cell=memobase%40large-8b&view=side&agreement={agreement}"
    text = site.page(site.run("lab", f"/questions{query}")).text
    assert said(text)[0] == len(expected_pairs) > 0
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


def test_an_address_that_asks_for_too_much_has_a_page(site: Site) -> None:
    assert said(site.page(site.run("lab", f"/questions?day={10**30}")).text) == (0, 0)
    assert "expected a number from 1" in site.page(site.run("lab", f"/questions?page={'9' * 5000}")).plain
    last = site.page(site.run("lab", "/questions?outcome=wrong&page=9999999"))
    assert "page=9999999: there are" in last.plain
    total, _ = said(last.text)
    assert f'start="{50 * ((total - 1) // 50) + 1}"' in last.text


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


@pytest.fixture(scope="module")
def retried(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A question that failed once, and whose memory then answered from a search of its own."""
    cell = make_cell("bm25", "small")
    question = make_question("q", Family.QA, text_gold(SECRET_GOLD), "Where to?", evidence=["s"], lag_days=1)
    failed = make_asked(cell, question, status="infra_failed", cause="reader: connection refused")
    retry = make_asked(cell, question, "Oslo", attempt=1, items=[make_item("from Search", "s")], search_ms=10)
    assert retry.answer is not None
    held_text = HeldText(session_ids=("s",), turn_ids=("s_t01",), verbatim_share=0.75)
    item = make_item("found by itself", "s").model_copy(update={"held": held_text})
    own = retry.answer.model_copy(update={"route": "backend", "items": (item,)})
    body: list[AnyRecord] = [failed, retry.model_copy(update={"answer": own})]
    folder = tmp_path_factory.mktemp("retried")
    run = write_log(folder / "run", make_run([cell], [question], [make_evidence("s", ("Maya", "A boat."))], body))
    with served(lambda door: make_app([run], "value", door, folder)) as door:
        yield Site(folder, folder, door, {"run": find_runs([run])[0].key})


def test_a_question_tells_what_was_searched_each_step_and_earlier_attempts(retried: Site) -> None:
    page = retried.page(retried.question("run", "q"))
    text = page.plain
    assert re.search(r"Searched for the question as it was asked, on behalf of .*, for at most .*tokens\.", text)
    assert "Attempt 1 of 2: infra failed: reader: connection refused" in text
    assert text.index("from Search") < text.index("What its own search read") < text.index("found by itself")
    assert text.count("holds turns s_t01; 75% of its words are from the life") == 1, "the other item was not audited"
    whole = retried.ask(retried.question("run", "q", "/text?cell=bm25%40small/s1&part=own-1"))
    assert whole.text == "found by itself"
    bars = re.findall(r'<rect class="bar (\w+)"[^>]* width="([\d.]+)"', page.text)
    assert [kind for kind, _ in bars] == ["search", "prefill", "handing", "rest"]
    widths = [float(width) for _, width in bars]
    assert widths == pytest.approx([600 * ms / 160 for ms in (10, 100, 2, 48)], abs=0.1)
    keys = re.findall(r'class="key (\w+)">([^<]+)</th><td class="n">([^<]+)<', page.text)
    assert [(key, value) for key, _, value in keys] == [
        ("search", "10 ms"), ("prefill", "100 ms"), ("handing", "2.00 ms"), ("rest", "48 ms"),
    ]  # fmt: skip


# ------------------------------------------------------------------ what the report says too


@pytest.fixture(scope="module")
def report(lab: Path) -> str:
    return to_html([report_run(lab, traces=True)])


def test_report_and_viewer_draw_the_same_charts_with_the_same_words(site: Site, report: str) -> None:
    page = site.page(site.run("lab", "/charts")).text
    figures = r'<figure id="([^"]+)">\n(<figcaption>.*?</svg>)'
    viewer_figures, report_figures = (dict(re.findall(figures, text, re.DOTALL)) for text in (page, report))
    assert len(viewer_figures) == len(NAMES_OF_CHARTS)
    assert {key: report_figures.get(key) for key in viewer_figures} == viewer_figures


def test_report_and_viewer_tell_a_question_in_the_same_words(site: Site, report: str) -> None:
    trace = next(
        trace
        for trace in re.findall(r'<details class="question-trace">.*?</details>', report, re.DOTALL)
        if "bm25@large-8b/s1" in trace and "d4_permission" in trace
    )
    ident = re.search(r"--question (\S+)", trace)
    assert ident is not None
    page = site.page(site.question("lab", ident[1], "?cell=bm25%40large-8b/s1&gold=1")).text
    parts = {
        "asked": r"<dd>.*?</dd>",
        "how it ended": r'<p class="line">.*?</p>',
        "judges": r"<li><b>[^<]*</b>: .*?</li>",
        "items": r'<p class="small">.{0,60}score .*?</p>',
        "times": r'<tr><th scope="row"[^>]*>.*?</tr>',
        "evidence": r"<li><b>Maya Chen</b> .{30}",
        "reading": r'<p class="small">Read by .*?</p>',
        "call": r"central: [^<]*|answer: [^<]*",
    }
    for name, pattern in parts.items():
        passages = re.findall(pattern, trace)
        passages = [each for each in passages if "right answer" not in each]
        assert passages, name
        assert [each for each in passages[:3] if each not in page] == [], name


# ------------------------------------------------------------------ charts, progress


def test_charts_have_their_figures_as_tables(site: Site, scored: ScoredRun) -> None:
    text = site.page(site.run("lab", "/charts")).text
    figures = re.findall(r'<figure id="([^"]+)">(.*?)</figure>', text, re.DOTALL)
    assert {key for key, _ in figures} == {f"fig-{name}" for name in NAMES_OF_CHARTS}
    for key, figure in figures:
        assert figure.count("<svg") == 1, key
        assert figure.count('<th scope="row">') >= len(scored.scores.rows), key
    table = dict(figures)["fig-right-ttft"]
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
    event = json.loads(line.removeprefix("data: "))
    assert event["state"] == "completed"
    assert event["asked"] == event["planned"] == 1440
