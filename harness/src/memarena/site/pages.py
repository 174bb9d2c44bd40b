"""Builds the pages of a site from the report's tables, charts and question view.

A page is data here; :mod:`memarena.site.rendering` renders it as HTML. ``up`` is the relative path from a page to the
site's folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memarena.report.brief import words_section
from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.charts.bars import error_split
from memarena.report.charts.catalogue import charts_of
from memarena.report.charts.svg import Figure
from memarena.report.document import method_sections, report_groups, summary_sections
from memarena.report.findings import findings, split_verdicts, texts, unproven
from memarena.report.layout import Section, Table
from memarena.report.parts import section_without_small
from memarena.report.question_view.records import QuestionView
from memarena.report.render.html.chapters import Part, part_of
from memarena.report.report_input import ReportInput
from memarena.report.rows import rows_of
from memarena.report.tables.grid import baseline_table
from memarena.site.boards import Board, BoardRow
from memarena.site.changes import change_sections
from memarena.site.entries import Entry, unique_slug
from memarena.site.fresh_worlds import public_against_fresh
from memarena.site.fronts import fronts_of
from memarena.site.ranking_table import ANSWERS, badge, lacking, ranking_table, row_key

MOST_ROWS = 15
"""Rows of a ranking on the first page and on the page of a data set; the ranking's page has all."""
MOST_ROWS_TOGETHER = 300
"""Rows of all rankings on the first page at most, to keep it small."""
_MEMORY_TABLES = (
    "where-wrong-answers-went-wrong", "what-the-memory-kept", "answers-that-say-nothing", "answerable-by-family",
    "dimensions", "retrieval", "permission-d6", "behaviour-on-deny-items", "ingest",
    "search-against-length-of-history", "memory-and-disk-of-backends", "energy", "deletion-apart-from-every-score",
    "failed-questions",
)  # fmt: skip
"""Keys of the report's sections that the page of a memory shows."""
_MEMORY_CHAPTERS = ("permission", "growth", "breakdowns")
"""Chapters of the report's charts that the page of a memory shows."""
_NOT_FOR_ALL = frozenset({"main-grid"})
"""Keys of the report's sections that the page of a run leaves out."""


@dataclass(frozen=True)
class Block:
    """A titled part of a page."""

    key: str
    title: str
    href: str = ""
    facets: str = ""
    """JSON of properties by which a script filters its rows and that are in no column."""
    lead: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    findings: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    traces: tuple[QuestionView, ...] = ()


@dataclass(frozen=True)
class SitePage:
    """A page: path of its file in the site's folder, and the data of its template."""

    path: str
    title: str
    blocks: tuple[Block, ...]
    lead: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    trail: tuple[tuple[str, str], ...] = ()
    footer: str = "Made by memarena site. Times are of the devices named; rows of two rankings are never compared."

    @property
    def up(self) -> str:
        """Relative path from the page to the site's folder."""
        return "../" * self.path.count("/")


def pages_of(entries: Sequence[Entry], boards: Sequence[Board]) -> Iterator[SitePage]:
    """Yield all pages but those of questions."""
    yield _index(entries, boards)
    for board in boards:
        yield _board_page(board)
    for memory in sorted({row.backend for entry in entries for row in entry.scores.rows}):
        yield _memory_page(memory, boards)
    for dataset in dict.fromkeys(board.dataset for board in boards):
        yield _dataset_page([board for board in boards if board.dataset == dataset])
    of_entry: dict[str, list[tuple[Board, BoardRow]]] = {}
    for board in boards:
        for row in board.rows:
            of_entry.setdefault(row.entry.entry_id, []).append((board, row))
    for entry in entries:
        yield _entry_page(entry, of_entry.get(entry.entry_id, []))


# ------------------------------------------------------------------ rankings


def _index(entries: Sequence[Entry], boards: Sequence[Board]) -> SitePage:
    """Return the first page: the head of every ranking, and lists of memories, data sets and runs."""
    memories = sorted({row.backend for entry in entries for row in entry.scores.rows})
    datasets = {board.dataset: board.runs[0].scores.dataset.name for board in boards}
    blocks, rows_left = [], MOST_ROWS_TOGETHER
    for board in boards:
        count = min(MOST_ROWS, rows_left, len(board.rows))
        rows_left -= count
        blocks.append(_ranking(board, "", count))
    lists = (
        Block("memories", "Memories", links=tuple((f"memories/{unique_slug(m)}.html", m) for m in memories)),
        Block("datasets", "Data sets", links=tuple((f"datasets/{sha[:12]}.html", n) for sha, n in datasets.items())),
        Block("entries", "Runs and bundles", links=tuple(_link(entry, "") for entry in entries[:MOST_ROWS_TOGETHER])),
        Block("words", "Words", facts=words_section().named_lines),
    )
    certified_count = sum(entry.certificate is not None for entry in entries)
    lead = (
        "Memories for assistants on devices, by how often the prompt holds what suffices for the right answer "
        "(answerable), then by right answers of the reader. Each ranking holds rows of one data set, reader, budget, "
        "protocol, judge and isolation.",
    )
    facts = (
        ("rows", f"{sum(len(b.rows) for b in boards):,} in {len(boards):,} rankings"),
        ("runs", f"{len(entries):,}, {certified_count:,} with a bundle that verifies"),
    )
    return SitePage("index.html", "MemArena results", (*blocks, *lists), lead, facts)


def _link(entry: Entry, up: str) -> tuple[str, str]:
    return f"{up}entries/{entry.entry_id}.html", f"{entry.name} ({badge(entry)})"


def _ranking(board: Board, up: str, most: int) -> Block:
    """Return the first ``most`` rows of a ranking with a link to its page."""
    briefs = [row.brief for row in board.rows]
    verdicts, _ = split_verdicts(findings(briefs))
    more_rows = len(board.rows) - most
    page = f"{up}boards/{board.key}.html"
    facets = {name: value for name, value in board.terms if name in ("data set", "reader", "budget")}
    return Block(
        key=board.key,
        title=board.title,
        href=page,
        facets=json.dumps(facets, ensure_ascii=False),
        lead=("; ".join(f"{name}: {value}" for name, value in board.terms[2:]),),
        verdicts=texts(verdicts) if len(briefs) <= MOST_ROWS else (),
        parts=(part_of(replace(ranking_table(board, up, most=most), title="Ranking by answerable")),) if most else (),
        links=((page, f"{more_rows:,} more rows, charts and findings" if more_rows else "Charts and findings"),),
    )


def _board_page(board: Board) -> SitePage:
    """Return the page of a ranking: all rows, findings, charts."""
    briefs = [board_row.brief for board_row in board.rows]
    verdicts, other_findings = split_verdicts(findings(briefs))
    table = part_of(replace(ranking_table(board, "../"), title="All rows, by answerable"))
    ranking = Block(
        "ranking", "Ranking", verdicts=texts(verdicts), parts=(table,), findings=texts(other_findings),
        unproven=texts(unproven(briefs)),
    )  # fmt: skip
    fronts = tuple(
        Block(f"front-{position}", f"On {device}" if device else "Quality against size", figures=figures)
        for position, (device, figures) in enumerate(fronts_of(board))
        if figures
    )
    missing = [f"{row.brief.name}: {'; '.join(lines)}" for row in board.rows if (lines := lacking(row))]
    apart = [Block("lacking", "Not certified, and what is missing", lead=tuple(missing))] if missing else []
    blocks = (ranking, *fronts, *apart)
    trail = ((f"../datasets/{board.dataset[:12]}.html", board.runs[0].scores.dataset.name),)
    return SitePage(f"boards/{board.key}.html", board.title, blocks, facts=board.terms, trail=trail)


# ------------------------------------------------------------------ a memory, a data set


def _memory_page(memory: str, boards: Sequence[Board]) -> SitePage:
    """Return the page of a memory: for each ranking its tables and charts, and the change since its last version."""
    blocks = []
    rows_by_board = [(board, [row for row in board.rows if row.brief.scores.backend == memory]) for board in boards]
    present = [(board, rows) for board, rows in rows_by_board if rows]
    for board, rows in present:
        runs = tuple(run for run_ in board.runs if (run := _of_memory(run_, memory)).scores.rows)
        sections = [part for group in report_groups(runs) for part in group.sections if part.key in _MEMORY_TABLES]
        error_chart = error_split([row.brief for row in rows], f"fig-errors-{board.key}")
        charts = charts_of(rows_of(runs), runs, f"-{board.key}")
        figures = [error_chart, *(chart.figure for chart in charts if chart.chapter in _MEMORY_CHAPTERS)]
        entries_by_run = {row.entry.scores.run_id: row.entry for row in rows}
        answers = [_questions_of(entries_by_run[run.scores.run_id], "../") for run in runs]
        numbers = {run.scores.run_id: number for number, run in enumerate(runs, 1)}
        blocks.append(
            Block(
                key=board.key,
                title=board.title,
                href=f"../boards/{board.key}.html",
                facts=board.terms[1:],
                parts=(*_shown(list(change_sections(rows)), board.key), *_shown(sections, board.key, answers)),
                figures=tuple(figure for figure in figures if figure is not None),
                links=tuple(
                    (href, f"run {numbers[row.entry.scores.run_id]}: {text}" if len(runs) > 1 else text)
                    for row in rows
                    for href, text in (_link(row.entry, "../"),)
                ),
            )
        )
    if (difference := public_against_fresh([(board, row) for board, rows in present for row in rows])) is not None:
        lead = ("Certified rows of the same version and terms. The seed of a fresh world is later than the memory.",)
        parts = tuple(_shown([difference], ""))
        blocks.insert(0, Block("fresh-worlds", "Public against fresh worlds", lead=lead, parts=parts))
    versions = sorted({row.brief.scores.backend_version or "not stated" for _, rows in present for row in rows})
    facts = (("versions", ", ".join(versions)), ("rankings", f"{len(present):,}"))
    return SitePage(f"memories/{unique_slug(memory)}.html", memory, tuple(blocks), facts=facts)


def _questions_of(entry: Entry, up: str) -> str:
    return f"{up}questions/{entry.entry_id}.html" if entry.questions else ""


def _of_memory(run: ReportInput, memory: str) -> ReportInput:
    rows = tuple(row for row in run.scores.rows if row.backend == memory)
    return replace(run, scores=run.scores.model_copy(update={"rows": rows}))


def _shown(sections: Sequence[Section], ending: str, answers: Sequence[str] = ()) -> Iterator[Part]:
    """Yield sections for the template, without shares over few questions.

    ``ending`` is appended to their ids to make them unique; ``answers``: for each run of the tables the page of its
    questions, empty if the site has none.
    """
    for section in sections:
        filtered = section_without_small(section, FEWEST_QUESTIONS)
        if filtered is not None:
            with_links = replace(filtered, table=_linked(filtered.table, answers) if filtered.table else None)
            yield part_of(replace(with_links, key=f"{filtered.key}-{ending}" if ending else filtered.key))


def _linked(table: Table, answers: Sequence[str]) -> Table:
    """Return the table with each figure linked to the answers of its run."""
    by_run = table.columns[0].title == "run"
    rows = []
    for row in table.rows:
        number = int(row[0].text) if by_run and row[0].text.isdigit() else 1
        link = answers[number - 1] if number <= len(answers) else ""
        figures = zip(row, table.columns, strict=True)
        rows.append(tuple(replace(c, link=link) if t.align == "right" and not c.is_empty else c for c, t in figures))
    return replace(table, rows=tuple(rows))


def _dataset_page(boards: Sequence[Board]) -> SitePage:
    """Return the page of a data set: its rankings and the scores achievable without memory."""
    scores = boards[0].runs[0].scores
    data = scores.dataset
    blocks = [_ranking(board, "../", min(MOST_ROWS, len(board.rows))) for board in boards]
    baselines = baseline_table([scores])
    if baselines is not None:
        lead = ("What questions alone give away: a memory's figure means something above these.",)
        blocks.append(
            Block("baselines", "Scores achievable without memory", lead=lead, parts=tuple(_shown([baselines], "x")))
        )
    facts = (
        ("sha256", data.sha256),
        ("world", f"{data.ego_count:,} egos, {data.day_count:,} days from {data.calendar_epoch}"),
        ("questions", f"{data.instance_count:,}: " + ", ".join(f"{n} {c:,}" for n, c in scores.planned.items())),
    )
    return SitePage(f"datasets/{data.sha256[:12]}.html", data.name, tuple(blocks), facts=facts)


# ------------------------------------------------------------------ an entry


def _entry_page(entry: Entry, rows: Sequence[tuple[Board, BoardRow]]) -> SitePage:
    """Return the page of a run: certificate, answers, all figures, methods."""
    run = entry.report()
    sections = [part for group in report_groups([run]) for part in group.sections if part.key not in _NOT_FOR_ALL]
    links = [(f"../memories/{unique_slug(m)}.html", m) for m in dict.fromkeys(r.brief.scores.backend for _, r in rows)]
    links += [(f"../boards/{key}.html", f"ranking {title}") for key, title in {b.key: b.title for b, _ in rows}.items()]
    blocks = (
        _certificate(entry, rows),
        _answers(entry),
        Block("in", "Where its rows are", links=tuple(links)),
        Block("figures", "All figures", parts=tuple(_shown(sections, "", [_questions_of(entry, "../")]))),
        Block("methods", "Methods and provenance", parts=tuple(_shown(method_sections([run]), ""))),
    )
    head = summary_sections([run])[0]
    submission_lines: tuple[tuple[str, str], ...] = ()
    if entry.submission is not None:
        fields = (("submitted by", entry.submission.contact), ("note", entry.submission.note))
        submission_lines = tuple((name, text) for name, text in fields if text)
    return SitePage(
        f"entries/{entry.entry_id}.html",
        entry.name,
        blocks,
        facts=(("run", entry.scores.run_id), ("device", entry.device), *submission_lines, *head.named_lines),
        warnings=head.notes,
    )


def _certificate(entry: Entry, rows: Sequence[tuple[Board, BoardRow]]) -> Block:
    """Return what the run's bundle certifies and how to verify it, or why the run is not certified."""
    certificate = entry.certificate
    if certificate is None:
        lines = tuple(f"{row.brief.name}: {'; '.join(lacking(row))}" for _, row in rows)
        return Block("certificate", "Not certified", lead=("What is missing:", *lines))
    facts = (
        ("certifies", ", ".join(certificate.certifies) or f"nothing: profile {certificate.profile} is for tests"),
        ("profile", f"{certificate.profile}, {certificate.result_class}, node {certificate.node}"),
        ("world", "fresh: its seed follows from a commitment and a beacon's later value")
        if certificate.fresh_world
        else ("world", "not a fresh one"),
        ("key", certificate.key or "unsigned"),
        ("vouched by", certificate.vouched_by or "not checked: the site was made without a file of allowed signers"),
        ("statement", f"sha256 {certificate.statement_sha256}"),
        *(("archive", f"sha256 {entry.archive_sha256}") for _ in range(entry.archive_sha256 is not None)),
        *(("not checked", line) for line in certificate.unchecked),
    )
    name = entry.entry_id
    links, commands = [], [f"memarena-spark verify {name} --allowed-signers FILE"]
    if entry.archive_sha256 is not None:
        links.append((f"../bundles/{name}.tar.gz", "the bundle"))
        commands.insert(0, f"tar xzf {name}.tar.gz")
    elif entry.submission is not None and entry.submission.bundle_url:
        links.append((entry.submission.bundle_url, "the bundle, kept by its submitter"))
    lead = () if links else ("The bundle is not published: it holds the gold of a data set that is not public.",)
    title = f"Certified: {', '.join(certificate.certifies)}" if certificate.certifies else "A bundle that verifies"
    return Block("certificate", title, facts=facts, lead=lead, commands=("\n".join(commands),), links=tuple(links))


def _answers(entry: Entry) -> Block:
    if entry.questions:
        text = f"{entry.questions:,} questions of this run, from asking to verdict"
        return Block(ANSWERS, "Answers", links=((f"../questions/{entry.entry_id}.html", text),))
    lead = "Not on this site. In the folder of the run:" if entry.public else (
        "Not on this site: the data set is not declared public. In the folder of the run:"
    )  # fmt: skip
    return Block(ANSWERS, "Answers", lead=(lead,), commands=("memarena show RUN --answers",))


def questions_page(entry: Entry, traces: Sequence[QuestionView]) -> SitePage:
    """Return the page of the traces of an entry, by row."""
    labels = [trace.answers[0].cell_id.rpartition("/")[0] for trace in traces]
    blocks = tuple(
        Block(
            row_key(label),
            label,
            traces=tuple(t for t, label_of_trace in zip(traces, labels, strict=True) if label_of_trace == label),
        )
        for label in dict.fromkeys(labels)
    )
    lead = ("A sample: wrong and failed answers first, then right ones. Open one for the way from asking to verdict.",)
    trail = ((f"../entries/{entry.entry_id}.html", entry.name),)
    return SitePage(f"questions/{entry.entry_id}.html", f"Questions of {entry.name}", blocks, lead, trail=trail)
