
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
  const color = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // A colour and what it means.
  const entry = (name, word) => {
    const [whole, swatch] = [make('span'), make('i')];
    swatch.style.background = `var(--${name})`;
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

  // Tables.
  const value = cell => cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : null;
  for (const table of document.querySelectorAll('table')) {
    const body = table.tBodies[0];
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
        keyed.sort((a, b) => a.key === null || b.key === null ? (a.key === null) - (b.key === null)
          : sign * (isNumber ? a.key - b.key : a.key.localeCompare(b.key, 'en')));
        body.append(...keyed.map(each => each.row));
      });
    });
  }

  // Timeline: what is seen of it, as shares of the whole.
  const lanes = document.getElementById('lanes');
  if (lanes) {
    const end = Number(lanes.dataset.end);
    const plots = [...lanes.querySelectorAll('.plot svg')];
    const axis = [...document.querySelectorAll('#axis span')];
    const timed = [...document.querySelectorAll('tr[data-t]')];
    const tools = make('div', { class: 'tools' });
    const say = make('span', { role: 'status' });
    let [from, to] = [0, 1];
    const show = (low, high) => {
      const width = clamp(high - low, 1e-6, 1);
      from = clamp(low, 0, 1 - width);
      to = from + width;
      for (const svg of plots) svg.setAttribute('viewBox', `${from * 1000} 0 ${width * 1000} 60`);
      axis.forEach((label, place) => { label.textContent = duration((from + width * place / (axis.length - 1)) * end); });
      const isAll = width > 0.999999;
      let hidden = 0;
      for (const row of timed) {
        const at = Number(row.dataset.t) / end;
        row.hidden = !isAll && (at < from || at > to);
        hidden += row.hidden ? 1 : 0;
      }
      say.textContent = isAll ? 'Drag over the charts to zoom; tables with times follow.'
        : `${duration(from * end)} to ${duration(to * end)}; ${whole(hidden)} rows of tables are hidden`;
      // Where a viewer forbids it, the page has no address for the time.
      try {
        history.replaceState(null, '', isAll ? location.pathname + location.search : `#t=${Math.round(from * end)}-${Math.round(to * end)}`);
      } catch { /* the zoom itself works */ }
    };
    const zoom = factor => { const [middle, half] = [(from + to) / 2, (to - from) * factor / 2]; show(middle - half, middle + half); };
    const move = part => show(from + (to - from) * part, to + (to - from) * part);
    const all = () => show(0, 1);
    for (const [text, label, act] of [['+', 'zoom in', () => zoom(0.5)], ['−', 'zoom out', () => zoom(2)],
      ['◂', 'earlier', () => move(-0.5)], ['▸', 'later', () => move(0.5)], ['All', 'the whole recording', all]]) {
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
    const share = event => { const box = plots[0].getBoundingClientRect(); return clamp((event.clientX - box.left) / box.width, 0, 1); };
    if (plots.length) {
      lanes.addEventListener('pointerdown', event => {
        if (event.button !== 0 || !event.target.closest('.plot')) return;
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
    const asked = /^#t=(\d+)-(\d+)$/.exec(location.hash);
    if (asked && Number(asked[2]) > Number(asked[1])) show(Number(asked[1]) / end, Number(asked[2]) / end);
    else say.textContent = 'Drag over the charts to zoom; tables with times follow.';
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

  const readTree = buffer => {
    const read = reader(buffer);
    const [count, names] = read.u32(2);
    const tree = { own: read.f64(count), total: read.f64(count), parent: read.u32(count), name: read.u32(count), texts: [], kinds: null };
    const lengths = read.u32(names);
    tree.kinds = read.u8(names);
    const decoder = new TextDecoder();
    for (const length of lengths) tree.texts.push(decoder.decode(read.u8(length)).split('\n'));
    return tree;
  };
  const withChildren = tree => {
    tree.children = Array.from(tree.own, () => []);
    for (let node = 1; node < tree.own.length; node++) tree.children[tree.parent[node]].push(node);
    return tree;
  };
  // From the innermost call to its callers. What was merged into a caller is the caller's own here.
  const inverted = tree => {
    const all = { own: [0], total: [tree.total[0]], parent: [0], name: [tree.name[0]], texts: tree.texts, kinds: tree.kinds };
    const known = new Map();
    const left = Float64Array.from(tree.total);
    for (let node = 1; node < tree.total.length; node++) left[tree.parent[node]] -= tree.total[node];
    for (let node = 1; node < tree.total.length; node++) {
      if (!(left[node] > 0)) continue;
      let at = 0;
      for (let caller = node; caller > 0; caller = tree.parent[caller]) {
        const key = at + ',' + tree.name[caller];
        let next = known.get(key);
        if (next === undefined) {
          next = all.own.length;
          known.set(key, next);
          all.own.push(0); all.total.push(0); all.parent.push(at); all.name.push(tree.name[caller]);
        }
        all.total[next] += left[node];
        if (at === 0) all.own[next] += left[node];
        at = next;
      }
    }
    withChildren(all);
    for (const children of all.children) children.sort((a, b) => all.total[b] - all.total[a]);
    return all;
  };

  const flame = async part => {
    const holder = part.querySelector('.graph');
    const unit = shown[part.dataset.unit] || whole;
    const plain = withChildren(readTree(await inflate(part.dataset.flame)));
    let upside = null;
    let tree = plain;
    let [focus, picked, found, boxes, matching] = [0, 0, '', [], null];
    const tools = make('div', { class: 'tools' });
    const search = make('input', { type: 'search', placeholder: 'search', 'aria-label': 'search for a name' });
    const invert = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Callers below');
    const back = make('button', { type: 'button' }, 'All');
    const legend = make('span', { class: 'legend' });
    for (const [kind, word] of [['own', 'own code'], ['platform', 'framework'], ['native', 'native'], ['kernel', 'kernel']]) {
      legend.append(entry(kind, word), ' ');
    }
    const hits = make('span', { role: 'status' });
    tools.append(search, invert, back, hits, legend);
    const view = make('div', { class: 'view' });
    const canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': 'Flame graph: arrows move, Enter zooms, Escape shows all. The table below has the same figures.' });
    const tip = make('div', { class: 'tip', hidden: '' });
    const say = make('p', { class: 'say', 'aria-live': 'polite' });
    view.append(canvas);
    holder.append(tools, view, tip, say);

    const describe = node => {
      const [name, file] = tree.texts[tree.name[node]];
      const all = tree.total[0];
      const own = tree.own[node] > 0 ? `, ${unit(tree.own[node])} of its own` : '';
      return `${name}\n${file ? file + ': ' : ''}${unit(tree.total[node])} (${percent(tree.total[node], all)})${own}`;
    };
    const draw = () => {
      const width = Math.max(view.clientWidth, 1);
      boxes = [];
      // Callers of what is looked at span the whole width.
      const line = [];
      for (let node = focus; ; node = tree.parent[node]) { line.unshift(node); if (node === 0) break; }
      line.forEach((node, depth) => boxes.push({ node, x: 0, w: width, depth }));
      const scale = width / (tree.total[focus] || 1);
      for (let next = boxes.length - 1; next < boxes.length; next++) {
        const box = boxes[next];
        if (box.depth + 1 >= MOST_ROWS) continue;
        let x = box.x;
        for (const child of tree.children[box.node]) {
          const w = tree.total[child] * scale;
          if (w >= 0.4) boxes.push({ node: child, x, w, depth: box.depth + 1 });
          x += w;
        }
      }
      const rows = boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);
      const [context] = sharp(canvas, rows * ROW);
      context.font = '12px system-ui, "DejaVu Sans", sans-serif';
      context.textBaseline = 'middle';
      const fills = KINDS.map(color);
      const [mark, text, accent] = [color('mark'), color('box'), color('accent')];
      const hasHits = matching !== null;
      for (const { node, x, w, depth } of boxes) {
        const name = tree.name[node];
        const isHit = hasHits && matching[name];
        const y = depth * ROW;
        context.globalAlpha = hasHits && !isHit ? 0.35 : depth < line.length - 1 ? 0.6 : 0.85 + name * 7 % 4 * 0.05;
        context.fillStyle = node === 0 ? color('line') : isHit ? '#ffd84d' : fills[tree.kinds[name]] || fills[0];
        context.fillRect(x, y, Math.max(w - 0.6, 0.4), ROW - 1);
        context.globalAlpha = 1;
        if (w > 34) {
          context.save();
          context.beginPath();
          context.rect(x, y, w - 3, ROW);
          context.clip();
          context.fillStyle = node === 0 || hasHits && !isHit ? color('text') : text;
          context.fillText(tree.texts[name][0], x + 4, y + ROW / 2);
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
        const below = [0];
        while (below.length) {
          const node = below.pop();
          if (node !== 0 && matching[tree.name[node]]) sum += tree.total[node];
          else below.push(...tree.children[node]);
        }
      }
      hits.textContent = found ? `${percent(sum, tree.total[0])} in hits` : '';
      hits.dataset.hits = String(sum);
      draw();
    };
    search.addEventListener('input', () => { found = search.value.trim().toLowerCase(); look(); });
    invert.addEventListener('click', () => {
      upside = upside || inverted(plain);
      tree = tree === plain ? upside : plain;
      invert.setAttribute('aria-pressed', String(tree !== plain));
      invert.textContent = tree === plain ? 'Callers below' : 'Callers above';
      [focus, picked] = [0, 0];
      look();
    });
    back.addEventListener('click', () => zoom(0));
    follow(view, draw);
    draw();
  };

  // Map of the heap: a column for each collection, a row for each part of the address space.
  const STATES = ['nothing of the heap', 'survived in place', 'moved here', 'moved away', 'freed', 'not collected', 'new'];
  const STATE_COLORS = [null, 'in-place', 'moved', 'away', 'freed', 'kept', 'new'];
  const GENERATIONS = ['generation 0', 'generation 1', 'generation 2', 'large objects', 'pinned objects', 'frozen', '', 'unknown generation'];
  const GENERATION_COLORS = ['g0', 'g1', 'g2', 'lo', 'po', 'bg', 'ot', 'ot'];

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
    const tools = make('div', { class: 'tools' });
    const by = make('select', { 'aria-label': 'what colours mean' });
    by.append(make('option', { value: 'state' }, 'by what became of it'), make('option', { value: 'generation' }, 'by generation'));
    const legend = make('span', { class: 'legend' });
    tools.append(by, legend);
    const view = make('div', { class: 'view' });
    const canvas = make('canvas', { tabindex: '0', role: 'img', 'aria-label': 'Heap map: arrows move from part to part. The table below has sums.' });
    const tip = make('div', { class: 'tip', hidden: '' });
    const say = make('p', { class: 'say', 'aria-live': 'polite' });
    view.append(canvas);
    holder.append(tools, view, tip, say);

    // A gap between two parts is a line, whatever its length.
    const STRIP = 10;
    const height = clamp(Math.floor(420 / bins), 1, 8);
    const isGap = Array.from({ length: bins }, (_, row) => row > 0 && starts[row] !== starts[row - 1] + bin);
    const gap = isGap.filter(Boolean).length > 60 ? 1 : 4;
    const tops = [];
    let bottom = STRIP + 4;
    for (let row = 0; row < bins; row++) { bottom += isGap[row] ? gap : 0; tops.push(bottom); bottom += height; }
    let cursor = null;

    const describe = (column, row) => {
      const cell = cells[column * bins + row];
      const state = cell & 7;
      const last = starts[row] + bin;
      const where = `0x${starts[row].toString(16)} to 0x${last.toString(16)} (${size(Number(bin))})`;
      const generation = collected[column] === 7 ? '' : ` of generation ${collected[column]}`;
      const quarter = ['up to a quarter', 'a quarter to half', 'half to three quarters', 'three quarters or more'][cell >> 6];
      const what = state === 0 ? STATES[0] : `${STATES[state]}, ${GENERATIONS[cell >> 3 & 7]}; ${quarter} of it`;
      return `Collection ${ids[column]}${generation} at ${duration(times[column])}\n${where}\n${what}`;
    };
    const draw = () => {
      const isState = by.value === 'state';
      const [context, width] = sharp(canvas, bottom);
      const colors = isState ? STATE_COLORS.map(name => name && rgb(color(name))) : GENERATION_COLORS.map(name => rgb(color(name)));
      const page = rgb(color('panel'));
      const image = new ImageData(columns, bins);
      let drawn = 0;
      for (let column = 0; column < columns; column++) {
        for (let row = 0; row < bins; row++) {
          const cell = cells[column * bins + row];
          const state = cell & 7;
          // Freed memory and what was moved away belongs to no generation any more.
          const isEmpty = state === 0 || !isState && (state === 3 || state === 4);
          const fill = isEmpty ? page : colors[isState ? state : cell >> 3 & 7];
          const part = isEmpty ? 0 : 0.55 + (cell >> 6) * 0.15;
          const at = (row * columns + column) * 4;
          for (let channel = 0; channel < 3; channel++) image.data[at + channel] = fill[channel] * part + page[channel] * (1 - part);
          image.data[at + 3] = 255;
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
      for (let row = 0; row < bins;) {
        let next = row + 1;
        while (next < bins && !isGap[next]) next++;
        context.drawImage(small, 0, row, columns, next - row, 0, tops[row], width, (next - row) * height);
        row = next;
      }
      if (each > 6) {
        context.fillStyle = color('page');
        for (let column = 1; column < columns; column++) context.fillRect(column * each - 0.5, 0, 1, bottom);
      }
      if (cursor) {
        context.strokeStyle = color('text');
        context.lineWidth = 2;
        context.strokeRect(cursor[0] * each - 1, tops[cursor[1]] - 1, each + 2, height + 2);
      }
      legend.textContent = '';
      const entries = isState ? STATES.map((word, state) => [STATE_COLORS[state], word]).slice(1)
        : GENERATIONS.map((word, generation) => [GENERATION_COLORS[generation], word]).filter(([, word], generation) => word && generation < 6);
      for (const [name, word] of entries) {
        legend.append(entry(name, word), ' ');
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
    canvas.addEventListener('click', event => go(...at(event)));
    canvas.addEventListener('keydown', event => {
      const [column, row] = cursor || [-1, 0];
      const keys = {
        ArrowLeft: () => go(column - 1, row), ArrowRight: () => go(column + 1, row), ArrowUp: () => go(column, row - 1), ArrowDown: () => go(column, row + 1),
        Escape: () => { cursor = null; say.textContent = ''; draw(); },
      };
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
    by.addEventListener('change', draw);
    follow(view, draw);
    draw();
  };

  const work = [...[...document.querySelectorAll('.stacks')].map(flame), ...[...document.querySelectorAll('.map')].map(heapMap)];
  Promise.all(work).then(() => { root.dataset.ready = String(work.length); }, error => { root.dataset.failed = String(error); throw error; });
})();
