/** Days outlive the process, searching ranks and keeps its bounds, times are read, text that is not UTF-8 is refused. */

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import * as checks from '../src/checks.js';
import type { Day } from '../src/day.js';
import { CallError } from '../src/errors.js';
import { Pending } from '../src/pending.js';
import { search, tokensOf } from '../src/search.js';
import { Store } from '../src/store.js';
import { decode, encode } from '../src/wire.js';
import type { Event } from '../src/wire.js';

function dayOf(namespace: string, index: number, ...texts: string[]): Day {
  const owner = { participant_id: 'p', display_name: 'Maya', role: 1 };
  const turns = texts.map((text, number) => ({
    turn_id: `t${index}-${number}`, speaker_id: 'p', text, said_at: '2025-01-01T09:00:00Z',
  }));
  const session = {
    session_id: `s${index}`, continuation: false, participants: [owner], started_at: '2025-01-01T09:00:00Z',
    ended_at: '2025-01-01T09:05:00Z', modality: '', place: '', group: '', turns,
  };
  return { namespace, index, batchId: `b${index}`, digest: '00', sessions: [session], events: [] };
}

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'store-'));
  try {
    work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('committed days are there when the folder is opened again, half-written ones are not', () => inFolder((folder) => {
  const store = new Store(folder);
  store.commit(dayOf('n1', 0, 'a boat'));
  store.commit(dayOf('n1', 10, 'a plane'));
  store.commit(dayOf('n10', 2, 'a car'));
  const [life] = readdirSync(folder);
  writeFileSync(join(folder, life ?? '', '11.json.new'), '{"namespace": "n1", "ind');
  const again = new Store(folder);
  assert.deepEqual(again.days('n1'), [dayOf('n1', 0, 'a boat'), dayOf('n1', 10, 'a plane')]);
  assert.deepEqual(again.days('n10').map((day) => day.index), [2]);
  assert.deepEqual(again.days('n'), []);
}));

test('a namespace that was removed stays away', () => inFolder((folder) => {
  const store = new Store(folder);
  store.commit(dayOf('n1', 0, 'a boat'));
  store.commit(dayOf('n2', 0, 'a boat'));
  store.remove('n1');
  store.remove('never');
  assert.deepEqual(store.days('n1'), []);
  const again = new Store(folder);
  assert.deepEqual(again.days('n1'), []);
  assert.equal(again.days('n2').length, 1);
}));

test('rare words count more, nothing shared is not found', () => {
  const days = [dayOf('n', 0, 'the boat is green', 'the plane is late', 'the boat sank', 'dinner is ready')];
  const found = search(days, 'which boat is green?', { maxItems: 0, maxContextTokens: 0 });
  assert.deepEqual(found.map((item) => item.source_turn_ids[0]), ['t0-0', 't0-2', 't0-1', 't0-3']);
  assert.deepEqual(search(days, 'submarine', { maxItems: 0, maxContextTokens: 0 }), []);
});

test('bounds are kept', () => {
  const days = [dayOf('n', 0, 'boat one', 'boat two', 'boat three')];
  assert.equal(search(days, 'boat', { maxItems: 2, maxContextTokens: 0 }).length, 2);
  const one = tokensOf('Maya: boat one');
  assert.equal(search(days, 'boat', { maxItems: 0, maxContextTokens: one }).length, 1);
  assert.equal(search(days, 'boat', { maxItems: 0, maxContextTokens: one - 1 }).length, 0);
});

test('times of RFC 3339 are read and nothing else is', () => {
  assert.equal(checks.moment('f', '2025-01-04T09:00:00.5+05:30'), Date.UTC(2025, 0, 4, 3, 30, 0, 500));
  for (const wrong of ['', 'yesterday', '2025-01-04', '2025-01-04T09:00:00', '2025-02-30T09:00:00Z', '2025-01-04T24:00:00Z']) {
    assert.throws(() => checks.moment('f', wrong), CallError, wrong);
  }
  assert.throws(() => checks.date('f', '2025-02-29'), CallError);
  assert.equal(checks.date('f', '2024-02-29'), '2024-02-29');
});

test('text is decoded as it was sent, and not at all where it is not UTF-8', () => {
  const text = '\ufeffcafe\u0301 \u{1f3bb}';
  const bytes = encode('Event', { event_id: 'e', text });
  assert.equal(decode<Event>('Event', bytes).text, text);
  const broken = Buffer.from(bytes);
  broken[broken.indexOf(0xf0) + 1] = 0x41;
  assert.throws(() => decode('Event', broken), TypeError);
});

test('an ingest is alone, searches are not', () => {
  const pending = new Pending();
  const leaveOne = pending.enterShared('n');
  const leaveTwo = pending.enterShared('n');
  assert.throws(() => pending.enterAlone('n'), CallError);
  leaveOne();
  leaveOne();
  assert.throws(() => pending.enterAlone('n'), CallError);
  leaveTwo();
  const leave = pending.enterAlone('n');
  assert.throws(() => pending.enterShared('n'), CallError);
  pending.enterAlone('m')();
  leave();
  pending.enterShared('n')();
});
