"""Backends with one planted defect each, by the names of defects.toml."""

from __future__ import annotations

from grpc_health.v1 import health_pb2

from tests.conformance import broken_days as days
from tests.conformance import broken_memories as memories
from tests.conformance import broken_wire as wire
from tests.conformance.sound import Parts

BROKEN: dict[str, Parts] = {
    "leaks": Parts(memory=memories.Leaks),
    "folds-names": Parts(memory=memories.FoldsNames),
    "forgets-on-replay": Parts(engine=days.ForgetsOnReplay),
    "forgets-batch-ids": Parts(store=days.ForgetsBatchIds),
    "doubles-on-replay": Parts(engine=days.DoublesOnReplay),
    "replaces-on-conflict": Parts(engine=days.ReplacesOnConflict),
    "keeps-cancelled-days": Parts(engine=days.KeepsCancelledDays),
    "needs-no-trailer": Parts(engine=days.NeedsNoTrailer),
    "any-digest": Parts(engine=days.AnyDigest),
    "any-counts": Parts(engine=days.AnyCounts),
    "digest-of-normal-form": Parts(engine=days.DigestOfNormalForm),
    "days-go-back": Parts(store=days.DaysGoBack),
    "keeps-failed-batches": Parts(engine=days.KeepsFailedBatches),
    "refuses-empty-days": Parts(memory=memories.RefusesEmptyDays),
    "last-frame-only": Parts(engine=days.LastFrameOnly),
    "normalises-text": Parts(memory=memories.NormalisesText),
    "drops-emoji": Parts(memory=memories.DropsEmoji),
    "not-ready-on-return": Parts(memory=memories.NotReadyOnReturn),
    "empty-search": Parts(memory=memories.EmptySearch),
    "answers-from-the-future": Parts(engine=days.AnswersFromTheFuture),
    "time-travel-sees-all": Parts(memory=memories.TimeTravelSeesAll),
    "mutable-search": Parts(memory=memories.MutableSearch),
    "ignores-max-items": Parts(memory=memories.IgnoresMaxItems, engine=days.Unchecked),
    "ignores-budget": Parts(memory=memories.IgnoresBudget, engine=days.Unchecked),
    "no-sources": Parts(memory=memories.NoSources),
    "counts-letters": Parts(memory=memories.CountsLetters, engine=days.Unchecked),
    "names-neighbours": Parts(memory=memories.NamesNeighbours),
    "any-option": Parts(servicer=wire.AnyOption),
    "hangs-on-strangers": Parts(memory=memories.HangsOnStrangers),
    "ignores-deadlines": Parts(engine=days.IgnoresDeadlines),
    "wrong-code": Parts(engine=days.WrongCode),
    "no-bad-request": Parts(servicer=wire.NoBadRequest),
    "fails-at-the-limit": Parts(engine=days.FailsAtTheLimit),
    "accepts-above-the-limit": Parts(servicer=wire.AcceptsAboveTheLimit),
    "response-too-large": Parts(servicer=wire.ResponseTooLarge),
    "reset-keeps": Parts(engine=days.ResetKeeps),
    "never-serving": Parts(status=health_pb2.HealthCheckResponse.NOT_SERVING),
    "serving-too-early": Parts(servicer=wire.ServingTooEarly),
    "knows-every-service": Parts(health=wire.KnowsEveryService),
    "describe-changes": Parts(servicer=wire.DescribeChanges),
    "kind-of-its-own": Parts(servicer=wire.KindOfItsOwn),
    "health-of-its-own": Parts(status=wire.UNKNOWN_NUMBER),
    "finish-of-its-own": Parts(servicer=wire.FinishOfItsOwn),
    "uses-token-after-return": Parts(servicer=wire.UsesTokenAfterReturn),
    "retrieved-late": Parts(servicer=wire.RetrievedLate),
    "completed-first": Parts(servicer=wire.CompletedFirst),
    "strips-answers": Parts(servicer=wire.StripsAnswers),
    "overfills-window": Parts(servicer=wire.OverfillsWindow),
    "uses-evidence": Parts(memory=memories.UsesEvidence, servicer=wire.LetsEvidenceIn),
}
