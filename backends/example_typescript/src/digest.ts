/** The digest of a day: SHA-256 over the fields of table 1, in its order (SPEC.md DIG). */

import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import type { DayHeader, Event, Participant, Session, Turn } from './wire.js';

export const DIGEST_VERSION = 1;
export const DIGEST_BYTES = 32;

const ABSENT = Buffer.from('ffffffff', 'hex');

/** Bytes that the digest is taken over, part by part. Sessions are merged: one entry each, with all their turns. */
export function* encodedDay(header: DayHeader, sessions: readonly Session[], events: readonly Event[]): Generator<Buffer> {
  yield* strings(header.namespace, String(header.day_index), header.date, header.batch_id);
  if (header.owner === undefined) {
    yield ABSENT;
  } else {
    yield* participant(header.owner);
  }
  yield* list(sessions, session);
  yield* list(events, event);
}

export function digestOf(header: DayHeader, sessions: readonly Session[], events: readonly Event[]): Buffer {
  const hash: Hash = createHash('sha256');
  for (const part of encodedDay(header, sessions, events)) {
    hash.update(part);
  }
  return hash.digest();
}

function* participant(value: Participant): Generator<Buffer> {
  yield* strings(value.participant_id, value.display_name, String(value.role));
}

function* session(value: Session): Generator<Buffer> {
  yield* strings(value.session_id);
  yield* list(value.participants, participant);
  yield* strings(value.started_at, value.ended_at);
  yield* optional(value.modality);
  yield* optional(value.place);
  yield* optional(value.group);
  yield* list(value.turns, turn);
}

function* turn(value: Turn): Generator<Buffer> {
  yield* strings(value.turn_id, value.speaker_id);
  yield* optional(value.text);
  yield* strings(value.said_at);
}

function* event(value: Event): Generator<Buffer> {
  yield* strings(value.event_id, value.happened_at, value.text);
  yield* optional(value.category);
}

function* list<T>(values: readonly T[], encode: (value: T) => Generator<Buffer>): Generator<Buffer> {
  yield* strings(String(values.length));
  for (const value of values) {
    yield* encode(value);
  }
}

function* optional(value: string): Generator<Buffer> {
  if (value === '') {
    yield ABSENT;
  } else {
    yield* strings(value);
  }
}

function* strings(...values: string[]): Generator<Buffer> {
  for (const value of values) {
    const bytes = Buffer.from(value, 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    yield length;
    yield bytes;
  }
}
