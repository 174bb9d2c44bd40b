"""Tests pages of a site: which runs may be ranked together, hostile names, links, size, and a browser."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
from memarena.cli.scores import views_of
from memarena.evaluation import evaluate, load_facts
from memarena.forked_worker import forked_each
from memarena.log.records import Outcome
from memarena.report.tables.comparison import difference_cells
from memarena.scoring.compare import choose, compare_unpaired
from memarena.scoring.results import JudgeModel, Judging
from memarena.scoring.uncertainty_records import Interval
from memarena.site import building, certificates
from memarena.site.boards import boards_of
from memarena.site.building import Loaded, Reading, Shown, build
from memarena.site.certificates import Certificate, check_bundle
from memarena.site.checking import Trust, check_site
from memarena.site.entries import Entry, entry_of
from memarena.site.errors import SiteError
from memarena.site.pages import pages_of
from memarena.site.rendering import rendered, site_files

from ..support.golden_run import GOLDEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser

JUDGE_MODEL = JudgeModel(model="m", temperature=0, seed=1, prompts_sha256={})
CHROMIUM = os.environ.get("MEMARENA_CHROMIUM") or shutil.which("chromium")
HOSTILE = (
    "<script>window.ran = 1</script>",
    "\x1b[31mred",
    "user\u202egnp.exe",
    "n" * 10_000,
    "../../etc/passwd",
    "a",
    "a",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A small run: three rows of one reader, one of another."""
    folder = Path(shutil.copytree(GOLDEN / "small_run", tmp_path_factory.mktemp("run") / "small"))
    facts = load_facts(folder)
    return Loaded(folder, "small", facts, evaluate(facts), {cell.cell_id: folder for cell in facts.manifest.cells})


@pytest.fixture(scope="module")
def entry(run: Loaded) -> Entry:
    """Its summary."""
    return entry_of("small", run.facts, run.scored)


def changed(
    entry: Entry, number: int, scores: dict[str, Any] | None = None, row: dict[str, Any] | None = None, **fields: Any
) -> Entry:
    """The same entry as another run, with changes to it, to its scores and to each of its rows."""
    rows = tuple(each.model_copy(update=row or {}) for each in entry.scores.rows)
    update = {"rows": rows, "run_id": f"run-{number}", **(scores or {})}
    result = entry.model_copy(update={"entry_id": f"e-{number}", "name": f"run {number}", **fields})
    return result.model_copy(update={"scores": entry.scores.model_copy(update=update)})


def judged_by(entry: Entry, version: str) -> dict[str, Any]:
    return {"judge_versions": (version * 64,)}


def test_rows_are_ranked_together_only_with_the_same_terms(entry: Entry) -> None:
    alone = len(boards_of([entry]))
    together = boards_of([entry, changed(entry, 2)])
    assert len(together) == alone
    assert {row.brief.name for board in together for row in board.rows if row.brief.scores.backend == "bm25"} >= {
        "bm25 · small", "bm25 · run 2"
    }  # fmt: skip
    reading = entry.scores.rows[0].reading
    dataset = entry.scores.dataset
    for name, other in {
        "protocol": changed(entry, 2, {"protocol": "end_of_horizon"}),
        "filter": changed(entry, 2, {"question_filter": "family=d7_qa"}),
        "questions": changed(entry, 2, {"families": {"d7_qa": 3}}),
        "data set": changed(entry, 2, {"dataset": dataset.model_copy(update={"sha256": "0" * 64})}),
        "judge": changed(entry, 2, {"judge": "gpt"}),
        "version of the judge": changed(entry, 2, judged_by(entry, "a")),
        "prompts of the judge": changed(entry, 2, {"judging": Judging(models=(JUDGE_MODEL,))}),
        "budget": changed(entry, 2, row={"reading": reading.model_copy(update={"max_context_tokens": 1})}),
        "prompt": changed(entry, 2, row={"reading": reading.model_copy(update={"prompt_style": "json_context"})}),
        "isolation": changed(entry, 2, row={"isolation": "none"}),
    }.items():
        apart = boards_of([entry, other])
        assert len(apart) > alone, name
        assert all(len({row.entry.entry_id for row in board.rows}) == 1 for board in apart), name
        assert len({board.title for board in apart}) == len(apart), name


def test_the_order_of_groups_holds_and_within_one_there_is_none(entry: Entry) -> None:
    def shown(*intervals: tuple[float, float], egos: int = 8) -> list[int | None]:
        entries = []
        for number, (low, high) in enumerate(intervals):
            interval = Interval(low=low, high=high, se=0.01, method="bootstrap_egos", clusters=egos)
            score = entry.scores.rows[0].metrics["answerable"].model_copy(update={"value": (low + high) / 2})
            counts = entry.scores.rows[0].counts.model_copy(update={"planned": 10, "correct": 10, "wrong": 0})
            figures = {"metrics": {**entry.scores.rows[0].metrics, "answerable": score}, "counts": counts}
            group_entry = changed(entry, number, row={**figures, "intervals": {"answerable": interval}})
            rows = group_entry.scores.rows[:1]
            entries.append(
                group_entry.model_copy(update={"scores": group_entry.scores.model_copy(update={"rows": rows})})
            )
        (board,) = boards_of(entries)
        return [row.group for row in board.rows]

    assert shown((0.8, 0.9), (0.5, 0.7), (0.4, 0.6), (0.1, 0.2)) == [1, 2, 2, 3]
    assert shown((0.8, 0.9), (0.1, 0.85), (0.1, 0.2)) == [1, 1, 1]
    assert shown((0.8, 0.9), (0.1, 0.2), egos=7) == [None, None]


def test_hostile_names_are_text_and_no_paths(run: Loaded, tmp_path: Path) -> None:
    facts, scored = run.facts, run.scored
    dataset = facts.manifest.dataset.model_copy(update={"name": HOSTILE[0]})

    def readings() -> Iterator[Reading]:
        for number, name in enumerate(HOSTILE):
            rows = tuple(
                row.model_copy(update={"backend": name, "backend_version": name}) for row in scored.scores.rows
            )
            update = {"rows": rows, "run_id": f"run-{number}", "dataset": dataset}
            scores = scored.scores.model_copy(update=update)
            yield partial(replace, run, name=name, scored=replace(scored, scores=scores))

    entries = build(readings(), tmp_path / "site", Shown(views_of, 1, frozenset({facts.manifest.dataset.name})))
    assert len({each.entry_id for each in entries}) == len(HOSTILE)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["site"]
    for path in (tmp_path / "site").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert len(re.findall("<script", text)) == 1, path
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text), path
        assert "<h2" in text


def test_every_link_leads_to_a_page_and_a_part_of_it(entry: Entry) -> None:
    later = changed(entry, 2, {"started_at": "2999-01-01"}, row={"backend_version": "9.9"})
    files = dict(site_files([entry, later]))
    assert "Change since the version before" in files["memories/bm25.html"]
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in files.items()}
    for path, text in files.items():
        names = re.findall(r'\bid="([^"]+)"', text)
        assert len(names) == len(set(names)), path
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            target, _, part = html.unescape(link).partition("#")
            steps = [*Path(path).parent.parts, *Path(target).parts] if target else list(Path(path).parts)
            while ".." in steps:
                at = steps.index("..")
                steps[at - 1 : at + 1] = []
            there = unquote("/".join(steps))
            assert there in files, (path, link)
            assert not part or part in ids[there], (path, link)


def test_the_first_page_of_two_hundred_runs_is_small(entry: Entry) -> None:
    entries = [changed(entry, number) for number in range(200)]
    first = next(pages_of(entries, boards_of(entries)))
    assert first.path == "index.html"
    assert len(rendered(first).encode()) < 300_000


def test_a_run_twice_and_a_folder_of_something_else_are_refused(run: Loaded, tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"expected each run once"):
        build([lambda: run, lambda: run], tmp_path / "site", Shown(views_of))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(SiteError, match=r"expected a new folder, or a site"):
        build([lambda: run], tmp_path / "mine", Shown(views_of))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine"]


def test_worker_processes_give_the_same_bytes_and_the_same_error(
    run: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a process may be forked depends on the machine's cores and on threads: that is replaced here."""
    site_settings = Shown(views_of, 1, frozenset({run.facts.manifest.dataset.name}))

    def read(number: int) -> Loaded:
        if number in (7, 8):
            raise SiteError(f"run {number}: cannot be read")
        scores = run.scored.scores.model_copy(update={"run_id": f"run-{number}"})
        return replace(run, name=f"run {number}", scored=replace(run.scored, scores=scores))

    for processes in (1, 2):
        monkeypatch.setattr(building, "can_fork", lambda processes=processes: processes > 1)
        worker = Mock(side_effect=forked_each)
        monkeypatch.setattr(building, "forked_each", worker)
        build([partial(read, number) for number in range(5)], tmp_path / str(processes), site_settings)
        with pytest.raises(SiteError, match="run 7: cannot be read") as refused:
            build([partial(read, number) for number in range(9)], tmp_path / "failed", site_settings)
        assert str(refused.value) == "run 7: cannot be read"
        with pytest.raises(SiteError, match=r"expected each run once"):
            build([partial(read, number) for number in (1, 2, 3, 4, 2)], tmp_path / "failed", site_settings)
        assert worker.call_count == (3 if processes > 1 else 0)
    alone, together = ({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
                       for folder in (tmp_path / "1", tmp_path / "2"))  # fmt: skip
    assert alone == together
    assert len([path for path in alone if path.parts[0] == "questions"]) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_a_memory_is_compared_on_public_and_fresh_worlds_where_both_are_certified(run: Loaded, tmp_path: Path) -> None:
    """Ten egos; of the fresh world's right answers every second is wrong."""
    spread = [q.model_copy(update={"ego": f"e{number % 10}"}) for number, q in enumerate(run.scored.questions)]
    public_questions = tuple(spread)
    fresh_questions = tuple(
        q.model_copy(update={"outcome": Outcome.WRONG}) if q.correct and number % 2 else q
        for number, q in enumerate(spread)
    )

    def loaded(world: str, *, fresh: bool = False, certifies: tuple[str, ...] = ("scores",), **other: Any) -> Loaded:
        scores = run.scored.scores
        dataset = scores.dataset.model_copy(update={"sha256": world[0] * 64, "name": world})
        rows = tuple(row.model_copy(update=other) for row in scores.rows)
        scores = scores.model_copy(update={"run_id": f"run-{world}", "dataset": dataset, "rows": rows})
        manifest = run.facts.manifest.model_copy(update={"dataset": dataset})
        started = run.facts.started.model_copy(update={"manifest": manifest})
        scored = replace(run.scored, scores=scores, questions=fresh_questions if fresh else public_questions)
        certificate = Certificate(
            certifies=certifies, profile="p v1", result_class="c", node="n", gpu=None, key="k", vouched_by=None,
            statement_sha256=world, fresh_world=fresh, unchecked=(),
        )  # fmt: skip
        return replace(
            run, name=world, facts=replace(run.facts, started=started), scored=scored, certificate=certificate
        )

    public, fresh = loaded("a public"), loaded("f fresh", fresh=True)
    both = build([lambda: public, lambda: fresh], tmp_path / "both", Shown(views_of, 0, frozenset({"a public"})))
    assert all(entry.ego_sums for entry in both)
    page = (tmp_path / "both" / "memories" / "bm25.html").read_text(encoding="utf-8")
    table = html.unescape(page[page.index("Public against fresh worlds") :].partition("</table>")[0]).replace("−", "-")
    label = next(row.label for row in run.scored.scores.rows if row.backend == "bm25")
    compared = compare_unpaired(choose(public.scored, label), choose(fresh.scored, label))
    differences = {difference.metric: difference for difference in compared.differences}
    assert differences["all"].difference > 0 and differences["all"].interval is not None
    for metric in ("all", "answerable"):
        cells = [cell.text for cell in difference_cells(differences[metric])[1:-1]]
        assert re.search(r"</td><td[^>]*>".join(map(re.escape, cells)), table), cells
    missing = {
        "no public world": (loaded("g fresh too", fresh=True), "g fresh too"),
        "not declared public": (public, "another"),
        "for tests": (loaded("a public", certifies=()), "a public"),
        "another version": (loaded("a public", backend_version="9.9"), "a public"),
    }
    for name, (other, declared) in missing.items():
        build([partial(replace, other), lambda: fresh], tmp_path / name, Shown(views_of, 0, frozenset({declared})))
        assert "Public against" not in (tmp_path / name / "memories" / "bm25.html").read_text(encoding="utf-8"), name


def test_plain_runs_are_checked_without_the_package_that_checks_bundles(
    run: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "entry_points", lambda group: ())
    site = tmp_path / "site"
    build([lambda: run], site, Shown(views_of))
    result = check_site(site, Trust(check_bundle, views_of))
    assert result.faults == []
    assert result.unchecked == ["small: a run without a bundle, its figures are as the site states them"]
    assert [line.endswith("files are what the summaries of 1 entries give") for line in result.confirmed] == [True]
    with pytest.raises(SiteError, match=r"bundle: cannot be checked: .*; install memarena-spark"):
        check_bundle(tmp_path / "bundle", None)


# ------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM")
def test_pages_hold_at_every_width_without_a_script_and_narrow_with_it(
    browser: Browser, run: Loaded, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    build([lambda: run], tmp_path / "site", Shown(views_of, 2, frozenset({run.facts.manifest.dataset.name})))
    pages = ["index.html", *(f"{kind}/{next((tmp_path / 'site' / kind).iterdir()).name}" for kind in
             ("boards", "memories", "datasets", "entries", "questions"))]  # fmt: skip
    complaints: list[str] = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, java_script_enabled=scheme == "dark")
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        for path in pages if scheme == "light" else pages[:1]:
            page.goto((tmp_path / "site" / path).as_uri())
            for width in (1400, 800, 390):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") == width, (path, width)
        if scheme == "light":
            context.close()
    page.goto((tmp_path / "site" / "index.html").as_uri())
    before = page.locator("tbody tr:visible").count()
    page.get_by_label("memory", exact=True).select_option("bm25")
    assert 0 < page.locator("tbody tr:visible").count() < before
    page.get_by_role("button", name="asked").first.click()
    assert complaints == []
    page.set_viewport_size({"width": 1400, "height": 900})
    for path in (pages[0], pages[1], pages[4], pages[5]):
        page.goto((tmp_path / "site" / path).as_uri())
        violations = Axe().run(page).response["violations"]
        grave = [(v["id"], v["nodes"][0]["html"][:200]) for v in violations if v["impact"] in ("serious", "critical")]
        assert grave == [], path
    context.close()
