
// A lane for each thread: whether it ran, or what it waited for. Workers of the pool are one lane, until they are wanted apart.

// States by their numbers, from the bottom of a lane to its top: word, colour, lines.
/** @type {[string, string, number][]} */
const DOES = [['running', 'g2', 0], ['ready, and no processor is free', 'ot', 4], ['outside of managed code', 'same', 0], ['waits for a lock', 'lo', 3], ['waits for a task', 'g0', 0],
  ['sleeps', 'po', 6], ['waits for a file or socket', 'g1', 1], ['waits for work', 'line', 0], ['waits for something else', 'bg', 5]];
const STACKED = [0, 1, 3, 4, 5, 6, 8, 2, 7];
const RUNS = 0, FOR_LOCK = 3, FOR_TASK = 4, FOR_WORK = 7;
const MOST_LANES = 24;
const LABEL = 190;

/** Calls `take` with the thread, the state, the start, the end and the amount of what the rows have of a time. A sum of a part is spread over it. */
const eachTime = (rows, [from, to], take) => {
  const part = rows.parts ? known.end / rows.parts : 0;
  for (let row = 0; row < rows.count; row++) {
    const start = part ? rows.at[row] * part : rows.at[row];
    const end = part ? start + part : start + rows.amount[row];
    // Rows are in the order of their starts.
    if (start >= to) break;
    if (end > from) take(rows.thread[row], rows.line[row], start, end, part ? rows.amount[row] : end - start);
  }
};
// Of a time how long each thread, or one of them, was in each state, as events say it.
const timesOf = (rows, time, thread) => {
  const sums = new Float64Array(DOES.length);
  eachTime(rows, time, (of, state, start, end, amount) => {
    if (thread !== null && of !== thread) return;
    sums[state] += amount * (Math.min(end, time[1]) - Math.max(start, time[0])) / (end - start || 1);
  });
  return sums;
};

const setUpLanes = () => {
  const holder = /** @type {HTMLElement | null} */ (document.querySelector('.threads'));
  const [states, sampled] = [kinds.get('states'), kinds.get('sampled')];
  if (!holder || !(states || sampled)) return;
  // How much each thread did beside waiting for work.
  const activity = new Map();
  const add = (thread, amount) => { if (known.threads[thread]) activity.set(thread, (activity.get(thread) ?? 0) + amount); };
  // Where events say when threads ran, that alone counts.
  const isOfSwitches = states && states.line.includes(RUNS);
  if (states) eachTime(states, [0, known.end], (thread, state, _, __, amount) => add(thread, (isOfSwitches ? state !== RUNS : state === FOR_WORK) ? 0 : amount));
  if (sampled) for (let row = 0; row < sampled.count; row++) add(sampled.thread[row], sampled.line[row] === RUNS ? sampled.things[row] * 1e7 : 0);
  const threads = [...activity.keys()].sort((a, b) => activity.get(b) - activity.get(a) || a - b);
  const isWorker = thread => known.threads[thread][3] === 1;
  const workers = threads.filter(isWorker);
  let isApart = false;
  const tools = make('div', { class: 'tools' });
  const apart = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Workers apart');
  apart.addEventListener('click', () => { isApart = !isApart; apart.setAttribute('aria-pressed', String(isApart)); draw(); });
  const choice = make('select', { 'aria-label': 'the thread that is chosen' });
  choice.append(make('option', { value: '' }, 'all threads'), ...threads.map(thread => make('option', { value: String(thread) }, known.threads[thread][2])));
  choice.addEventListener('change', () => select({ thread: choice.value === '' ? null : Number(choice.value) }));
  const legend = make('span', { class: 'legend' });
  tools.append(choice, ...(workers.length > 1 ? [apart] : []), legend);
  const say = make('p', { class: 'say', role: 'status' });
  const view = make('div', { class: 'view plot fixed lanesOfThreads' });
  const canvas = make('canvas', { role: 'img', 'aria-label': 'A lane for each thread: whether it ran, or what it waited for. A click on a lane chooses its thread; the list above has all threads.' });
  const tip = make('div', { class: 'tip', hidden: '' });
  const rest = make('p', { class: 'note' });
  view.append(canvas);
  holder.append(tools, say, view, tip, rest);

  const lanesNow = () => {
    const chosenOnes = chosen.thread === null ? [] : [chosen.thread];
    if (chosenOnes.length && activity.has(chosenOnes[0])) return [{ threads: chosenOnes, label: known.threads[chosenOnes[0]][2], height: 44 }];
    const alone = (isApart || workers.length < 2 ? threads : threads.filter(thread => !isWorker(thread))).slice(0, isApart ? 3 * MOST_LANES : MOST_LANES);
    const lanes = alone.map(thread => ({ threads: [thread], label: known.threads[thread][2], height: 16 }));
    if (!isApart && workers.length > 1) lanes.unshift({ threads: workers, label: `${workers.length} workers of the pool`, height: 64 });
    return lanes;
  };
  // How much of each column each lane was in each state.
  const cellsOf = (lanes, time, columns) => {
    const width = (time[1] - time[0]) / columns;
    const laneOf = new Map(lanes.flatMap((lane, place) => lane.threads.map(thread => [thread, place])));
    const cells = lanes.map(() => DOES.map(() => new Float32Array(columns)));
    const over = (start, end, take) => {
      const [first, last] = [Math.max(Math.floor((start - time[0]) / width), 0), Math.min(Math.ceil((end - time[0]) / width), columns)];
      for (let column = first; column < last; column++) {
        const low = time[0] + column * width;
        take(column, Math.min(end, low + width) - Math.max(start, low));
      }
    };
    const covered = new Map(lanes.flatMap(lane => lane.threads.map(thread => [thread, new Float32Array(columns)])));
    if (states) {
      eachTime(states, time, (thread, state, start, end, amount) => {
        const lane = laneOf.get(thread);
        if (lane === undefined) return;
        const share = amount / (end - start || 1);
        over(start, end, (column, ns) => { cells[lane][state][column] += ns * share; covered.get(thread)[column] += ns * share; });
      });
    }
    if (!sampled) return cells;
    // What no wait of a thread covers is what samples of the part show.
    const part = known.end / sampled.parts;
    const shares = new Map();
    for (let row = 0; row < sampled.count; row++) {
      const [thread, state] = [sampled.thread[row], sampled.line[row]];
      if (!laneOf.has(thread) || states && [FOR_LOCK, FOR_TASK].includes(state)) continue;
      const key = sampled.at[row] * known.threads.length + thread;
      if (!shares.has(key)) shares.set(key, new Float64Array(DOES.length));
      shares.get(key)[state] += sampled.things[row];
    }
    for (const [key, counts] of shares) {
      const [at, thread] = [Math.floor(key / known.threads.length), key % known.threads.length];
      const [all, lane, of] = [counts.reduce((sum, count) => sum + count, 0), laneOf.get(thread), covered.get(thread)];
      over(Math.max(at * part, time[0]), Math.min((at + 1) * part, time[1]), (column, ns) => {
        const free = Math.max(ns - of[column] * ns / width, 0);
        counts.forEach((count, state) => { if (count) cells[lane][state][column] += free * count / all; });
      });
    }
    return cells;
  };
  let tops = [];
  const draw = () => {
    const time = chosen.time ?? [0, known.end];
    const lanes = lanesNow();
    const bottom = lanes.reduce((sum, lane) => sum + lane.height + 4, 22);
    const [context, width] = sharp(canvas, bottom);
    const left = width > 500 ? LABEL : 0;
    const columns = Math.max(Math.floor((width - left) / 2), 10);
    const step = (width - left) / columns;
    const cells = cellsOf(lanes, time, columns);
    const each = (time[1] - time[0]) / columns;
    context.font = '12px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    tops = [];
    let top = 2;
    const [present, labels] = [new Set(), []];
    lanes.forEach((lane, place) => {
      tops.push({ ...lane, top });
      context.fillStyle = color('panel');
      context.fillRect(left, top, width - left, lane.height);
      const low = new Float32Array(columns);
      for (const state of STACKED) {
        const path = new Path2D();
        let isEmpty = true;
        for (let column = 0; column < columns; column++) {
          const share = cells[place][state][column] / (each * lane.threads.length);
          const high = Math.min(share * lane.height, lane.height - low[column]);
          if (!(high > 0.05)) continue;
          isEmpty = false;
          path.rect(left + column * step, top + lane.height - low[column] - high, step + 0.3, high);
          low[column] += high;
        }
        if (isEmpty) continue;
        present.add(state);
        const [, name, etch] = DOES[state];
        context.fillStyle = color(name);
        context.fill(path);
        if (etch) { context.fillStyle = etched(context, etch); context.fill(path); }
      }
      labels.push([fitting(context, [lane.label], (left || width) - 8), left ? 0 : 4, top + lane.height / 2]);
      top += lane.height + 4;
    });
    // All threads stand still in a pause.
    context.fillStyle = color('warning');
    let pauses = 0;
    for (const [, start, length] of known.pauses) {
      if (start >= time[1] || start + length <= time[0]) continue;
      pauses++;
      const x = left + (Math.max(start, time[0]) - time[0]) / (time[1] - time[0]) * (width - left);
      context.fillRect(x, 0, Math.max(length / (time[1] - time[0]) * (width - left), 1), top - 4);
    }
    // On a narrow screen names stand on the lanes, with the page behind them.
    for (const [label, x, y] of labels) {
      context.globalAlpha = 0.85;
      context.fillStyle = color('page');
      if (!left) context.fillRect(0, y - 7, lengthOf(context, label) + 8, 14);
      context.globalAlpha = 1;
      context.fillStyle = color('text');
      context.fillText(label, x, y);
    }
    const marks = stepOf(time[1] - time[0]);
    context.fillStyle = color('quiet');
    for (let tick = Math.ceil(time[0] / marks); tick * marks <= time[1]; tick++) {
      const x = left + (tick * marks - time[0]) / (time[1] - time[0]) * (width - left);
      context.fillRect(x, top - 2, 1, 4);
      const label = tickLabel(tick * marks, marks, time[1]);
      context.fillText(label, clamp(x - context.measureText(label).width / 2, left, width - context.measureText(label).width), top + 10);
    }
    legend.replaceChildren(...[...present].sort((a, b) => a - b).flatMap(state => { const [word, name, etch] = DOES[state]; return [entry(name, word, '', etch), ' ']; }), ...(pauses ? [entry('warning', 'all stopped for a GC')] : []));
    rest.textContent = lanes.length < threads.length && chosen.thread === null && isApart ? `The ${lanes.length} threads that did most, of ${threads.length}.` : '';
    canvas.dataset.drawn = String(present.size * lanes.length + 1);
    say.textContent = '';
    if (states) {
      const sums = timesOf(states, time, chosen.thread);
      const told = [...sums].map((ns, state) => ns > 0 ? `${DOES[state][0]} ${duration(ns)}` : '').filter(Boolean).join(', ');
      const blind = unknownTo({ blur: states.blur, tree: null, lines: null }, { ...chosen, type: null });
      say.textContent = `${chosen.thread === null ? 'All threads together' : known.threads[chosen.thread][2]}${chosen.time ? ' from ' + wordsOf.time(chosen.time) : ''}: ${told || 'no wait'}.${blind.length ? ` Of every ${blind.join(' and ')}.` : ''}`;
      say.dataset.times = JSON.stringify([...sums]);
    }
  };
  const laneAt = event => {
    const box = canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    return tops.find(lane => y >= lane.top && y < lane.top + lane.height);
  };
  canvas.addEventListener('click', event => {
    const lane = laneAt(event);
    if (!lane) return;
    if (lane.threads.length === 1) select({ thread: chosen.thread === lane.threads[0] ? null : lane.threads[0] });
    else apart.click();
  });
  canvas.addEventListener('pointermove', event => {
    const lane = laneAt(event);
    tip.hidden = !lane;
    if (lane) { tip.textContent = lane.label + (lane.threads.length > 1 ? '\nA click shows each.' : '\nA click chooses this thread.'); place(tip, holder, event); }
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  follows(selection => { choice.value = selection.thread === null ? '' : String(selection.thread); draw(); }, holder);
  follow(view, draw);
  draw();
};
