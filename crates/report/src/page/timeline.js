
// The timeline: what is seen of it is the time that is chosen. Charts with rows show what else is chosen, too.

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
const stepOf = span => [...shortSteps, ...longSteps].find(step => span / step < 7) ?? span / 6;
const ticks = (from, to) => {
  const span = to - from;
  const step = stepOf(span);
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

// The part of a chart that is chosen, over all of it: a bar for each of the parts of the time that the chart has.
const PARTS = 240;
const chartOfRows = figure => {
  const rows = kinds.get(figure.dataset.rows);
  if (!rows) return;
  const svg = figure.querySelector('svg');
  const part = drawn('path', { class: 'part', d: '' });
  svg.append(part);
  const most = Number(figure.dataset.most) || 1;
  const amounts = figure.dataset.measure === 'count' ? rows.things : rows.amount;
  follows(selection => {
    const rest = { ...selection, time: null };
    const isPart = !isEverything(rest) && unknownTo(rows, rest).length < Object.values(rest).filter(value => value !== null).length;
    figure.classList.toggle('whole', isPart);
    if (!isPart) { part.setAttribute('d', ''); return; }
    const parts = rows.parts || PARTS;
    const sums = new Float64Array(parts);
    // Without a time it is what the other panels show, too.
    for (const row of shownRows(rows, selection.time ? rest : selection)) {
      const at = rows.parts ? rows.at[row] : Math.min(Math.floor(rows.at[row] * parts / known.end), parts - 1);
      sums[at] += amounts[row] || 0;
    }
    // Longer parts than the chart has are spread over it.
    const scale = most * PARTS / parts;
    const width = 1000 / parts;
    part.setAttribute('d', [...sums].map((sum, at) => sum > 0 ? `M${(at * width).toFixed(2)} 60v${(-Math.min(sum / scale, 1) * 60).toFixed(2)}h${width.toFixed(2)}V60z` : '').join(''));
  }, figure);
};

const setUpTimeline = () => {
  const lanes = document.getElementById('lanes');
  if (!lanes) return;
  const end = Number(lanes.dataset.end);
  known.end = end;
  const plots = [...document.querySelectorAll('.plot:not(.fixed) svg')];
  const axes = [...document.querySelectorAll('svg.axis:not(.still)')];
  const tools = make('div', { class: 'tools' });
  const say = make('span', { role: 'status' });
  const seen = () => chosen.time ? chosen.time.map(ns => ns / end) : [0, 1];
  // The charts are stretched, the lines of their areas are not.
  let pixels = 1000;
  const unstretch = () => {
    const [from, to] = seen();
    for (const pattern of document.querySelectorAll('pattern')) pattern.setAttribute('patternTransform', `scale(${(to - from) * 1000 / pixels} 1)`);
  };
  new ResizeObserver(() => { pixels = document.querySelector('.plot')?.clientWidth || 1000; unstretch(); }).observe(lanes);
  const HINT = 'Drag over the charts to choose a time. Everything below follows.';
  say.textContent = HINT;
  let last = '';
  follows(selection => {
    const [from, to] = seen();
    if (last === from + '-' + to) return;
    last = from + '-' + to;
    for (const svg of plots) svg.setAttribute('viewBox', `${from * 1000} 0 ${(to - from) * 1000} 60`);
    for (const axis of axes) axis.replaceChildren(...ticks(from * end, to * end));
    unstretch();
    say.textContent = selection.time ? wordsOf.time(selection.time) : HINT;
  });
  const show = (low, high) => {
    const width = clamp(high - low, 1e-6, 1);
    const from = clamp(low, 0, 1 - width);
    select({ time: width > 0.999999 ? null : [Math.round(from * end), Math.round((from + width) * end)] });
  };
  const zoom = factor => { const [from, to] = seen(); const [middle, half] = [(from + to) / 2, (to - from) * factor / 2]; show(middle - half, middle + half); };
  const move = part => { const [from, to] = seen(); show(from + (to - from) * part, to + (to - from) * part); };
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
  for (const figure of lanes.querySelectorAll('figure[data-rows]')) chartOfRows(figure);
  brushOver(lanes, () => lanes.querySelector('.plot'), (low, high) => { const [from, to] = seen(); show(from + low * (to - from), from + high * (to - from)); });
  lanes.addEventListener('dblclick', all);
};

// A time is chosen by dragging over an element: calls `take` with shares of the width of what `plotOf` gives.
const brushOver = (holder, plotOf, take) => {
  let begin = null;
  let brush = null;
  const share = event => { const box = plotOf().getBoundingClientRect(); return clamp((event.clientX - box.left) / box.width, 0, 1); };
  if (!plotOf()) return;
  holder.addEventListener('pointerdown', event => {
    if (event.button !== 0 || !(event.target instanceof Element && event.target.closest('.plot'))) return;
    begin = share(event);
    brush = make('div', { class: 'brush' });
    brush.style.width = '0';
    holder.append(brush);
    holder.setPointerCapture(event.pointerId);
  });
  holder.addEventListener('pointermove', event => {
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
    if (event.type === 'pointerup' && b - a > 0.004) take(a, b);
  };
  holder.addEventListener('pointerup', finish);
  holder.addEventListener('pointercancel', finish);
};
