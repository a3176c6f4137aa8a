// What a person does with the browser edition, in Chromium, over its debugging pipe: node .ci/browser.mjs PAGE.html PROGRAM FOLDER
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import assert from 'node:assert/strict';

const [page, program, folder] = process.argv.slice(2).map((name) => path.resolve(name));
const chromium = spawn(
  process.env.CHROMIUM || 'chromium',
  [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-extensions', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', `--user-data-dir=${path.join(folder, 'profile')}`, '--remote-debugging-pipe', 'about:blank',
  ],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
);
const [, , , into, from] = chromium.stdio;
let number = 0;
const waiting = new Map();
const requests = [];
const complaints = [];
let rest = '';
from.on('data', (data) => {
  rest += data;
  for (let end; (end = rest.indexOf('\0')) >= 0; rest = rest.slice(end + 1)) {
    const message = JSON.parse(rest.slice(0, end));
    if (message.id) waiting.get(message.id)(message);
    else if (message.method === 'Network.requestWillBeSent') requests.push(message.params.request.url);
    else if (message.method === 'Log.entryAdded' && message.params.entry.level === 'error') complaints.push(message.params.entry.text);
    else if (message.method === 'Runtime.exceptionThrown') complaints.push(message.params.exceptionDetails.exception?.description);
  }
});
let sessionId;
const send = (method, params = {}) =>
  new Promise((done, fail) => {
    const id = ++number;
    waiting.set(id, ({ result, error }) => (error ? fail(new Error(`${method}: ${error.message}`)) : done(result)));
    into.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  });
const evaluate = async (expression) => {
  const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
};
const until = async (expression, what) => {
  for (let turn = 0; turn < 1200; turn++) {
    if (await evaluate(expression)) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`${what}: ${await evaluate('document.getElementById("status").textContent + " " + failed.textContent')}`);
};

const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
({ sessionId } = await send('Target.attachToTarget', { targetId, flatten: true }));
for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'DOM']) await send(`${domain}.enable`);
await send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false });
await send('Page.navigate', { url: `file://${page}` });
await until('typeof state === "object"', 'the page does not start');

const done = '!state.cancel && (!failed.hidden || /uploaded|Cancelled/.test(document.getElementById("status").textContent))';
const file = (name) => path.join(folder, name);
const shown = async () => Buffer.from(await evaluate('state.page.text()'));
const native = (names) => {
  const run = spawnSync(program, ['report', ...names], { cwd: folder, maxBuffer: 1 << 28 });
  assert.ok([0, 2].includes(run.status), run.stderr.toString());
  return run.stdout;
};

// Chosen.
async function choose(names) {
  const { root } = await send('DOM.getDocument');
  const { nodeId } = await send('DOM.querySelector', { nodeId: root.nodeId, selector: '#files' });
  await evaluate('document.getElementById("status").textContent = "busy"');
  await send('DOM.setFileInputFiles', { nodeId, files: names.map(file) });
}
// Dragged from a folder.
async function drop(names) {
  const data = { items: [], files: names.map(file), dragOperationsMask: 1 };
  await evaluate('document.getElementById("status").textContent = "busy"');
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

// Tables and a profile are saved.
await evaluate('window.saved = []; window.save = (blob, name) => saved.push([name, blob]); document.getElementById("tables").click()');
await until('saved.length === 1 && !state.cancel', 'tables');
const zip = await evaluate('saved[0][1].arrayBuffer().then((all) => { let text = ""; for (const byte of new Uint8Array(all)) text += String.fromCharCode(byte); return btoa(text); })');
fs.writeFileSync(file('saved.zip'), Buffer.from(zip, 'base64'));
const listed = spawnSync('python3', ['-m', 'zipfile', '--test', file('saved.zip')]);
assert.match(listed.stdout.toString(), /Done testing/);
await evaluate('document.getElementById("profile").click()');
await until('saved.length === 2 || !failed.hidden', 'a profile');

// A failure leaves the page usable, and so does a cancelled run.
fs.writeFileSync(file('foreign.nettrace'), 'no recording');
await drop(['foreign.nettrace']);
await until(done, 'a foreign file');
assert.match(await evaluate('failed.textContent'), /foreign\.nettrace[^]*In a terminal: tracequet report foreign\.nettrace/);
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

const { data } = await send('Page.captureScreenshot');
fs.writeFileSync(file('browser.png'), Buffer.from(data, 'base64'));
const outside = requests.filter((url) => !/^(file|blob|data):/.test(url));
assert.deepEqual(outside, [], 'requests left the page');
assert.deepEqual(complaints, [], 'the browser complains');
console.log('opened from disk: five kinds, several at a time, saved, failed, cancelled; no request');
chromium.kill();
process.exit(0);
