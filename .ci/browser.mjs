// What a person does with the browser edition, in Chromium, over its debugging pipe: node .ci/browser.mjs PAGE.html PROGRAM FOLDER
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';
import { started } from './chromium.mjs';

const [page, program, folder] = process.argv.slice(2).map((name) => path.resolve(name));
const browser = await started(folder, 'document.getElementById("status").textContent + " " + failed.textContent');
const { send, evaluate, until, requests, complaints } = browser;
await send('Page.navigate', { url: `file://${page}` });
await until('typeof state === "object"', 'the page does not start');
const first = await evaluate(`new Promise((done) => first.addEventListener('message', ({ data }) => 'ended' in data && done(data.code + data.ended + data.errors)))`);
assert.equal(first, '0', 'the run over the small recording, before any is dropped');

const done = '!state.cancel && (!failed.hidden || /uploaded|Cancelled/.test(document.getElementById("status").textContent))';
const file = (name) => path.join(folder, name);
const shown = async () => Buffer.from(await evaluate('state.page.text()'));
const native = (names) => {
  const run = spawnSync(program, ['report', ...names], { cwd: folder, maxBuffer: 1 << 28 });
  assert.ok([0, 2].includes(run.status), run.stderr.toString());
  return run.stdout;
};

await evaluate('window.busy = () => { document.getElementById("status").textContent = "busy"; failed.hidden = true; }');
// Chosen.
async function choose(names) {
  await evaluate('busy()');
  await browser.choose('#files', names.map(file));
}
// Dragged from a folder.
async function drop(names) {
  const data = { items: [], files: names.map(file), dragOperationsMask: 1 };
  await evaluate('busy()');
  // A page that is shown takes what is dropped on it: the bar above it is the place for the next one.
  const y = await evaluate('start.hidden ? 12 : 500');
  for (const type of ['dragEnter', 'dragOver', 'drop']) await send('Input.dispatchDragEvent', { type, x: 640, y, data });
}

for (const [how, name] of [
  [drop, 'gc-churn.nettrace'], [choose, 'orders.nettrace.zst'], [drop, 'clr.etl'], [drop, 'heap-10.gcdump'], [drop, 'callbacks.corprof'], [choose, 'one.zip'],
]) {
  await how([name]);
  await until(done, name);
  assert.ok((await shown()).equals(native([name])), `${name}: the page is not the one that report writes`);
  assert.ok(await evaluate('document.querySelectorAll("iframe").length === 1 && start.hidden'), `${name}: no page is shown`);
  console.log(`${name}: the page of report`);
}
await drop(['gc-churn.nettrace', 'orders.nettrace.zst', 'callbacks.corprof']);
await until(done, 'three recordings');
const all = (await shown()).toString();
for (const key of ['gc-churn-', 'orders-', 'callbacks-']) assert.ok(all.includes(key), `the page of three recordings has no ${key}`);

// Two are what changed, in the order of their files, or the other way round.
fs.utimesSync(file('cache-clean.nettrace.zst'), 1, 1);
await drop(['cache.nettrace.zst', 'cache-clean.nettrace.zst']);
await until(done, 'two recordings');
assert.ok((await shown()).equals(native(['cache-clean.nettrace.zst', 'cache.nettrace.zst'])), 'the page is not that of report with two recordings');
await evaluate('document.getElementById("show").value = "back"; busy(); again.click()');
await until(done, 'two recordings, the other way round');
assert.ok((await shown()).equals(native(['cache.nettrace.zst', 'cache-clean.nettrace.zst'])), 'the sides are not exchanged');

// Processes are listed; one, own code and a part of the time are chosen.
await drop(['orders.nettrace.zst']);
await until(done, 'a recording to choose from');
const whole = await shown();
await evaluate('document.getElementById("choices").open = true; busy(); document.getElementById("process").focus()');
await until(done, 'processes');
assert.match(await evaluate('document.getElementById("processes").options[0].value'), /^[0-9]+$/);
await evaluate('own.value = "Nothing*"; busy(); again.click()');
await until(done, 'own code');
assert.ok((await shown()).equals(native(['orders.nettrace.zst', '--own', 'Nothing*'])), 'own code is not chosen');
await evaluate('own.value = ""; document.getElementById("to").value = "1s"; busy(); again.click()');
await until(done, 'a part of the time');
assert.ok((await shown()).length < whole.length, 'a part of the time has as much as the whole');
await evaluate('document.getElementById("to").value = "soon"; busy(); again.click()');
await until(done, 'a wrong time');
assert.match(await evaluate('failed.textContent'), /--to soon: expected seconds[^]*In a terminal: tracequet convert orders\.nettrace\.zst --lifetimes --to soon -o orders && tracequet report orders -o orders\.html/);
await evaluate('document.getElementById("to").value = ""');

// Tables, findings and a profile are saved.
await evaluate('window.saved = []; window.save = (blob, name) => saved.push([name, blob]); document.getElementById("tables").click()');
await until('saved.length === 1 && !state.cancel', 'tables');
const zip = await evaluate('saved[0][1].arrayBuffer().then((all) => { let text = ""; for (const byte of new Uint8Array(all)) text += String.fromCharCode(byte); return btoa(text); })');
fs.writeFileSync(file('saved.zip'), Buffer.from(zip, 'base64'));
const listed = spawnSync('python3', ['-m', 'zipfile', '--test', file('saved.zip')]);
assert.match(listed.stdout.toString(), /Done testing/);
await evaluate('document.getElementById("profile").click()');
await until('saved.length === 2 && !state.cancel', 'a profile');
await evaluate('document.getElementById("explain").click()');
await until('saved.length === 3 && !state.cancel', 'findings');
assert.equal(JSON.parse(await evaluate('saved[2][1].text()'))[0].findings.length > 0, true);
await evaluate('document.getElementById("save").click()');
assert.deepEqual(await evaluate('saved.map(([name]) => name)'), ['orders.tables.zip', 'orders.cpu.json', 'orders.findings.json', 'orders.html']);

// A failure leaves the page usable, and so does a cancelled run.
fs.writeFileSync(file('foreign.nettrace'), 'no recording');
await drop(['foreign.nettrace']);
await until(done, 'a foreign file');
assert.match(await evaluate('failed.textContent'), /foreign\.nettrace[^]*In a terminal: tracequet report foreign\.nettrace -o foreign\.html/);
// So does a run that needs more memory than there is: files get no memory here.
await evaluate(`window.Whole = Worker; window.Worker = class extends Whole {
  constructor() {
    const text = element('worker').textContent.replace('chunk = new Uint8Array(length)', 'throw new RangeError()');
    super(URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));
  }
}`);
await drop(['gc-churn.nettrace']);
await until(done, 'too little memory');
assert.match(await evaluate('failed.textContent'), /more memory than the program has in a browser[^]*In a terminal: tracequet report gc-churn\.nettrace -o gc-churn\.html/);
await evaluate('window.Worker = Whole');
const large = fs.openSync(file('large.nettrace'), 'w');
fs.writeSync(large, fs.readFileSync(file('gc-churn.nettrace')));
fs.ftruncateSync(large, 2 ** 31);
await drop(['large.nettrace']);
await until('progress.value > 0', 'progress');
await evaluate('document.getElementById("cancel").click()');
await until('/Cancelled/.test(document.getElementById("status").textContent)', 'cancel');
await drop(['gc-churn.nettrace']);
await until(done, 'after a cancelled run');
assert.ok((await shown()).equals(native(['gc-churn.nettrace'])));
// Another page hands over bytes.
await evaluate(`window.answer = new Promise((done) => addEventListener('message', ({ data }) => data.tracequet !== 'open' && done(data)));
  postMessage({ tracequet: 'open', files: [{ name: 'handed.nettrace', bytes: new Uint8Array(8).buffer }] }, '*')`);
assert.equal((await evaluate('answer')).tracequet, 'failed');

const outside = requests.filter((url) => !/^(file|blob|data):/.test(url));
assert.deepEqual(outside, [], 'requests left the page');
const { data } = await send('Page.captureScreenshot');
fs.writeFileSync(file('browser.png'), Buffer.from(data, 'base64'));
assert.deepEqual(complaints, [], 'the browser complains');
console.log('opened from disk: five kinds, several at a time, saved, failed, cancelled; no request');
browser.end();
process.exit(0);
