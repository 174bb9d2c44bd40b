/** From the frames of Ingest to one checked day: order, fields, limits, counts and digest (SPEC.md ING, DIG). */

import { status } from '@grpc/grpc-js';
import * as checks from './checks.js';
import { DIGEST_BYTES, DIGEST_VERSION, digestOf } from './digest.js';
import { CallError, invalid } from './errors.js';
import { TURN_TEXT_BYTES } from './limits.js';
import { MODEL_ROLE, ROLE } from './wire.js';
import type { DayHeader, DayTrailer, Event, IngestRequest, ModelAccess, Participant, Session, Turn } from './wire.js';

/** A whole day as it is kept. `digest` is in hex. */
export interface Day {
  readonly namespace: string;
  readonly index: number;
  readonly batchId: string;
  readonly digest: string;
  readonly sessions: readonly Session[];
  readonly events: readonly Event[];
}

/** Takes frames in the order in which they arrive. Every method throws CallError. */
export class DayAssembler {
  header: DayHeader | undefined;
  private readonly sessions: Session[] = [];
  private readonly events: Event[] = [];
  private readonly ids = { session: new Set<string>(), turn: new Set<string>(), event: new Set<string>() };
  private trailer: DayTrailer | undefined;

  add(frame: IngestRequest): void {
    if (this.trailer !== undefined) {
      throw invalid(kindOf(frame), 'a frame after the trailer');
    }
    if (frame.header !== undefined) {
      this.takeHeader(frame.header);
    } else if (this.header === undefined) {
      throw invalid('header', `a day begins with its header, but ${kindOf(frame)} came first`);
    } else if (frame.session !== undefined) {
      this.takeSession(frame.session);
    } else if (frame.event !== undefined) {
      this.takeEvent(frame.event);
    } else if (frame.trailer !== undefined) {
      this.trailer = frame.trailer;
    } else {
      throw invalid('frame', 'an empty frame');
    }
  }

  /** The day, after the last frame: its trailer is there and matches. */
  finish(): Day {
    if (this.header === undefined) {
      throw invalid('header', 'a day begins with its header, but nothing came');
    }
    if (this.trailer === undefined) {
      throw invalid('trailer', 'the stream ended without one');
    }
    const digest = this.checkTrailer(this.header, this.trailer);
    const { namespace, day_index: index, batch_id: batchId } = this.header;
    return { namespace, index, batchId, digest, sessions: this.sessions, events: this.events };
  }

  private takeHeader(header: DayHeader): void {
    if (this.header !== undefined) {
      throw invalid('header', 'a second header');
    }
    checks.id('header.namespace', header.namespace);
    checks.date('header.date', header.date);
    checks.id('header.batch_id', header.batch_id);
    if (header.owner === undefined) {
      throw invalid('header.owner', 'is required');
    }
    checkParticipant('header.owner', header.owner);
    if (header.owner.role !== ROLE.OWNER) {
      throw invalid('header.owner.role', 'expected the owner');
    }
    if (header.model_access !== undefined) {
      checkModelAccess('header.model_access', header.model_access);
    }
    // The token is good for this call alone and has no place in what is kept (SEC-4).
    const { model_access: _, ...kept } = header;
    this.header = kept;
  }

  private takeSession(session: Session): void {
    if (this.events.length > 0) {
      throw invalid('session', 'a session after an event');
    }
    checks.id('session.session_id', session.session_id);
    const open = this.sessions.at(-1);
    if (!session.continuation) {
      this.openSession(session);
    } else if (open === undefined || open.session_id !== session.session_id) {
      throw invalid('session.continuation', 'does not continue the session before it');
    } else {
      for (const name of ['started_at', 'ended_at', 'modality', 'place', 'group'] as const) {
        if (session[name] !== '') {
          throw invalid(`session.${name}`, 'set in a continuation');
        }
      }
      if (session.participants.length > 0) {
        throw invalid('session.participants', 'set in a continuation');
      }
      this.checkTurns(session.turns, open.participants);
      open.turns.push(...session.turns);
    }
  }

  private openSession(session: Session): void {
    once('session.session_id', session.session_id, this.ids.session);
    if (session.participants.length === 0) {
      throw invalid('session.participants', 'is required in the opening frame');
    }
    const known = new Set<string>();
    for (const participant of session.participants) {
      checkParticipant('session.participants', participant);
      once('session.participants.participant_id', participant.participant_id, known);
    }
    const started = checks.moment('session.started_at', session.started_at);
    if (checks.moment('session.ended_at', session.ended_at) < started) {
      throw invalid('session.ended_at', 'is before started_at');
    }
    for (const name of ['modality', 'place', 'group'] as const) {
      checks.text(`session.${name}`, session[name]);
    }
    this.checkTurns(session.turns, session.participants);
    this.sessions.push({ ...session, turns: [...session.turns] });
  }

  private checkTurns(turns: readonly Turn[], participants: readonly Participant[]): void {
    for (const turn of turns) {
      checks.id('session.turns.turn_id', turn.turn_id);
      once('session.turns.turn_id', turn.turn_id, this.ids.turn);
      checks.id('session.turns.speaker_id', turn.speaker_id);
      if (!participants.some((each) => each.participant_id === turn.speaker_id)) {
        throw invalid('session.turns.speaker_id', 'is not among the participants');
      }
      checks.text('session.turns.text', turn.text, TURN_TEXT_BYTES);
      checks.moment('session.turns.said_at', turn.said_at);
    }
  }

  private takeEvent(event: Event): void {
    checks.id('event.event_id', event.event_id);
    once('event.event_id', event.event_id, this.ids.event);
    checks.moment('event.happened_at', event.happened_at);
    checks.requiredText('event.text', event.text, TURN_TEXT_BYTES);
    checks.text('event.category', event.category);
    this.events.push(event);
  }

  private checkTrailer(header: DayHeader, trailer: DayTrailer): string {
    if (trailer.digest_version !== DIGEST_VERSION) {
      throw invalid('trailer.digest_version', `expected ${DIGEST_VERSION}, got ${trailer.digest_version}`);
    }
    if (trailer.digest.length !== DIGEST_BYTES) {
      throw invalid('trailer.digest', `expected ${DIGEST_BYTES} bytes, got ${trailer.digest.length}`);
    }
    const turns = this.sessions.reduce((sum, session) => sum + session.turns.length, 0);
    for (const [field, said, came] of [
      ['session_count', trailer.session_count, this.sessions.length],
      ['turn_count', trailer.turn_count, turns],
      ['event_count', trailer.event_count, this.events.length],
    ] as const) {
      if (said !== came) {
        throw new CallError(status.DATA_LOSS, `says ${said}, but ${came} arrived`, `trailer.${field}`);
      }
    }
    const digest = digestOf(header, this.sessions, this.events);
    if (!digest.equals(trailer.digest)) {
      throw new CallError(status.DATA_LOSS, `the day that arrived has ${digest.toString('hex')}`, 'trailer.digest');
    }
    return digest.toString('hex');
  }
}

export function checkModelAccess(field: string, access: ModelAccess): void {
  checks.requiredText(`${field}.base_url`, access.base_url);
  checks.requiredText(`${field}.token`, access.token);
  for (const model of access.models) {
    checks.requiredText(`${field}.models.name`, model.name);
    if (!Object.values<number>(MODEL_ROLE).includes(model.role)) {
      throw invalid(`${field}.models.role`, 'expected a reader, an extractor or an embedder');
    }
  }
}

function checkParticipant(field: string, participant: Participant): void {
  checks.id(`${field}.participant_id`, participant.participant_id);
  checks.requiredText(`${field}.display_name`, participant.display_name);
  if (!Object.values<number>(ROLE).includes(participant.role)) {
    throw invalid(`${field}.role`, 'expected the owner, a person or an assistant');
  }
}

function once(field: string, value: string, seen: Set<string>): void {
  if (seen.has(value)) {
    throw invalid(field, `${JSON.stringify(value)} occurs twice`);
  }
  seen.add(value);
}

function kindOf(frame: IngestRequest): string {
  return Object.entries(frame).find(([, value]) => typeof value === 'object')?.[0] ?? 'frame';
}
