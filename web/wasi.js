// WASI preview 1, as far as the program uses it: one folder tree in memory, and files that are read from outside of it in pieces. The same
// file serves the worker of the page and node. Facts: the witx files of WebAssembly/WASI (snapshot preview 1), wasi-libc.
'use strict';

/** Numbers of errors in preview 1. */
const ERRNO = {
  success: 0, badf: 8, exist: 20, fbig: 22, inval: 28, io: 29, isdir: 31, noent: 44, notdir: 54, nospc: 51, notempty: 55, notsup: 58, rofs: 69, spipe: 70,
};
const FILETYPE = { character: 2, directory: 3, regular: 4 };
const OFLAGS = { creat: 1, directory: 2, excl: 4, trunc: 8 };
const FDFLAGS_APPEND = 1;
const CHUNK = 1 << 20;

let inodes = 2n;
const nanoseconds = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;

/** Thrown where there is no memory for a file. */
class NoSpace extends Error {}

/** Thrown by proc_exit. */
class Exit {
  constructor(code) {
    this.code = code;
  }
}

/** A file in memory, in chunks, so that one that grows is not copied. `MemoryFile.held` counts the bytes of all. */
class MemoryFile {
  static held = 0;
  static most = 0;
  type = FILETYPE.regular;
  inode = inodes++;
  size = 0;
  modified = nanoseconds();
  #chunks = [];

  read(into, at) {
    const wanted = Math.max(0, Math.min(into.length, this.size - at));
    for (let done = 0; done < wanted; ) {
      const from = (at + done) % CHUNK;
      const length = Math.min(wanted - done, CHUNK - from);
      const chunk = this.#chunks[Math.floor((at + done) / CHUNK)];
      const part = into.subarray(done, done + length);
      part.fill(0);
      if (chunk) part.set(chunk.subarray(from, Math.min(from + length, chunk.length)));
      done += length;
    }
    return wanted;
  }

  write(bytes, at) {
    for (let done = 0; done < bytes.length; ) {
      const from = (at + done) % CHUNK;
      const length = Math.min(bytes.length - done, CHUNK - from);
      this.#chunk(Math.floor((at + done) / CHUNK), from + length).set(bytes.subarray(done, done + length), from);
      done += length;
    }
    this.size = Math.max(this.size, at + bytes.length);
    this.modified = nanoseconds();
    return bytes.length;
  }

  /** The chunk of a number with this many bytes at least. The first one grows, so that small files are small. */
  #chunk(index, least) {
    const old = this.#chunks[index];
    if (old && old.length >= least) return old;
    let length = CHUNK;
    if (index === 0) for (length = 4096; length < least; ) length *= 2;
    let chunk;
    try {
      chunk = new Uint8Array(length);
    } catch {
      throw new NoSpace();
    }
    if (old) chunk.set(old);
    MemoryFile.held += length - (old ? old.length : 0);
    MemoryFile.most = Math.max(MemoryFile.most, MemoryFile.held);
    return (this.#chunks[index] = chunk);
  }

  resize(size) {
    for (let index = Math.ceil(size / CHUNK); index < this.#chunks.length; index++) {
      MemoryFile.held -= this.#chunks[index] ? this.#chunks[index].length : 0;
    }
    this.#chunks.length = Math.min(this.#chunks.length, Math.ceil(size / CHUNK));
    const last = this.#chunks[Math.ceil(size / CHUNK) - 1];
    if (size < this.size && last && size % CHUNK) last.fill(0, size % CHUNK);
    this.size = size;
    this.modified = nanoseconds();
  }

  /** Its bytes as parts of a Blob. */
  parts() {
    const parts = [];
    for (let at = 0, index = 0; at < this.size; at += CHUNK, index++) {
      const length = Math.min(CHUNK, this.size - at);
      const chunk = this.#chunks[index] || new Uint8Array(0);
      const part = new Uint8Array(length);
      part.set(chunk.subarray(0, length));
      parts.push(part);
    }
    return parts;
  }
}

/** A file that is only read, by `readAt(into, at)`, which gives the number of bytes. */
class OutsideFile {
  type = FILETYPE.regular;
  inode = inodes++;

  constructor(size, modified, readAt) {
    this.size = size;
    this.modified = modified;
    /** Reads what there is of the wanted bytes. */
    this.read = (into, at) => {
      const wanted = Math.max(0, Math.min(into.length, this.size - at));
      return wanted ? readAt(into.subarray(0, wanted), at) : 0;
    };
  }

  resize() {}
}

/** Bytes of a piece of a file of a browser, and how many pieces of each are held: an .etl is read in a place for each processor. */
const PIECE = 1 << 20;
const PIECES = 8;

/** A file of a browser, read in pieces. Only workers have FileReaderSync. `progress` gets the bytes that were read. */
function blobFile(blob, progress) {
  const reader = new FileReaderSync();
  // By their numbers; the one that was used last is behind all others.
  const pieces = new Map();
  let done = 0;
  const piece = (number) => {
    let held = pieces.get(number);
    if (!pieces.delete(number)) {
      held = new Uint8Array(reader.readAsArrayBuffer(blob.slice(number * PIECE, (number + 1) * PIECE)));
      progress((done += held.length));
    }
    pieces.set(number, held);
    if (pieces.size > PIECES) pieces.delete(pieces.keys().next().value);
    return held;
  };
  return new OutsideFile(blob.size, BigInt(blob.lastModified || 0) * 1000000n, (into, at) => {
    for (let to = 0; to < into.length; ) {
      const from = (at + to) % PIECE;
      const part = piece(Math.floor((at + to) / PIECE)).subarray(from, from + into.length - to);
      into.set(part, to);
      to += part.length;
    }
    return into.length;
  });
}

class Folder {
  type = FILETYPE.directory;
  inode = inodes++;
  size = 0;
  modified = nanoseconds();
  entries = new Map();

  /** Puts a file at a path, and makes the folders that lead to it. */
  put(path, file) {
    const names = path.split('/').filter(Boolean);
    const name = names.pop();
    let folder = this;
    for (const part of names) {
      if (!folder.entries.has(part)) folder.entries.set(part, new Folder());
      folder = folder.entries.get(part);
    }
    folder.entries.set(name, file);
  }

  /** The files in memory below, with their paths. */
  *files(path = '') {
    for (const [name, entry] of this.entries) {
      if (entry instanceof Folder) yield* entry.files(`${path}${name}/`);
      else if (entry instanceof MemoryFile) yield [path + name, entry];
    }
  }
}

/** Standard output and standard error: `take` gets the bytes. */
class Output {
  type = FILETYPE.character;
  inode = inodes++;
  size = 0;
  modified = 0n;

  constructor(take) {
    this.take = take;
  }

  read() {
    return 0;
  }

  write(bytes) {
    this.take(bytes.slice());
    return bytes.length;
  }

  resize() {}
}

/**
 * A program with its world. `args` are its words, the first one its name; `root` is its folder, in which it also works; `stdout` and
 * `stderr` get what it prints. `start(instance)` runs it and gives the exit code; a trap is thrown.
 */
function wasi({ args, root, stdout, stderr }) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const open = [new Output(() => {}), new Output(stdout), new Output(stderr), root].map((node) => ({ node, at: 0, append: false }));
  let memory;
  let bytes = new Uint8Array(0);
  let view;

  // Views of a memory that has grown are empty.
  const look = () => {
    if (bytes.buffer !== memory.buffer) {
      bytes = new Uint8Array(memory.buffer);
      view = new DataView(memory.buffer);
    }
  };
  const u32 = (at, value) => view.setUint32(at, value, true);
  const u64 = (at, value) => view.setBigUint64(at, value, true);

  /** The folder that a path leads to, the name in it, and what has that name. */
  function place(fd, pointer, length) {
    const from = open[fd];
    if (!from) return { error: ERRNO.badf };
    if (from.node.type !== FILETYPE.directory) return { error: ERRNO.notdir };
    const way = [from.node];
    const names = decoder.decode(bytes.slice(pointer, pointer + length)).split('/').filter((name) => name && name !== '.');
    if (names.length === 0) return { error: 0, name: '', node: from.node };
    const last = names.pop();
    for (const name of names) {
      const next = name === '..' ? (way.length > 1 && way.pop(), way.pop()) : way[way.length - 1].entries.get(name);
      if (!next) return { error: ERRNO.noent };
      if (next.type !== FILETYPE.directory) return { error: ERRNO.notdir };
      way.push(next);
    }
    if (last === '..') return { error: 0, name: last, node: way[Math.max(0, way.length - 2)] };
    const folder = way[way.length - 1];
    return { error: 0, folder, name: last, node: folder.entries.get(last) };
  }

  function stat(at, node) {
    u64(at, 1n);
    u64(at + 8, node.inode);
    u64(at + 16, BigInt(node.type));
    u64(at + 24, 1n);
    u64(at + 32, BigInt(node.size));
    for (const time of [40, 48, 56]) u64(at + time, node.modified);
  }

  /** Moves bytes through a list of buffers by `move(buffer, done)`, and says at `out` how many. */
  function transfer(list, count, out, move) {
    let done = 0;
    for (let index = 0; index < count; index++) {
      const start = view.getUint32(list + 8 * index, true);
      const length = view.getUint32(list + 8 * index + 4, true);
      if (length === 0) continue;
      const moved = move(bytes.subarray(start, start + length), done);
      done += moved;
      if (moved < length) break;
    }
    u32(out, done);
    return done;
  }

  const isOpen = (node) => open.some((file) => file && file.node === node);

  /** A call on an open file: `call(file)` gives an errno. */
  const on = (fd, call) => {
    look();
    const file = open[fd];
    if (!file) return ERRNO.badf;
    try {
      return call(file);
    } catch (error) {
      if (error instanceof NoSpace) return ERRNO.nospc;
      throw error;
    }
  };
  const onFile = (fd, call) => on(fd, (file) => (file.node.type === FILETYPE.directory ? ERRNO.isdir : call(file)));

  const calls = {
    args_sizes_get(count, size) {
      look();
      u32(count, args.length);
      u32(size, args.reduce((sum, word) => sum + encoder.encode(word).length + 1, 0));
      return 0;
    },
    args_get(pointers, at) {
      look();
      args.forEach((word, index) => {
        const text = encoder.encode(`${word}\0`);
        u32(pointers + 4 * index, at);
        bytes.set(text, at);
        at += text.length;
      });
      return 0;
    },
    environ_sizes_get(count, size) {
      look();
      u32(count, 0);
      u32(size, 0);
      return 0;
    },
    environ_get: () => 0,
    clock_res_get(_, out) {
      look();
      u64(out, 1000n);
      return 0;
    },
    clock_time_get(clock, _, out) {
      look();
      u64(out, clock === 0 ? nanoseconds() : BigInt(Math.round(performance.now() * 1e6)));
      return 0;
    },
    random_get(at, length) {
      look();
      for (let done = 0; done < length; done += 65536) crypto.getRandomValues(bytes.subarray(at + done, at + Math.min(length, done + 65536)));
      return 0;
    },
    sched_yield: () => 0,
    poll_oneoff: () => ERRNO.notsup,
    proc_raise: () => ERRNO.notsup,
    proc_exit(code) {
      throw new Exit(code);
    },

    fd_prestat_get: (fd, out) =>
      on(fd, () => {
        if (fd !== 3) return ERRNO.badf;
        u32(out, 0);
        u32(out + 4, 1);
        return 0;
      }),
    fd_prestat_dir_name: (fd, at) => on(fd, () => ((bytes[at] = 0x2f), 0)),
    fd_close: (fd) =>
      on(fd, ({ node }) => {
        open[fd] = undefined;
        // The last one to close a file without a name frees it.
        if (node.isUnlinked && !isOpen(node)) node.resize(0);
        return 0;
      }),
    fd_fdstat_get: (fd, out) =>
      on(fd, (file) => {
        bytes.fill(0, out, out + 24);
        bytes[out] = file.node.type;
        bytes[out + 2] = file.append ? FDFLAGS_APPEND : 0;
        // All rights; those of a terminal are without seek and tell.
        u64(out + 8, file.node.type === FILETYPE.character ? 0xffffffffffffffdbn : 0xffffffffffffffffn);
        u64(out + 16, 0xffffffffffffffffn);
        return 0;
      }),
    fd_fdstat_set_flags: () => 0,
    fd_advise: () => 0,
    fd_allocate: () => ERRNO.notsup,
    fd_datasync: () => 0,
    fd_sync: () => 0,
    fd_renumber: () => ERRNO.notsup,
    fd_filestat_get: (fd, out) => on(fd, (file) => (stat(out, file.node), 0)),
    fd_filestat_set_size: (fd, size) => onFile(fd, (file) => (file.node.resize(Number(size)), 0)),
    fd_filestat_set_times: (fd) => on(fd, () => 0),
    fd_read: (fd, list, count, out) =>
      onFile(fd, (file) => {
        file.at += transfer(list, count, out, (buffer, done) => file.node.read(buffer, file.at + done));
        return 0;
      }),
    fd_pread: (fd, list, count, offset, out) =>
      onFile(fd, (file) => (transfer(list, count, out, (buffer, done) => file.node.read(buffer, Number(offset) + done)), 0)),
    fd_write: (fd, list, count, out) =>
      onFile(fd, (file) => {
        if (file.node instanceof OutsideFile) return ERRNO.rofs;
        if (file.append) file.at = file.node.size;
        file.at += transfer(list, count, out, (buffer, done) => file.node.write(buffer, file.at + done));
        return 0;
      }),
    fd_pwrite: (fd, list, count, offset, out) =>
      onFile(fd, (file) => {
        if (file.node instanceof OutsideFile) return ERRNO.rofs;
        transfer(list, count, out, (buffer, done) => file.node.write(buffer, Number(offset) + done));
        return 0;
      }),
    fd_seek: (fd, offset, whence, out) =>
      onFile(fd, (file) => {
        if (file.node.type === FILETYPE.character) return ERRNO.spipe;
        const to = Number(offset) + [0, file.at, file.node.size][whence];
        if (!(to >= 0)) return ERRNO.inval;
        file.at = to;
        u64(out, BigInt(to));
        return 0;
      }),
    fd_tell: (fd, out) => onFile(fd, (file) => (u64(out, BigInt(file.at)), 0)),
    fd_readdir: (fd, at, length, cookie, out) =>
      on(fd, (file) => {
        if (file.node.type !== FILETYPE.directory) return ERRNO.notdir;
        // The names as of the beginning: the program may remove some meanwhile.
        if (cookie === 0n || !file.listing) file.listing = [['.', file.node], ['..', file.node], ...file.node.entries];
        let used = 0;
        for (let index = Number(cookie); index < file.listing.length && used < length; index++) {
          const [name, node] = file.listing[index];
          const text = encoder.encode(name);
          const entry = new Uint8Array(24 + text.length);
          const fields = new DataView(entry.buffer);
          fields.setBigUint64(0, BigInt(index + 1), true);
          fields.setBigUint64(8, node.inode, true);
          fields.setUint32(16, text.length, true);
          fields.setUint8(20, node.type);
          entry.set(text, 24);
          const part = entry.subarray(0, length - used);
          bytes.set(part, at + used);
          used += part.length;
        }
        u32(out, used);
        return 0;
      }),

    path_create_directory: (fd, at, length) => {
      look();
      const { error, folder, name, node } = place(fd, at, length);
      if (error || node) return error || ERRNO.exist;
      folder.entries.set(name, new Folder());
      return 0;
    },
    path_filestat_get: (fd, _, at, length, out) => {
      look();
      const { error, node } = place(fd, at, length);
      if (error || !node) return error || ERRNO.noent;
      stat(out, node);
      return 0;
    },
    path_filestat_set_times: () => 0,
    path_link: () => ERRNO.notsup,
    path_symlink: () => ERRNO.notsup,
    path_readlink: (fd, at, length) => {
      look();
      const { error, node } = place(fd, at, length);
      return error || (node ? ERRNO.inval : ERRNO.noent);
    },
    path_open: (fd, _, at, length, oflags, rights, inherited, fdflags, out) => {
      look();
      const found = place(fd, at, length);
      let node = found.node;
      if (found.error) return found.error;
      if (node && (oflags & (OFLAGS.creat | OFLAGS.excl)) === (OFLAGS.creat | OFLAGS.excl)) return ERRNO.exist;
      if (!node && !(oflags & OFLAGS.creat)) return ERRNO.noent;
      if (!node) found.folder.entries.set(found.name, (node = new MemoryFile()));
      if (oflags & OFLAGS.directory && node.type !== FILETYPE.directory) return ERRNO.notdir;
      if (oflags & OFLAGS.trunc) {
        if (node.type === FILETYPE.directory) return ERRNO.isdir;
        if (node instanceof OutsideFile) return ERRNO.rofs;
        node.resize(0);
      }
      let free = 4;
      while (open[free]) free++;
      open[free] = { node, at: 0, append: (fdflags & FDFLAGS_APPEND) !== 0 };
      u32(out, free);
      return 0;
    },
    path_unlink_file: (fd, at, length) => {
      look();
      const { error, folder, name, node } = place(fd, at, length);
      if (error || !node) return error || ERRNO.noent;
      if (node.type === FILETYPE.directory) return ERRNO.isdir;
      folder.entries.delete(name);
      // As on Unix, who has it open goes on with it.
      if (isOpen(node)) node.isUnlinked = true;
      else node.resize(0);
      return 0;
    },
    path_remove_directory: (fd, at, length) => {
      look();
      const { error, folder, name, node } = place(fd, at, length);
      if (error || !node) return error || ERRNO.noent;
      if (node.type !== FILETYPE.directory) return ERRNO.notdir;
      if (node.entries.size > 0) return ERRNO.notempty;
      folder.entries.delete(name);
      return 0;
    },
    path_rename: (fd, at, length, toFd, toAt, toLength) => {
      look();
      const from = place(fd, at, length);
      const to = place(toFd, toAt, toLength);
      if (from.error || to.error) return from.error || to.error;
      if (!from.node) return ERRNO.noent;
      if (to.node && to.node.type === FILETYPE.directory && to.node.entries.size > 0) return ERRNO.notempty;
      from.folder.entries.delete(from.name);
      to.folder.entries.set(to.name, from.node);
      return 0;
    },
    sock_accept: () => ERRNO.notsup,
    sock_recv: () => ERRNO.notsup,
    sock_send: () => ERRNO.notsup,
    sock_shutdown: () => ERRNO.notsup,
  };
  return {
    imports: { wasi_snapshot_preview1: calls },
    start(instance) {
      memory = instance.exports.memory;
      try {
        instance.exports._start();
        return 0;
      } catch (thrown) {
        if (thrown instanceof Exit) return thrown.code;
        throw thrown;
      }
    },
  };
}

/**
 * Why a program ended before its end, in words; nothing where it did not. `said` is what it printed to standard error, `thrown` what `start`
 * threw, if it did.
 */
function ended(thrown, said) {
  // Rust's words, those of the errno `nospc`, and V8's, SpiderMonkey's and JavaScriptCore's.
  const isMemory = /memory allocation of|capacity overflow|No space left/.test(said) || (thrown && /memory|allocation/i.test(thrown.message) && !/access out of bounds/.test(thrown.message));
  if (isMemory) return 'It needs more memory than the program has in a browser: 4 GB, as much as 32-bit WebAssembly can have, or less where the browser gives less.';
  return thrown ? `The program ended at a defect of its own (${thrown.message || thrown}). The recording is not changed, and other recordings can be opened.` : '';
}

if (typeof module !== 'undefined') module.exports = { wasi, ended, Folder, MemoryFile, OutsideFile };
