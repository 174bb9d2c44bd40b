/** The five calls of the contract. */

import { status } from '@grpc/grpc-js';
import type {
  ServerReadableStream, ServerUnaryCall, ServerWritableStream, sendUnaryData, UntypedServiceImplementation,
} from '@grpc/grpc-js';
import * as checks from './checks.js';
import { DIGEST_VERSION } from './digest.js';
import type { Day } from './day.js';
import { DayAssembler } from './day.js';
import { CallError, asCallError } from './errors.js';
import { RESPONSE_BYTES } from './limits.js';
import { Pending } from './pending.js';
import { ask, promptFor } from './reader.js';
import { checkAnswer, checkQuestion } from './requests.js';
import { search } from './search.js';
import type { Store } from './store.js';
import { CAPABILITY, PROMPT_STYLE, encode, read } from './wire.js';
import type { AnswerRequest, Incoming, IngestRequest, MemoryItem, SearchRequest } from './wire.js';

const RESERVED_BYTES = 1024;
/** A tag and a length before an item within its response. */
const ITEM_FRAME_BYTES = 6;

const DESCRIPTION = {
  name: 'example_typescript',
  version: '0.1.0',
  contract_version: '1.0',
  kind: 1,
  capabilities: [CAPABILITY.ANSWER, CAPABILITY.TIME_TRAVEL, CAPABILITY.PROVENANCE, CAPABILITY.DURABLE],
  token_counting: 1,
  preferred_prompt_style: PROMPT_STYLE.TEXT_SESSIONS,
  digest_versions: [DIGEST_VERSION],
  retention: 1,
};

interface Found { items: MemoryItem[]; visible_through_day: number }

export class Backend {
  private readonly pending = new Pending();

  constructor(private readonly store: Store) {}

  /** The calls by name, as grpc-js registers them. */
  implementation(): UntypedServiceImplementation {
    return {
      Describe: unary<object>(() => DESCRIPTION),
      Ingest: (call: ServerReadableStream<Incoming<IngestRequest>, object>, reply: sendUnaryData<object>) =>
        this.ingest(call, reply),
      Search: unary<SearchRequest>((request) => this.find(request)),
      Answer: (call: ServerWritableStream<Incoming<AnswerRequest>, object>) => void this.answer(call),
      Reset: unary<{ namespace: string }>((request) => this.reset(request.namespace)),
    };
  }

  /** One day: frames are collected, and what they make is committed when the stream has ended. */
  private ingest(call: ServerReadableStream<Incoming<IngestRequest>, object>, reply: sendUnaryData<object>): void {
    const assembler = new DayAssembler();
    let leave: (() => void) | undefined;
    let over = false;
    const end = (error: unknown, response?: object): void => {
      if (!over) {
        over = true;
        leave?.();
        reply(error === null ? null : asCallError(error).toServiceError(), response ?? null);
      }
    };
    const guarded = (action: () => void): void => {
      if (!over) {
        try {
          action();
        } catch (error) {
          end(error);
        }
      }
    };
    call.on('data', (frame: Incoming<IngestRequest>) => guarded(() => {
      assembler.add(read(frame));
      if (leave === undefined && assembler.header !== undefined) {
        leave = this.pending.enterAlone(assembler.header.namespace);
        this.checkOrder(assembler.header.namespace, assembler.header.batch_id, assembler.header.day_index);
      }
    }));
    // A stream that the caller reset ends as one that it closed; that it was reset is known a moment later.
    call.on('end', () => setImmediate(() => guarded(() => {
      if (!call.cancelled) {
        end(null, this.commit(assembler.finish()));
      }
    })));
    call.on('error', (error) => guarded(() => end(error)));
    // Cancelled by the caller, or by its deadline: nothing that has arrived counts.
    call.on('cancelled', () => end(new CallError(status.CANCELLED, 'the caller has gone')));
  }

  private checkOrder(namespace: string, batchId: string, index: number): void {
    const days = this.store.days(namespace);
    const last = days.at(-1);
    if (last !== undefined && index <= last.index && !days.some((day) => day.batchId === batchId)) {
      throw new CallError(
        status.FAILED_PRECONDITION, `day ${index} is not above the last committed day ${last.index}`);
    }
  }

  private commit(day: Day): object {
    const days = this.store.days(day.namespace);
    const known = days.find((each) => each.batchId === day.batchId);
    if (known === undefined) {
      this.store.commit(day);
      return { replayed: false, visible_through_day: day.index };
    }
    if (known.digest !== day.digest) {
      throw new CallError(status.ALREADY_EXISTS, `batch ${day.batchId} is committed with another digest`);
    }
    return { replayed: true, visible_through_day: days.at(-1)?.index };
  }

  private find(request: SearchRequest): Found {
    checkQuestion(request);
    const leave = this.pending.enterShared(request.namespace);
    try {
      const days = this.store.days(request.namespace);
      const last = days.at(-1);
      if (last === undefined) {
        throw new CallError(status.NOT_FOUND, 'the namespace has no committed day', 'namespace');
      }
      if (request.as_of_day > last.index) {
        throw new CallError(
          status.FAILED_PRECONDITION, `as_of_day ${request.as_of_day} is not committed; the last is ${last.index}`);
      }
      const visible = days.filter((day) => day.index <= request.as_of_day);
      const lastVisible = visible.at(-1);
      if (lastVisible === undefined) {
        throw new CallError(status.FAILED_PRECONDITION, 'as_of_day is before the first committed day');
      }
      const bounds = { maxItems: request.max_items, maxContextTokens: request.max_context_tokens };
      const items = bounded(search(visible, request.text, bounds));
      return { items, visible_through_day: lastVisible.index };
    } finally {
      leave();
    }
  }

  private async answer(call: ServerWritableStream<Incoming<AnswerRequest>, object>): Promise<void> {
    const stop = new AbortController();
    call.on('cancelled', () => stop.abort());
    try {
      const { search: question, reading, access, model } = checkAnswer(read(call.request));
      const found = this.findWithin(question);
      call.write({ retrieved: found });
      const messages = await promptFor(question, found.items, reading, model, access, stop.signal);
      const completed = await ask(messages, reading, access, stop.signal, (text) => {
        call.write({ text_delta: { text } });
      });
      call.write({ completed });
      call.end();
    } catch (error) {
      call.emit('error', asCallError(error).toServiceError());
    }
  }

  private findWithin(question: SearchRequest): Found {
    try {
      return this.find(question);
    } catch (error) {
      throw error instanceof CallError ? error.within('search') : error;
    }
  }

  private reset(namespace: string): object {
    checks.id('namespace', namespace);
    const leave = this.pending.enterAlone(namespace);
    try {
      this.store.remove(namespace);
      return {};
    } finally {
      leave();
    }
  }
}

/** Items that fit a response, the last left out first (LIM-5). */
function bounded(items: MemoryItem[]): MemoryItem[] {
  let room = RESPONSE_BYTES - RESERVED_BYTES;
  const kept = items.findIndex((item) => (room -= encode('MemoryItem', item).length + ITEM_FRAME_BYTES) < 0);
  return kept === -1 ? items : items.slice(0, kept);
}

function unary<Request>(work: (request: Request) => object) {
  return (call: ServerUnaryCall<Incoming<Request>, object>, reply: sendUnaryData<object>): void => {
    let response: object;
    try {
      response = work(read(call.request));
    } catch (error) {
      reply(asCallError(error).toServiceError());
      return;
    }
    reply(null, response);
  };
}
