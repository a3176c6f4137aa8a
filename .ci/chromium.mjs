// Chromium without a window, over its debugging pipe, for the checks of pages.
import { spawn } from 'node:child_process';
import path from 'node:path';

/** Starts it, with its profile in a folder. `failing` is an expression of the page that says what it shows when a wait ends without success. */
export async function started(folder, failing) {
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
    throw new Error(`${what}: ${await evaluate(failing)}`);
  };
  /** Gives the files of paths to an input. */
  const choose = async (selector, files) => {
    const { root } = await send('DOM.getDocument');
    const { nodeId } = await send('DOM.querySelector', { nodeId: root.nodeId, selector });
    await send('DOM.setFileInputFiles', { nodeId, files });
  };
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  ({ sessionId } = await send('Target.attachToTarget', { targetId, flatten: true }));
  for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'DOM']) await send(`${domain}.enable`);
  await send('Emulation.setDeviceMetricsOverride', { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false });
  return { send, evaluate, until, choose, requests, complaints, end: () => chromium.kill() };
}
