// The code of a WebAssembly module by kind: opcodes, numbers of locals, addresses and so on, one kind after the other. What repeats in
// code repeats within its kind, so that LZMA packs it a twelfth smaller. build.mjs takes the program apart, the worker of the page puts it
// together. Facts: the binary format of the WebAssembly specification.
'use strict';

const CODE_SECTION = 10;
/** Kinds of bytes in functions. */
const KIND = { locals: 0, opcode: 1, local: 2, number32: 3, number64: 4, offset: 5, label: 6, callee: 7, labels: 8, wide: 9 };
const KINDS = Object.keys(KIND).length;

/** Bytes that are read or written in their order. A tape grows when bytes are written behind its end. */
class Tape {
  constructor(bytes = new Uint8Array(1 << 16)) {
    this.bytes = bytes;
    this.at = 0;
  }

  byte() {
    return this.bytes[this.at++];
  }

  /** An unsigned LEB128. */
  number() {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = this.byte();
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  }

  put(byte) {
    if (this.at === this.bytes.length) this.#grow(1);
    this.bytes[this.at++] = byte;
  }

  putNumber(value) {
    for (; value > 127; value = Math.floor(value / 128)) this.put((value & 127) | 128);
    this.put(value);
  }

  putAll(bytes) {
    this.#grow(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  done() {
    return this.bytes.subarray(0, this.at);
  }

  #grow(more) {
    if (this.at + more <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.at + more, this.bytes.length * 2));
    grown.set(this.done());
    this.bytes = grown;
  }
}

/** Goes through a function and calls `move` with the kind of each of its bytes; `move` gives the byte. */
function walk(move) {
  const number = (kind) => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = move(kind);
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  const several = (kind, count) => {
    for (; count > 0; count--) move(kind);
  };
  // How an address is aligned goes with the instruction.
  const memory = () => (number(KIND.opcode), number(KIND.offset));
  for (let groups = number(KIND.locals); groups > 0; groups--) {
    number(KIND.locals);
    move(KIND.locals);
  }
  for (let depth = 1; depth > 0; ) {
    const opcode = move(KIND.opcode);
    if (opcode >= 0x20 && opcode <= 0x22) number(KIND.local);
    else if (opcode === 0x41) number(KIND.number32);
    else if (opcode >= 0x28 && opcode <= 0x3e) memory();
    else if (opcode === 0x0b) depth--;
    else if (opcode >= 0x02 && opcode <= 0x04) {
      number(KIND.opcode);
      depth++;
    } else if (opcode === 0x0c || opcode === 0x0d) number(KIND.label);
    else if (opcode === 0x10) number(KIND.callee);
    else if (opcode === 0x42) number(KIND.number64);
    else if (opcode === 0x0e) for (let labels = number(KIND.labels); labels >= 0; labels--) number(KIND.labels);
    else if (opcode === 0x11) number(KIND.wide), number(KIND.wide);
    else if (opcode === 0x23 || opcode === 0x24 || opcode === 0x3f || opcode === 0x40) number(KIND.opcode);
    else if (opcode === 0x43) several(KIND.wide, 4);
    else if (opcode === 0x44) several(KIND.wide, 8);
    else if (opcode === 0xfc) {
      const second = number(KIND.opcode);
      if (second > 11) throw new Error(`an instruction that is not known: 0xfc ${second}`);
      several(KIND.opcode, { 8: 2, 9: 1, 10: 2, 11: 1 }[second] ?? 0);
    } else if (opcode === 0xfd) {
      const second = number(KIND.opcode);
      if (second <= 11 || second === 92 || second === 93) memory();
      else if (second === 12 || second === 13) several(KIND.wide, 16);
      else if (second >= 21 && second <= 34) move(KIND.opcode);
      else if (second >= 84 && second <= 91) memory(), move(KIND.opcode);
    } else if (!((opcode >= 0x45 && opcode <= 0xc4) || [0x00, 0x01, 0x05, 0x0f, 0x1a, 0x1b].includes(opcode))) {
      throw new Error(`an instruction that is not known: ${opcode}`);
    }
  }
}

/** Copies the sections of a module, and calls `functions` with the number of functions where they stand. */
function sections(from, to, functions) {
  to.putAll(from.bytes.subarray(from.at, (from.at += 8)));
  while (from.at < from.bytes.length) {
    const section = from.byte();
    const length = from.number();
    to.put(section);
    to.putNumber(length);
    if (section !== CODE_SECTION) to.putAll(from.bytes.subarray(from.at, (from.at += length)));
    else {
      const count = from.number();
      to.putNumber(count);
      functions(count);
    }
  }
}

/** A module with its code by kind: the lengths of the kinds and of the rest, then these. */
function apart(module) {
  const from = new Tape(module);
  const rest = new Tape();
  const kinds = Array.from({ length: KINDS }, () => new Tape());
  const move = (kind) => {
    const byte = from.byte();
    kinds[kind].put(byte);
    return byte;
  };
  sections(from, rest, (count) => {
    // The length of a function follows from its end.
    for (; count > 0; count--) from.number(), walk(move);
  });
  const out = new Tape();
  const parts = [...kinds, rest];
  for (const part of parts) out.putNumber(part.at);
  for (const part of parts) out.putAll(part.done());
  return out.done();
}

/** The module that `apart` took apart. */
function together(bytes) {
  const head = new Tape(bytes);
  const lengths = Array.from({ length: KINDS + 1 }, () => head.number());
  const parts = lengths.map((length) => new Tape(bytes.subarray(head.at, (head.at += length))));
  const out = new Tape(new Uint8Array(bytes.length + (bytes.length >> 5)));
  const body = new Tape();
  const move = (kind) => {
    const byte = parts[kind].byte();
    body.put(byte);
    return byte;
  };
  sections(parts[KINDS], out, (count) => {
    for (; count > 0; count--) {
      body.at = 0;
      walk(move);
      out.putNumber(body.at);
      out.putAll(body.done());
    }
  });
  return out.done();
}

if (typeof module !== 'undefined') module.exports = { apart, together };
