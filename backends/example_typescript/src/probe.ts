/** Health from the command line: `node dist/src/probe.js HOST:PORT` exits 0 if the backend is SERVING, else 1. */

import { Client, credentials } from '@grpc/grpc-js';
import { healthMethods } from './health.js';

const SERVING = 1;
const TIMEOUT_MS = 3000;

const [address] = process.argv.slice(2);
if (address === undefined) {
  process.stderr.write('error: expected one argument, HOST:PORT\n');
  process.exit(2);
}
const { path, requestSerialize, responseDeserialize } = healthMethods.Check;
new Client(address, credentials.createInsecure()).makeUnaryRequest(
  path, requestSerialize, responseDeserialize, { service: '' }, { deadline: Date.now() + TIMEOUT_MS },
  (error, response) => {
    if (error === null && response?.status === SERVING) {
      process.exit(0);
    }
    process.stderr.write(`${address}: ${error?.message ?? 'not serving'}\n`);
    process.exit(1);
  },
);
