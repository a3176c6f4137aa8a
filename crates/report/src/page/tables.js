
// Tables: sorted, searched, and of what is chosen.

const tables = new Map();
// A row is hidden by what is chosen, or by the text that is looked for.
const hide = row => { row.hidden = ['late', 'other', 'gone'].some(name => row.classList.contains(name)); };
const value = cell => cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : null;
// A long name breaks between its parts rather than anywhere.
const breakable = cell => {
  const parts = cell.textContent.split(/(?<=[.,:+/\\[\]])(?=[^\s\d.,:+/\\[\]])/u);
  if (parts.length === 1 && parts[0].length <= 32 && !parts[0].includes(' ')) cell.classList.remove('w');
  const holder = cell.querySelector('button') ?? cell;
  if (parts.length > 1) holder.replaceChildren(...parts.flatMap((part, at) => at ? [make('wbr'), part] : [part]));
  return cell;
};
const headsOf = table => [...table.tHead.rows[0].cells];
const headOf = (table, name) => headsOf(table).findIndex(head => head.textContent.trim() === name);

// Columns whose texts can be chosen.
const CHOICES = { type: 'type', route: 'route', method: 'method', 'method or function': 'method', 'waits in': 'method', 'thrown in': 'method', 'needed by': 'method', 'own method': 'method', 'made in': 'method', 'begins in': 'method', calls: 'method' };
// A cell whose text can be chosen by a click.
const choosable = (cell, what) => {
  const text = cell.textContent;
  if (text === '–' || text === '' || cell.querySelector('button')) return cell;
  const button = make('button', { type: 'button', class: 'choose', title: 'show only this' });
  button.append(...cell.childNodes);
  button.addEventListener('click', () => select({ [what]: text }));
  cell.append(button);
  return cell;
};
// A kind of rows says what can be chosen by its table.
const CHOOSES = [['allocations-table', 'type'], ['exceptions-table', 'type'], ['exceptions-table', 'thrown in'], ['requests-table', 'route'], ['slowest-table', 'route'],
  ['deaths-table', 'type'], ['deaths-table', 'made in'], ['handlers-table', 'begins in'], ['handlers-table', 'calls'], ['locks-table', 'waits in'], ['waits-table', 'waits in'], ['jit-table', 'needed by']];
const isChoosable = (table, head) => CHOOSES.some(([id, name]) => id === table.id && name === head) || head === 'method or function' && /^stacks-/.test(table.id)
  || head === 'own method' && /^(request|finding)-/.test(table.id) || head === 'type' && /^finding-/.test(table.id);

const sortBy = (table, place) => {
  const [body, head] = [table.tBodies[0], headsOf(table)[place]];
  const isNumber = head.classList.contains('n');
  const sign = head.getAttribute('aria-sort') === 'ascending' ? 1 : -1;
  const keyed = [...body.rows].map(row => {
    const cell = row.cells[place];
    const text = cell.textContent;
    return { row, key: isNumber ? value(cell) : text === '–' ? null : text };
  });
  // What was not recorded comes last in either order.
  keyed.sort((a, b) => a.key === null || b.key === null ? Number(a.key === null) - Number(b.key === null)
    : sign * (isNumber ? Number(a.key) - Number(b.key) : String(a.key).localeCompare(String(b.key), 'en')));
  if (keyed.some((each, at) => body.rows[at] !== each.row)) body.append(...keyed.map(each => each.row));
};
const setUpTable = table => {
  const body = table.tBodies[0];
  headsOf(table).forEach((head, place) => {
    const name = head.textContent;
    if (isChoosable(table, name)) for (const row of body.rows) if (row.cells[place]) choosable(row.cells[place], CHOICES[name]);
    const button = make('button', { type: 'button' }, name);
    head.textContent = '';
    head.append(button);
    button.addEventListener('click', () => {
      const [first, second] = head.classList.contains('n') ? ['descending', 'ascending'] : ['ascending', 'descending'];
      const order = head.getAttribute('aria-sort') === first ? second : first;
      for (const other of headsOf(table)) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', order);
      sortBy(table, place);
    });
  });
  body.querySelectorAll('td.w').forEach(breakable);
  if (body.rows.length < 8) return;
  const tools = make('div', { class: 'tools' });
  const search = make('input', { type: 'search', placeholder: 'filter', 'aria-label': 'show only rows with a text' });
  const hits = make('span', { role: 'status' });
  const look = () => {
    const text = search.value.trim().toLowerCase();
    let found = 0;
    for (const row of body.rows) {
      const isHit = !text || row.textContent.toLowerCase().replaceAll('\u00a0', ' ').includes(text);
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
};

// What the columns of tables of rows are: the number of things, their amount, the longest, the first, another amount, or a percentile.
const MEASURES = { bytes: 'amount', objects: 'more', samples: 'things', thrown: 'things', 'first s': 'first', waits: 'things', waited: 'amount', longest: 'longest', times: 'things', took: 'amount',
  requests: 'things', failed: 'more', median: 50, '95 %': 95, '99 %': 99, together: 'amount' };
const AMOUNTS = { allocations: size, deaths: size, exceptions: whole, locks: duration, waits: duration, jit: duration, requests: duration };

// The sums of each line of a table over the rows that are shown.
const lineSums = (rows, selection, hasRanks) => {
  const sums = new Map();
  for (const row of shownRows(rows, selection)) {
    let sum = sums.get(rows.line[row]);
    if (!sum) sums.set(rows.line[row], sum = { things: 0, amount: null, longest: null, first: null, more: 0, amounts: [] });
    sum.things += rows.things[row];
    if (!Number.isNaN(rows.amount[row])) {
      sum.amount += rows.amount[row];
      sum.longest = Math.max(sum.longest, rows.longest[row]);
      if (hasRanks && !rows.parts) sum.amounts.push(rows.amount[row]);
    }
    if (!rows.parts) sum.first = sum.first === null ? rows.at[row] : Math.min(sum.first, rows.at[row]);
    if (rows.more) sum.more += rows.more[row];
  }
  for (const sum of sums.values()) sum.amounts = Float64Array.from(sum.amounts).sort();
  return sums;
};
const measured = (sum, measure) => typeof measure !== 'number' ? sum[measure]
  : sum.amounts.length ? sum.amounts[Math.max(Math.ceil(sum.amounts.length * measure / 100), 1) - 1] : null;

// The table of a kind follows: what it shows of each line is the sum of the rows that are chosen.
const tableOfKind = (kind, rows) => {
  const table = /** @type {HTMLTableElement | null} */ (document.getElementById(kind + '-table'));
  if (!table || !(kind in AMOUNTS)) return;
  const lines = [...table.tBodies[0].rows];
  const heads = headsOf(table);
  const columns = heads.map((head, place) => ({ place, measure: MEASURES[head.textContent.trim()] })).filter(({ measure }) => measure !== undefined);
  const type = headOf(table, 'type');
  if (type >= 0) rows.lines = lines.map(line => line.cells[type].textContent);
  const original = lines.map(line => columns.map(({ place }) => [line.cells[place].textContent, line.cells[place].dataset.v]));
  const say = make('p', { class: 'say', role: 'status' });
  table.closest('.scroll').before(say);
  const units = { things: whole, more: whole, first: ns => (ns / 1e9).toFixed(6) };
  const hasRanks = columns.some(({ measure }) => typeof measure === 'number');
  // What stays the same is not laid out anew.
  const set = (cell, text, raw) => {
    if (cell.textContent !== text) cell.textContent = text;
    if (raw === undefined) delete cell.dataset.v; else cell.dataset.v = String(raw);
  };
  const order = wanted => { if (wanted.some((line, at) => table.tBodies[0].rows[at] !== line)) table.tBodies[0].append(...wanted); };
  let wasPart = false;
  follows(selection => {
    const isPart = !isEverything(selection);
    if (!isPart && !wasPart) return;
    wasPart = isPart;
    const sums = isPart ? lineSums(rows, selection, hasRanks) : null;
    lines.forEach((line, at) => {
      const sum = sums?.get(at);
      columns.forEach(({ place, measure }, column) => {
        const cell = line.cells[place];
        if (!sums) { set(cell, original[at][column][0], original[at][column][1]); return; }
        const amount = sum ? measured(sum, measure) : 0;
        if (amount === null || original[at][column][1] === undefined && !amount) set(cell, '–', undefined);
        else set(cell, (units[measure] ?? AMOUNTS[kind])(amount), amount);
      });
      line.classList.toggle('gone', isPart && !sum);
      hide(line);
    });
    const all = sums ? [...sums.values()].reduce((all, sum) => all + sum.things, 0) : 0;
    const rest = sums?.get(NO_LINE)?.things ?? 0;
    say.textContent = isPart ? `${whole(all)} ${kind === 'jit' ? 'methods compiled' : ['allocations', 'deaths'].includes(kind) ? 'samples' : kind === 'locks' ? 'waits for locks' : kind}${aboutPart(rows, selection)}${rest ? `; ${whole(rest)} of them are in no line of the table` : ''}` : '';
    say.dataset.things = String(all);
    const sorted = heads.findIndex(head => head.hasAttribute('aria-sort'));
    if (sorted >= 0) sortBy(table, sorted);
    else if (!sums) order(lines);
    else order(lines.map((line, at) => ({ line, size: sums.get(at)?.amount ?? 0 })).sort((a, b) => b.size - a.size).map(({ line }) => line));
  }, table.closest('.scroll'));
};

// How the durations of the requests that are chosen are spread: a chart for each route, with a height of its own.
const setUpHistograms = () => {
  const holder = /** @type {HTMLElement | null} */ (document.querySelector('.durations'));
  // Where rows are sums of parts of the time, others have the bars of the durations.
  const rows = kinds.get('durations') ?? kinds.get('requests');
  if (!holder || !rows) return;
  const [first, least] = [Number(holder.dataset.first), holder.dataset.least.split(' ').map(Number)];
  const hasBars = !rows.parts || kinds.has('durations') && rows.blur < 3;
  const say = make('p', { class: 'note', role: 'status' });
  holder.before(say);
  const charts = [...holder.querySelectorAll('figure')].map(figure => {
    const [words, svg, path] = [figure.querySelector('figcaption span'), figure.querySelector('svg'), figure.querySelector('path')];
    return { figure, words, svg, path, line: Number(figure.dataset.line), name: figure.querySelector('b').textContent, whole: [words.textContent, path.getAttribute('d')] };
  });
  const barOf = row => rows.parts ? clamp(rows.node[row] - first, 0, least.length - 1) : Math.max(firstPlace(least, rows.amount[row] + 1) - 1, 0);
  const width = 1000 / least.length;
  follows(selection => {
    const isPart = !isEverything(selection);
    const sums = new Map(charts.map(({ line }) => [line, new Float64Array(least.length)]));
    let all = 0;
    if (isPart && hasBars) {
      for (const row of shownRows(rows, selection)) {
        if (!rows.parts && Number.isNaN(rows.amount[row])) continue;
        const of = sums.get(rows.line[row]);
        if (of) { of[barOf(row)] += rows.things[row]; all += rows.things[row]; }
      }
    }
    say.textContent = !isPart ? '' : hasBars ? `${whole(all)} requests that ended${aboutPart(rows, selection)}` : 'Of the whole recording: there are too many requests for the durations of a part.';
    for (const { figure, words, svg, path, line, name, whole: [text, shape] } of charts) {
      const bars = sums.get(line);
      const highest = Math.max(...bars);
      figure.hidden = isPart && hasBars && highest === 0;
      if (figure.hidden) continue;
      const isWhole = !isPart || !hasBars;
      words.textContent = isWhole ? text : `${whole(bars.reduce((sum, count) => sum + count, 0))} requests, ${whole(highest)} in the highest bar`;
      svg.setAttribute('aria-label', `${name}: ${words.textContent}`);
      path.setAttribute('d', isWhole ? shape : [...bars].map((count, bar) => {
        // One request is seen, too.
        const height = Math.max(count / highest * 60, 2);
        return count ? `M${(bar * width).toFixed(2)} 60v${(-height).toFixed(2)}h${(width * 0.9).toFixed(2)}v${height.toFixed(2)}z` : '';
      }).join(''));
    }
  }, holder);
};

// A request of the slowest is chosen by its start: its time and its route, and what it did opens.
const setUpRequests = opened => {
  const table = /** @type {HTMLTableElement | null} */ (document.getElementById('slowest-table'));
  if (!table) return;
  const [start, took, side, route] = ['start s', 'took', 'side', 'route'].map(name => headOf(table, name));
  for (const row of table.tBodies[0].rows) {
    const [from, length] = [Number(row.cells[start].dataset.v), Number(row.cells[took].dataset.v)];
    const of = row.cells[side].textContent === 'server' ? row.cells[route].textContent : null;
    const button = make('button', { type: 'button', class: 'choose', title: 'show this request' }, row.cells[start].textContent);
    row.cells[start].replaceChildren(button);
    button.addEventListener('click', () => {
      select({ time: [from, from + Math.max(length, 1)], route: of !== null && known.routes.includes(of) ? of : null });
      const details = opened.find(each => Number(each.dataset.from) === from && Number(each.dataset.to) === from + length);
      if (details) { details.open = true; details.scrollIntoView(); }
    });
  }
};

// Parts without rows of a kind: what of a selection they follow, and why not the rest.
const FOLLOW = {
  collections: [['time'], 'a GC stops all threads, and is of no route, type or method'],
  heap: [['time'], 'ranges of memory have no thread, route, type or method'],
  survival: [['time'], 'ranges of memory have no thread, route, type or method'],
  retained: [['type'], 'a dump is of one moment, and its objects have no thread, route or method'],
  async: [[], 'tasks are summed over the whole recording'],
  pool: [['time'], 'the pool is that of the process'],
  counters: [['time'], 'a counter is of the process'],
  modules: [[], 'a module is of the process'],
  losses: [[], 'what is lost has no place'],
};
const setUpParts = () => {
  // Without requests their part has what workers ran.
  const parts = kinds.has('requests') ? FOLLOW : { ...FOLLOW, requests: [[], 'what workers ran is summed over the whole recording'] };
  for (const [id, [followed, why]] of Object.entries(parts)) {
    const head = document.querySelector(`#${id} > h2`);
    if (!head) continue;
    const say = make('p', { class: 'note', role: 'status', hidden: '' });
    head.after(say);
    follows(selection => {
      const rest = Object.keys(selection).filter(name => selection[name] !== null && !followed.includes(name));
      say.hidden = !rest.length;
      say.textContent = rest.length ? `Not of this ${rest.join(' and ')} alone: ${why}.` : '';
    }, head.parentElement);
  }
};
// A GC is chosen by its start: its time, and what was alive at its end.
const setUpCollections = () => {
  const table = /** @type {HTMLTableElement | null} */ (document.getElementById('collections-table'));
  // A heap dump has no time of which a part could be chosen.
  if (!table || known.end <= 1) return;
  const [start, pause] = ['start s', 'pause'].map(name => headOf(table, name));
  for (const row of table.tBodies[0].rows) {
    const [from, length] = [value(row.cells[start]), value(row.cells[pause])];
    if (from === null) continue;
    const button = make('button', { type: 'button', class: 'choose', title: 'show the time of this GC, and what is alive at its end' }, row.cells[start].textContent);
    row.cells[start].replaceChildren(button);
    button.addEventListener('click', () => select({ time: [from, Math.min(from + Math.max(length ?? 0, 1), known.end)] }));
  }
};

// Tables without rows of a kind leave out what is of another time, route or type.
const setUpTables = () => {
  for (const table of document.querySelectorAll('table')) setUpTable(table);
  const texts = new Map([['slowest-table', 'route'], ['retained-table', 'type']]);
  const opened = /** @type {HTMLDetailsElement[]} */ (every('details.request'));
  setUpRequests(opened);
  setUpHistograms();
  setUpCollections();
  setUpParts();
  for (const table of document.querySelectorAll('table')) {
    const place = texts.has(table.id) ? headOf(table, texts.get(table.id)) : -1;
    const rows = [...table.tBodies[0].rows].filter(row => row.dataset.t || place >= 0);
    if (!rows.length) continue;
    const named = rows.map(row => place < 0 ? null : row.cells[place].textContent);
    follows(selection => {
      const [from, to] = selection.time ?? [-Infinity, Infinity];
      const wanted = place < 0 ? null : selection[texts.get(table.id)];
      const hasIt = wanted !== null && named.includes(wanted);
      rows.forEach((row, at) => {
        row.classList.toggle('late', Number(row.dataset.t) < from || Number(row.dataset.t) >= to);
        row.classList.toggle('gone', hasIt && named[at] !== wanted);
        hide(row);
      });
    }, table.closest('.scroll'));
  }
  follows(selection => {
    const [from, to] = selection.time ?? [-Infinity, Infinity];
    for (const details of opened) {
      const isLate = Number(details.dataset.from) >= to || Number(details.dataset.to) <= from;
      details.hidden = isLate || selection.route !== null && known.routes.includes(selection.route) && details.dataset.route !== selection.route;
    }
  }, opened[0]?.parentElement ?? null);
};
