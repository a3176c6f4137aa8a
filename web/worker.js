// The worker of the page: runs the program once over the files that it is sent, and sends what came of it. `wasi.js` stands before it.
'use strict';

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
  postMessage({
    code,
    ended: ended(thrown, errors),
    out: new Blob(out),
    errors,
    made,
    milliseconds: performance.now() - began,
    memory: { program: instance ? instance.exports.memory.buffer.byteLength : 0, files: MemoryFile.most },
  });
};
