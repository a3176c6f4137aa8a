// Runs the program in node, with the files that stand behind `--` laid into its folder by their names:
//
//   node web/run.mjs PROGRAM.wasm report app.nettrace -- samples/app.nettrace > report.html
//
// `--into FOLDER` before the program's name writes the files that it makes there.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto;
const { wasi, ended, Folder, MemoryFile, OutsideFile } = createRequire(import.meta.url)('./wasi.js');

const words = process.argv.slice(2);
const into = words[0] === '--into' ? words.splice(0, 2)[1] : undefined;
const [program, ...rest] = words;
const end = rest.indexOf('--');
const root = new Folder();
root.entries.set('tmp', new Folder());
for (const name of rest.slice(end + 1)) {
  const file = fs.openSync(name);
  const found = fs.fstatSync(file, { bigint: true });
  root.put(path.basename(name), new OutsideFile(Number(found.size), found.mtimeNs, (buffer, at) => fs.readSync(file, buffer, 0, buffer.length, at)));
}
const out = [];
let errors = '';
const world = wasi({
  args: ['tracequet', ...rest.slice(0, end)],
  root,
  stdout: (part) => out.push(part),
  stderr: (part) => {
    errors += Buffer.from(part);
    process.stderr.write(part);
  },
});
const began = performance.now();
const instance = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(program)), world.imports);
let code = 101;
let thrown;
try {
  code = world.start(instance);
} catch (trap) {
  thrown = trap;
}
process.stderr.write(ended(thrown, errors));
for (const part of out) for (let done = 0; done < part.length; ) done += fs.writeSync(1, part, done);
if (into) {
  for (const [name, file] of root.files()) {
    if (name.startsWith('tmp/')) continue;
    fs.mkdirSync(path.dirname(path.join(into, name)), { recursive: true });
    fs.writeFileSync(path.join(into, name), Buffer.concat(file.parts()));
  }
}
if (process.env.TRACEQUET_WEB_MEMORY) {
  const mb = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
  process.stderr.write(`${(performance.now() - began).toFixed(0)} ms, program ${mb(instance.exports.memory.buffer.byteLength)}, files ${mb(MemoryFile.most)}\n`);
}
process.exitCode = code;
