// The worker of the page: unpacks the program, or runs it once over the files that it is sent, and sends what came of it. `wasi.js` and
// `streams.js` stand before it.
'use strict';

onmessage = ({ data }) => {
  if (data.files) run(data);
  else unpack(data).then((module) => (postMessage({ module }), warm(module, data)), (error) => postMessage({ error: String(error) }));
};

/**
 * Runs the program over a small recording; the page does not use the outcome. A browser compiles a function when it is called first, and keeps
 * the code for all workers that run the same module.
 */
function warm(module, { recording, name }) {
  run({ module, files: [new File([bytesOf(recording)], name)], args: ['report', name] });
}

/** Bytes from digits of base 85, as build.mjs writes them. */
function bytesOf({ text, length }) {
  const bytes = new DataView(new ArrayBuffer((text.length / 5) * 4));
  for (let at = 0, to = 0; at < text.length; at += 5, to += 4) {
    let value = 0;
    for (let place = at; place < at + 5; place++) value = value * 85 + (text.charCodeAt(place) === 126 ? 25 : text.charCodeAt(place) - 35);
    bytes.setUint32(to, value);
  }
  return new Uint8Array(bytes.buffer, 0, length);
}

/** The program, compiled. It is packed as LZMA, its code by kind; the small program that unpacks it as gzip. */
async function unpack(data) {
  const small = new Response(new Blob([bytesOf(data.unpack)]).stream().pipeThrough(new DecompressionStream('gzip')));
  const root = new Folder();
  const packed = bytesOf(data.program);
  root.put('program', new OutsideFile(packed.length, 0n, (into, at) => (into.set(packed.subarray(at, at + into.length)), into.length)));
  const parts = [];
  let errors = '';
  const world = wasi({ args: ['unpack', 'program'], root, stdout: (part) => parts.push(part), stderr: (part) => (errors += new TextDecoder().decode(part)) });
  const { instance } = await WebAssembly.instantiate(await small.arrayBuffer(), world.imports);
  if (world.start(instance) !== 0) throw new Error(errors);
  return WebAssembly.compile(together(new Uint8Array(await new Blob(parts).arrayBuffer())));
}

function run({ module: program, files, args }) {
  const root = new Folder();
  root.entries.set('tmp', new Folder());
  let said = 0;
  const sum = files.reduce((all, file) => all + file.size, 0);
  const read = new Map();
  for (const file of files) {
    const progress = (done) => {
      read.set(file, done);
      const now = performance.now();
      if (now - said < 100) return;
      said = now;
      let all = 0;
      for (const part of read.values()) all += part;
      postMessage({ read: all, of: sum });
    };
    root.put(file.name, blobFile(file, progress));
  }
  const out = [];
  const decoder = new TextDecoder();
  let errors = '';
  const began = performance.now();
  const world = wasi({ args: ['tracequet', ...args], root, stdout: (part) => out.push(part), stderr: (part) => (errors += decoder.decode(part, { stream: true })) });
  let instance;
  let code = 101;
  let thrown;
  try {
    instance = new WebAssembly.Instance(program, world.imports);
    code = world.start(instance);
  } catch (error) {
    thrown = error;
  }
  const made = [];
  for (const [path, file] of root.files()) if (!path.startsWith('tmp/')) made.push({ path, parts: file.parts() });
  const outcome = {
    code,
    ended: ended(thrown, errors),
    out: new Blob(out),
    errors,
    made,
    milliseconds: performance.now() - began,
    memory: { program: instance ? instance.exports.memory.buffer.byteLength : 0, files: MemoryFile.most },
  };
  // Handed over, not copied.
  postMessage(outcome, made.flatMap(({ parts }) => parts.map((part) => part.buffer)));
}
