"""Computes every row of the table of quality bars: its measure, over which worlds, and the value it requires.

A *bar* is the value that a measure has to reach. ``masim bars`` prints the table; docs/simulator-quality.md explains
the measures and reports the figures of the worlds that MaSim makes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memarena_dataset.validate import Profile, validate

from memarena_dataset_quality import bm25_recall, coherence, embedded_model, guessing, permission_reading, tuned_vendor
from memarena_dataset_quality import history_shortcuts as history
from memarena_dataset_quality import permission_shortcuts as permission
from memarena_dataset_quality import specific_turns as specific
from memarena_dataset_quality.bar_table import NO_BAR, BarRow, bounded, reported
from memarena_dataset_quality.evidence_cues import CueClassifier, LabelledTurn, stated_facts
from memarena_dataset_quality.extractive_reader import MODULE as EXTRACTIVE
from memarena_dataset_quality.met_before import met_before
from memarena_dataset_quality.position_and_length import position_figures
from memarena_dataset_quality.repetition import TextFigures, text_figures
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.shortcut_attack import ShortcutAttack, compare
from memarena_dataset_quality.solver.solve import solve_worlds
from memarena_dataset_quality.take_up import take_up
from memarena_dataset_quality.tokenization import words
from memarena_dataset_quality.tuned_vendor import pack_of
from memarena_dataset_quality.waking_hours import asleep, outside_hours
from memarena_dataset_quality.world import World

TOKENS_PER_WORD = 1.3
"""Tokens per word of the released set (10,305,361 to 7,938,983), used if no tokenizer is at hand."""
MET_BEFORE_DAYS = (5, 15)
"""Numbers of first days over which repeated sentences are counted; only the second has a bar."""
EVIDENCE_ABOVE_LOCOMO = 0.05
"""How much more evidence may stand out than in LoCoMo, measured in the same run; 0.80 is the bar without LoCoMo."""
COHERENCE_PAIRS = 200
"""Number of pairs of turns from which a model chooses the true next turn."""
COHERENCE_WINDOWS = 40
"""Number of stretches of talk on which bits per byte are measured."""
DENSITY_TURNS = 1_000
"""About how many turns are tokenized to count the model's tokens per word."""
LLM_QUESTIONS = 300
"""Maximum number of questions that the model answers without context."""
LLM_ANSWER_TOKENS = 24
NO_TRAIN = "needs --train"
NO_LLM = "needs --llm"


@dataclass(frozen=True)
class Setting:
    """The input: worlds to measure, worlds to learn from, and LoCoMo as texts and as a data set, if it is at hand."""

    worlds: Sequence[World]
    train: Sequence[World]
    locomo_texts: Sequence[Sequence[str]] | None
    locomo: World | None
    llm: bool


def measure(setting: Setting, say: Callable[[str], None]) -> list[BarRow]:
    """Return all rows, in the order of the table. ``say`` gets a line before each group of measures."""
    table: list[BarRow] = []
    for title, rows in (
        ("text", text_rows),
        ("turns that take up the turn before", take_up_rows),
        ("questions: what gives them away", cue_rows),
        ("turns that stand out", specific_rows),
        ("questions: history shortcuts", history_rows),
        ("questions: permission", permission_rows),
        ("questions: retrieval", retrieval_rows),
        ("questions: shortcut attack", shortcut_rows),
        ("questions: a vendor tuned on a pack", tuned_rows),
        ("questions: solver", solver_rows),
        ("questions: guessing", guess_rows),
        ("worlds", world_rows),
        ("embedded model", llm_rows),
    ):
        say(f"measuring {title}")
        table += rows(setting)
    return table


def text_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield repetition and density, in medians over worlds. Repeated n-grams have no bar."""
    figures_by_world = [text_figures(world.texts()) for world in setting.worlds]
    reference = text_figures(setting.locomo_texts) if setting.locomo_texts is not None else None

    def row(
        name: str, figure_of: Callable[[TextFigures], float], bar: str, low: float, high: float, note: str = ""
    ) -> BarRow:
        figure = statistics.median(figure_of(figures) for figures in figures_by_world)
        locomo = float(figure_of(reference)) if reference else None
        return bounded("text", name, figure, bar, low, high, locomo=locomo, note=note)

    coverages: tuple[tuple[str, Callable[[TextFigures], float]], ...] = (
        ("masked 8-gram coverage", lambda figures: figures.masked_8gram),
        ("6-gram coverage", lambda figures: figures.plain_6gram),
    )
    for name, figure_of in coverages:
        figure = statistics.median(figure_of(figures) for figures in figures_by_world)
        yield reported("text", name, figure, locomo=float(figure_of(reference)) if reference else None)
    worst = max(figures.repeated_long_turns for figures in figures_by_world)
    locomo = float(reference.repeated_long_turns) if reference else None
    yield reported("text", "turns above 12 words that occur twice, worst world", float(worst), locomo=locomo)
    yield from _met_before_rows(setting)
    if not setting.llm:
        note = f"{TOKENS_PER_WORD} tokens a word"
        yield row("tokens per turn", lambda figures: TOKENS_PER_WORD * figures.words_per_turn, "60 to 90", 60, 90, note)
        yield row(
            "tokens per session",
            lambda figures: TOKENS_PER_WORD * figures.words_per_session,
            "700 to 850",
            700,
            850,
            note,
        )


def _met_before_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield the shares of sentences that an ego met before, word for word: over 5 days, and over 15, with a bar."""
    locomo = met_before([setting.locomo], None) if setting.locomo else None
    reference = locomo.share if locomo else None
    few, many = (met_before(setting.worlds, days) for days in MET_BEFORE_DAYS)
    name = "sentences that an ego met before in {} days"
    if few:
        yield reported("text", name.format(MET_BEFORE_DAYS[0]), few.share, locomo=reference)
    yield bounded(
        "text", name.format(MET_BEFORE_DAYS[1]), many.share if many else None, "at most 0.20", 0, 0.2, locomo=reference,
        note=f"{many.sentences:,} sentences" if many else f"no world of {MET_BEFORE_DAYS[1]} days",
    )  # fmt: skip


def take_up_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether a turn takes up the turn before it, more than it would any other turn."""
    group = "taking up the turn before"
    shares = take_up(setting.worlds)
    reference = take_up([setting.locomo]) if setting.locomo else None
    if shares:
        yield reported(group, "content word in common", shares.before, locomo=reference.before if reference else None)
    name, bar = "content word in common, above a random turn's", "at least LoCoMo's"
    if shares is None or reference is None:
        note = "no turn after another" if shares is None else "LoCoMo is not at hand"
        yield BarRow(group, name, None, bar, None, note=note)
        return
    yield bounded(
        group, name, shares.above_chance, bar, reference.above_chance, 1, locomo=reference.above_chance,
        note=f"{shares.turns:,} turns",
    )  # fmt: skip


def cue_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether a turn shows that it will be asked after: by its words, its position or its length."""
    group = "what gives questions away"
    classifier = _classifier(setting.train)
    area = classifier.area([stated_facts(world) for world in setting.worlds]) if classifier else None
    yield bounded(group, "AUC of asked facts", area, "at most 0.55", 0, 0.55, note="" if classifier else NO_TRAIN)
    figures = position_figures(setting.worlds)
    reference = position_figures([setting.locomo]) if setting.locomo else None
    yield bounded(
        group, "evidence in its fullest tenth of a session", figures.worst_decile if figures else None, "at most 0.15",
        0, 0.15, locomo=reference.worst_decile if reference else None,
    )  # fmt: skip
    yield bounded(
        group, "median length, evidence to other turns", figures.length_ratio if figures else None, "0.9 to 1.1",
        0.9, 1.1, locomo=reference.length_ratio if reference else None,
    )  # fmt: skip


def specific_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether turns with something to remember stand out from all others, names and digits masked."""
    group = "what stands out without a question"
    for name, chosen, most, above in (
        ("turns with planned statements against others, AUC", specific.planned_turns, 0.85, None),
        ("evidence against other turns, AUC", specific.evidence_turns, 0.80, EVIDENCE_ABOVE_LOCOMO),
    ):
        area = specific.area_apart(setting.train, setting.worlds, chosen) if setting.train else None
        reference = specific.area_within(setting.locomo, chosen) if setting.locomo else None
        to_locomo = reference + above if reference is not None and above is not None else None
        bar = f"at most {most:.2f}" if to_locomo is None else f"at most LoCoMo's + {above:g}"
        note = "" if setting.train else NO_TRAIN
        yield bounded(group, name, area, bar, 0, to_locomo or most, locomo=reference, note=note)
    shares = specific.digits(setting.worlds)
    ratio = shares.others / shares.stating if shares and shares.stating else None
    note = (
        f"{shares.others:.3f} of other turns, {shares.stating:.3f} of those that state" if shares else "no statements"
    )
    yield bounded(group, "digits in other turns to those that state", ratio, "at least 0.5", 0.5, 99, note=note)


def _classifier(train: Sequence[World]) -> CueClassifier | None:
    statements: list[LabelledTurn] = [statement for world in train for statement in stated_facts(world)]
    return CueClassifier(statements) if any(statement.asked for statement in statements) else None


def history_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield right answers that follow from the order or number of mentions, and golds that can be disputed."""
    group = "history shortcuts"
    cloze = history.cloze_shortcuts(setting.worlds)
    note = f"{cloze.questions} questions" if cloze else "no cloze question"
    for name, figure in (
        ("D1 by the option mentioned last", cloze.last if cloze else None),
        ("D1 by the option mentioned most", cloze.most_often if cloze else None),
        ("D1 by the option mentioned most by or about whom", cloze.of_the_person if cloze else None),
    ):
        yield bounded(group, name, figure, "at most 0.25", 0, 0.25, note=note)
    for name, count in (
        ("D4 references to one of two things alike", history.ambiguous_references(setting.worlds)),
        ("D3 dates told by the week", history.vague_dates(setting.worlds)),
    ):
        note = f"of {count[1]} questions" if count else "no such question, or no planned statements"
        yield bounded(group, name, float(count[0]) if count else None, "none", 0, 0, note=note)


def permission_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield whether D6 measures who may know what: policies that see one thing, and rules that read the wish."""
    group = "permission (D6)"
    shortcuts = permission.permission_shortcuts(setting.worlds)
    note = f"{shortcuts.items} items" if shortcuts else "no items with both actions"
    for name, figure in (
        ("by the wish alone, whoever asks, J", shortcuts.wish_alone if shortcuts else None),
        ("by the kind of asker alone, J", shortcuts.asker_alone if shortcuts else None),
        ("by whether the wish names the asker, J", shortcuts.named_alone if shortcuts else None),
        ("always tell, J", shortcuts.always if shortcuts else None),
    ):
        yield bounded(group, name, figure, "at most 0.10", -1, 0.10, note=note)
    yield bounded(
        group,
        "items whose fact is asked with both actions",
        shortcuts.crossed if shortcuts else None,
        "all",
        1,
        1,
        note=note,
    )
    name, bar = "text, asker, evidence position above constant, points", "at most 2"
    guessed = permission.guessed_actions(setting.train, setting.worlds)
    if guessed is None:
        yield BarRow(group, name, None, bar, None, note=NO_TRAIN if not setting.train else note)
    else:
        right, constant, items = guessed
        note = f"guesser {right:.3f}, constant {constant:.3f}, {items} items"
        yield bounded(group, name, 100 * (right - constant), bar, -100, 2, note=note)
    wishes = permission_reading.read_wishes(setting.worlds)
    if wishes.items:
        note = f"{wishes.right} of {wishes.items}" + (f"; first: {wishes.misses[0]}" if wishes.misses else "")
        yield bounded(
            group, "actions that follow from the words alone", wishes.right / wishes.items, "at least 0.99", 0.99, 1,
            note=note, parts={"misses": list(wishes.misses)},
        )  # fmt: skip
    forms = min((permission_reading.wish_forms(world) for world in setting.worlds if wishes.items), default=0)
    if forms:
        yield bounded(group, "forms of wishes, fewest of a world", float(forms), "at least 30", 30, 10**6)


def retrieval_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield retrieval without a question, and with the question's words."""
    group = "retrieval"
    classifier = _classifier(setting.train)
    blind = [retrieval for world in setting.worlds if classifier and (retrieval := classifier.retrieve(world))]
    ratio = None
    parts = {}
    if blind:
        recall, chance = (
            statistics.fmean(retrieval.recall for retrieval in blind),
            statistics.fmean(retrieval.random for retrieval in blind),
        )
        ratio, parts = recall / chance, {"recall": recall, "random": chance}
    yield bounded(
        group, "query-blind recall at 10, times random", ratio, "at most 3", 0, 3,
        note="" if classifier else NO_TRAIN, parts=parts,
    )  # fmt: skip
    reference = bm25_recall.recalls([setting.locomo]) if setting.locomo else {}
    for family, recall in bm25_recall.recalls(setting.worlds).items():
        yield reported(group, f"bm25 recall at 10, {family}", recall, locomo=reference.get(family))


def shortcut_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield the gain of a shortcut by the form of sentences over the extractive reader, both with the gold evidence."""
    name, bar, group = "shortcut attack minus extractive reader, points", "at most 10", "shortcut attack"
    if not setting.train:
        yield BarRow(group, name, None, bar, None, note=NO_TRAIN)
        return
    attack = ShortcutAttack(setting.train)
    with ServerProcess(EXTRACTIVE) as reader:
        result = compare(attack, setting.worlds, reader)
    if result is None:
        yield BarRow(group, name, None, bar, None, note="no question whose answer is a stretch of the evidence")
        return
    note = f"attack {result.attack:.3f}, extractive {result.extractive:.3f}, {result.questions} questions"
    yield bounded(group, name, 100 * (result.attack - result.extractive), bar, -100, 10, note=note)
    for family, (guessed, by_reader, questions) in result.by_family.items():
        note = f"attack {guessed / questions:.3f}, extractive {by_reader / questions:.3f}, {questions} questions"
        yield bounded(group, f"  {family}", 100 * (guessed - by_reader) / questions, bar, -100, 10, note=note)


def tuned_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield the gain of a memory that learned a pack by heart: on another world of that pack, and on another pack."""
    group, bar = "tuned vendor", "at most 5"
    others = {pack_of(world) for world in setting.train}
    known = [world for world in setting.worlds if pack_of(world) in others]
    fresh = [world for world in setting.worlds if pack_of(world) not in others]
    with ServerProcess(EXTRACTIVE) as reader:
        if known:
            same = tuned_vendor.compare(setting.train, known, reader)
        else:
            same = tuned_vendor.compare(setting.train[:-1], setting.train[-1:], reader) if setting.train[1:] else None
        other = tuned_vendor.compare(setting.train, fresh, reader) if setting.train and fresh else None
    name = "above bm25 on a world of the pack it learned, points"
    yield BarRow(group, name, same.gain if same else None, NO_BAR, None, note=_tuned_note(same))
    note = (
        NO_TRAIN
        if not setting.train
        else _tuned_note(other)
        if fresh
        else "the worlds are of the pack that was learned"
    )
    yield bounded(group, "above bm25 on another pack, points", other.gain if other else None, bar, -100, 5, note=note)
    known_of, frames = tuned_vendor.known_frames(setting.train[:-1], setting.train[-1]) if setting.train[1:] else (0, 0)
    yield bounded(
        group, "statements whose frame other worlds of the pack have", known_of / frames if frames else None,
        "at most 0.40", 0, 0.40, note=f"{known_of} of {frames}, known from {len(setting.train) - 1} worlds"
        if frames else "two worlds to learn from are needed",
    )  # fmt: skip


def _tuned_note(result: tuned_vendor.Compared | None) -> str:
    if result is None:
        return "two worlds to learn from are needed"
    right = f"tuned {result.tuned / result.questions:.3f}, bm25 {result.bm25 / result.questions:.3f}"
    return f"{right}, {result.questions} questions, {result.by_rules} by rules"


def solver_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether the gold follows from the evidence."""
    result = solve_worlds(setting.worlds, setting.train)
    if not result.questions:
        yield BarRow("solver", "value questions solved", None, "at least 0.99", None, note="no value question")
        return
    parts = {
        "families": {family: [right, questions] for family, (right, questions) in result.by_family.items()},
        "misses": [
            {"world": miss.world, "instance": miss.instance_id, "family": miss.family, "query": miss.query,
             "answer": miss.answer, "gold": miss.gold}
            for miss in result.misses
        ],
    }  # fmt: skip
    short = ", ".join(
        f"{family} {right} of {questions}"
        for family, (right, questions) in result.by_family.items()
        if right < questions
    )
    note = f"{result.right} of {result.questions}" + (f"; {short}" if short else "")
    yield bounded(
        "solver", "value questions solved", result.right / result.questions, "at least 0.99", 0.99, 1,
        note=note, parts=parts,
    )  # fmt: skip


def guess_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield guessers without context against the best constant, over all families and in each."""
    name, bar = "guesser above best constant, upper 95%, points", "at most 2"
    guesses = guessing.guess(setting.train, setting.worlds) if setting.train else None
    if guesses is None:
        yield BarRow("guessing", name, None, bar, None, note=NO_TRAIN)
        return
    few = f"; {guessing.LEAST_ITEMS} questions are wanted" if guesses.pooled.questions < guessing.LEAST_ITEMS else ""
    note = _guess_note(guesses.pooled) + few
    yield bounded(
        "guessing", name, 100 * guesses.pooled.above_upper, bar, -100, 2, note=note, parts={"chosen": guesses.chosen}
    )  # fmt: skip
    for family, guess in guesses.by_family.items():
        yield bounded("guessing", f"  {family}", 100 * guess.above_upper, bar, -100, 2, note=_guess_note(guess))


def _guess_note(guess: guessing.Guessed) -> str:
    return f"guesser {guess.guessed:.3f}, constant {guess.constant:.3f}, {guess.questions} questions"


def world_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield the errors of ``validate``, and the sessions in which a person is asleep or the place is closed."""
    errors, first = 0, ""
    for world in setting.worlds:
        validation = validate(world.path, Profile.FULL)
        errors += len(validation.errors)
        if validation.errors and not first:
            first = f"first: {world.path.name}: {validation.errors[0].problem}"
    yield bounded(
        "worlds", f"errors of validate, {len(setting.worlds)} worlds", float(errors), "none", 0, 0, note=first
    )
    for name, count in (("sessions with somebody asleep", asleep), ("sessions outside opening hours", outside_hours)):
        counts = [number for world in setting.worlds if (number := count(world)) is not None]
        yield bounded(
            "worlds", name, float(sum(counts)) if counts else None, "none", 0, 0,
            note="" if counts else "no schedules or hours in the files",
        )  # fmt: skip


def llm_rows(setting: Setting) -> Iterator[BarRow]:
    """Yield the embedded model's measures: whether turns follow from each other, and how dense the text is."""
    group = "embedded model"
    if not setting.llm:
        yield BarRow(group, "true next turn preferred to a random one", None, "at least LoCoMo's", None, note=NO_LLM)
        return
    with embedded_model.embedded_model() as model:
        yield _next_turns(setting, model)
        yield _bits_per_byte(setting, model)
        yield _asked_without_context(setting, model)
        yield from _density(setting, model)


def _next_turns(setting: Setting, model: ServerProcess) -> BarRow:
    pairs = coherence.pairs(setting.worlds, COHERENCE_PAIRS)
    figure = coherence.preference(model, pairs)
    name, note = "true next turn preferred to a random one", f"{len(pairs)} pairs"
    if setting.locomo is None:
        return bounded("embedded model", name, figure, "at least 0.65", 0.65, 1, note=f"{note}; LoCoMo is not at hand")
    reference = coherence.preference(model, coherence.pairs([setting.locomo], COHERENCE_PAIRS))
    return bounded("embedded model", name, figure, "at least LoCoMo's", reference, 1, locomo=reference, note=note)


def _bits_per_byte(setting: Setting, model: ServerProcess) -> BarRow:
    windows = coherence.windows(setting.worlds, COHERENCE_WINDOWS)
    figure = coherence.bits_per_byte(model, windows)
    name, bar, note = "bits per byte", "within 15% of LoCoMo's", f"{len(windows)} windows"
    if setting.locomo is None:
        return BarRow("embedded model", name, figure, bar, None, note=f"{note}; LoCoMo is not at hand")
    reference = coherence.bits_per_byte(model, coherence.windows([setting.locomo], COHERENCE_WINDOWS))
    return bounded("embedded model", name, figure, bar, 0.85 * reference, 1.15 * reference, locomo=reference, note=note)


def _asked_without_context(setting: Setting, model: ServerProcess) -> BarRow:
    guesses = guessing.guess_with(
        lambda instance: embedded_model.chat(model, f"Answer in a few words.\n{instance.query}", LLM_ANSWER_TOKENS),
        setting.worlds,
        LLM_QUESTIONS,
    )
    name, bar = "model without context above best constant, points", "at most 2"
    if guesses is None:
        return BarRow("embedded model", name, None, bar, None, note="no value question")
    pooled = guesses.pooled
    note = f"model {pooled.guessed:.3f}, constant {pooled.constant:.3f}, {pooled.questions} questions; upper 95% bound"
    return bounded("embedded model", name, 100 * pooled.above_upper, bar, -100, 2, note=note)


def _density(setting: Setting, model: ServerProcess) -> Iterator[BarRow]:
    """Yield tokens per turn and session: the model's tokens per word on a sample, times the words of all turns."""
    texts = [text for world in setting.worlds for session in world.texts() for text in session]
    sample = texts[:: max(1, len(texts) // DENSITY_TURNS)]
    rate = len(embedded_model.tokens_of(model, "\n".join(sample))) / sum(len(words(text)) for text in sample)
    figures_by_world = [text_figures(world.texts()) for world in setting.worlds]
    reference = text_figures(setting.locomo_texts) if setting.locomo_texts is not None else None
    figures: tuple[tuple[str, Callable[[TextFigures], float], float, float], ...] = (
        ("tokens per turn", lambda figures: figures.words_per_turn, 60, 90),
        ("tokens per session", lambda figures: figures.words_per_session, 700, 850),
    )
    for name, figure_of, low, high in figures:
        tokens = rate * statistics.median(figure_of(figures) for figures in figures_by_world)
        yield bounded(
            "embedded model", name, tokens, f"{low:g} to {high:g}", low, high,
            locomo=rate * figure_of(reference) if reference else None,
            note=f"{rate:.3f} tokens a word by the model's tokenizer",
        )  # fmt: skip
