// Puts the page, its worker and the program into one file: node web/build.mjs PROGRAM.wasm UNPACK.wasm tracequet.html [with-sql]
// `with-sql` gives it a button that opens duckdb/index.html of its host in a frame.
import fs from 'node:fs';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';

const { apart, together } = createRequire(import.meta.url)('./streams.js');

const [program, unpack, output, sql] = process.argv.slice(2);
const here = (name) => fs.readFileSync(new URL(name, import.meta.url), 'utf8');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const packed = packedLzma(takenApart(fs.readFileSync(program)));
const small = gzipSync(fs.readFileSync(unpack), { level: 9 });
// The small recording that worker.js runs the program over first. Its page has most sections.
const recordingName = 'finalizers.nettrace.zst';
const recording = fs.readFileSync(new URL(`../samples/habits/${recordingName}`, import.meta.url));
/** Bytes as text: each four as five digits of base 85, from `#` on, without `<`. A fifteenth smaller than base64. */
function digits(bytes) {
  const out = Buffer.alloc(Math.ceil(bytes.length / 4) * 5);
  for (let at = 0, to = 0; at < bytes.length; at += 4, to += 5) {
    let value = [0, 1, 2, 3].reduce((sum, next) => sum * 256 + (bytes[at + next] ?? 0), 0);
    for (let place = 4; place >= 0; place--, value = Math.floor(value / 85)) out[to + place] = value % 85 === 25 ? 126 : 35 + (value % 85);
  }
  return out.toString('latin1');
}
/** A module with its code by kind, as the worker puts it together. */
function takenApart(module) {
  const parts = apart(module);
  if (Buffer.compare(together(parts), module) !== 0) throw new Error(`${program} is not the same when it is put together again`);
  return parts;
}
/** A third smaller than gzip makes it. Nothing in a module is aligned (pb), and bytes of one kind tell little of the next one (lc). */
function packedLzma(bytes) {
  const options = ['--format=lzma', '--lzma1=preset=9e,dict=32MiB,lc=2,pb=0,nice=273', '--threads=1', '--stdout'];
  return execFileSync('xz', options, { input: bytes, maxBuffer: 1 << 28 });
}
const [style, script, worker] = [here('page.css'), here('page.js'), here('wasi.js') + here('streams.js') + here('worker.js')];
// A page of the program stands in a frame, which takes over this policy: its style and its script are allowed, too.
const of = (name) => here(`../crates/report/src/${name}`);
const scripts = [...of('document.rs').matchAll(/include_str!\("(page\/\w+\.js)"\)/g)].map(([, name]) => of(name));
const report = [of('page/page.css'), scripts.join('')];
const policy = [
  "default-src 'none'",
  "connect-src 'none'",
  `script-src ${hash(script)} ${hash(report[1])} 'wasm-unsafe-eval'`,
  `style-src ${hash(style)} ${hash(report[0])}`,
  'worker-src blob:',
  sql ? "frame-src blob: 'self'" : 'frame-src blob:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
const parts = {
  policy, style, script, worker,
  program: digits(packed), programBytes: packed.length,
  unpack: digits(small), unpackBytes: small.length,
  recording: digits(recording), recordingBytes: recording.length, recordingName,
  sql: sql ? '<button id="sql" type="button">SQL</button>' : '',
};
const page = here('page.html').replace(/\{(\w+)\}/g, (_, name) => parts[name]);
fs.writeFileSync(output, page);
console.log(`${output}: ${page.length} bytes, the program ${fs.statSync(program).size}, packed ${packed.length}, what unpacks it ${small.length}`);
