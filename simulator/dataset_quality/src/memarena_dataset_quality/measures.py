"""Every quality bar: which measure it uses, over which worlds, and which value it requires."""

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
from memarena_dataset_quality.evidence_cues import CueClassifier, Stated, stated_facts
from memarena_dataset_quality.extractive_reader import MODULE as EXTRACTIVE
from memarena_dataset_quality.met_before import met_before
from memarena_dataset_quality.position_and_length import place_figures
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
"""Where no tokenizer is at hand: what the released set has (10,305,361 tokens to 7,938,983 words)."""
MET_BEFORE_DAYS = (5, 15)
COHERENCE_PAIRS = 200
COHERENCE_WINDOWS = 40
DENSITY_TURNS = 1_000
LLM_QUESTIONS = 300
LLM_ANSWER_TOKENS = 24
NO_TRAIN = "needs --train"
NO_LLM = "needs --llm"


@dataclass(frozen=True)
class Setting:
    """What is measured: worlds, those to learn from, LoCoMo as texts and as a data set where it is at hand."""

    worlds: Sequence[World]
    train: Sequence[World]
    locomo_texts: Sequence[Sequence[str]] | None
    locomo: World | None
    llm: bool


def measure(setting: Setting, say: Callable[[str], None]) -> list[BarRow]:
    """All rows, in the order of the table. ``say`` is told what is being measured."""
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
    """Repetition and density, in medians over worlds. Repeated n-grams are held to no bar."""
    found = [text_figures(world.texts()) for world in setting.worlds]
    beside = text_figures(setting.locomo_texts) if setting.locomo_texts is not None else None

    def row(
        name: str, read: Callable[[TextFigures], float], bar: str, low: float, high: float, note: str = ""
    ) -> BarRow:
        figure = statistics.median(read(one) for one in found)
        locomo = float(read(beside)) if beside else None
        return bounded("text", name, figure, bar, low, high, locomo=locomo, note=note)

    coverages: tuple[tuple[str, Callable[[TextFigures], float]], ...] = (
        ("masked 8-gram coverage", lambda one: one.masked_8gram),
        ("6-gram coverage", lambda one: one.plain_6gram),
    )
    for name, read in coverages:
        figure = statistics.median(read(one) for one in found)
        yield reported("text", name, figure, locomo=float(read(beside)) if beside else None)
    worst = max(one.repeated_long_turns for one in found)
    locomo = float(beside.repeated_long_turns) if beside else None
    yield reported("text", "turns above 12 words that occur twice, worst world", float(worst), locomo=locomo)
    yield from _met_before_rows(setting)
    if not setting.llm:
        note = f"{TOKENS_PER_WORD} tokens a word"
        yield row("tokens per turn", lambda one: TOKENS_PER_WORD * one.words_per_turn, "60 to 90", 60, 90, note)
        yield row(
            "tokens per session", lambda one: TOKENS_PER_WORD * one.words_per_session, "700 to 850", 700, 850, note
        )


def _met_before_rows(setting: Setting) -> Iterator[BarRow]:
    """Sentences that an ego met before, word for word: over five days, and over fifteen, where the bar is."""
    locomo = met_before([setting.locomo], None) if setting.locomo else None
    beside = locomo.share if locomo else None
    few, many = (met_before(setting.worlds, days) for days in MET_BEFORE_DAYS)
    name = "sentences that an ego met before in {} days"
    if few:
        yield reported("text", name.format(MET_BEFORE_DAYS[0]), few.share, locomo=beside)
    yield bounded(
        "text", name.format(MET_BEFORE_DAYS[1]), many.share if many else None, "at most 0.20", 0, 0.2, locomo=beside,
        note=f"{many.sentences:,} sentences" if many else f"no world of {MET_BEFORE_DAYS[1]} days",
    )  # fmt: skip


def take_up_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether a turn takes up the turn before it, more than it would any other turn."""
    group = "taking up the turn before"
    found = take_up(setting.worlds)
    beside = take_up([setting.locomo]) if setting.locomo else None
    if found:
        yield reported(group, "content word in common", found.before, locomo=beside.before if beside else None)
    name, bar = "content word in common, above a random turn's", "at least LoCoMo's"
    if found is None or beside is None:
        note = "no turn after another" if found is None else "LoCoMo is not at hand"
        yield BarRow(group, name, None, bar, None, note=note)
        return
    yield bounded(
        group, name, found.above_chance, bar, beside.above_chance, 1, locomo=beside.above_chance,
        note=f"{found.turns:,} turns",
    )  # fmt: skip


def cue_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether a turn shows that it will be asked after: by its words, place or length."""
    group = "what gives questions away"
    classifier = _classifier(setting.train)
    area = classifier.area([stated_facts(world) for world in setting.worlds]) if classifier else None
    yield bounded(group, "AUC of asked facts", area, "at most 0.55", 0, 0.55, note="" if classifier else NO_TRAIN)
    found = place_figures(setting.worlds)
    beside = place_figures([setting.locomo]) if setting.locomo else None
    yield bounded(
        group, "evidence in its fullest tenth of a session", found.worst_decile if found else None, "at most 0.15",
        0, 0.15, locomo=beside.worst_decile if beside else None,
    )  # fmt: skip
    yield bounded(
        group, "median length, evidence to other turns", found.length_ratio if found else None, "0.9 to 1.1",
        0.9, 1.1, locomo=beside.length_ratio if beside else None,
    )  # fmt: skip


def specific_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether turns with something to remember stand out from all others, names and digits masked."""
    group = "what stands out without a question"
    for name, chosen, bar, most in (
        ("turns with planned statements against others, AUC", specific.planned_turns, "at most 0.85", 0.85),
        ("evidence against other turns, AUC", specific.evidence_turns, "at most 0.80", 0.80),
    ):
        area = specific.told_apart(setting.train, setting.worlds, chosen) if setting.train else None
        beside = specific.told_apart_within(setting.locomo, chosen) if setting.locomo else None
        yield bounded(group, name, area, bar, 0, most, locomo=beside, note="" if setting.train else NO_TRAIN)
    found = specific.digits(setting.worlds)
    ratio = found.others / found.stating if found and found.stating else None
    note = f"{found.others:.3f} of other turns, {found.stating:.3f} of those that state" if found else "no statements"
    yield bounded(group, "digits in other turns to those that state", ratio, "at least 0.5", 0.5, 99, note=note)


def _classifier(train: Sequence[World]) -> CueClassifier | None:
    statements: list[Stated] = [one for world in train for one in stated_facts(world)]
    return CueClassifier(statements) if any(one.asked for one in statements) else None


def history_rows(setting: Setting) -> Iterator[BarRow]:
    """Right answers that the order of mentions or their number gives away, and golds open to dispute."""
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
    """Whether D6 measures who is told what: policies that look at one thing, and what the words of a wish say."""
    group = "permission (D6)"
    found = permission.permission_shortcuts(setting.worlds)
    note = f"{found.items} items" if found else "no items with both actions"
    for name, figure in (
        ("by the wish alone, whoever asks, J", found.wish_alone if found else None),
        ("by the kind of asker alone, J", found.asker_alone if found else None),
        ("by whether the wish names the asker, J", found.named_alone if found else None),
        ("always tell, J", found.always if found else None),
    ):
        yield bounded(group, name, figure, "at most 0.10", -1, 0.10, note=note)
    yield bounded(
        group, "items whose fact is asked with both actions", found.crossed if found else None, "all", 1, 1, note=note
    )
    name, bar = "text, asker, evidence position above constant, points", "at most 2"
    guessed = permission.guessed_actions(setting.train, setting.worlds)
    if guessed is None:
        yield BarRow(group, name, None, bar, None, note=NO_TRAIN if not setting.train else note)
    else:
        right, constant, asked = guessed
        note = f"guesser {right:.3f}, constant {constant:.3f}, {asked} items"
        yield bounded(group, name, 100 * (right - constant), bar, -100, 2, note=note)
    read = permission_reading.read_wishes(setting.worlds)
    if read.items:
        note = f"{read.right} of {read.items}" + (f"; first: {read.misses[0]}" if read.misses else "")
        yield bounded(
            group, "actions that follow from the words alone", read.right / read.items, "at least 0.99", 0.99, 1,
            note=note, parts={"misses": list(read.misses)},
        )  # fmt: skip
    forms = min((permission_reading.wish_forms(world) for world in setting.worlds if read.items), default=0)
    if forms:
        yield bounded(group, "forms of wishes, fewest of a world", float(forms), "at least 30", 30, 10**6)


def retrieval_rows(setting: Setting) -> Iterator[BarRow]:
    """Retrieval without a question, and with its words."""
    group = "retrieval"
    classifier = _classifier(setting.train)
    blind = [one for world in setting.worlds if classifier and (one := classifier.retrieve(world))]
    ratio = None
    parts = {}
    if blind:
        recall, chance = statistics.fmean(one.recall for one in blind), statistics.fmean(one.random for one in blind)
        ratio, parts = recall / chance, {"recall": recall, "random": chance}
    yield bounded(
        group, "query-blind recall at 10, times random", ratio, "at most 3", 0, 3,
        note="" if classifier else NO_TRAIN, parts=parts,
    )  # fmt: skip
    beside = bm25_recall.recalls([setting.locomo]) if setting.locomo else {}
    for family, recall in bm25_recall.recalls(setting.worlds).items():
        yield reported(group, f"bm25 recall at 10, {family}", recall, locomo=beside.get(family))


def shortcut_rows(setting: Setting) -> Iterator[BarRow]:
    """Answers found by the form of a sentence alone, against the extractive reader; both get the gold evidence."""
    name, bar, group = "shortcut attack minus extractive reader, points", "at most 10", "shortcut attack"
    if not setting.train:
        yield BarRow(group, name, None, bar, None, note=NO_TRAIN)
        return
    attack = ShortcutAttack(setting.train)
    with ServerProcess(EXTRACTIVE) as reader:
        found = compare(attack, setting.worlds, reader)
    if found is None:
        yield BarRow(group, name, None, bar, None, note="no question whose answer is a stretch of the evidence")
        return
    note = f"attack {found.attack:.3f}, extractive {found.extractive:.3f}, {found.questions} questions"
    yield bounded(group, name, 100 * (found.attack - found.extractive), bar, -100, 10, note=note)
    for family, (guessed, read, asked) in found.by_family.items():
        note = f"attack {guessed / asked:.3f}, extractive {read / asked:.3f}, {asked} questions"
        yield bounded(group, f"  {family}", 100 * (guessed - read) / asked, bar, -100, 10, note=note)


def tuned_rows(setting: Setting) -> Iterator[BarRow]:
    """What a memory gains that learned a pack by heart: on another world of that pack, and on another pack."""
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
    yield BarRow(group, name, same.gain if same else None, NO_BAR, None, note=_tuned(same))
    note = NO_TRAIN if not setting.train else _tuned(other) if fresh else "the worlds are of the pack that was learned"
    yield bounded(group, "above bm25 on another pack, points", other.gain if other else None, bar, -100, 5, note=note)
    known_of, stated = tuned_vendor.known_frames(setting.train[:-1], setting.train[-1]) if setting.train[1:] else (0, 0)
    yield bounded(
        group, "statements whose frame other worlds of the pack have", known_of / stated if stated else None,
        "at most 0.40", 0, 0.40, note=f"{known_of} of {stated}, known from {len(setting.train) - 1} worlds"
        if stated else "two worlds to learn from are needed",
    )  # fmt: skip


def _tuned(one: tuned_vendor.Compared | None) -> str:
    if one is None:
        return "two worlds to learn from are needed"
    right = f"tuned {one.tuned / one.questions:.3f}, bm25 {one.bm25 / one.questions:.3f}"
    return f"{right}, {one.questions} questions, {one.by_rules} by rules"


def solver_rows(setting: Setting) -> Iterator[BarRow]:
    """Whether the gold follows from the evidence."""
    found = solve_worlds(setting.worlds, setting.train)
    if not found.questions:
        yield BarRow("solver", "value questions solved", None, "at least 0.99", None, note="no value question")
        return
    parts = {
        "families": {family: [right, asked] for family, (right, asked) in found.by_family.items()},
        "misses": [
            {"world": one.world, "instance": one.instance_id, "family": one.family, "query": one.query,
             "answer": one.answer, "gold": one.gold}
            for one in found.misses
        ],
    }  # fmt: skip
    short = ", ".join(
        f"{family} {right} of {asked}" for family, (right, asked) in found.by_family.items() if right < asked
    )
    note = f"{found.right} of {found.questions}" + (f"; {short}" if short else "")
    yield bounded(
        "solver", "value questions solved", found.right / found.questions, "at least 0.99", 0.99, 1,
        note=note, parts=parts,
    )  # fmt: skip


def guess_rows(setting: Setting) -> Iterator[BarRow]:
    """Guessers without context against the best constant, over all families and in each."""
    name, bar = "guesser above best constant, upper 95%, points", "at most 2"
    found = guessing.guess(setting.train, setting.worlds) if setting.train else None
    if found is None:
        yield BarRow("guessing", name, None, bar, None, note=NO_TRAIN)
        return
    few = f"; {guessing.LEAST_ITEMS} questions are wanted" if found.pooled.questions < guessing.LEAST_ITEMS else ""
    note = _guessed(found.pooled) + few
    yield bounded(
        "guessing", name, 100 * found.pooled.above_upper, bar, -100, 2, note=note, parts={"chosen": found.chosen}
    )  # fmt: skip
    for family, one in found.by_family.items():
        yield bounded("guessing", f"  {family}", 100 * one.above_upper, bar, -100, 2, note=_guessed(one))


def _guessed(found: guessing.Guessed) -> str:
    return f"guesser {found.guessed:.3f}, constant {found.constant:.3f}, {found.questions} questions"


def world_rows(setting: Setting) -> Iterator[BarRow]:
    """What validate says, and whether anybody is met asleep or behind closed doors."""
    errors, first = 0, ""
    for world in setting.worlds:
        found = validate(world.path, Profile.FULL)
        errors += len(found.errors)
        if found.errors and not first:
            first = f"first: {world.path.name}: {found.errors[0].problem}"
    yield bounded(
        "worlds", f"errors of validate, {len(setting.worlds)} worlds", float(errors), "none", 0, 0, note=first
    )
    for name, count in (("sessions with somebody asleep", asleep), ("sessions outside opening hours", outside_hours)):
        counts = [one for world in setting.worlds if (one := count(world)) is not None]
        yield bounded(
            "worlds", name, float(sum(counts)) if counts else None, "none", 0, 0,
            note="" if counts else "no schedules or hours in the files",
        )  # fmt: skip


def llm_rows(setting: Setting) -> Iterator[BarRow]:
    """What the embedded model says: does talk hang together, how dense is it."""
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
    drawn = coherence.pairs(setting.worlds, COHERENCE_PAIRS)
    figure = coherence.preference(model, drawn)
    name, note = "true next turn preferred to a random one", f"{len(drawn)} pairs"
    if setting.locomo is None:
        return bounded("embedded model", name, figure, "at least 0.65", 0.65, 1, note=f"{note}; LoCoMo is not at hand")
    beside = coherence.preference(model, coherence.pairs([setting.locomo], COHERENCE_PAIRS))
    return bounded("embedded model", name, figure, "at least LoCoMo's", beside, 1, locomo=beside, note=note)


def _bits_per_byte(setting: Setting, model: ServerProcess) -> BarRow:
    drawn = coherence.windows(setting.worlds, COHERENCE_WINDOWS)
    figure = coherence.bits_per_byte(model, drawn)
    name, bar, note = "bits per byte", "within 15% of LoCoMo's", f"{len(drawn)} windows"
    if setting.locomo is None:
        return BarRow("embedded model", name, figure, bar, None, note=f"{note}; LoCoMo is not at hand")
    beside = coherence.bits_per_byte(model, coherence.windows([setting.locomo], COHERENCE_WINDOWS))
    return bounded("embedded model", name, figure, bar, 0.85 * beside, 1.15 * beside, locomo=beside, note=note)


def _asked_without_context(setting: Setting, model: ServerProcess) -> BarRow:
    found = guessing.guess_with(
        lambda one: embedded_model.chat(model, f"Answer in a few words.\n{one.query}", LLM_ANSWER_TOKENS),
        setting.worlds,
        LLM_QUESTIONS,
    )
    name, bar = "model without context above best constant, points", "at most 2"
    if found is None:
        return BarRow("embedded model", name, None, bar, None, note="no value question")
    one = found.pooled
    note = f"model {one.guessed:.3f}, constant {one.constant:.3f}, {one.questions} questions; upper 95% bound"
    return bounded("embedded model", name, 100 * one.above_upper, bar, -100, 2, note=note)


def _density(setting: Setting, model: ServerProcess) -> Iterator[BarRow]:
    """Tokens by the model's own tokenizer: its tokens per word on a sample, times the words of all turns."""
    texts = [text for world in setting.worlds for session in world.texts() for text in session]
    sample = texts[:: max(1, len(texts) // DENSITY_TURNS)]
    rate = len(embedded_model.tokens_of(model, "\n".join(sample))) / sum(len(words(text)) for text in sample)
    found = [text_figures(world.texts()) for world in setting.worlds]
    beside = text_figures(setting.locomo_texts) if setting.locomo_texts is not None else None
    figures: tuple[tuple[str, Callable[[TextFigures], float], float, float], ...] = (
        ("tokens per turn", lambda one: one.words_per_turn, 60, 90),
        ("tokens per session", lambda one: one.words_per_session, 700, 850),
    )
    for name, read, low, high in figures:
        yield bounded(
            "embedded model", name, rate * statistics.median(read(one) for one in found), f"{low:g} to {high:g}",
            low, high, locomo=rate * read(beside) if beside else None,
            note=f"{rate:.3f} tokens a word by the model's tokenizer",
        )  # fmt: skip
