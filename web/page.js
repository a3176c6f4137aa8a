// The page around the program: takes recordings, runs a worker for each question, shows and saves what comes of it.
// @ts-check
'use strict';

/** @template {HTMLElement} T @param {string} id @returns {T} */
const element = (id) => /** @type {T} */ (document.getElementById(id));
const said = element('status');
const progress = /** @type {HTMLProgressElement} */ (element('progress'));
const failed = element('failed');
const start = element('start');
const input = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (element(id));
const select = (/** @type {string} */ id) => /** @type {HTMLSelectElement} */ (element(id));

const GREETING = said.textContent || '';
/** Bytes in words. */
const size = (/** @type {number} */ bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

const worker = URL.createObjectURL(new Blob([element('worker').textContent || ''], { type: 'text/javascript' }));

/** The worker that unpacks and compiles the program, and runs it over a small recording. The page takes recordings meanwhile. */
const first = new Worker(worker);
const program = new Promise((done, fail) => {
  first.onmessage = ({ data }) => {
    if (data.module) done(data.module);
    else if (data.error) fail(new Error(data.error));
    if (data.error || 'ended' in data) first.terminate();
  };
  first.onerror = (event) => fail(new Error(event.message));
  const packed = (/** @type {string} */ id) => ({ text: element(id).textContent || '', length: Number(element(id).dataset.bytes) });
  first.postMessage({ unpack: packed('unpack'), program: packed('program'), recording: packed('recording'), name: element('recording').dataset.name });
});
// A failure to compile is reported by the first run.
program.catch(() => {});

/** @typedef {{code: number, ended: string, out: Blob, errors: string, made: {path: string, parts: Uint8Array<ArrayBuffer>[]}[], milliseconds: number, memory: {program: number, files: number}}} Outcome */
/** The recordings that are open, and the run that is on its way. */
const state = {
  /** @type {File[]} */ files: [],
  /** @type {Blob | undefined} */ page: undefined,
  /** @type {(() => void) | undefined} */ cancel: undefined,
  /** @type {Outcome | undefined} */ last: undefined,
  isListed: false,
};

class Cancelled extends Error {}

/** Runs the program over some recordings. @param {File[]} files @param {string[]} args @returns {Promise<Outcome>} */
async function run(files, args) {
  if (state.cancel) state.cancel();
  const module = await program;
  first.terminate();
  const thread = new Worker(worker);
  progress.value = 0;
  progress.hidden = element('cancel').hidden = false;
  try {
    const outcome = await new Promise((done, fail) => {
      state.cancel = () => fail(new Cancelled());
      thread.onmessage = ({ data }) => ('read' in data ? (progress.value = Math.min(1, data.read / data.of)) : done(data));
      thread.onerror = (event) => fail(new Error(event.message));
      thread.postMessage({ module, files, args });
    });
    state.last = outcome;
    if (outcome.ended || (outcome.code !== 0 && outcome.code !== 2)) throw new Error([outcome.errors.trim(), outcome.ended].filter(Boolean).join('\n'));
    return outcome;
  } finally {
    // Ends a run that is not done, and frees its memory.
    thread.terminate();
    state.cancel = undefined;
    progress.hidden = element('cancel').hidden = true;
  }
}

/** What is chosen of the recordings, as options: patterns of own code, processes, and the part of the time. */
function options() {
  const words = (/** @type {string} */ id) => input(id).value.split(',').map((word) => word.trim()).filter(Boolean);
  return ['process', 'own', 'from', 'to'].flatMap((id) => words(id).flatMap((word) => [`--${id}`, word]));
}

/** Names that are options or paths would be taken for those. @param {File} file */
const renamed = (file) => new File([file], file.name.replace(/[/\\]/g, '_').replace(/^[-.]+/, '_'), { lastModified: file.lastModified });

/** @param {File[]} files */
function distinct(files) {
  const seen = new Map();
  return files.map(renamed).map((file) => {
    const count = seen.get(file.name) || 0;
    seen.set(file.name, count + 1);
    return count ? new File([file], `${count + 1}-${file.name}`, { lastModified: file.lastModified }) : file;
  });
}

/** What to type where a page is not enough: the same in a terminal. @param {string[]} args */
function command(args) {
  const quoted = (/** @type {string} */ word) => (/^[\w.*=/-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  const line = (/** @type {string[]} */ words) => ['tracequet', ...words].map(quoted).join(' ');
  const [what] = args;
  const names = state.files.map((file) => file.name);
  const chosen = options();
  const to = what === 'report' || what === 'diff' ? ['-o', `${stem()}.html`] : what === 'explain' ? ['--format', 'json'] : [];
  if (what === 'convert') return line(['convert', ...names, '--lifetimes', ...chosen, '-o', stem()]);
  if (what === 'export') return line([...args, ...chosen.filter((_, at) => chosen[at - (at % 2)] !== '--own'), '-o', `${stem()}.profile`]);
  // Only `convert` takes a part of the time, and only what it made shows several recordings on one page.
  const isPart = chosen.includes('--from') || chosen.includes('--to');
  if (!isPart && (what === 'diff' || names.length === 1)) return line([what === 'diff' ? 'report' : what, ...args.slice(1), ...chosen, ...to]);
  const made = what === 'diff' ? ordered().map((name, index) => [[name], `side${index + 1}`]) : [[names, stem()]];
  const steps = made.map(([from, into]) => line(['convert', ...from, '--lifetimes', ...chosen, '-o', String(into)]));
  return [...steps, line([what === 'explain' ? what : 'report', ...made.map(([, into]) => String(into)), ...to])].join(' && ');
}

/** Two recordings as base and new: the older file first, or as the person says. */
function ordered() {
  const files = [...state.files].sort((a, b) => a.lastModified - b.lastModified || (a.name < b.name ? -1 : 1));
  if (select('show').value === 'back') files.reverse();
  return files.map((file) => file.name);
}

/** Does something with a run, and says what went wrong. @param {string[]} args @param {string} doing @param {(outcome: Outcome) => void | Promise<void>} then */
async function ask(args, doing, then) {
  failed.hidden = true;
  said.textContent = doing;
  try {
    const outcome = await run(state.files, args[0] === 'processes' ? args : [...args, ...options()]);
    await then(outcome);
    const names = state.files.map((file) => file.name).join(', ');
    const sum = state.files.reduce((all, file) => all + file.size, 0);
    said.textContent = `${names} (${size(sum)}), read in ${(outcome.milliseconds / 1000).toFixed(1)} s. Nothing was uploaded.`;
    return true;
  } catch (error) {
    if (error instanceof Cancelled) {
      said.textContent = 'Cancelled.';
    } else {
      said.textContent = GREETING;
      failed.textContent = `${error instanceof Error ? error.message : error}\n\nIn a terminal: ${command(args)}`;
      failed.hidden = false;
    }
    return false;
  }
}

/** Shows a page in a frame. @param {string} title @param {string} src */
function framed(title, src) {
  const frame = document.createElement('iframe');
  frame.title = title;
  frame.src = src;
  document.querySelector('main')?.append(frame);
  return frame;
}

/** Shows a page that the program wrote. @param {Blob} page */
function show(page) {
  state.page = page;
  document.querySelectorAll('iframe').forEach((frame) => (URL.revokeObjectURL(frame.src), frame.remove()));
  framed('The recording', URL.createObjectURL(page));
  if (sql) sql.textContent = 'SQL';
  start.hidden = true;
  element('actions').hidden = element('again').hidden = false;
  document.querySelector('header')?.append(element('choices'));
}

/** Opens recordings. @param {File[]} files */
async function open(files) {
  if (files.length === 0) return false;
  state.files = distinct(files);
  element('processes').replaceChildren();
  state.isListed = false;
  select('show').value = 'forth';
  element('order').hidden = files.length !== 2;
  return read();
}

/** Reads what is open: one recording as its page, two as what changed, several as a page of all. */
async function read() {
  const names = state.files.map((file) => file.name);
  const isDifference = names.length === 2 && select('show').value !== 'all';
  const sum = state.files.reduce((all, file) => all + file.size, 0);
  const what = names.length === 1 ? names[0] : `${names.length} recordings`;
  const args = isDifference ? ['diff', ...ordered()] : ['report', ...names];
  return ask(args, `Reading ${what} (${size(sum)})`, ({ out }) => show(new Blob([out], { type: 'text/html' })));
}

/** Lists the processes of what is open, once, for who wants to choose one. */
async function listProcesses() {
  if (state.isListed || state.files.length === 0 || state.cancel) return;
  state.isListed = true;
  const names = state.files.map((file) => file.name);
  await ask(['processes', ...names], 'Listing processes', async ({ out }) => {
    const lines = (await out.text()).split('\n').filter(Boolean);
    const choice = (/** @type {string} */ line) => {
      const [number, ...name] = line.split(' ');
      const made = document.createElement('option');
      made.value = number;
      made.label = name.join(' ');
      return made;
    };
    element('processes').replaceChildren(...lines.map(choice));
  });
}

/** Saves a file. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const stem = () => (state.files[0]?.name || 'recording').replace(/\.(nettrace|netperf|etl|gcdump|corprof)?(\.gz|\.zst|\.zip)?$/i, '');

const SUMS = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

/** Files as a .zip, stored: Parquet is compressed already. Layout: PKWARE's APPNOTE 4.3. @param {Outcome['made']} files */
function zipped(files) {
  const encoder = new TextEncoder();
  /** @type {BlobPart[]} */ const parts = [];
  /** @type {BlobPart[]} */ const directory = [];
  let at = 0;
  let length = 0;
  for (const { path, parts: content } of files) {
    const name = encoder.encode(path);
    let sum = -1;
    let bytes = 0;
    for (const part of content) {
      bytes += part.length;
      for (const byte of part) sum = SUMS[(sum ^ byte) & 255] ^ (sum >>> 8);
    }
    /** @param {boolean} central */
    const header = (central) => {
      const out = new DataView(new ArrayBuffer(central ? 46 : 30));
      let to = 0;
      const put = (/** @type {number} */ width, /** @type {number} */ value) => {
        if (width === 2) out.setUint16(to, value, true);
        else out.setUint32(to, value, true);
        to += width;
      };
      put(4, central ? 0x02014b50 : 0x04034b50);
      if (central) put(2, 20);
      // Version, names in UTF-8, stored, the first day that a .zip knows.
      for (const value of [20, 0x0800, 0, 0, 0x21]) put(2, value);
      for (const value of [~sum >>> 0, bytes, bytes]) put(4, value);
      put(2, name.length);
      put(2, 0);
      if (central) {
        for (const value of [0, 0, 0]) put(2, value);
        put(4, 0);
        put(4, at);
      }
      return out.buffer;
    };
    directory.push(header(true), name);
    length += 46 + name.length;
    parts.push(header(false), name, ...content);
    at += 30 + name.length + bytes;
  }
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, files.length, true);
  end.setUint16(10, files.length, true);
  end.setUint32(12, length, true);
  end.setUint32(16, at, true);
  return new Blob([...parts, ...directory, end.buffer], { type: 'application/zip' });
}

element('cancel').onclick = () => state.cancel?.();
element('save').onclick = () => state.page && save(state.page, `${stem()}.html`);
element('explain').onclick = () => {
  const names = state.files.map((file) => file.name);
  ask(['explain', ...names], 'Looking for findings', ({ out }) => save(out, `${stem()}.findings.json`));
};
element('tables').onclick = () => {
  const names = state.files.map((file) => file.name);
  ask(['convert', ...names, '-o', stem()], 'Writing tables', ({ made }) => save(zipped(made), `${stem()}.tables.zip`));
};
// Only a page for a host that has DuckDB beside it has this button. It shows SQL over the tables, and the page again.
const sql = document.getElementById('sql');
if (sql) {
  sql.onclick = async () => {
    const names = state.files.map((file) => file.name);
    const ofSql = () => [...document.querySelectorAll('iframe')].find((frame) => frame.title === 'SQL');
    if (!ofSql()) {
      await ask(['convert', ...names, '--format', 'arrow', '-o', stem()], 'Writing tables', ({ made }) => {
        const frame = framed('SQL', 'duckdb/index.html');
        frame.hidden = true;
        frame.onload = () => frame.contentWindow?.postMessage({ tracequet: 'tables', files: made }, location.origin);
      });
    }
    const isShown = ofSql()?.hidden === true;
    document.querySelectorAll('iframe').forEach((frame) => (frame.hidden = (frame.title === 'SQL') !== isShown));
    sql.textContent = isShown ? 'Back to the page' : 'SQL';
  };
}
element('profile').onclick = () => {
  const [what, format] = [select('what').value, select('format').value];
  const ends = /** @type {Record<string, string>} */ ({ firefox: 'json', perfetto: 'pftrace', speedscope: 'speedscope.json', pprof: 'pb', otlp: 'otlp', folded: 'folded.txt' });
  const args = ['export', state.files[state.files.length - 1].name, '--what', what, '--format', format];
  ask(args, 'Writing a profile', ({ out }) => save(out, `${stem()}.${what}.${ends[format]}`));
};
element('start').onsubmit = (event) => {
  event.preventDefault();
  if (state.files.length > 0) read();
};
element('process').onfocus = listProcesses;
const chooser = /** @type {HTMLInputElement} */ (element('files'));
chooser.onchange = () => open([...(chooser.files || [])]);
for (const kind of ['dragover', 'dragleave', 'drop']) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.toggle('over', kind === 'dragover');
    const dropped = /** @type {DragEvent} */ (event).dataTransfer;
    if (kind === 'drop' && dropped) open([...dropped.files]);
  });
}
// Another page that has this one in a frame may hand over recordings: {tracequet: 'open', files: [{name, bytes}]}. It gets a message with the outcome.
addEventListener('message', async ({ data, source }) => {
  if (!data || data.tracequet !== 'open' || !Array.isArray(data.files)) return;
  const files = data.files.map((/** @type {{name: string, bytes: ArrayBuffer}} */ file) => new File([file.bytes], String(file.name || 'recording')));
  const isOpen = await open(files);
  source?.postMessage({ tracequet: isOpen ? 'opened' : 'failed', error: isOpen ? '' : failed.textContent }, { targetOrigin: '*' });
});
