"""Tests which traces a report shows, and that its charts are drawn at the values of their figures."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.cli.scores import report_run
from memarena.log.records import Outcome
from memarena.report.charts import growth, trends
from memarena.report.charts.bars import ttft_split
from memarena.report.charts.catalogue import charts_of
from memarena.report.charts.growth import ingest_over_days, search_over_days, search_over_history
from memarena.report.charts.scale import Linear, Logarithmic, log_axis, round_up
from memarena.report.charts.scatter import LEFT, SIDE, TOP, privacy_utility, recall_reasoning
from memarena.report.charts.spread import distribution
from memarena.report.charts.svg import Drawing, Figure
from memarena.report.charts.trends import accuracy_over
from memarena.report.question_view.making import answer_view, question_view
from memarena.report.question_view.sample import AT_MOST, sample_questions
from memarena.report.render.html import to_html
from memarena.report.report_input import ReportInput
from memarena.report.rows import ReportRow, rows_of
from memarena.report.tables.grid import breakdown_keys
from memarena.scoring.costs import RowCosts
from memarena.scoring.results import QuestionScore
from memarena_dataset.model import Family

from ..support import grid_run
from ..support.logs import make_asked, make_call, make_cell, make_evidence, make_question, text_gold, write_log

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ReportInput:
    return report_run(write_log(tmp_path_factory.mktemp("grid"), grid_run.records(12, prompt_words=40)))


# ------------------------------------------------------------------ traces


def _row(question: QuestionScore) -> str:
    return question.cell_id.rpartition("/")[0]


def test_each_row_shows_failures_first_and_a_few_right_answers(run: ReportInput) -> None:
    sample = sample_questions(run.scores.rows, run.questions)
    for row in run.scores.rows:
        outcomes = [q.outcome for q in sample if _row(q) == row.label]
        rights = [outcome is Outcome.CORRECT for outcome in outcomes]
        assert 3 <= len(outcomes) <= 18
        assert any(rights)
        assert not all(rights)
        assert rights == sorted(rights), "right ones come last"
    memobase = [q.outcome for q in sample if q.cell_id.startswith("memobase@")]
    assert Outcome.BACKEND_FAILED in memobase


def test_the_sample_alternates_families_and_repeats_no_question(run: ReportInput) -> None:
    sample = [q for q in sample_questions(run.scores.rows, run.questions) if _row(q) == "vanilla@small-0.6b"]
    assert len({q.family for q in sample[:6]}) == 6
    assert len({q.instance_id for q in sample}) == len(sample)


def test_the_sample_does_not_depend_on_the_order_of_the_log(run: ReportInput) -> None:
    forward = sample_questions(run.scores.rows, run.questions)
    assert sample_questions(run.scores.rows, tuple(reversed(run.questions))) == forward


def test_rows_show_the_same_questions_if_possible(run: ReportInput) -> None:
    questions_by_row: dict[str, set[str]] = {}
    for question in sample_questions(run.scores.rows, run.questions):
        questions_by_row.setdefault(_row(question), set()).add(question.instance_id)
    question_count = len(grid_run.EGOS) * 12
    shared = questions_by_row["vanilla@small-0.6b"] & questions_by_row["memobase@small-0.6b"]
    assert len(shared) > 2 * 16 * 16 / question_count, "twice as many as by chance"


# ------------------------------------------------------------------ drawings


def _marks(svg: str) -> list[tuple[float, float]]:
    """Return the centres (x, y) of the marks inside the frame, in drawing units."""
    centres = []
    for element in ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)).iter():
        if "mark" not in element.get("class", "").split() or element.find(f"{SVG}title") is None:
            continue
        if element.tag == f"{SVG}circle":
            centres.append((float(element.get("cx", "")), float(element.get("cy", ""))))
        else:
            points = [tuple(map(float, p.split(","))) for p in element.get("points", "").split()]
            centres.append((sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)))
    return centres


@pytest.mark.parametrize(("draw", "x", "y"), [(privacy_utility, "U", "P"), (recall_reasoning, "Rec", "Rea")])
def test_points_lie_at_their_figures(run: ReportInput, draw: object, x: str, y: str) -> None:
    rows = rows_of([run])
    figure = draw(rows)  # type: ignore[operator]
    expected = []
    for row in rows:
        first, second = row.scores.metrics[x].value, row.scores.metrics[y].value
        assert first is not None
        assert second is not None
        expected.append((LEFT + SIDE * first, TOP + SIDE * (1 - second)))
    for centre, expected_centre in zip(_marks(figure.svg), expected, strict=True):
        assert centre == pytest.approx(expected_centre, abs=2)  # the middle of a triangle's corners is not its middle
    for row in rows:
        assert f">{row.tag}</text>" in figure.svg


def test_lines_over_lag_pass_through_the_shares_of_their_parts(run: ReportInput) -> None:
    rows = rows_of([run])
    figure = accuracy_over(rows, "lag", "lag", "Accuracy over time passed", "days", "")
    assert figure is not None
    keys = breakdown_keys(rows, "lag")
    assert keys == sorted(keys, key=lambda key: int(re.split(r"\D", key)[0]))
    shares = [
        100 * part.score.value
        for row in rows
        for part in row.scores.slices
        if part.by == "lag" and part.score.value is not None
    ]
    marks = _marks(figure.svg)[: len(shares)]
    bottom, top = trends.TOP + trends.SIDE, trends.TOP
    assert [y for _, y in marks] == pytest.approx([bottom + s / 100 * (top - bottom) for s in shares], abs=1.0)
    assert accuracy_over(rows, "interference", "x", "", "", "") is None, "this data set does not say"


@pytest.mark.parametrize(
    ("draw", "points"),
    [
        (search_over_days, lambda costs: [(d.day, d.search.p50) for d in costs.days if d.search.p50]),
        (ingest_over_days, lambda costs: [(d.day, d.ingest_ms) for d in costs.days if d.ingest_ms]),
        (search_over_history, lambda costs: [(b.turns_p50, b.search.p50) for b in costs.history]),
    ],
)
def test_lines_of_growth_pass_through_their_figures(
    run: ReportInput,
    draw: Callable[[Sequence[ReportRow], str], Figure | None],
    points: Callable[[RowCosts], list[tuple[float, float]]],
) -> None:
    rows = rows_of([run])
    figure = draw(rows, "k")
    assert figure is not None
    expected = [point for row in rows if row.costs is not None for point in points(row.costs)]
    assert len(expected) >= 4 * len(rows)
    marks = _marks(figure.svg)
    x = Linear(0, round_up(max(at for at, _ in expected)), growth.LEFT, growth.WIDTH - growth.RIGHT)
    y = log_axis(min(ms for _, ms in expected), max(ms for _, ms in expected), growth.TOP + growth.SIDE, growth.TOP)
    for mark, (at, ms) in zip(marks, expected, strict=True):
        assert mark == pytest.approx((x.at(at), y.at(ms)), abs=1.5)
    assert draw(rows_of([ReportInput(run.scores, costs=())]), "k") is None, "without costs there is nothing to draw"


def test_bars_are_as_long_as_their_medians(run: ReportInput) -> None:
    figure = ttft_split(rows_of([run]))
    assert figure is not None
    tree = ET.fromstring(figure.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    bars = [e for e in tree.iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]
    lengths: dict[str, list[tuple[float, float]]] = {"Search+floor": [], "TTFT": []}
    for bar in bars:
        kind, value, _ = (bar.find(f"{SVG}title").text or "").split()  # type: ignore[union-attr]
        lengths[kind].append((float(value), float(bar.get("width", ""))))
    units = [width / value for value, width in lengths["TTFT"]]
    assert max(units) - min(units) < 0.01, "one scale for all"
    for value, width in lengths["Search+floor"]:
        assert width == pytest.approx(max(value * units[0], 0.6), abs=0.1)


def test_a_chart_without_figures_is_omitted(run: ReportInput) -> None:
    rows = rows_of([run])
    assert distribution(rows, {}, "k", "t", "c") is None
    none = [r.scores.model_copy(update={"latency": None}) for r in rows]
    assert ttft_split(rows_of([ReportInput(run.scores.model_copy(update={"rows": tuple(none)}))])) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_any_text_in_a_drawing_is_well_formed(text: str) -> None:
    drawing = Drawing("k", 10, 10, text, text)
    drawing.text(1, 2, text)
    drawing.rect(0, 0, 1, 1, "bar", text)
    drawing.marker(1, 1, 3, title=text)
    tree = ET.fromstring(drawing.render())
    assert [element.text or "" for element in tree.iter("text")] == [text]


@given(st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_axes_include_their_range(a: float, b: float) -> None:
    low, high = sorted((a, b))
    axis = log_axis(low, high, 0, 100)
    assert axis.low <= low * 1.001
    assert axis.high > high * 0.999
    assert 0 <= axis.at(low) <= axis.at(high) <= 100
    assert round_up(high) >= high * 0.999
    assert Linear(0, round_up(high), 0, 100).at(high) <= 100.1


def test_ticks_are_round() -> None:
    assert Logarithmic(0.5, 20, 0, 1).ticks() == [0.5, 1, 2, 5, 10, 20]
    assert Logarithmic(0.1, 10_000, 0, 1).ticks() == pytest.approx([0.1, 1, 10, 100, 1000, 10_000])


def test_the_runs_of_a_report_share_the_number_of_traces_and_every_row_has_one(run: ReportInput) -> None:
    rows = len(run.scores.rows)
    alone = len(sample_questions(run.scores.rows, run.questions))
    for runs in (2, 4, 1000):
        shared = Counter(map(_row, sample_questions(run.scores.rows, run.questions, runs)))
        assert len(shared) == rows
        assert shared.total() * runs <= max(AT_MOST, rows * runs)
    assert alone <= AT_MOST


def test_long_turns_conversations_and_many_calls_are_cut_with_a_note(run: ReportInput) -> None:
    question = make_question("qa_1", Family.QA, text_gold("Porto"), "Where is it?", evidence=["s1"])
    cell = make_cell("bm25").model_copy(update={"cell_id": run.scores.rows[0].cells[0].cell_id})
    prompt = json.dumps([{"role": "user", "content": f"message {n}"} for n in range(50)])
    calls = [make_call(f"c{n}", cell, question, ttft_ms=90, server_ms=88, prompt=prompt) for n in range(9)]
    attempt = make_asked(cell, question, "Porto", call_ids=[c.call_id for c in calls])
    session = make_evidence("s1", ("Maya", "word " * 1000))
    score = QuestionScore(
        cell_id=run.scores.rows[0].cells[0].cell_id,
        instance_id="qa_1",
        ego="e",
        family="d7_qa",
        dimension="D3",
        outcome=Outcome.CORRECT,
        attempts=1,
    )
    answer = answer_view(question, {"s1": session}, cell, score, [attempt], calls, [])
    view = question_view(question, {"s1": session}, [answer])
    page = to_html([replace(run, traces=(view,))]).partition('<details class="question-trace">')[2]
    [turn] = re.findall(r"<b>Maya</b> (.*?)<", page)
    assert len(turn) < 700
    assert turn.rstrip().endswith(" …")
    assert page.count("<h4>Model call</h4>") == 4
    assert "… 5 more model calls" in page
    first = page.split("<h4>Model call</h4>")[1]
    texts = re.findall(r'<p class="name">(.*?)</p>\n<pre>(.*?)</pre>', first)
    assert texts[3:6] == [("user", "message 3"), ("…", "42 more messages"), ("user", "message 46")]
    assert texts[8] == ("user", "message 49")


def test_d6_is_drawn_by_memory_and_reader_and_as_outcomes_that_add_up_to_all_items(run: ReportInput) -> None:
    rows = rows_of([run])
    charts = {chart.figure.key: chart for chart in charts_of(rows, [run])}
    fields, bars = charts["fig-f1-pu"], charts["fig-deny"]
    titles = [text for rect in ET.fromstring(fields.figure.svg).iter("rect") if (text := rect.findtext("title"))]
    memories = {row.scores.backend for row in rows if row.scores.metrics["D6"].value is not None}
    readers = {row.scores.reader for row in rows}
    assert len(titles) == len(memories) * len(readers), "a field for each memory and reader"
    row = rows[0]
    value = f"{100 * (row.scores.metrics['D6'].value or 0):.1f}"
    assert any(text.startswith(row.scores.backend) and text.endswith(value) for text in titles)
    assert fields.data.rows[0][1].text == value
    for report_row, cells in zip(rows, bars.data.rows, strict=True):
        assert report_row.scores.permission is not None
        refused, unknown, _, leaked, _ = (int(cell.text) for cell in cells[1:])
        labels = report_row.scores.permission.deny_labels
        assert (refused, unknown, leaked) == tuple(labels.get(n, 0) for n in ("refuse", "dont_know", "disclosed"))
        assert sum(int(cell.text) for cell in cells[1:]) == report_row.scores.permission.deny
    assert not [chart for chart in charts_of(rows[:1], [run]) if chart.figure.key == "fig-f1-pu"], "no map of one field"
