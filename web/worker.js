// The worker of the page: runs the program once over the files that it is sent, and sends what came of it. `wasi.js` stands before it.
'use strict';

/** A trap, in words. */
function trapped(error) {
  const text = String(error && error.message ? error.message : error);
  const memory = /memory|unreachable|out of bounds|allocation/i.test(text);
  return memory ? 'The program ran out of the memory that a browser gives, or met a defect.' : `The program ended: ${text}`;
}

onmessage = ({ data: { module: program, files, args } }) => {
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
  const errors = [];
  const began = performance.now();
  const world = wasi({ args: ['tracequet', ...args], root, stdout: (part) => out.push(part), stderr: (part) => errors.push(part) });
  let instance;
  let code = 101;
  let trap = '';
  try {
    instance = new WebAssembly.Instance(program, world.imports);
    code = world.start(instance);
  } catch (error) {
    trap = trapped(error);
  }
  const made = [];
  for (const [path, file] of root.files()) if (!path.startsWith('tmp/')) made.push({ path, parts: file.parts() });
  postMessage({
    code,
    trap,
    out: new Blob(out),
    errors: new Blob(errors),
    made,
    milliseconds: performance.now() - began,
    memory: { program: instance ? instance.exports.memory.buffer.byteLength : 0, files: MemoryFile.most },
  });
};
