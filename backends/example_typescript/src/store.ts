/**
 * Committed days on disk, one file a day: `<data>/<namespace as hex of its SHA-256>/<day index>.json`.
 *
 * A day is written to a temporary file, flushed, and renamed, and the folder is flushed too: a process that is
 * killed at any moment leaves whole days only.
 */

import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Day } from './day.js';

const DAY_FILE = /^\d+\.json$/;

export class Store {
  private readonly lives = new Map<string, Day[]>();

  /** Opens a folder and reads what is there. Throws if a committed day cannot be read. */
  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) {
      if (name.startsWith('forgotten-')) {
        rmSync(join(folder, name), { recursive: true });
        continue;
      }
      const days = readdirSync(join(folder, name))
        .filter((file) => DAY_FILE.test(file))
        .map((file) => JSON.parse(readFileSync(join(folder, name, file), 'utf8')) as Day)
        .sort((a, b) => a.index - b.index);
      if (days[0] !== undefined) {
        this.lives.set(days[0].namespace, days);
      }
    }
  }

  /** Committed days, oldest first; none if the namespace is not there. */
  days(namespace: string): readonly Day[] {
    return this.lives.get(namespace) ?? [];
  }

  /** On return the day is durable and visible. */
  commit(day: Day): void {
    const folder = this.folderOf(day.namespace);
    mkdirSync(folder, { recursive: true });
    const place = join(folder, `${day.index}.json`);
    const file = openSync(`${place}.new`, 'w');
    try {
      writeFileSync(file, JSON.stringify(day));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(`${place}.new`, place);
    flush(folder);
    flush(this.folder);
    this.lives.set(day.namespace, [...this.days(day.namespace), day]);
  }

  /** Forgets a namespace in one step; its files go after that. */
  remove(namespace: string): void {
    const folder = this.folderOf(namespace);
    const forgotten = join(this.folder, `forgotten-${process.pid}-${process.hrtime.bigint()}`);
    if (this.lives.has(namespace)) {
      renameSync(folder, forgotten);
      flush(this.folder);
      this.lives.delete(namespace);
      rmSync(forgotten, { recursive: true });
    }
  }

  private folderOf(namespace: string): string {
    return join(this.folder, createHash('sha256').update(namespace).digest('hex'));
  }
}

function flush(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
