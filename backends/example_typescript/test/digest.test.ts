/** The digest agrees with the vectors of the contract, and the assembler takes the same days. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { encodedDay, digestOf } from '../src/digest.js';
import type { DayHeader, Event, IngestRequest, Participant, Session, Turn } from '../src/wire.js';
import { ROLE } from '../src/wire.js';

interface Vector {
  name: string; frames: Record<string, object>[]; session_count: number; turn_count: number; event_count: number;
  encoded_hex: string; digest_hex: string;
}

const file = join(dirname(fileURLToPath(import.meta.url)), '../../../../proto/vectors/digest.v1.json');
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] };

const EMPTY_SESSION = {
  session_id: '', continuation: false, participants: [], started_at: '', ended_at: '', modality: '', place: '', group: '',
  turns: [],
};

function person(json: object): Participant {
  const { role = '', ...rest } = json as { role?: string };
  const name = role.replace('PARTICIPANT_ROLE_', '') as keyof typeof ROLE;
  return { participant_id: '', display_name: '', ...rest, role: ROLE[name] ?? 0 };
}

/** Frames of the vectors are in the JSON mapping of protobuf: what has its zero value is left out. */
function day(frames: readonly Record<string, object>[]): [DayHeader, Session[], Event[]] {
  const header = { namespace: '', day_index: 0, date: '', batch_id: '' } as DayHeader;
  const sessions: Session[] = [];
  const events: Event[] = [];
  for (const frame of frames as Partial<IngestRequest>[]) {
    if (frame.header !== undefined) {
      Object.assign(header, frame.header, frame.header.owner ? { owner: person(frame.header.owner) } : {});
    } else if (frame.session !== undefined) {
      const sent = { ...structuredClone(EMPTY_SESSION), ...frame.session } as Session;
      const turns = sent.turns.map((turn: Partial<Turn>) => ({ turn_id: '', speaker_id: '', text: '', said_at: '', ...turn }));
      if (sent.continuation) {
        sessions.at(-1)?.turns.push(...turns);
      } else {
        sessions.push({ ...sent, participants: sent.participants.map(person), turns });
      }
    } else if (frame.event !== undefined) {
      const event: Partial<Event> = frame.event;
      events.push({ event_id: '', happened_at: '', text: '', category: '', ...event });
    }
  }
  return [header, sessions, events];
}

test('there are vectors', () => assert.ok(vectors.length >= 20));

for (const vector of vectors) {
  test(`digest of ${vector.name}`, () => {
    const parts = day(vector.frames);
    assert.equal(Buffer.concat([...encodedDay(...parts)]).toString('hex'), vector.encoded_hex);
    assert.equal(digestOf(...parts).toString('hex'), vector.digest_hex);
    assert.equal(parts[1].length, vector.session_count);
    assert.equal(parts[2].length, vector.event_count);
  });
}

test('one changed letter changes the digest', () => {
  const vector = vectors.find((each) => each.session_count > 0);
  assert.ok(vector);
  const [header, sessions, events] = day(vector.frames);
  const altered = { ...header, batch_id: `${header.batch_id}x` };
  assert.notEqual(digestOf(altered, sessions, events).toString('hex'), vector.digest_hex);
});
