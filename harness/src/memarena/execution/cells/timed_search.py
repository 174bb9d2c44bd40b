"""Times Search apart from the questions: the same queries after different numbers of ingested days.

``memarena latency growth`` shows with it how Search slows down as a history grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memarena_dataset.io.reading import Dataset

from memarena.client.backend import BackendClient
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.cells.context import AskContext
from memarena.execution.cells.messages import search_request
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.execution.planning.questions import rfc3339
from memarena.gateway import CallContext
from memarena.log.records import Question, SearchesTimed

_WARM_UP = 3
"""Searches before those that are timed, as a memory may still be busy with the last day."""


def time_searches(
    context: AskContext,
    client: BackendClient,
    dataset: Dataset,
    questions: Sequence[Question],
    ids: NamespaceIds,
    day: int,
    searches: int,
) -> SearchesTimed:
    """Search ``searches`` times over the words of ``questions`` in turn, as if each were asked after ``day``."""
    asked_at = rfc3339(dataset, day + 1)
    spans: list[int] = []
    failures: Counter[str] = Counter()
    for number in range(-_WARM_UP, searches):
        question = questions[number % len(questions)].model_copy(update={"day": day, "asked_at": asked_at})
        call = CallContext("search", cell_id=context.cell.cell_id, ego=question.instance.ego_agent_id, day=day)
        token = context.begin(call)
        request = search_request(question, context.cell.reading, ids, context.cell.backend_options.items())
        request.model_access.CopyFrom(context.access(token, "reader"))
        try:
            span = client.search(request).duration_ns
        except BackendCallError as error:
            failures[error.code] += 1
        except BackendContractError:
            failures["CONTRACT"] += 1
        else:
            if number >= 0:
                spans.append(span)
        finally:
            context.gateway.revoke(token)
    return SearchesTimed(
        cell_id=context.cell.cell_id,
        ego=questions[0].instance.ego_agent_id,
        namespace=ids.namespace,
        day=day,
        queries=min(len(questions), searches),
        search_ns=tuple(spans),
        failures=dict(failures),
    )
