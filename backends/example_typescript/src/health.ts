/** grpc.health.v1: SERVING for the server and for the service, NOT_FOUND for any other (SPEC.md HLT-1). */

import { status } from '@grpc/grpc-js';
import type { MethodDefinition, ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { CallError } from './errors.js';
import { SERVICE } from './wire.js';

const SERVING = 1;
const KNOWN = new Set(['', SERVICE]);

const root = protobuf.parse(
  `syntax = "proto3";
   message HealthCheckRequest { string service = 1; }
   message HealthCheckResponse { int32 status = 1; }`,
).root;
const Request = root.lookupType('HealthCheckRequest');
const Response = root.lookupType('HealthCheckResponse');

interface HealthRequest { service: string }
interface HealthResponse { status: number }

function method(name: string, responseStream: boolean): MethodDefinition<HealthRequest, HealthResponse> {
  return {
    path: `/grpc.health.v1.Health/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: (value) => Buffer.from(Request.encode(value).finish()),
    requestDeserialize: (bytes) => Request.toObject(Request.decode(bytes), { defaults: true }) as HealthRequest,
    responseSerialize: (value) => Buffer.from(Response.encode(value).finish()),
    responseDeserialize: (bytes) => Response.toObject(Response.decode(bytes), { defaults: true }) as HealthResponse,
  };
}

export const healthMethods = { Check: method('Check', false), Watch: method('Watch', true) };

/** This backend serves from the moment at which it listens: its days are read before. */
export const healthImplementation = {
  Check: (call: ServerUnaryCall<HealthRequest, HealthResponse>, reply: sendUnaryData<HealthResponse>): void => {
    if (KNOWN.has(call.request.service)) {
      reply(null, { status: SERVING });
    } else {
      reply(new CallError(status.NOT_FOUND, `no service ${call.request.service}`).toServiceError());
    }
  },
  Watch: (call: ServerWritableStream<HealthRequest, HealthResponse>): void => {
    const SERVICE_UNKNOWN = 3;
    call.write({ status: KNOWN.has(call.request.service) ? SERVING : SERVICE_UNKNOWN });
    call.on('cancelled', () => call.end());
  },
};
