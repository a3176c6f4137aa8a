
// The rows behind the panels: of each kind as columns, each row exact, or a sum of a part of the time.

const inflate = async id => {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
};

// Numbers one after the other, as Rust wrote them.
const reader = buffer => {
  let at = 0;
  const take = Type => count => {
    const end = at + count * Type.BYTES_PER_ELEMENT;
    const part = new Type(buffer.slice(at, end));
    at = end;
    return part;
  };
  return { u8: take(Uint8Array), u16: take(Uint16Array), u32: take(Uint32Array), u64: take(BigUint64Array), f64: take(Float64Array) };
};

const NO_NODE = 0xffffffff;
const NO_LINE = 255;
const readRows = buffer => {
  const read = reader(buffer);
  const [count, parts, blur, hasMore] = read.u32(4);
  const [low, high] = [read.u32(count), read.u32(count)];
  const at = new Float64Array(count);
  let sum = 0;
  for (let row = 0; row < count; row++) { sum += low[row] + high[row] * 2 ** 32; at[row] = sum; }
  const rows = { count, parts, blur, at, thread: read.u16(count), route: read.u8(count), line: read.u8(count), node: read.u32(count), things: read.u32(count), amount: read.f64(count), longest: null, more: null, tree: null, lines: null, areLives: false, shownFor: null, shown: null };
  rows.longest = parts ? read.f64(count) : rows.amount;
  rows.more = hasMore ? read.f64(count) : null;
  return rows;
};
// By their kind.
const kinds = new Map();
const readKinds = async () => {
  const head = document.getElementById('selection');
  if (!head) return;
  Object.assign(known, JSON.parse(new TextDecoder().decode(await inflate('selection'))));
  for (const element of every('script[id^="rows-"]')) kinds.set(element.id.slice(5), readRows(await inflate(element.id)));
  // The route of a request is its line of the table.
  for (const rows of ['requests', 'durations'].map(kind => kinds.get(kind)).filter(Boolean)) rows.route = rows.line;
};

// A method is chosen by its name, with or without its arguments, as frames have it or as a person writes it.
const isMethod = ([name, , written], method) => name === method || written === method || name.startsWith(method + '(');
// Of each node whether the method is on its stack.
const nodesWith = (tree, method) => {
  if (tree.asked !== method) {
    const names = tree.texts.map(text => isMethod(text, method));
    const nodes = new Uint8Array(tree.parent.length);
    for (let node = 1; node < nodes.length; node++) nodes[node] = names[tree.name[node]] || nodes[tree.parent[node]] ? 1 : 0;
    Object.assign(tree, { asked: method, askedNodes: nodes });
  }
  return tree.askedNodes;
};

// What of a selection the rows of a kind do not know: such a panel shows all of it, and says so.
const unknownTo = (rows, selection) => {
  const { thread, route, type, method } = selection;
  const of = { thread: thread !== null && rows.blur > 0, route: route !== null && (rows.blur > (rows.route === rows.line ? 3 : 1) || !known.routes.includes(route)), type: type !== null && !rows.lines, method: method !== null && (rows.blur > 2 || !rows.tree) };
  return Object.keys(of).filter(name => of[name]);
};
// The time that rows are shown of: that which is chosen, or the parts that have some of it.
const timeOf = (rows, time) => {
  if (!time) return null;
  if (!rows.parts) return time;
  const part = known.end / rows.parts;
  return [Math.floor(time[0] / part + 1e-9) * part, Math.min(Math.ceil(time[1] / part - 1e-9), rows.parts) * part];
};
// The first place of ordered values that has this much.
const firstPlace = (values, least) => {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < least) low = middle + 1; else high = middle;
  }
  return low;
};
/** The places of the rows that a selection shows. The panels of a kind ask for the same ones: they are looked for once. */
const shownRows = (rows, selection) => {
  if (rows.shownFor === selection) return rows.shown;
  const without = new Set(unknownTo(rows, selection));
  const time = timeOf(rows, selection.time);
  const unit = rows.parts ? known.end / rows.parts : 1;
  const thread = without.has('thread') ? null : selection.thread;
  const route = selection.route === null || without.has('route') ? -1 : known.routes.indexOf(selection.route);
  const nodes = selection.method === null || without.has('method') ? null : nodesWith(rows.tree, selection.method);
  const type = without.has('type') ? null : selection.type;
  // Of lives it is the moment at which the time ends that counts.
  const moment = Math.min(time ? time[1] / unit : Infinity, known.end);
  const first = time && !rows.areLives ? firstPlace(rows.at, time[0] / unit - 1e-6) : 0;
  const end = time && !rows.areLives ? firstPlace(rows.at, time[1] / unit - 1e-6) : rows.count;
  const places = new Uint32Array(Math.max(end - first, 0));
  let count = 0;
  for (let row = first; row < end; row++) {
    if (rows.areLives && (rows.at[row] > moment || rows.more[row] <= moment)) continue;
    if (thread !== null && rows.thread[row] !== thread) continue;
    if (route >= 0 && rows.route[row] !== route) continue;
    if (type !== null && rows.lines[rows.line[row]] !== type) continue;
    if (nodes && (rows.node[row] === NO_NODE || !nodes[rows.node[row] >>> 1])) continue;
    places[count++] = row;
  }
  [rows.shownFor, rows.shown] = [selection, places.subarray(0, count)];
  return rows.shown;
};
// What a panel says of the part that it shows.
const aboutPart = (rows, selection) => {
  const time = timeOf(rows, selection.time);
  const without = unknownTo(rows, selection);
  if (rows.areLives) return ` alive at ${duration(time ? time[1] : known.end)}${without.length ? `, of every ${without.join(' and ')}` : ''}`;
  return (time ? ` from ${duration(time[0])} to ${duration(time[1])}` : '') + (without.length ? `; of every ${without.join(' and ')}: it is not told apart here` : '');
};
