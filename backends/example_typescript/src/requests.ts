/** What a question must be before it is worked on (SPEC.md SRC, ANS). Every function throws CallError. */

import * as checks from './checks.js';
import { checkModelAccess } from './day.js';
import { invalid } from './errors.js';
import { QUERY_TEXT_BYTES } from './limits.js';
import { MODEL_ROLE, REQUESTER } from './wire.js';
import type { AnswerRequest, Model, ModelAccess, Reading, Requester, SearchRequest } from './wire.js';

export function checkQuestion(request: SearchRequest): void {
  checks.id('namespace', request.namespace);
  checks.id('query_id', request.query_id);
  checks.requiredText('text', request.text, QUERY_TEXT_BYTES);
  checks.moment('asked_at', request.asked_at);
  if (request.requester === undefined) {
    throw invalid('requester', 'is required');
  }
  checkRequester(request.requester);
  if (request.options.length > 0) {
    throw invalid('options', `${request.options[0]?.key} is not declared; no option is`);
  }
  if (request.model_access !== undefined) {
    checkModelAccess('model_access', request.model_access);
  }
  if (request.privileged_evidence !== undefined) {
    throw invalid('privileged_evidence', 'this backend is no diagnostic and must not see evidence');
  }
}

function checkRequester(requester: Requester): void {
  if (!Object.values<number>(REQUESTER).includes(requester.kind)) {
    throw invalid('requester.kind', 'expected the owner, a known person or an anonymous one');
  }
  if (requester.kind === REQUESTER.KNOWN_PERSON) {
    checks.id('requester.participant_id', requester.participant_id);
    checks.requiredText('requester.display_name', requester.display_name);
    checks.text('requester.relationship', requester.relationship);
    return;
  }
  for (const name of ['participant_id', 'display_name', 'relationship'] as const) {
    if (requester[name] !== '') {
      throw invalid(`requester.${name}`, 'must be empty unless the requester is a known person');
    }
  }
}

/** A request for an answer with everything that it needs. */
export interface CheckedAnswer { search: SearchRequest; reading: Reading; access: ModelAccess; model: Model }

export function checkAnswer(request: AnswerRequest): CheckedAnswer {
  const { search, reading } = request;
  if (search === undefined) {
    throw invalid('search', 'is required');
  }
  if (reading === undefined) {
    throw invalid('reading', 'is required');
  }
  if (search.model_access === undefined) {
    throw invalid('search.model_access', 'is required: without a reader there is no answer');
  }
  checks.requiredText('reading.model', reading.model);
  const model = search.model_access.models.find((each) => each.name === reading.model);
  if (model === undefined || model.role !== MODEL_ROLE.READER) {
    throw invalid('reading.model', 'is no reader among the models of search.model_access');
  }
  if (reading.max_tokens < 1) {
    throw invalid('reading.max_tokens', 'expected at least 1');
  }
  if (!(Number.isFinite(reading.temperature) && reading.temperature >= 0)) {
    throw invalid('reading.temperature', 'expected a number of at least 0');
  }
  return { search, reading, access: search.model_access, model };
}
