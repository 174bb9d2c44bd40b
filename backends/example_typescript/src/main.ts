/** Serves until SIGTERM: `node dist/src/main.js --listen HOST:PORT --data-dir DIR [--address-file PATH]`. */

import { renameSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Server, ServerCredentials, logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { Backend } from './backend.js';
import { healthImplementation, healthMethods } from './health.js';
import { Store } from './store.js';
import { methods } from './wire.js';

const STOP_GRACE_MS = 500;
const EXIT_BAD_INPUT = 2;
/** What the transport lets in, so that a request above its limit meets our error and not the transport's. */
const RECEIVE_BYTES = 8 * 1024 * 1024;

function fail(message: string): never {
  process.stderr.write(`error: ${message}\n`);
  process.exit(EXIT_BAD_INPUT);
}

function flags(): { listen: string; dataDir: string; addressFile: string | undefined } {
  try {
    const { values } = parseArgs({
      options: { listen: { type: 'string' }, 'data-dir': { type: 'string' }, 'address-file': { type: 'string' } },
    });
    const { listen, 'data-dir': dataDir } = values;
    if (listen === undefined || !/^.+:\d{1,5}$/.test(listen)) {
      return fail('--listen: expected HOST:PORT');
    }
    if (dataDir === undefined || dataDir === '') {
      return fail('--data-dir: expected a folder');
    }
    return { listen, dataDir, addressFile: values['address-file'] };
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

function opened(folder: string): Store {
  try {
    return new Store(folder);
  } catch (error) {
    return fail(`--data-dir ${folder}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

// What matters is said by this program, in one line.
setLogVerbosity(logVerbosity.NONE);
const { listen, dataDir, addressFile } = flags();
const server = new Server({
  'grpc.max_receive_message_length': RECEIVE_BYTES,
  'grpc.max_send_message_length': -1,
  // Two servers on one port would each get some of the calls.
  'grpc.so_reuseport': 0,
});
server.addService(methods, new Backend(opened(dataDir)).implementation());
server.addService(healthMethods, healthImplementation);
server.bindAsync(listen, ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) {
    fail(`--listen ${listen}: ${error.message}`);
  }
  const address = `${listen.slice(0, listen.lastIndexOf(':'))}:${port}`;
  process.stderr.write(`listening on ${address}\n`);
  if (addressFile !== undefined) {
    writeFileSync(`${addressFile}.new`, `${address}\n`);
    renameSync(`${addressFile}.new`, addressFile);
  }
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    server.tryShutdown(() => process.exit(0));
    setTimeout(() => {
      server.forceShutdown();
      process.exit(0);
    }, STOP_GRACE_MS).unref();
  });
}
