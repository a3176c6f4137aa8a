// Runs damaged recordings through the browser's program: each has to end by itself, with an exit code of the program and without a trap.
//
//   node .ci/browser-hostile.mjs PROGRAM.wasm COUNT RECORDING...
//
// Each recording is cut, or some of its bytes are changed, moved or repeated; the same ones each time. What takes more than a minute fails.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

const { wasi, ended, Folder, MemoryFile } = createRequire(import.meta.url)('../web/wasi.js');

/** Numbers that look random, from a seed. */
function numbers(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return Math.floor(((state ^ (state >>> 13)) >>> 0) / 2 ** 32 * below);
  };
}

/** A damaged copy. */
function damaged(whole, seed) {
  const number = numbers(seed);
  if (whole.length === 0 || seed % 5 === 0) return whole.slice(0, number(whole.length + 1));
  const bytes = Uint8Array.from(whole);
  for (let times = 1 + number(12); times > 0; times--) {
    const [at, from] = [number(bytes.length), number(bytes.length)];
    const length = 1 + number(Math.min(64, bytes.length - Math.max(at, from)));
    switch (number(4)) {
      case 0:
        bytes[at] ^= 1 << number(8);
        break;
      case 1:
        bytes.fill([0, 0xff, 0x7f, 0x80][number(4)], at, at + length);
        break;
      case 2:
        bytes.copyWithin(at, from, from + length);
        break;
      default:
        for (let index = at; index < at + length; index++) bytes[index] = number(256);
    }
  }
  return bytes;
}

if (isMainThread) {
  const [program, count, ...recordings] = process.argv.slice(2);
  const module = new WebAssembly.Module(fs.readFileSync(program));
  const worker = new Worker(new URL(import.meta.url), { workerData: { module, count: Number(count), recordings } });
  const codes = {};
  let doing = 'the first';
  let clock;
  const wait = () => {
    clearTimeout(clock);
    clock = setTimeout(() => fail(`${doing}: more than a minute`), 60000);
  };
  const fail = (why) => {
    console.error(why);
    process.exit(1);
  };
  worker.on('message', ({ next, code, why }) => {
    wait();
    if (next) doing = next;
    if (why) fail(`${doing}: ${why}`);
    if (code !== undefined) codes[code] = (codes[code] ?? 0) + 1;
  });
  worker.on('error', (error) => fail(`${doing}: ${error.stack}`));
  worker.on('exit', () => {
    clearTimeout(clock);
    console.log(`damaged recordings end by themselves: ${Object.entries(codes).map(([code, times]) => `${times} with exit code ${code}`).join(', ')}`);
    // Both kinds of results were among them: recordings that are read in part, and files that are refused.
    if (!codes[0] || !codes[1]) fail('too few kinds of damage');
  });
  wait();
} else {
  const { module, count, recordings } = workerData;
  for (const recording of recordings) {
    const whole = fs.readFileSync(recording);
    for (let seed = 0; seed < count; seed++) {
      const name = path.basename(recording);
      parentPort.postMessage({ next: `${name}, seed ${seed}` });
      const root = new Folder();
      root.entries.set('tmp', new Folder());
      const file = new MemoryFile();
      file.write(damaged(whole, seed), 0);
      root.put(name, file);
      let said = '';
      const world = wasi({ args: ['tracequet', 'report', name], root, stdout: () => {}, stderr: (part) => (said += Buffer.from(part)) });
      try {
        const code = world.start(new WebAssembly.Instance(module, world.imports));
        parentPort.postMessage([0, 1].includes(code) ? { code } : { why: `exit code ${code}: ${said}` });
      } catch (thrown) {
        parentPort.postMessage({ why: `${ended(thrown, said)} ${said}` });
      }
    }
  }
}
