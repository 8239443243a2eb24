// One graphile-worker process with the batching its performance page recommends; counts into the shared board.
import fs from "node:fs";
import readline from "node:readline";
import { Logger, WorkerPreset, run, runMigrations } from "graphile-worker";

const [command, url, path, slot] = process.argv.slice(2);
const logger = new Logger(() => () => {});

if (command === "install") {
  await runMigrations({ connectionString: url, logger });
  process.exit(0);
}

const board = fs.openSync(path, "r+");
const words = new BigInt64Array(2);
let ran = 0;
let start = 0;
let written = 0;

// Node cannot map a file into memory: every few milliseconds it writes its two numbers
function write() {
  if (written === ran) return;
  written = ran;
  words[0] = BigInt(ran);
  words[1] = BigInt(Math.round(start * 1000)) * 1000n;
  fs.writeSync(board, words, 0, 16, 16 * Number(slot));
}
setInterval(write, 3);

const noop = () => {
  start = performance.timeOrigin + performance.now();
  ran += 1;
};

process.stdout.write("ready\n");
const lines = readline.createInterface({ input: process.stdin });
await new Promise((resolve) => lines.once("line", resolve));
lines.once("close", () => process.exit(0));

await run({
  noHandleSignals: true,
  taskList: { noop },
  logger,
  preset: {
    extends: [WorkerPreset],
    worker: {
      connectionString: url,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
});
