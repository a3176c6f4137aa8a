
// Map of the heap: a column for each collection, a row for each part of the address space.
const STATES = ['nothing of the heap', 'survived in place', 'moved here', 'moved away', 'freed', 'not collected', 'new', 'stayed while others moved'];
const STATE_COLORS = [null, 'in-place', 'moved', 'away', 'freed', 'kept', 'new', 'stayed'];
const GENERATIONS = ['generation 0', 'generation 1', 'generation 2', 'large objects', 'pinned objects', 'frozen', '', 'unknown generation'];
// Lines beside the colours, by their places in ETCHES.
const STATE_ETCHES = [0, 0, 1, 3, 4, 2, 5, 6];
const GENERATION_ETCHES = [0, 1, 2, 3, 6, 5, 4, 4];
const GENERATION_COLORS = ['g0', 'g1', 'g2', 'lo', 'po', 'bg', 'ot', 'ot'];

// Ranges of all collections, by which an address is followed as `tracequet survived --follow` does.
const COLLECTS = 0, LEAVES = 1, NEVER = 3;
const readRanges = buffer => {
  const read = reader(buffer);
  const [count, ranges, bounds, isWhole] = read.u32(4);
  const all = { ids: read.u32(count), times: read.f64(count), collected: read.u8(count), runtimes: read.u8(count), effects: read.u8(count * 7), isWhole: isWhole === 1 };
  const keys = read.u32(ranges), steps = read.f64(ranges), lengths = read.f64(ranges), moves = read.f64(ranges);
  all.ranges = Array.from({ length: count }, () => [[], []]);
  let start = 0;
  for (let at = 0; at < ranges; at++) {
    start += steps[at];
    const isMoved = keys[at] >> 1 & 1;
    all.ranges[keys[at] >> 2][isMoved].push({ start, length: lengths[at], to: start + moves[at], isClamped: (keys[at] & 1) === 1 });
    start += lengths[at];
  }
  const phases = read.u32(bounds), generations = read.u8(bounds), starts = read.f64(bounds), sizes = read.f64(bounds);
  all.bounds = Array.from({ length: count }, () => [[], []]);
  for (let at = 0; at < bounds; at++) all.bounds[phases[at] >> 1][phases[at] & 1].push({ generation: generations[at], start: starts[at], length: sizes[at] });
  return all;
};
const holds = (range, address) => address >= range.start && address - range.start < range.length;
// The generation at an address; null when no bounds, or several that disagree, hold it.
const generationAt = (bounds, address) => {
  const found = bounds.filter(range => holds(range, address));
  return found.length && found.every(range => range.generation === found[0].generation) ? found[0].generation : null;
};
// What one collection does to an address: the words of `survived`.
const fateOf = (all, place, address) => {
  const [surviving, moved] = all.ranges[place];
  const range = surviving.find(each => holds(each, address)) || moved.find(each => holds(each, address));
  if (range) {
    const after = range.to + (address - range.start);
    return { fate: after === address ? 'alive' : 'moved', after, range };
  }
  const before = generationAt(all.bounds[place][0], address);
  const effect = all.effects[place * 7 + (before === null || before > 5 ? 6 : before)];
  if (effect === NEVER) return { fate: 'never collected', after: address };
  if (effect === LEAVES) return { fate: 'not collected', after: address };
  if (effect !== COLLECTS) return { fate: 'unknown', after: null };
  if (!all.isWhole) return { fate: 'not known here', after: null };
  let nearest = null;
  for (const each of [...surviving, ...moved]) {
    if (each.start <= address && (!nearest || each.start > nearest.start || each.start === nearest.start && each.isClamped)) nearest = each;
  }
  const isOpen = nearest && nearest.isClamped && all.bounds[place][0].some(each => holds(each, address) && each.start <= nearest.start);
  return isOpen ? { fate: 'unknown', after: null } : { fate: 'dead', after: null };
};
const followed = (all, place, address) => {
  const steps = [];
  for (let at = place; at < all.ids.length; at++) {
    if (all.runtimes[at] !== all.runtimes[place]) continue;
    const step = fateOf(all, at, address);
    steps.push({ at, address, ...step });
    if (step.after === null) break;
    address = step.after;
  }
  return steps;
};
// Through how many collections before this one the memory at an address is known to have lived, and since which.
const age = (all, place, address) => {
  let first = place;
  for (let at = place - 1; at >= 0; at--) {
    if (all.runtimes[at] !== all.runtimes[place]) continue;
    const [surviving, moved] = all.ranges[at];
    const range = [...surviving, ...moved].find(each => address >= each.to && address - each.to < each.length);
    if (range) { address = range.start + (address - range.to); first = at; continue; }
    const generation = generationAt(all.bounds[at][0], address);
    const effect = all.effects[at * 7 + (generation === null || generation > 5 ? 6 : generation)];
    if (effect !== LEAVES && effect !== NEVER || generation === null) break;
    first = at;
  }
  return { collections: place - first, first };
};

const heapMap = async holder => {
  const read = reader(await inflate(holder.dataset.map));
  const [columns, bins] = read.u32(2);
  const [bin] = read.u64(1);
  const starts = read.u64(bins);
  const times = read.f64(columns);
  const ids = read.u32(columns);
  const collected = read.u8(columns);
  const cells = read.u8(columns * bins);
  const all = document.getElementById('heap-ranges') ? readRanges(await inflate('heap-ranges')) : null;
  const placeOf = new Map(all ? [...all.ids].map((id, place) => [id, place]) : []);
  const tools = make('div', { class: 'tools' });
  const by = make('select', { 'aria-label': 'what colours mean' });
  by.append(make('option', { value: 'state' }, 'by what became of it'), make('option', { value: 'generation' }, 'by generation'));
  const legend = make('span', { class: 'legend' });
  const play = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Play');
  const until = make('input', { type: 'range', min: '1', max: String(columns), value: String(columns), 'aria-label': 'collections that are shown' });
  // One collection has no course.
  tools.append(by, ...(columns > 1 ? [play, until] : []), legend);
  const present = [new Set(cells.map(cell => cell & 7)), new Set(cells.filter(cell => cell & 7).map(cell => cell >> 3 & 7))];
  let shownColumns = columns;
  let time = null;
  let timer = null;
  const path = make('ol', { class: 'path' });
  const view = make('div', { class: 'view' });
  const canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': 'Heap map: arrows move from part to part, Enter follows what lies there. The table below has sums.' });
  const tip = make('div', { class: 'tip', hidden: '' });
  const say = make('p', { class: 'say', 'aria-live': 'polite' });
  view.append(canvas);
  holder.append(tools, view, tip, say, path);

  // A gap between two parts is a line, whatever its length.
  const STRIP = 10;
  const height = clamp(Math.floor(420 / bins), 1, 8);
  const isGap = Array.from({ length: bins }, (_, row) => row > 0 && starts[row] !== starts[row - 1] + bin);
  const gap = isGap.filter(Boolean).length > 60 ? 1 : 4;
  const tops = [];
  let bottom = STRIP + 4;
  for (let row = 0; row < bins; row++) { bottom += isGap[row] ? gap : 0; tops.push(bottom); bottom += height; }
  let cursor = null;
  let steps = [];
  const columnOf = new Map([...ids].map((id, column) => [id, column]));
  const rowOf = address => {
    let [low, high] = [0, bins];
    while (low < high) { const middle = low + high >> 1; if (Number(starts[middle]) <= address) low = middle + 1; else high = middle; }
    return low && address < Number(starts[low - 1] + bin) ? low - 1 : -1;
  };
  // Follows the largest range in the part that was clicked, from the collection before which it lay there.
  const followAt = (column, row) => {
    path.replaceChildren();
    steps = [];
    const place = all ? placeOf.get(ids[column]) : undefined;
    if (place === undefined) return;
    const found = rangeAt(column, row);
    const [low, high] = [Number(starts[row]), Number(starts[row] + bin)];
    const inside = all.bounds[place][0].find(each => each.start < high && each.start + each.length > low);
    const address = found ? found.address - found.range.to + found.range.start : Math.max(low, inside ? inside.start : low);
    steps = followed(all, place, address);
    const words = step => `collection ${all.ids[step.at]}${all.collected[step.at] === 7 ? '' : ' of generation ' + all.collected[step.at]}: 0x${step.address.toString(16)} ${step.fate}${step.fate === 'moved' ? ' to 0x' + step.after.toString(16) : ''}`;
    // Steps that say the same are one line.
    const lines = [];
    for (const step of steps) {
      const last = lines[lines.length - 1];
      if (last && step.fate !== 'moved' && last.step.fate === step.fate) { last.more++; last.end = step; } else lines.push({ step, more: 0, end: step });
    }
    for (const { step, more, end } of lines.slice(0, 200)) path.append(make('li', {}, words(step) + (more ? `, and in ${more} more until collection ${all.ids[end.at]}` : '')));
    path.dataset.fates = JSON.stringify(steps.map(step => [all.ids[step.at], '0x' + step.address.toString(16), step.fate]));
    const last = steps[steps.length - 1];
    if (last && last.fate === 'not known here') path.append(make('li', {}, `The page has not all ranges: tracequet survived IN ${all.ids[last.at]} 0x${last.address.toString(16)} --follow`));
  };

  // The largest range of a collection in a part, where the page has it: start, length, generation and age.
  const rangeAt = (column, row) => {
    const place = all ? placeOf.get(ids[column]) : undefined;
    if (place === undefined) return null;
    const [low, high] = [Number(starts[row]), Number(starts[row] + bin)];
    let best = null;
    for (const list of all.ranges[place]) {
      for (const range of list) {
        const bytes = Math.min(range.to + range.length, high) - Math.max(range.to, low);
        if (bytes > 0 && (!best || bytes > best.bytes)) best = { range, bytes, address: Math.max(range.to, low), place };
      }
    }
    return best;
  };
  const words = (column, row) => {
    const found = rangeAt(column, row);
    if (!found) return '';
    const { range, place, address } = found;
    const generation = generationAt(all.bounds[place][1], address);
    const { collections, first } = age(all, place, address - range.to + range.start);
    const old = collections ? `alive for ${collections} ${collections === 1 ? 'collection' : 'collections'} before, since ${duration(all.times[first])} at least` : 'not seen in a collection before';
    return `\nlargest range 0x${range.to.toString(16)}, ${size(range.length)}${generation === null ? '' : ', ' + GENERATIONS[generation]}, ${old}`;
  };
  const describe = (column, row) => {
    const cell = cells[column * bins + row];
    const state = cell & 7;
    const last = starts[row] + bin;
    const where = `0x${starts[row].toString(16)} to 0x${last.toString(16)} (${size(Number(bin))})`;
    const generation = collected[column] === 7 ? '' : ` of generation ${collected[column]}`;
    const quarter = ['up to a quarter', 'a quarter to half', 'half to three quarters', 'three quarters or more'][cell >> 6];
    const what = state === 0 ? STATES[0] : `${STATES[state]}, ${GENERATIONS[cell >> 3 & 7]}; ${quarter} of it`;
    return `Collection ${ids[column]}${generation} at ${duration(times[column])}\n${where}\n${what}${words(column, row)}`;
  };
  // The cells, without the time that is chosen: they stay as they are until other ones are asked for.
  let [cellsLayer, cellsOf] = [make('canvas'), ''];
  const drawCells = () => {
    const isState = by.value === 'state';
    const width = canvas.width * bottom / canvas.height;
    [cellsLayer.width, cellsLayer.height] = [canvas.width, canvas.height];
    const context = cellsLayer.getContext('2d');
    context.scale(canvas.width / width, canvas.height / bottom);
    const colors = isState ? STATE_COLORS.map(name => name && rgb(color(name))) : GENERATION_COLORS.map(name => rgb(color(name)));
    const page = rgb(color('panel'));
    const image = new ImageData(columns, bins);
    const etches = isState ? STATE_ETCHES : GENERATION_ETCHES;
    const masks = [];
    let drawn = 0;
    for (let column = 0; column < columns; column++) {
      for (let row = 0; row < bins; row++) {
        const cell = cells[column * bins + row];
        const state = cell & 7;
        // Freed memory and what was moved away belongs to no generation any more.
        const isEmpty = state === 0 || column >= shownColumns || !isState && (state === 3 || state === 4);
        const fill = isEmpty ? page : colors[isState ? state : cell >> 3 & 7];
        const part = isEmpty ? 0 : 0.55 + (cell >> 6) * 0.15;
        const at = (row * columns + column) * 4;
        for (let channel = 0; channel < 3; channel++) image.data[at + channel] = fill[channel] * part + page[channel] * (1 - part);
        image.data[at + 3] = 255;
        const etch = isEmpty ? 0 : etches[isState ? state : cell >> 3 & 7];
        if (etch) (masks[etch] ??= new ImageData(columns, bins)).data[at + 3] = 255;
        drawn += isEmpty ? 0 : 1;
      }
    }
    const small = make('canvas', { width: columns, height: bins });
    small.getContext('2d').putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.fillStyle = color('line');
    context.fillRect(0, 0, width, bottom);
    const each = width / columns;
    for (let column = 0; column < columns; column++) {
      context.fillStyle = color(GENERATION_COLORS[collected[column]]);
      context.fillRect(column * each, 0, Math.max(each - 0.5, 0.5), STRIP);
    }
    // Rows that follow each other are drawn together.
    const lay = (onto, cells) => {
      for (let row = 0; row < bins;) {
        let next = row + 1;
        while (next < bins && !isGap[next]) next++;
        onto.drawImage(cells, 0, row, columns, next - row, 0, tops[row], width, (next - row) * height);
        row = next;
      }
    };
    lay(context, small);
    masks.forEach((mask, etch) => {
      const layer = make('canvas', { width: canvas.width, height: canvas.height });
      const over = layer.getContext('2d');
      over.scale(canvas.width / width, canvas.height / bottom);
      over.imageSmoothingEnabled = false;
      small.getContext('2d').putImageData(mask, 0, 0);
      lay(over, small);
      over.globalCompositeOperation = 'source-in';
      over.fillStyle = etched(over, etch);
      over.fillRect(0, 0, width, bottom);
      context.drawImage(layer, 0, 0, width, bottom);
    });
    legend.textContent = '';
    // Only what the map has.
    const [names, meanings] = isState ? [STATE_COLORS, STATES] : [GENERATION_COLORS, GENERATIONS];
    for (const [value, word] of meanings.entries()) {
      const isShown = isState ? value && present[0].has(value) : word && present[1].has(value);
      if (isShown) legend.append(entry(names[value], word, '', etches[value]), ' ');
    }
    canvas.dataset.drawn = String(drawn);
  };
  const draw = () => {
    const [context, width] = sharp(canvas, bottom);
    const wanted = [by.value, shownColumns, canvas.width, color('page')].join(' ');
    if (cellsOf !== wanted) { cellsOf = wanted; drawCells(); }
    context.drawImage(cellsLayer, 0, 0, width, bottom);
    const each = width / columns;
    // Collections of another time than the chosen one are pale.
    context.fillStyle = color('panel');
    context.globalAlpha = 0.8;
    for (let column = 0; column < columns; column++) {
      if (time !== null && (times[column] < time[0] || times[column] >= time[1])) context.fillRect(column * each, STRIP, each, bottom - STRIP);
    }
    context.globalAlpha = 1;
    if (each > 6) {
      context.fillStyle = color('page');
      for (let column = 1; column < columns; column++) context.fillRect(column * each - 0.5, 0, 1, bottom);
    }
    // Where the address that is followed was.
    context.strokeStyle = color('text');
    context.lineWidth = 2;
    context.beginPath();
    for (const step of steps) {
      const column = columnOf.get(all.ids[step.at]);
      const row = rowOf(step.address);
      if (column === undefined || row < 0 || column >= shownColumns) continue;
      context.lineTo((column + 0.5) * each, tops[row] + height / 2);
    }
    context.stroke();
    if (cursor) {
      context.strokeStyle = color('text');
      context.lineWidth = 2;
      context.strokeRect(cursor[0] * each - 1, tops[cursor[1]] - 1, each + 2, height + 2);
    }
  };
  const at = event => {
    const box = canvas.getBoundingClientRect();
    const column = clamp(Math.floor((event.clientX - box.left) / box.width * columns), 0, columns - 1);
    const y = event.clientY - box.top;
    let row = tops.length - 1;
    while (row > 0 && tops[row] > y) row--;
    return [column, row];
  };
  canvas.addEventListener('pointermove', event => {
    tip.hidden = false;
    tip.textContent = describe(...at(event));
    place(tip, holder, event);
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  const go = (column, row) => {
    cursor = [clamp(column, 0, columns - 1), clamp(row, 0, bins - 1)];
    say.textContent = describe(...cursor).replaceAll('\n', ' · ');
    draw();
  };
  const choose = (column, row) => { followAt(column, row); go(column, row); };
  canvas.addEventListener('click', event => choose(...at(event)));
  const show = count => { shownColumns = clamp(count, 1, columns); until.value = String(shownColumns); draw(); };
  until.addEventListener('input', () => { stop(); show(Number(until.value)); });
  const stop = () => { clearInterval(timer); timer = null; play.setAttribute('aria-pressed', 'false'); play.textContent = isStill ? 'Next collection' : 'Play'; };
  // Whoever wants no motion gets a collection for each click.
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const next = () => { if (shownColumns >= columns) stop(); else show(shownColumns + Math.max(1, Math.round(columns / 200))); };
  stop();
  play.addEventListener('click', () => {
    if (timer !== null) { stop(); return; }
    if (shownColumns >= columns) show(1);
    if (isStill) { next(); return; }
    timer = setInterval(next, Math.max(40, 6000 / columns));
    play.setAttribute('aria-pressed', 'true');
    play.textContent = 'Pause';
  });
  canvas.addEventListener('keydown', event => {
    const [column, row] = cursor || [-1, 0];
    const keys = {
      ArrowLeft: () => go(column - 1, row), ArrowRight: () => go(column + 1, row), ArrowUp: () => go(column, row - 1), ArrowDown: () => go(column, row + 1),
      Enter: () => { if (cursor) choose(...cursor); },
      Escape: () => { cursor = null; steps = []; path.replaceChildren(); say.textContent = ''; draw(); },
    };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  by.addEventListener('change', draw);
  follows(selection => { if (JSON.stringify(time) !== JSON.stringify(selection.time)) { time = selection.time; draw(); } }, holder);
  follow(view, draw);
  draw();
};
