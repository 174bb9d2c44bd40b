"""Tests ``masim inspect``: the graph, an agent's day, the history of a fact, and one-line errors."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from memarena_masim.cli import main
from memarena_masim.config import WorldConfig
from memarena_masim.inspection.social_graph import SocialGraph, layout
from memarena_masim.output.generate import generate
from memarena_masim.plan.popularity import AIMS, interference_class
from memarena_masim.rng import Stream
from memarena_masim.world.build import build_world
from memarena_masim.world.graph import build_graph

CONFIG = WorldConfig(name="test", agents=7, days=3, density=0.25, question_share=2.0, seed=109)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world."""
    out = tmp_path_factory.mktemp("inspected") / "w"
    generate(CONFIG, out)
    return out


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def inspect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``masim inspect`` in this process; return exit code, standard output and standard error."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["masim", "inspect", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_overview_names_people_and_facts(world: Path, inspect: Any) -> None:
    """Each of these can be inspected in turn."""
    code, output, _ = inspect(world)
    assert code == 0
    assert "made by: offline" in output
    agent = output.split("people: ")[1].split(",")[0]
    fact = output.split("told most often: ")[1].split(" ")[0]
    assert inspect(world, "--agent", agent)[0] == 0
    assert inspect(world, "--fact", fact)[0] == 0


def test_overview_counts_questions_by_class_of_near_duplicates(world: Path, inspect: Any) -> None:
    """For each family, as the questions' metadata have them."""
    _, output, _ = inspect(world)
    shown_counts = {
        line.split(":")[0].strip(): line.split(": ")[1] for line in output.splitlines() if line.startswith("  ")
    }
    counts_by_family: dict[str, Counter[int]] = {}
    for path in (world / "eval_instances").glob("*.jsonl"):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if "interference" in row["metadata"]:
                near = interference_class(row["metadata"]["interference"])
                counts_by_family.setdefault(path.stem, Counter())[near] += 1
    counts_by_family["all"] = sum(counts_by_family.values(), Counter[int]())
    assert counts_by_family["all"].total() > 0
    assert shown_counts == {
        family: ", ".join(str(counts[aim]) for aim in AIMS) for family, counts in counts_by_family.items()
    }


def test_graph_shows_every_pair_of_a_layer_with_its_weight(world: Path, inspect: Any) -> None:
    """Each edge is listed for both people; pairs of no layer are only counted."""
    code, output, _ = inspect(world, "--graph")
    assert code == 0
    built = build_world(CONFIG)
    names = {person.agent_id: person.name for person in built.people}
    blocks = {block.splitlines()[0]: block for block in output.split("\n\n")}
    for (source, target), edge in built.edges.items():
        for here, there in ((source, target), (target, source)):
            is_shown = f"{names[there]} {edge.weight:.2f}" in blocks[f"{names[here]} ({here})"]
            assert is_shown == (edge.layer >= 0)
    counts = Counter(edge.layer for edge in built.edges.values())
    assert f"{counts[0]} close friends" in output
    assert f"{counts[-1]} of no layer" in output


def test_layers_are_recovered_from_the_weights() -> None:
    """The files have only weights; every pair's layer follows from them, at several sizes."""
    for size in (6, 20, 60):
        ids = tuple(f"p{number:02d}" for number in range(size))
        edges = build_graph(ids, Stream("layers", size))
        rows = ({"source": e.source, "target": e.target, "weight": e.weight} for e in edges.values())
        graph = SocialGraph.of(ids, rows)
        assert all(graph.layer(e.source, e.target) == e.layer for e in edges.values())


def test_drawing_has_all_people_inside_the_picture(world: Path, inspect: Any, tmp_path: Path) -> None:
    """A line per pair of a layer, a name per person, and close people nearer to each other than others."""
    svg, html = tmp_path / "graph.svg", tmp_path / "graph.html"
    code, output, _ = inspect(world, "--svg", svg, "--html", html)
    assert (code, output.split()) == (0, [str(svg), str(html)])
    root = ElementTree.fromstring(svg.read_text())
    space = "{http://www.w3.org/2000/svg}"
    built = build_world(CONFIG)
    line_count = sum(len(group.findall(f"{space}line")) for group in root.findall(f"{space}g"))
    assert line_count == sum(edge.layer >= 0 for edge in built.edges.values())
    texts = {text.text for text in root.findall(f"{space}text")}
    assert {person.name for person in built.people} <= texts
    for circle in root.findall(f"{space}circle"):
        assert 0 < float(circle.get("cx", "-1")) < 960
        assert 0 < float(circle.get("cy", "-1")) < 960
    assert svg.read_text().strip() in html.read_text()


def test_close_people_are_drawn_near_each_other() -> None:
    """On average, over a graph of fifty."""
    ids = tuple(f"p{number:02d}" for number in range(50))
    edges = build_graph(ids, Stream("drawing"))
    graph = SocialGraph.of(ids, ({"source": e.source, "target": e.target, "weight": e.weight} for e in edges.values()))
    places = dict(zip(graph.people, layout(graph), strict=True))
    spans: dict[int, list[float]] = {}
    for edge in graph.edges:
        spans.setdefault(edge.layer, []).append(float(((places[edge.one] - places[edge.other]) ** 2).sum() ** 0.5))
    means = {layer: sum(distances) / len(distances) for layer, distances in spans.items()}
    assert means[0] < means[1] < means[-1]
    assert layout(graph).tolist() == layout(graph).tolist()


def test_a_day_lists_its_sessions_in_order(world: Path, inspect: Any) -> None:
    """Every session of the agent's day, once, by time, with the statements in it."""
    sessions = rows(world / "corpus_sessions.jsonl")
    agent = Counter(
        participant for row in sessions for participant in row["participants"] if "assistant" not in participant
    ).most_common(1)[0][0]
    for day in range(CONFIG.days):
        code, output, _ = inspect(world, "--agent", agent, "--day", str(day))
        assert code == 0
        own = sorted(
            (row for row in sessions if agent in row["participants"] and int(row["start_time"]) == day),
            key=lambda row: row["start_time"],
        )
        session_ids = [
            line.rsplit("(", 1)[1].rstrip(")") for line in output.splitlines() if line.endswith(")") and "sess_" in line
        ]
        assert session_ids == [row["session_id"] for row in own]
        fact_ids = {row["fact_id"] for row in rows(world / "facts.jsonl") if row["session_id"] in session_ids}
        assert all(fact_id in output for fact_id in fact_ids)


def test_a_fact_s_history_is_in_order(world: Path, inspect: Any) -> None:
    """Who told it to whom in which words, who learned it, and every question about it."""
    facts = rows(world / "facts.jsonl")
    questions_by_fact = {
        row["metadata"]["fact_id"]: row
        for path in (world / "eval_instances").iterdir()
        for row in rows(path)
        if row["evidence_session_ids"]
    }
    sessions = rows(world / "corpus_sessions.jsonl")
    turns = {turn["turn_id"]: turn for row in sessions for turn in row["turns"]}
    start = {row["session_id"]: row["start_time"] for row in sessions}
    for fact_id in list(questions_by_fact)[:10]:
        code, output, _ = inspect(world, "--fact", fact_id)
        assert code == 0
        statements = [row for row in facts if row["fact_id"] in (fact_id, f"{fact_id}_v")]
        statements.sort(key=lambda row: start[row["session_id"]])
        quotes = [f"    “{turns[row['turn_id']]['text']}”" for row in statements]
        assert [line for line in output.splitlines() if line in quotes] == quotes
        assert questions_by_fact[fact_id]["query"].splitlines()[0] in output
        days = [int(part.split(",")[0]) for part in output.split("\n  day ")[1:]]
        assert days == sorted(days)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--agent", "nobody_here"), "--agent nobody_here: nobody of that id"),
        (("--fact", "fact_none"), "--fact fact_none: not in facts.jsonl"),
        (("--day", "1"), "--day 1: give --agent too"),
        (("--svg", "no/such/folder/x.svg"), "--svg no/such/folder/x.svg: No such file"),
    ],
)
def test_unusable_flags_are_one_line(flags: tuple[str, ...], message: str, world: Path, inspect: Any) -> None:
    """With exit code 2 and the name of the flag."""
    code, _, errors = inspect(world, *flags)
    assert code == 2
    assert errors.startswith(f"error: {message}")
    assert errors.count("\n") == 1


def test_days_out_of_range_and_assistants_say_what_there_is(world: Path, inspect: Any) -> None:
    """The message names the days that exist, and the person whose assistant was named."""
    agent = build_world(CONFIG).people[0].agent_id
    assert "has days 0 to 2" in inspect(world, "--agent", agent, "--day", "3")[2]
    assert "has days 0 to 2" in inspect(world, "--agent", agent, "--day", "-1")[2]
    assert f"--agent {agent} has the day" in inspect(world, "--agent", f"assistant_{agent}")[2]


@pytest.mark.parametrize("missing", ["pipeline_report.json", "graph_edges.jsonl", "facts.jsonl"])
def test_missing_and_broken_files_are_one_line(missing: str, world: Path, inspect: Any, tmp_path: Path) -> None:
    """A data set from elsewhere lacks such files; a broken line is named with its number."""
    copy = Path(shutil.copytree(world, tmp_path / "copy"))
    (copy / missing).unlink()
    code, _, errors = inspect(copy, "--graph") if missing == "graph_edges.jsonl" else inspect(copy)
    assert (code, errors.count("\n")) == (2, 1)
    assert missing in errors
    if missing == "facts.jsonl":
        (copy / missing).write_text('{"fact_id": "x"\n')
        assert "facts.jsonl:1" in inspect(copy)[2]


def test_the_overview_counts_the_files_and_names_one_that_is_missing(world: Path, inspect: Any, tmp_path: Path) -> None:
    """Whatever the report's counts are."""
    copy = Path(shutil.copytree(world, tmp_path / "copy"))
    corpus = rows(copy / "corpus_sessions.jsonl")
    turns = sum(len(session["turns"]) for session in corpus)
    report = json.loads((copy / "pipeline_report.json").read_text())
    assert report["counts"]["turns"] == turns
    report["counts"] |= {"sessions": 7, "turns": 7, "instances": 7}
    (copy / "pipeline_report.json").write_text(json.dumps(report))
    code, output, _ = inspect(copy)
    assert code == 0
    assert f"sessions: {len(corpus)}\nturns: {turns}\n" in output
    (copy / "eval_instances" / "d7_qa.jsonl").unlink()
    code, _, errors = inspect(copy)
    assert (code, errors.count("\n")) == (2, 1)
    assert "d7_qa.jsonl: missing" in errors
    (copy / "corpus_sessions.jsonl").write_bytes(b"\xe9")
    (copy / "facts.jsonl").write_bytes(b"\xe9")
    for flags in ((), ("--fact", "x")):
        code, _, errors = inspect(copy, *flags)
        assert (code, errors.count("\n")) == (2, 1)
