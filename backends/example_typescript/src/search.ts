/** Keyword search over the turns and events of a life: rare words that question and text share count most. */

import type { Day } from './day.js';
import type { MemoryItem } from './wire.js';

const DEFAULT_ITEMS = 10;
const WORD = /[\p{L}\p{N}\p{M}_]+/gu;

export interface Bounds { maxItems: number; maxContextTokens: number }

/** Items that share a word with the question, best first, within the bounds (zero: none of its own). */
export function search(days: readonly Day[], question: string, bounds: Bounds): MemoryItem[] {
  const passages = days.flatMap(passagesOf);
  const frequency = new Map<string, number>();
  for (const { words } of passages) {
    for (const word of words) {
      frequency.set(word, (frequency.get(word) ?? 0) + 1);
    }
  }
  const asked = wordsOf(question);
  const scored = passages
    .map(({ item, words }) => ({ ...item, score: score(asked, words, frequency, passages.length) }))
    .filter((item) => item.score > 0)
    .sort((a, b) => b.score - a.score);
  return fitting(scored.slice(0, bounds.maxItems || DEFAULT_ITEMS), bounds.maxContextTokens);
}

/** UTF-8 bytes divided by 4, rounded up: how this backend counts max_context_tokens. */
export const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);

function score(asked: Set<string>, words: Set<string>, frequency: Map<string, number>, count: number): number {
  let sum = 0;
  for (const word of asked) {
    if (words.has(word)) {
      sum += Math.log(1 + count / (frequency.get(word) ?? 1));
    }
  }
  return sum;
}

/** The first items that fit together; the rest is left out (SRC-2). */
function fitting(items: MemoryItem[], maxContextTokens: number): MemoryItem[] {
  if (maxContextTokens === 0) {
    return items;
  }
  let used = 0;
  const kept = items.findIndex((item) => (used += tokensOf(item.text)) > maxContextTokens);
  return kept === -1 ? items : items.slice(0, kept);
}

function passagesOf(day: Day): { item: MemoryItem; words: Set<string> }[] {
  const said = day.sessions.flatMap((session) => {
    const names = new Map(session.participants.map((each) => [each.participant_id, each.display_name]));
    const where = [session.place && `at ${session.place}`, session.group && `with ${session.group}`].filter(Boolean);
    const setting = where.length > 0 ? ` (${where.join(', ')})` : '';
    return session.turns
      .filter((turn) => turn.text !== '')
      .map((turn) => ({
        text: `${names.get(turn.speaker_id) ?? ''}${setting}: ${turn.text}`,
        score: 0,
        source_session_ids: [session.session_id],
        source_turn_ids: [turn.turn_id],
        time: turn.said_at,
      }));
  });
  const happened = day.events.map((event) => ({
    text: event.text, score: 0, source_session_ids: [], source_turn_ids: [], time: event.happened_at,
  }));
  return [...said, ...happened].map((item) => ({ item, words: wordsOf(item.text) }));
}

function wordsOf(text: string): Set<string> {
  return new Set(text.normalize('NFKC').toLowerCase().match(WORD) ?? []);
}
