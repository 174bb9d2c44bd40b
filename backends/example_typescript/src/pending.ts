/** Which calls are at work on which namespace: one Ingest or Reset alone, or any number of searches (GEN-6). */

import { status } from '@grpc/grpc-js';
import { CallError } from './errors.js';

export class Pending {
  private readonly alone = new Set<string>();
  private readonly shared = new Map<string, number>();

  /** Enter as the only call; the returned function leaves, once. Throws CallError ABORTED if there is another. */
  enterAlone(namespace: string): () => void {
    if (this.alone.has(namespace) || this.shared.has(namespace)) {
      throw busy();
    }
    this.alone.add(namespace);
    return once(() => this.alone.delete(namespace));
  }

  /** Enter next to other searches. Throws CallError ABORTED if an Ingest or Reset is pending. */
  enterShared(namespace: string): () => void {
    if (this.alone.has(namespace)) {
      throw busy();
    }
    this.shared.set(namespace, (this.shared.get(namespace) ?? 0) + 1);
    return once(() => {
      const left = (this.shared.get(namespace) ?? 1) - 1;
      if (left === 0) {
        this.shared.delete(namespace);
      } else {
        this.shared.set(namespace, left);
      }
    });
  }
}

const busy = (): CallError => new CallError(status.ABORTED, 'another call on the namespace is pending');

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (!done) {
      done = true;
      action();
    }
  };
}
