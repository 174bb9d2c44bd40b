/** The messages of memarena.v1 as this backend sees them, and how they are read from and written to bytes. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { status } from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { CallError, aboveLimit, invalid } from './errors.js';
import { FRAME_BYTES } from './limits.js';

const PROTO = 'proto/memarena/v1/memory_backend.proto';
export const SERVICE = 'memarena.v1.MemoryBackend';

/* Fields that are not set have their zero value; a message that is not set is absent. Enums are their numbers. */
export interface Participant { participant_id: string; display_name: string; role: number }
export interface Turn { turn_id: string; speaker_id: string; text: string; said_at: string }
export interface Session {
  session_id: string; continuation: boolean; participants: Participant[]; started_at: string; ended_at: string;
  modality: string; place: string; group: string; turns: Turn[];
}
export interface Event { event_id: string; happened_at: string; text: string; category: string }
export interface Model {
  name: string; role: number; context_window_tokens: number; no_system_role: boolean; counts_tokens: boolean;
}
export interface ModelAccess { base_url: string; token: string; models: Model[] }
export interface DayHeader {
  namespace: string; day_index: number; date: string; batch_id: string; owner?: Participant; model_access?: ModelAccess;
}
export interface DayTrailer {
  session_count: number; turn_count: number; event_count: number; digest_version: number; digest: Uint8Array;
}
export interface IngestRequest { header?: DayHeader; session?: Session; event?: Event; trailer?: DayTrailer }
export interface Requester { kind: number; participant_id: string; display_name: string; relationship: string }
export interface SearchRequest {
  namespace: string; query_id: string; text: string; asked_at: string; as_of_day: number; requester?: Requester;
  max_items: number; max_context_tokens: number; options: { key: string; value: string }[];
  model_access?: ModelAccess; privileged_evidence?: object;
}
export interface Reading {
  model: string; max_tokens: number; temperature: number; seed: { toString(): string }; prompt_style: number;
  thinking: number;
}
export interface AnswerRequest { search?: SearchRequest; reading?: Reading }
export interface MemoryItem {
  text: string; score: number; source_session_ids: string[]; source_turn_ids: string[]; time: string;
}

export const ROLE = { OWNER: 1, PERSON: 2, ASSISTANT: 3 } as const;
export const REQUESTER = { OWNER: 1, KNOWN_PERSON: 2, ANONYMOUS: 3 } as const;
export const MODEL_ROLE = { READER: 1, EXTRACTOR: 2, EMBEDDER: 3, RERANKER: 4 } as const;
export const PROMPT_STYLE = { TEXT_SESSIONS: 1, JSON_CONTEXT: 2 } as const;
export const THINKING = { ON: 1, OFF: 2 } as const;
export const FINISH = { UNKNOWN: 0, STOP: 1, LENGTH: 2 } as const;
export const CAPABILITY = { ANSWER: 1, TIME_TRAVEL: 2, PROVENANCE: 4, DURABLE: 5 } as const;

/** A request as it arrived, or why it cannot be read. Thrown errors would reach the caller with a code of grpc-js. */
export type Incoming<T> = { readonly message: T } | { readonly fault: CallError };

/** The request. Throws CallError if it could not be read. */
export function read<T>(incoming: Incoming<T>): T {
  if ('fault' in incoming) {
    throw incoming.fault;
  }
  return incoming.message;
}

/** Reads strings as UTF-8 and nothing else (TXT-1): the usual reader puts U+FFFD where bytes are wrong. */
class StrictReader extends protobuf.Reader {
  private static readonly utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  override string(): string {
    return StrictReader.utf8.decode(this.bytes());
  }
}

const root = new protobuf.Root().loadSync(protoPath(), { keepCase: true });

function protoPath(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, PROTO))) {
    if (folder === dirname(folder)) {
      throw new Error(`${PROTO} is neither next to this program nor in a folder above it`);
    }
    folder = dirname(folder);
  }
  return join(folder, PROTO);
}

/** Bytes of a message. */
export function encode(type: string, value: object): Buffer {
  const message = root.lookupType(`memarena.v1.${type}`);
  return Buffer.from(message.encode(message.fromObject(value)).finish());
}

/** A message from bytes, every field filled in. Throws TypeError for text that is not UTF-8. */
export function decode<T>(type: string, bytes: Uint8Array): T {
  const message = root.lookupType(`memarena.v1.${type}`);
  const decoded = message.decode(new StrictReader(bytes) as protobuf.Reader);
  return present(message, decoded) as T;
}

/** A plain object with zero values for fields that are not set, and without messages that are not set. */
function present(type: protobuf.Type, message: object): object {
  const source = message as Record<string, unknown>;
  const result: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    field.resolve();
    const value = Object.hasOwn(source, field.name) ? source[field.name] : undefined;
    const inner = field.resolvedType instanceof protobuf.Type ? field.resolvedType : undefined;
    if (field.repeated) {
      result[field.name] = ((value ?? []) as object[]).map((each) => (inner ? present(inner, each) : each));
    } else if (inner !== undefined) {
      if (value !== undefined && value !== null) {
        result[field.name] = present(inner, value as object);
      }
    } else {
      result[field.name] = value ?? field.defaultValue;
    }
  }
  return result;
}

function incoming<T>(type: string): (bytes: Buffer) => Incoming<T> {
  return (bytes) => {
    if (bytes.length > FRAME_BYTES) {
      return { fault: aboveLimit(type, bytes.length, FRAME_BYTES) };
    }
    try {
      return { message: decode<T>(type, bytes) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return { fault: invalid(type, `cannot be read, is it valid UTF-8? ${reason}`) };
    }
  };
}

function method<Request>(
  name: string, requestType: string, responseType: string, streams: { request?: boolean; response?: boolean } = {},
): MethodDefinition<Incoming<Request>, object> {
  return {
    path: `/${SERVICE}/${name}`,
    requestStream: streams.request ?? false,
    responseStream: streams.response ?? false,
    requestSerialize: () => {
      throw new CallError(status.INTERNAL, 'a server sends no requests');
    },
    requestDeserialize: incoming<Request>(requestType),
    responseSerialize: (value) => encode(responseType, value),
    responseDeserialize: (bytes) => decode<object>(responseType, bytes),
  };
}

/** The service as grpc-js wants it. */
export const methods = {
  Describe: method<object>('Describe', 'DescribeRequest', 'DescribeResponse'),
  Ingest: method<IngestRequest>('Ingest', 'IngestRequest', 'IngestResponse', { request: true }),
  Search: method<SearchRequest>('Search', 'SearchRequest', 'SearchResponse'),
  Answer: method<AnswerRequest>('Answer', 'AnswerRequest', 'AnswerEvent', { response: true }),
  Reset: method<{ namespace: string }>('Reset', 'ResetRequest', 'ResetResponse'),
};
