
'use strict';
(() => {
  // What the page says stands in it without this script, which adds sorting, zoom, flame graphs and the map of the heap.
  // Texts of a recording only ever become text: textContent and fillText.

  const root = document.documentElement;
  root.classList.add('js');

  const make = (name, attributes, text) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  // The same of SVG.
  const drawn = (name, attributes) => {
    const element = document.createElementNS(document.querySelector('svg.axis').namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const every = selector => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(selector)]);
  const color = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // A colour with its lines, or with the look of its texts, and what it means.
  const entry = (name, word, look = '', etch = 0) => {
    const [whole, swatch] = [make('span', { class: look }), make('i', { class: 'e' + etch })];
    swatch.style.backgroundColor = `var(--${name})`;
    whole.append(swatch, word);
    return whole;
  };

  // Units, as the tables have them.
  const digits = value => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  const whole = value => Math.round(value).toLocaleString('en-US');
  const size = bytes => {
    if (bytes < 1000) return bytes + ' B';
    let unit = 0;
    for (bytes /= 1000; bytes >= 999.5 && unit < 4; bytes /= 1000) unit++;
    return digits(bytes) + ' ' + ['kB', 'MB', 'GB', 'TB', 'PB'][unit];
  };
  const duration = ns => {
    if (ns < 1000) return Math.round(ns) + ' ns';
    if (ns >= 3600e9) return Math.floor(ns / 3600e9) + ' h ' + Math.floor(ns / 60e9) % 60 + ' min';
    if (ns >= 100e9) return Math.floor(ns / 60e9) + ' min ' + Math.floor(ns / 1e9) % 60 + ' s';
    if (ns < 999500) return digits(ns / 1e3) + ' µs';
    if (ns < 999500000) return digits(ns / 1e6) + ' ms';
    return digits(ns / 1e9) + ' s';
  };
  // Round times of a part of the axis, as Rust has them for all of it.
  const longSteps = [1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14400, 28800].map(minutes => minutes * 60e9);
  const shortSteps = [...Array(11).keys()].flatMap(zeros => [1, 2, 5].map(digit => digit * 10 ** zeros)).filter(step => step <= 20e9);
  const tickLabel = (ns, step, end) => {
    if (ns === 0) return '0';
    if (step >= 60e9) {
      const [hours, minutes] = [Math.floor(ns / 3600e9), Math.floor(ns / 60e9) % 60];
      return [hours ? hours + ' h' : '', minutes ? minutes + ' min' : ''].filter(Boolean).join(' ');
    }
    const [unit, name] = end >= 1e9 ? [1e9, 's'] : end >= 1e6 ? [1e6, 'ms'] : end >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
    let decimals = 0;
    for (let least = unit; least > step; least /= 10) decimals++;
    return (ns / unit).toFixed(decimals) + ' ' + name;
  };
  const ticks = (from, to) => {
    const span = to - from;
    const step = [...shortSteps, ...longSteps].find(step => span / step < 7) ?? span / 6;
    const marks = [];
    for (let tick = Math.ceil(from / step); tick * step <= to && marks.length < 16; tick++) {
      const share = (tick * step - from) / (span || 1) * 100;
      const x = share.toFixed(3) + '%';
      const text = drawn('text', { x, y: '18', class: share < 3 ? 'first' : share > 94 ? 'last' : '' });
      text.textContent = tickLabel(tick * step, step, to);
      marks.push(drawn('line', { x1: x, x2: x, y2: '4' }), text);
    }
    return marks;
  };
  const shown = { ns: duration, bytes: size, count: whole };
  const percent = (part, all) => (all > 0 ? part / all * 100 : 0).toFixed(1) + ' %';

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
    return { u8: take(Uint8Array), u32: take(Uint32Array), u64: take(BigUint64Array), f64: take(Float64Array) };
  };

  // What follows the time that is chosen: called with null, or with shares of the whole.
  const ranged = [];

  // Tables.
  const tables = new Map();
  // A row is hidden by the time that is chosen, or by the text that is looked for.
  const hide = row => { row.hidden = row.classList.contains('late') || row.classList.contains('other'); };
  const value = cell => cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : null;
  // A long name breaks between its parts rather than anywhere.
  const breakable = cell => {
    const parts = cell.textContent.split(/(?<=[.,:+/\\[\]])(?=[^\s\d.,:+/\\[\]])/u);
    if (parts.length === 1 && parts[0].length <= 32 && !parts[0].includes(' ')) cell.classList.remove('w');
    if (parts.length > 1) cell.replaceChildren(...parts.flatMap((part, at) => at ? [make('wbr'), part] : [part]));
    return cell;
  };
  for (const table of document.querySelectorAll('table')) {
    const body = table.tBodies[0];
    body.querySelectorAll('td.w').forEach(breakable);
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make('button', { type: 'button' }, head.textContent);
      head.textContent = '';
      head.append(button);
      button.addEventListener('click', () => {
        const isNumber = head.classList.contains('n');
        const first = isNumber ? 'descending' : 'ascending';
        const second = isNumber ? 'ascending' : 'descending';
        const order = head.getAttribute('aria-sort') === first ? second : first;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', order);
        const sign = order === 'ascending' ? 1 : -1;
        const keyed = [...body.rows].map(row => {
          const cell = row.cells[place];
          const text = cell.textContent;
          return { row, key: isNumber ? value(cell) : text === '–' ? null : text };
        });
        // What was not recorded comes last in either order.
        keyed.sort((a, b) => a.key === null || b.key === null ? Number(a.key === null) - Number(b.key === null)
          : sign * (isNumber ? Number(a.key) - Number(b.key) : String(a.key).localeCompare(String(b.key), 'en')));
        body.append(...keyed.map(each => each.row));
      });
    });
    if (body.rows.length < 8) continue;
    const tools = make('div', { class: 'tools' });
    const search = make('input', { type: 'search', placeholder: 'filter', 'aria-label': 'show only rows with a text' });
    const hits = make('span', { role: 'status' });
    const look = () => {
      const text = search.value.trim().toLowerCase();
      let found = 0;
      for (const row of body.rows) {
        const isHit = !text || row.textContent.toLowerCase().includes(text);
        row.classList.toggle('other', !isHit);
        hide(row);
        found += isHit ? 1 : 0;
      }
      hits.textContent = text ? `${whole(found)} of ${whole(body.rows.length)} rows` : '';
      return found;
    };
    search.addEventListener('input', look);
    tools.append(search, hits);
    table.closest('.scroll').before(tools);
    tables.set(table, { search, look });
  }

  let timeAsked = () => {};
  // Timeline: what is seen of it, as shares of the whole.
  const lanes = document.getElementById('lanes');
  if (lanes) {
    const end = Number(lanes.dataset.end);
    const plots = [...document.querySelectorAll('.plot:not(.fixed) svg')];
    const axes = [...document.querySelectorAll('svg.axis')];
    const timed = every('tr[data-t]');
    const tools = make('div', { class: 'tools' });
    const say = make('span', { role: 'status' });
    let [from, to] = [0, 1];
    // The charts are stretched, the lines of their areas are not.
    const unstretch = () => {
      const pixels = document.querySelector('.plot')?.clientWidth || 1000;
      for (const pattern of document.querySelectorAll('pattern')) pattern.setAttribute('patternTransform', `scale(${(to - from) * 1000 / pixels} 1)`);
    };
    new ResizeObserver(unstretch).observe(lanes);
    const show = (low, high) => {
      const width = clamp(high - low, 1e-6, 1);
      from = clamp(low, 0, 1 - width);
      to = from + width;
      for (const svg of plots) svg.setAttribute('viewBox', `${from * 1000} 0 ${width * 1000} 60`);
      for (const axis of axes) axis.replaceChildren(...ticks(from * end, to * end));
      unstretch();
      const isAll = width > 0.999999;
      let hidden = 0;
      for (const row of timed) {
        const at = Number(row.dataset.t) / end;
        const isLate = !isAll && (at < from || at > to);
        row.classList.toggle('late', isLate);
        hide(row);
        hidden += isLate ? 1 : 0;
      }
      say.textContent = isAll ? 'Drag over the charts to zoom; tables with times and flame graphs follow.'
        : `${duration(from * end)} to ${duration(to * end)}; ${whole(hidden)} rows of tables are hidden`;
      for (const each of ranged) each(isAll ? null : [from, to], end);
      // The address keeps its part. Where a viewer forbids it, the page has no address for the time.
      const part = location.hash.slice(1).split('&').find(word => word && !word.startsWith('t='));
      const words = [part, isAll ? null : `t=${Math.round(from * end)}-${Math.round(to * end)}`].filter(Boolean);
      try {
        history.replaceState(null, '', words.length ? '#' + words.join('&') : location.pathname + location.search);
      } catch { /* the zoom itself works */ }
    };
    const zoom = factor => { const [middle, half] = [(from + to) / 2, (to - from) * factor / 2]; show(middle - half, middle + half); };
    const move = part => show(from + (to - from) * part, to + (to - from) * part);
    const all = () => show(0, 1);
    for (const [text, label, act] of [['+', 'zoom in', () => zoom(0.5)], ['−', 'zoom out', () => zoom(2)],
      ['◂', 'earlier', () => move(-0.5)], ['▸', 'later', () => move(0.5)], ['All', 'All: the whole recording', all]]) {
      const button = make('button', { type: 'button', 'aria-label': label, title: label }, text);
      button.addEventListener('click', act);
      tools.append(button);
    }
    tools.append(say);
    lanes.before(tools);
    lanes.tabIndex = 0;
    lanes.addEventListener('keydown', event => {
      const keys = { '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), Escape: all };
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
    let begin = null;
    let brush = null;
    const share = event => { const box = lanes.querySelector('.plot').getBoundingClientRect(); return clamp((event.clientX - box.left) / box.width, 0, 1); };
    if (lanes.querySelector('.plot')) {
      lanes.addEventListener('pointerdown', event => {
        if (event.button !== 0 || !(event.target instanceof Element && event.target.closest('.plot'))) return;
        begin = share(event);
        brush = make('div', { class: 'brush' });
        brush.style.width = '0';
        lanes.append(brush);
        lanes.setPointerCapture(event.pointerId);
      });
      lanes.addEventListener('pointermove', event => {
        if (begin === null) return;
        const now = share(event);
        brush.style.left = Math.min(begin, now) * 100 + '%';
        brush.style.width = Math.abs(now - begin) * 100 + '%';
      });
      const finish = event => {
        if (begin === null) return;
        const [a, b] = [begin, share(event)].sort((x, y) => x - y);
        begin = null;
        brush.remove();
        if (event.type === 'pointerup' && b - a > 0.004) show(from + a * (to - from), from + b * (to - from));
      };
      lanes.addEventListener('pointerup', finish);
      lanes.addEventListener('pointercancel', finish);
      lanes.addEventListener('dblclick', all);
    }
    const go = () => {
      const asked = /[#&]t=(\d+)-(\d+)$/.exec(location.hash);
      if (asked && Number(asked[2]) > Number(asked[1])) show(Number(asked[1]) / end, Number(asked[2]) / end);
      // A part with a time is no name that the browser finds.
      const part = location.hash.slice(1).split('&')[0];
      if (asked && part && !part.startsWith('t=')) document.getElementById(part)?.scrollIntoView();
    };
    timeAsked = go;
    addEventListener('hashchange', go);
    say.textContent = 'Drag over the charts to zoom; tables with times and flame graphs follow.';
  }

  // A canvas as sharp as the screen, drawn anew when its width or the colours change.
  const redraws = [];
  const sharp = (canvas, height) => {
    const width = Math.max(canvas.parentElement.clientWidth, 1);
    const scale = Math.min(window.devicePixelRatio || 1, 16000 / Math.max(width, height));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + 'px';
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return [context, width];
  };
  const follow = (element, draw) => {
    redraws.push(draw);
    let width = element.clientWidth;
    new ResizeObserver(() => { if (element.clientWidth !== width) { width = element.clientWidth; draw(); } }).observe(element);
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraws.forEach(draw => draw()));

  const place = (tip, holder, event) => {
    const box = holder.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    tip.style.left = clamp(x + 12, 0, Math.max(0, box.width - tip.offsetWidth - 2)) + 'px';
    tip.style.top = y + 18 + 'px';
  };

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
  // What threads have in parts of the time: at which node, and whether it is its own.
  const readSlices = buffer => {
    const read = reader(buffer);
    const [count, threads, parts] = read.u32(3);
    const slices = { count, parts, thread: read.u8(count), part: read.u8(count), key: read.u32(count), weight: read.f64(count), labels: [] };
    for (let at = 1; at < count; at++) {
      if (slices.thread[at] === slices.thread[at - 1] && slices.part[at] === slices.part[at - 1]) slices.key[at] += slices.key[at - 1];
    }
    slices.labels = readTexts(read, read.u32(threads));
    return slices;
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
    tree.children = Array.from({ length: count }, () => []);
    for (let node = 1; node < count; node++) if (tree.size[node] > 0) tree.children[tree.parent[node]].push(node);
    for (const children of tree.children) children.sort((a, b) => tree.size[b] - tree.size[a] || a - b);
    return tree;
  };
  // The tree of a thread and of a time.
  const sliced = (tree, slices, thread, range) => {
    const [own, left] = [new Float64Array(tree.parent.length), new Float64Array(tree.parent.length)];
    const [first, last] = range ? [Math.floor(range[0] * slices.parts + 1e-9), Math.ceil(range[1] * slices.parts - 1e-9)] : [0, slices.parts];
    for (let at = 0; at < slices.count; at++) {
      if (thread >= 0 && slices.thread[at] !== thread || slices.part[at] < first || slices.part[at] >= last) continue;
      const node = slices.key[at] >>> 1;
      left[node] += slices.weight[at];
      if (!(slices.key[at] & 1)) own[node] += slices.weight[at];
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
    const sums = new Map();
    for (let node = 1; node < tree.parent.length; node++) {
      if (!(tree.total[node] > 0)) continue;
      const sum = sums.get(tree.name[node]) || { own: 0, total: 0 };
      sums.set(tree.name[node], sum);
      sum.own += tree.own[node];
      let above = tree.parent[node];
      while (above && tree.name[above] !== tree.name[node]) above = tree.parent[above];
      if (!above) sum.total += tree.total[node];
    }
    return [...sums].sort(([, a], [, b]) => b.own - a.own || b.total - a.total).slice(0, 100);
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
  const fitting = (context, forms, room) => {
    // No letter is so narrow that a text this long has room: it is not measured.
    const found = forms.find(text => text.length * 2 <= room && context.measureText(text).width <= room);
    if (found !== undefined) return found;
    const last = forms[forms.length - 1].slice(0, Math.ceil(room / 2));
    const length = Math.floor(last.length * (room - 11) / Math.max(context.measureText(last).width, 1));
    return length < 1 ? '' : last.slice(0, length) + '…';
  };
  // By which a link searches a graph.
  const graphs = new Map();
  const flame = async part => {
    const holder = part.querySelector('.graph');
    const isChange = part.dataset.before !== undefined;
    const plainUnit = shown[part.dataset.unit] || whole;
    const number = value => part.dataset.unit !== 'count' || value === 0 || value >= 99.95 ? plainUnit(Math.round(value)) : value < 1 ? value.toFixed(3) : value.toFixed(1);
    const unit = isChange ? value => number(value) + part.dataset.per : plainUnit;
    const packed = await inflate(part.dataset.flame);
    const plain = isChange ? readChange(packed, [Number(part.dataset.before), Number(part.dataset.now)]) : readTree(packed);
    const slicesId = part.dataset.flame.replace('flame-', 'slices-');
    const slices = document.getElementById(slicesId) ? readSlices(await inflate(slicesId)) : null;
    let [thread, range, end, isOwn, isUpside] = [-1, null, 1, false, false];
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
    const threads = make('select', { 'aria-label': 'of which thread' });
    threads.append(make('option', { value: '-1' }, 'all threads'));
    if (slices) slices.labels.forEach((label, place) => threads.append(make('option', { value: String(place) }, label)));
    const legend = make('span', { class: 'legend' });
    const kinds = new Set(plain.name.slice(1).map(name => plain.kinds[name]));
    for (const [kind, word] of isChange ? [['more', '+ more now'], ['same', '= within 5 %'], ['less', '− less now']]
      : [['own', 'own code'], ['platform', 'framework'], ['native', 'native'], ['kernel', 'kernel'], ['unknown', 'not known']].filter(([kind]) => kinds.has(KINDS.indexOf(kind)))) {
      legend.append(entry(kind, word, kind), ' ');
    }
    const widths = make('select', { 'aria-label': 'what widths mean' });
    widths.append(make('option', { value: 'both' }, 'width: before and now together'), make('option', { value: 'now' }, 'width: now'), make('option', { value: 'before' }, 'width: before'));
    const hits = make('span', { role: 'status' });
    tools.append(search, ...(slices && slices.labels.length > 1 ? [threads] : []), ...(isChange ? [widths] : []), invert, own, back, hits, legend);
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
      const width = Math.max(view.clientWidth, 1);
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
        for (const child of tree.children[box.node]) {
          const w = tree.size[child] * scale;
          if (w >= 0.4) boxes.push({ node: child, x, w, depth: box.depth + 1 });
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
          context.save();
          context.beginPath();
          context.rect(x, y, w - 3, ROW);
          context.clip();
          context.fillStyle = node === 0 || hasHits && !isHit ? color('text') : text;
          context.font = (!isChange && node !== 0 && fonts[tree.kinds[name]]) || fonts[0];
          const sign = !isChange || node === 0 ? '' : change > 0 ? '+ ' : change < 0 ? '− ' : '= ';
          context.fillText(sign + fitting(context, formsOf(name), w - 8 - (sign ? 12 : 0)), x + 4, y + ROW / 2);
          context.restore();
        }
        if (node === picked && picked !== 0) {
          context.strokeStyle = accent;
          context.lineWidth = 2;
          context.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 1), ROW - 3);
        }
      }
      canvas.dataset.drawn = String(boxes.length);
    };
    const pick = node => { picked = node; say.textContent = node ? describe(node).replace('\n', ' · ') : ''; draw(); };
    const zoom = node => { focus = node; picked = node; tip.hidden = true; say.textContent = node ? describe(node).replace('\n', ' · ') : ''; draw(); };
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
      const siblings = tree.children[tree.parent[picked]];
      const beside = step => siblings[siblings.indexOf(picked) + step] ?? picked;
      const keys = {
        ArrowDown: () => pick(tree.children[picked][0] ?? picked), ArrowUp: () => pick(tree.parent[picked]),
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
          else for (const child of tree.children[node]) open.push(child);
        }
      }
      hits.textContent = found ? `${percent(sum, tree.size[0])} in hits` : '';
      hits.dataset.hits = String(sum);
      draw();
    };
    search.addEventListener('input', () => { found = search.value.trim().toLowerCase(); look(); });
    const table = part.querySelector('tbody');
    const rows = [...table.rows];
    const fill = isPart => {
      // As tables of the page have it: a long text may be broken.
      const cell = (text, raw) => breakable(make('td', raw !== undefined ? { 'data-v': String(raw) } : text.length > 24 ? { class: 'w' } : {}, text));
      const all = tree.total[0];
      const share = value => cell((all > 0 ? value / all * 100 : 0).toFixed(1), all > 0 ? value / all * 100 : 0);
      table.replaceChildren(...isPart ? functions(tree).map(([name, sum]) => {
        const row = make('tr');
        const [text, file] = tree.texts[name];
        row.append(cell(text), cell(file || '–'), cell(unit(sum.own), sum.own), share(sum.own), cell(unit(sum.total), sum.total), share(sum.total));
        return row;
      }) : rows);
    };
    // The graph of the thread, the time and the direction that are chosen.
    const build = () => {
      const isPart = Boolean(slices) && (thread >= 0 || range !== null);
      tree = isPart ? sliced(plain, slices, thread, range) : plain;
      if (isOwn) tree = ownCode(tree);
      // The table of a change has both sides, and stays.
      if (!isChange) fill(isPart || isOwn ? (finished(tree), true) : false);
      if (isUpside) tree = inverted(tree);
      finished(tree, sizes);
      const over = !range ? '' : slices ? ` from ${duration(Math.floor(range[0] * slices.parts + 1e-9) / slices.parts * end)} to ${duration(Math.min(1, Math.ceil(range[1] * slices.parts - 1e-9) / slices.parts) * end)}` : '';
      say.textContent = isPart || isOwn && !isChange ? `${unit(tree.total[0])}${over}` : '';
      [focus, picked] = [0, 0];
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
    threads.addEventListener('change', () => { thread = Number(threads.value); build(); });
    ranged.push((chosen, length) => { range = chosen; end = length; if (slices) build(); });
    graphs.set(part, text => { search.value = text; found = text.trim().toLowerCase(); look(); return Number(hits.dataset.hits) > 0; });
    back.addEventListener('click', () => zoom(0));
    follow(view, draw);
    draw();
  };

  // Map of the heap: a column for each collection, a row for each part of the address space.
  const STATES = ['nothing of the heap', 'survived in place', 'moved here', 'moved away', 'freed', 'not collected', 'new', 'stayed while others moved'];
  const STATE_COLORS = [null, 'in-place', 'moved', 'away', 'freed', 'kept', 'new', 'stayed'];
  const GENERATIONS = ['generation 0', 'generation 1', 'generation 2', 'large objects', 'pinned objects', 'frozen', '', 'unknown generation'];
  // Beside each colour the map has lines, as the areas of charts: none, rising, level, falling, dots, upright, crossed.
  const STATE_ETCHES = [0, 0, 1, 3, 4, 2, 5, 6];
  const GENERATION_ETCHES = [0, 1, 2, 3, 6, 5, 4, 4];
  const ETCHES = ['', 'M-1 1L1-1M-1 9L9-1M7 9L9 7', 'M0 4H8', 'M-1 7L1 9M-1-1L9 9M7-1L9 1', 'M3 3h2v2h-2z', 'M4 0V8', 'M-1-1L9 9M-1 9L9-1'];
  const etched = (context, etch) => {
    const small = make('canvas', { width: 8, height: 8 });
    const lines = small.getContext('2d');
    lines.strokeStyle = color('etch');
    lines.stroke(new Path2D(ETCHES[etch]));
    return context.createPattern(small, 'repeat');
  };
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

  const rgb = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
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
    const draw = () => {
      const isState = by.value === 'state';
      const [context, width] = sharp(canvas, bottom);
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
      legend.textContent = '';
      // Only what the map has.
      const [names, meanings] = isState ? [STATE_COLORS, STATES] : [GENERATION_COLORS, GENERATIONS];
      for (const [value, word] of meanings.entries()) {
        const isShown = isState ? value && present[0].has(value) : word && present[1].has(value);
        if (isShown) legend.append(entry(names[value], word, '', etches[value]), ' ');
      }
      canvas.dataset.drawn = String(drawn);
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
    follow(view, draw);
    draw();
  };

  // A finding leads to its evidence: the graph is searched, the table filtered and sorted.
  for (const link of every('a.evidence')) {
    link.addEventListener('click', () => {
      const target = document.getElementById(link.getAttribute('href').slice(1));
      if (!target) return;
      const text = link.dataset.search || '';
      for (const [part, search] of graphs) if (target.contains(part) && text && !search(text)) search('');
      for (const [table, { search, look }] of tables) {
        if (!target.contains(table)) continue;
        search.value = text;
        if (text && look() === 0) { search.value = ''; look(); }
        const head = [...table.tHead.rows[0].cells].find(cell => link.dataset.sort && cell.textContent === link.dataset.sort);
        if (head && head.getAttribute('aria-sort') !== 'descending') head.querySelector('button').click();
      }
      for (let above = target; above; above = above.parentElement) if (above instanceof HTMLDetailsElement) above.open = true;
    });
  }
  const work = [...every('.stacks').map(flame), ...every('.map').map(heapMap)];
  Promise.all(work).then(() => { timeAsked(); root.dataset.ready = String(work.length); }, error => { root.dataset.failed = String(error); throw error; });
})();
