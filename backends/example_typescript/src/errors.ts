/** How a call ends when it does not end well: a gRPC code, one line, and the details that SPEC.md ERR asks for. */

import { Metadata, status } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const MAX_MESSAGE_CHARS = 1000;
const RETRY_AFTER_S = 1;

/** The few messages of google.rpc that errors carry. */
const google = protobuf.parse(
  `syntax = "proto3";
   message Any { string type_url = 1; bytes value = 2; }
   message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
   message FieldViolation { string field = 1; string description = 2; }
   message BadRequest { repeated FieldViolation field_violations = 1; }
   message Duration { int64 seconds = 1; int32 nanos = 2; }
   message RetryInfo { Duration retry_delay = 1; }`,
  { keepCase: true },
).root;

/** Ends a call with `code`. `field` is the path of the field at fault; it opens the message. */
export class CallError extends Error {
  constructor(
    readonly code: status,
    readonly description: string,
    readonly field?: string,
  ) {
    super(field === undefined ? description : `${field}: ${description}`);
  }

  /** The same error of a request that is in the field `parent` of a larger one. */
  within(parent: string): CallError {
    return this.field === undefined ? this : new CallError(this.code, this.description, `${parent}.${this.field}`);
  }

  /** The form that grpc-js sends. */
  toServiceError(): ServiceError {
    const message = this.message.slice(0, MAX_MESSAGE_CHARS);
    const details = [];
    if (this.code === status.INVALID_ARGUMENT && this.field !== undefined) {
      const violation = { field: this.field, description: this.description.slice(0, MAX_MESSAGE_CHARS) };
      details.push(packed('BadRequest', { field_violations: [violation] }));
    }
    if (this.code === status.UNAVAILABLE) {
      details.push(packed('RetryInfo', { retry_delay: { seconds: RETRY_AFTER_S } }));
    }
    const metadata = new Metadata();
    if (details.length > 0) {
      metadata.set('grpc-status-details-bin', encoded('Status', { code: this.code, message, details }));
    }
    return Object.assign(new Error(message), { code: this.code, details: message, metadata });
  }
}

export const invalid = (field: string, description: string): CallError =>
  new CallError(status.INVALID_ARGUMENT, description, field);

export const aboveLimit = (field: string, size: number, limit: number): CallError =>
  new CallError(status.RESOURCE_EXHAUSTED, `${size} is above the limit of ${limit}`, field);

/** Any error as the one that a call ends with: an unexpected error is INTERNAL and is logged. */
export function asCallError(error: unknown): CallError {
  if (error instanceof CallError) {
    return error;
  }
  console.error(error);
  return new CallError(status.INTERNAL, error instanceof Error ? `${error.name}: ${error.message}` : String(error));
}

function encoded(type: string, value: object): Buffer {
  const message = google.lookupType(type);
  return Buffer.from(message.encode(message.fromObject(value)).finish());
}

function packed(type: string, value: object): object {
  return { type_url: `type.googleapis.com/google.rpc.${type}`, value: encoded(type, value) };
}
