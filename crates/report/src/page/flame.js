
// Flame graph: the outermost call on top.
const ROW = 18;
const MOST_ROWS = 400;
const KINDS = ['unknown', 'own', 'platform', 'native', 'kernel'];

const readTexts = (read, lengths) => {
  const decoder = new TextDecoder();
  return [...lengths].map(length => decoder.decode(read.u8(length)));
};
const readTree = buffer => {
  const read = reader(buffer);
  const [count, names] = read.u32(2);
  const tree = { own: read.f64(count), total: read.f64(count), parent: read.u32(count), name: read.u32(count), texts: [], kinds: null };
  const lengths = read.u32(names);
  tree.kinds = read.u8(names);
  tree.texts = readTexts(read, lengths).map(text => text.split('\n'));
  // What was merged into a caller is the caller's, beside its own.
  tree.left = Float64Array.from(tree.total);
  for (let node = 1; node < count; node++) tree.left[tree.parent[node]] -= tree.total[node];
  return tree;
};
// The same of two sides, each divided by what amounts are divided by: the tree is what is now, beside it stands what was before.
const readChange = (buffer, [byBefore, byNow]) => {
  const read = reader(buffer);
  const [count, names] = read.u32(2);
  const side = by => ({ own: read.f64(count).map(sum => sum / by), total: read.f64(count).map(sum => sum / by), left: null });
  const before = side(byBefore);
  const tree = { ...side(byNow), before, parent: read.u32(count), name: read.u32(count), texts: [], kinds: null };
  const lengths = read.u32(names);
  tree.kinds = read.u8(names);
  tree.texts = readTexts(read, lengths).map(text => text.split('\n'));
  for (const each of [tree, before]) {
    each.left = Float64Array.from(each.total);
    for (let node = 1; node < count; node++) each.left[tree.parent[node]] -= each.total[node];
    // What is left of a difference of two fractions is no amount.
    each.left.forEach((left, node) => { if (left < each.total[0] * 1e-12) each.left[node] = 0; });
  }
  return tree;
};
// Sums up from the leaves, and orders what is called by its size. Of two sides the size is one of them, or both together.
const finished = (tree, sizes = 'both') => {
  const count = tree.parent.length;
  for (const side of tree.before ? [tree, tree.before] : [tree]) {
    side.total = Float64Array.from(side.left);
    for (let node = count - 1; node > 0; node--) side.total[tree.parent[node]] += side.total[node];
  }
  const before = tree.before && tree.before.total;
  tree.size = !before || sizes === 'now' ? tree.total : sizes === 'before' ? before : tree.total.map((sum, node) => sum + before[node]);
  tree.called = new Map();
  tree.shape ??= shapeOf(tree);
  return tree;
};
// Of each node the first one that it calls, and the next one of its caller: the same of all parts of a tree. A node comes behind its caller.
const shapeOf = tree => {
  const count = tree.parent.length;
  const [first, next] = [new Uint32Array(count), new Uint32Array(count)];
  for (let node = count - 1; node > 0; node--) { next[node] = first[tree.parent[node]]; first[tree.parent[node]] = node; }
  return { first, next, outermost: null };
};
// What a node calls, the largest first. Only what is drawn is asked for.
const childrenOf = (tree, node) => {
  let found = tree.called.get(node);
  if (!found) {
    found = [];
    for (let child = tree.shape.first[node]; child; child = tree.shape.next[child]) if (tree.size[child] > 0) found.push(child);
    found.sort((a, b) => tree.size[b] - tree.size[a] || a - b);
    tree.called.set(node, found);
  }
  return found;
};
// Of each node whether its function is not among its callers.
const outermostOf = tree => {
  tree.shape.outermost ??= Uint8Array.from(tree.parent, (above, node) => {
    while (above && tree.name[above] !== tree.name[node]) above = tree.parent[above];
    return above ? 0 : 1;
  });
  return tree.shape.outermost;
};
// The tree of what is chosen.
const partOf = (tree, rows, selection) => {
  const [own, left] = [new Float64Array(tree.parent.length), new Float64Array(tree.parent.length)];
  for (const row of shownRows(rows, selection)) {
    const place = rows.node[row];
    if (place === NO_NODE) continue;
    const amount = rows.amount[row] || 0;
    left[place >>> 1] += amount;
    if (!(place & 1)) own[place >>> 1] += amount;
  }
  return { ...tree, own, left };
};
const growing = tree => ({
  own: [0], left: [0], before: tree.before ? { own: [0], left: [0] } : null,
  parent: [0], name: [tree.name[0]], texts: tree.texts, kinds: tree.kinds, known: new Map(),
});
// What is done to one side is done to the other.
const sidesOf = (from, to) => from.before ? [[from, to], [from.before, to.before]] : [[from, to]];
const below = (tree, at, name) => {
  const key = at + ',' + name;
  let next = tree.known.get(key);
  if (next === undefined) {
    next = tree.own.length;
    tree.known.set(key, next);
    for (const side of tree.before ? [tree, tree.before] : [tree]) { side.own.push(0); side.left.push(0); }
    tree.parent.push(at); tree.name.push(name);
  }
  return next;
};
// Own code alone: what it calls of others is its own.
const ownCode = tree => {
  const all = growing(tree);
  const place = new Uint32Array(tree.parent.length);
  for (let node = 0; node < place.length; node++) {
    const above = node ? place[tree.parent[node]] : 0;
    place[node] = node && tree.kinds[tree.name[node]] === 1 ? below(all, above, tree.name[node]) : above;
    for (const [from, to] of sidesOf(tree, all)) {
      to.own[place[node]] += from.left[node];
      to.left[place[node]] += from.left[node];
    }
  }
  return all;
};
// From the innermost call to its callers. What was merged into a caller is the caller's own here.
const inverted = tree => {
  const all = growing(tree);
  for (let node = 1; node < tree.parent.length; node++) {
    if (!(tree.left[node] > 0 || tree.before && tree.before.left[node] > 0)) continue;
    let at = 0;
    for (let caller = node; caller > 0; caller = tree.parent[caller]) {
      at = below(all, at, tree.name[caller]);
      if (caller === node) for (const [from, to] of sidesOf(tree, all)) to.own[at] += from.left[node];
    }
    for (const [from, to] of sidesOf(tree, all)) to.left[at] += from.left[node];
  }
  for (const [from, to] of sidesOf(tree, all)) to.left[0] += from.left[0];
  return all;
};
// What each function has itself and with what it calls; recursion counts once.
const functions = tree => {
  const [own, total] = [new Float64Array(tree.texts.length), new Float64Array(tree.texts.length)];
  const outermost = outermostOf(tree);
  for (let node = 1; node < tree.parent.length; node++) {
    own[tree.name[node]] += tree.own[node];
    if (outermost[node]) total[tree.name[node]] += tree.total[node];
  }
  const met = [...total.keys()].filter(name => total[name] > 0);
  met.sort((a, b) => own[b] - own[a] || total[b] - total[a]);
  return met.slice(0, 100).map(name => ({ name, own: own[name], total: total[name] }));
};

// A button that chooses the time up to the moment at which most is alive.
const peakOf = rows => {
  const button = make('button', { type: 'button' }, 'At the peak');
  button.addEventListener('click', () => {
    const steps = [...rows.at].flatMap((at, row) => [[at, rows.amount[row] || 0], [rows.more[row], -(rows.amount[row] || 0)]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let [sum, most, moment] = [0, 0, known.end];
    for (const [at, change] of steps) { sum += change; if (sum > most) [most, moment] = [sum, at]; }
    select({ time: [0, Math.min(moment, known.end)] });
  });
  return button;
};

// What a box has room for: a name without its arguments, without those of generics, its type and method, the inner type, its method alone.
const shorter = name => {
  const forms = [name];
  const add = text => { if (text && text.length < forms[forms.length - 1].length) forms.push(text); };
  const end = name.indexOf('(', 1);
  add(end > 0 ? name.slice(0, end) : name);
  let [bare, depth] = ['', 0];
  for (const letter of forms[forms.length - 1]) {
    depth += letter === '[' ? 1 : 0;
    bare += depth > 0 ? '' : letter;
    depth -= letter === ']' && depth > 0 ? 1 : 0;
  }
  // A file of native code has a dot, and is no namespace.
  if (name.includes('!')) return forms;
  add(bare);
  const parts = bare.split(/(?<=[^.])\./);
  const method = parts.slice(-2).join('.');
  add(method);
  add(method.slice(method.lastIndexOf('+') + 1));
  // What the compiler calls MoveNext has its name in that of its class.
  const written = /<(\w+)>d__\d+(?:`\d+)?\.MoveNext$/.exec(method);
  add(written ? written[1] : parts[parts.length - 1]);
  return forms;
};
// How wide texts are in each font. To measure is most of the work of drawing.
const lengths = new Map();
const lengthOf = (context, text) => {
  const known = lengths.get(context.font) ?? lengths.set(context.font, new Map()).get(context.font);
  return known.get(text) ?? known.set(text, context.measureText(text).width).get(text);
};
const fitting = (context, forms, room) => {
  // No letter is so narrow that a text this long has room: it is not measured.
  const found = forms.find(text => text.length * 2 <= room && lengthOf(context, text) <= room);
  if (found !== undefined) return found;
  const last = forms[forms.length - 1].slice(0, Math.ceil(room / 2));
  let length = Math.floor(last.length * (room - 11) / Math.max(lengthOf(context, last), 1));
  while (length > 0 && lengthOf(context, last.slice(0, length) + '…') > room) length--;
  return length < 1 ? '' : last.slice(0, length) + '…';
};
const flame = async part => {
  const holder = part.querySelector('.graph');
  const isChange = part.dataset.before !== undefined;
  const plainUnit = shown[part.dataset.unit] || whole;
  const number = value => part.dataset.unit !== 'count' || value === 0 || value >= 99.95 ? plainUnit(Math.round(value)) : value < 1 ? value.toFixed(3) : value.toFixed(1);
  const unit = isChange ? value => number(value) + part.dataset.per : plainUnit;
  const packed = await inflate(part.dataset.flame);
  const plain = isChange ? readChange(packed, [Number(part.dataset.before), Number(part.dataset.now)]) : readTree(packed);
  const rows = kinds.get(part.dataset.flame.replace('flame-', '')) ?? null;
  if (rows) rows.tree = plain;
  // Objects that are alive are those of a moment. Without a row of each nothing says when they die: the table has the end of the recording.
  const areLives = part.dataset.flame === 'flame-live';
  if (areLives && !(rows?.parts === 0 && rows.more)) {
    holder.append(make('p', { class: 'note' }, 'There are too many objects to draw those of a moment. The table has what is alive at the end of the recording.'));
    return;
  }
  if (areLives) rows.areLives = true;
  let [selection, isOwn, isUpside] = [EVERYTHING, false, false];
  let sizes = 'both';
  let tree = finished(plain);
  const forms = new Map();
  const formsOf = name => forms.get(name) ?? forms.set(name, shorter(plain.texts[name][0])).get(name);
  let [focus, picked, found, boxes, matching] = [0, 0, '', [], null];
  const tools = make('div', { class: 'tools' });
  const search = make('input', { type: 'search', placeholder: 'search', 'aria-label': 'search for a name' });
  const invert = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Callers below');
  const own = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Own code only');
  const back = make('button', { type: 'button' }, 'All');
  // The method that was picked becomes what is chosen: all panels show the stacks with it.
  const only = make('button', { type: 'button', disabled: '' }, 'Choose this method');
  only.addEventListener('click', () => { if (picked) select({ method: tree.texts[tree.name[picked]][0] }); });
  const threads = make('select', { 'aria-label': 'of which thread' });
  threads.append(make('option', { value: '' }, 'all threads'));
  const places = rows ? [...new Set(rows.thread)].filter(place => known.threads[place]) : [];
  for (const place of places) threads.append(make('option', { value: String(place) }, known.threads[place][2]));
  const legend = make('span', { class: 'legend' });
  const present = new Set(plain.name.slice(1).map(name => plain.kinds[name]));
  for (const [kind, word] of isChange ? [['more', '+ more now'], ['same', '= within 5 %'], ['less', '− less now']]
    : [['own', 'own code'], ['platform', 'framework'], ['native', 'native'], ['kernel', 'kernel'], ['unknown', 'not known']].filter(([kind]) => present.has(KINDS.indexOf(kind)))) {
    legend.append(entry(kind, word, kind), ' ');
  }
  const widths = make('select', { 'aria-label': 'what widths mean' });
  widths.append(make('option', { value: 'both' }, 'width: before and now together'), make('option', { value: 'now' }, 'width: now'), make('option', { value: 'before' }, 'width: before'));
  const hits = make('span', { role: 'status' });
  tools.append(search, ...(places.length > 1 ? [threads] : []), ...(isChange ? [widths] : []), invert, own, back, ...(areLives ? [peakOf(rows)] : []), ...(rows ? [only] : []), hits, legend);
  const view = make('div', { class: 'view' });
  const canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': 'Flame graph: arrows move, Enter zooms, Escape shows all. The table below has the same figures.' });
  const tip = make('div', { class: 'tip', hidden: '' });
  const say = make('p', { class: 'say', 'aria-live': 'polite' });
  view.append(canvas);
  holder.append(tools, view, tip, say);

  const describe = node => {
    const [name, file] = tree.texts[tree.name[node]];
    if (isChange) {
      const [before, now] = [tree.before.total[node], tree.total[node]];
      const change = now - before;
      const part = before > 0 ? ` (${change < 0 ? '−' : '+'}${percent(Math.abs(change), before)})` : ', nothing before';
      const own = `; of its own ${unit(tree.before.own[node])} before, ${unit(tree.own[node])} now`;
      return `${name}\n${file ? file + ': ' : ''}${change < 0 ? '−' : '+'}${unit(Math.abs(change))}${part}: ${unit(before)} before, ${unit(now)} now${own}`;
    }
    const all = tree.total[0];
    const own = tree.own[node] > 0 ? `, ${unit(tree.own[node])} of its own` : '';
    return `${name}\n${file ? file + ': ' : ''}${unit(tree.total[node])} (${percent(tree.total[node], all)})${own}`;
  };
  // How much a node changed, from -1 (gone) to 1 (new); 0 within 5 %.
  const changeOf = node => {
    const [before, now] = [tree.before.total[node], tree.total[node]];
    const part = (now - before) / (Math.max(now, before) || 1);
    return Math.abs(part) < 0.05 ? 0 : part;
  };
  // Beside the colour what is more has lines that rise, and what is less lines that fall.
  const hatch = (context, change, ink) => {
    const small = make('canvas', { width: 8, height: 8 });
    const lines = small.getContext('2d');
    lines.strokeStyle = ink;
    lines.globalAlpha = 0.3;
    lines.beginPath();
    for (const at of [-8, 0, 8]) { lines.moveTo(at, change > 0 ? 8 : 0); lines.lineTo(at + 8, change > 0 ? 0 : 8); }
    lines.stroke();
    return context.createPattern(small, 'repeat');
  };
  const draw = () => {
    const width = widthOf(view);
    boxes = [];
    // Callers of what is looked at span the whole width.
    const line = [];
    for (let node = focus; ; node = tree.parent[node]) { line.unshift(node); if (node === 0) break; }
    line.forEach((node, depth) => boxes.push({ node, x: 0, w: width, depth }));
    const scale = width / (tree.size[focus] || 1);
    for (let next = boxes.length - 1; next < boxes.length; next++) {
      const box = boxes[next];
      if (box.depth + 1 >= MOST_ROWS) continue;
      let x = box.x;
      for (const child of childrenOf(tree, box.node)) {
        const w = tree.size[child] * scale;
        // The next ones are no larger.
        if (w < 0.4) break;
        boxes.push({ node: child, x, w, depth: box.depth + 1 });
        x += w;
      }
    }
    const rows = boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);
    const [context] = sharp(canvas, rows * ROW);
    // Beside its colour a kind has a look of its texts, as the legend has.
    const fonts = ['', '600 ', '', 'italic ', 'italic 600 '].map(look => look + '12px system-ui, "DejaVu Sans", sans-serif');
    context.font = fonts[0];
    context.textBaseline = 'middle';
    const fills = KINDS.map(color);
    const [mark, text, accent] = [color('mark'), color('box'), color('accent')];
    const hasHits = matching !== null;
    const [more, same, less] = isChange ? ['more', 'same', 'less'].map(name => rgb(color(name))) : [];
    const hatches = isChange ? [hatch(context, 1, text), hatch(context, -1, text)] : [];
    for (const { node, x, w, depth } of boxes) {
      const name = tree.name[node];
      const isHit = hasHits && matching[name];
      const y = depth * ROW;
      context.globalAlpha = hasHits && !isHit ? 0.35 : depth < line.length - 1 ? 0.6 : 0.85 + name * 7 % 4 * 0.05;
      const change = isChange && node !== 0 ? changeOf(node) : 0;
      const mixed = () => {
        const [part, far] = [0.35 + 0.65 * Math.abs(change), change > 0 ? more : less];
        return `rgb(${same.map((low, at) => Math.round(change ? low + (far[at] - low) * part : low)).join(' ')})`;
      };
      context.fillStyle = node === 0 ? color('line') : isHit ? '#ffd84d' : isChange ? mixed() : fills[tree.kinds[name]] || fills[0];
      context.fillRect(x, y, Math.max(w - 0.6, 0.4), ROW - 1);
      if (change) {
        context.fillStyle = hatches[change > 0 ? 0 : 1];
        context.fillRect(x, y, Math.max(w - 0.6, 0.4), ROW - 1);
      }
      context.globalAlpha = 1;
      if (w > 34) {
        context.fillStyle = node === 0 || hasHits && !isHit ? color('text') : text;
        context.font = (!isChange && node !== 0 && fonts[tree.kinds[name]]) || fonts[0];
        const sign = !isChange || node === 0 ? '' : change > 0 ? '+ ' : change < 0 ? '− ' : '= ';
        context.fillText(sign + fitting(context, formsOf(name), w - 8 - (sign ? 12 : 0)), x + 4, y + ROW / 2);
      }
      if (node === picked && picked !== 0) {
        context.strokeStyle = accent;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 1), ROW - 3);
      }
    }
    canvas.dataset.drawn = String(boxes.length);
    canvas.dataset.total = String(tree.total[0]);
  };
  const pick = node => { picked = node; only.disabled = !node; say.textContent = node ? describe(node).replace('\n', ' · ') : said; draw(); };
  const zoom = node => { focus = node; picked = node; only.disabled = !node; tip.hidden = true; say.textContent = node ? describe(node).replace('\n', ' · ') : said; draw(); };
  const at = event => {
    const box = canvas.getBoundingClientRect();
    const [x, depth] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / ROW)];
    return boxes.find(each => each.depth === depth && x >= each.x && x < each.x + each.w);
  };
  canvas.addEventListener('pointermove', event => {
    const box = at(event);
    tip.hidden = !box;
    if (box) { tip.textContent = describe(box.node); place(tip, holder, event); }
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('click', event => { const box = at(event); if (box) zoom(box.node); });
  canvas.addEventListener('keydown', event => {
    const siblings = childrenOf(tree, tree.parent[picked]);
    const beside = step => siblings[siblings.indexOf(picked) + step] ?? picked;
    const keys = {
      ArrowDown: () => pick(childrenOf(tree, picked)[0] ?? picked), ArrowUp: () => pick(tree.parent[picked]),
      ArrowLeft: () => pick(picked ? beside(-1) : 0), ArrowRight: () => pick(picked ? beside(1) : 0),
      Enter: () => zoom(picked), Escape: () => zoom(0),
    };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });
  const look = () => {
    matching = found ? tree.texts.map(([name, file]) => name.toLowerCase().includes(found) || file.toLowerCase().includes(found)) : null;
    let sum = 0;
    if (found) {
      // The outermost hit of each stack, so that nothing counts twice.
      const open = [0];
      while (open.length) {
        const node = open.pop();
        if (node !== 0 && matching[tree.name[node]]) sum += tree.size[node];
        else open.push(...childrenOf(tree, node));
      }
    }
    hits.textContent = found ? `${percent(sum, tree.size[0])} in hits` : '';
    hits.dataset.hits = String(sum);
    draw();
  };
  search.addEventListener('input', () => { found = search.value.trim().toLowerCase(); look(); });
  const table = part.querySelector('tbody');
  const fold = /** @type {HTMLDetailsElement} */ (table.closest('details'));
  const lines = [...table.rows];
  // The calls as a tree: what a call has below it is made when it opens. Where that is one call, it opens, too.
  const calls = /** @type {HTMLDetailsElement} */ (make('details', { class: 'tree calls' }));
  const ofCalls = make('div');
  calls.append(make('summary', {}, 'The calls as a tree'), ofCalls);
  fold.before(calls);
  const branches = node => {
    const [all, most] = [childrenOf(tree, node), 200];
    const shownOnes = all.slice(0, most).map(child => {
      const below = childrenOf(tree, child).length;
      const branch = /** @type {HTMLDetailsElement} */ (make(below ? 'details' : 'p', { 'data-v': String(tree.total[child]) }));
      const [name, ...amounts] = describe(child).split('\n');
      const words = make(below ? 'summary' : 'span', {}, name + ' ');
      words.append(make('span', { class: 'step' }, amounts.join(' ')));
      branch.append(words);
      if (!below) return branch;
      branch.addEventListener('toggle', () => { const inner = make('div'); inner.append(...branches(child)); branch.append(inner); }, { once: true });
      branch.open = all.length === 1;
      return branch;
    });
    return [...shownOnes, ...all.length > most ? [make('p', {}, `${whole(all.length - most)} smaller calls`)] : []];
  };
  const fill = (tree, isPart) => {
    if (isPart) finished(tree);
    // As tables of the page have it: a long text may be broken.
    const cell = (text, raw) => breakable(make('td', raw !== undefined ? { 'data-v': String(raw) } : text.length > 24 ? { class: 'w' } : {}, text));
    const all = tree.total[0];
    const share = value => cell((all > 0 ? value / all * 100 : 0).toFixed(1), all > 0 ? value / all * 100 : 0);
    table.replaceChildren(...isPart ? functions(tree).map(sum => {
      const row = make('tr');
      const [text, file] = tree.texts[sum.name];
      row.append(choosable(cell(text), 'method'), cell(file || '–'), cell(unit(sum.own), sum.own), share(sum.own), cell(unit(sum.total), sum.total), share(sum.total));
      return row;
    }) : lines);
  };
  // The graph of the thread, the time and the direction that are chosen.
  let said = '';
  const build = () => {
    const isPart = rows !== null && (areLives || !isEverything(selection));
    tree = isPart ? partOf(plain, rows, selection) : plain;
    if (isOwn) tree = ownCode(tree);
    // The table of a change has both sides, and stays.
    const shownTree = tree;
    // Of everything the table is as it stands in the page.
    const isOfPart = isPart && !isEverything(selection) || isOwn;
    if (!isChange) whenOpen(fold, () => fill(shownTree, isOfPart));
    if (isUpside) tree = inverted(tree);
    finished(tree, sizes);
    said = isPart || isOwn && !isChange ? `${unit(tree.total[0])}${isPart ? aboutPart(rows, selection) : ''}` : '';
    say.textContent = said;
    [focus, picked] = [0, 0];
    whenOpen(calls, () => ofCalls.replaceChildren(...branches(0)));
    look();
  };
  const toggle = (button, texts, act) => button.addEventListener('click', () => {
    const isOn = act();
    button.setAttribute('aria-pressed', String(isOn));
    button.textContent = texts[isOn ? 1 : 0];
    build();
  });
  toggle(invert, ['Callers below', 'Callers above'], () => { isUpside = !isUpside; return isUpside; });
  toggle(own, ['Own code only', 'Own code only'], () => { isOwn = !isOwn; return isOwn; });
  widths.addEventListener('change', () => { sizes = widths.value; build(); });
  threads.addEventListener('change', () => select({ thread: threads.value === '' ? null : Number(threads.value) }));
  follows(next => {
    selection = next;
    threads.value = next.thread === null ? '' : String(next.thread);
    if (rows) build();
  }, part);
  back.addEventListener('click', () => zoom(0));
  follow(view, draw);
  whenOpen(calls, () => ofCalls.replaceChildren(...branches(0)));
  if (areLives) build(); else draw();
};
