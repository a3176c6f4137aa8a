
// A finding chooses its place and its time. Where the page has no rows of its own, it shows those of its place below itself.

// The shortest time with nine tenths of what a selection has of a kind; null where that is most of the recording.
const busiest = (rows, selection) => {
  const unit = rows.parts ? known.end / rows.parts : 1;
  const times = [];
  let all = 0;
  const weight = row => Number.isNaN(rows.amount[row]) ? 0 : rows.amount[row] || rows.things[row];
  for (const row of shownRows(rows, selection)) { times.push([rows.at[row] * unit, weight(row)]); all += weight(row); }
  const bins = new Float64Array(PARTS);
  for (const [at, amount] of times) bins[Math.min(Math.floor(at * PARTS / known.end), PARTS - 1)] += amount;
  let [best, low, sum] = [[0, PARTS], 0, 0];
  for (let high = 0; high < PARTS; high++) {
    sum += bins[high];
    while (sum - bins[low] >= all * 0.9 && low < high) sum -= bins[low++];
    if (sum >= all * 0.9 && high + 1 - low < best[1] - best[0]) best = [low, high + 1];
  }
  return all > 0 && best[1] - best[0] < PARTS * 0.7 ? best.map(bin => Math.round(bin * known.end / PARTS)) : null;
};
// The kind of rows that a part of the page shows.
const kindOf = id => kinds.get(id.replace(/^stacks-/, ''));
// What a finding is about, as far as the page knows it.
const placeOf = link => {
  const [method, subject] = [link.dataset.method ?? null, link.dataset.subject ?? null];
  const all = [...kinds.values()];
  const isRoute = subject !== null && known.routes.includes(subject);
  const isType = subject !== null && all.some(rows => rows.lines?.includes(subject));
  const hasMethod = method !== null && all.some(rows => rows.tree?.texts.some(text => isMethod(text, method)));
  return { ...EVERYTHING, route: isRoute ? subject : null, type: isType ? subject : null, method: hasMethod ? method : null };
};

const setUpFindings = () => {
  for (const link of every('a.evidence')) {
    const target = document.getElementById(link.getAttribute('href').slice(1));
    // The table of what a flame graph shows says more than that of its functions.
    const table = () => /** @type {HTMLTableElement | null} */ (document.querySelector(target.id.startsWith('stacks-') ? `#${target.id.slice(7)}-table` : 'no') ?? [...target.querySelectorAll('table')].find(table => table.tBodies[0].rows.length) ?? null);
    const sorted = () => {
      const head = table() && headsOf(table()).find(head => link.dataset.sort && head.textContent === link.dataset.sort);
      if (head && head.getAttribute('aria-sort') !== 'descending') head.querySelector('button').click();
    };
    const rowsOfKind = target && kindOf(target.id);
    const timeOfIts = place => rowsOfKind && !isEverything(place) ? busiest(rowsOfKind, place) : null;
    const choose = () => {
      const place = placeOf(link);
      sorted();
      let time = timeOfIts(place);
      // Without a method or a type it is the row that is first now: its time, with as much before and behind it.
      const first = isEverything(place) && link.dataset.sort ? table()?.tBodies[0].rows[0] : null;
      if (first?.dataset.t) {
        const [at, around] = [Number(first.dataset.t), known.end / 50];
        time = [Math.max(Math.round(at - around), 0), Math.min(Math.round(at + around), known.end)];
      }
      select({ ...place, time });
    };
    if (!target) continue;
    // What it will show, in words; the page is there before.
    setTimeout(() => {
      const place = placeOf(link);
      // A part that does not follow a method shows all of it.
      const [followed] = FOLLOW[target.id] ?? [['route', 'type', 'method']];
      const [time, what] = [timeOfIts(place), ['route', 'type', 'method'].filter(name => place[name] !== null && followed.includes(name)).join(' and ')];
      const title = target.querySelector('h2, h3')?.textContent ?? target.closest('section').querySelector('h2').textContent;
      link.after(make('span', { class: 'step' }, ` shows ${title}${what ? ` of this ${what}` : ''}${time ? ', ' + wordsOf.time(time) : ''}`));
    });
    link.addEventListener('click', event => {
      event.preventDefault();
      choose();
      for (let above = target; above; above = above.parentElement) if (above instanceof HTMLDetailsElement) above.open = true;
      const inner = target.querySelector('details');
      if (inner && /^stacks-/.test(target.id)) inner.open = true;
      address(target.id, 'replace');
      scrollToPart(target);
    });
    if (link.closest('li').querySelector('details.rows')) continue;
    // Without rows of its own a finding has those of what it shows.
    const rows = /** @type {HTMLDetailsElement} */ (make('details', { class: 'rows' }));
    rows.append(make('summary', {}, 'Rows of what it shows'));
    link.closest('li').append(rows);
    rows.addEventListener('toggle', () => {
      rows.querySelectorAll('.scroll, .note').forEach(each => each.remove());
      if (!rows.open) return;
      choose();
      settle();
      rows.append(rowsOf(table()));
    });
  }
};
// The first rows that a table shows, as a table of their own.
const rowsOf = from => {
  const shownRows = from ? [...from.tBodies[0].rows].filter(row => !row.hidden) : [];
  if (!shownRows.length) return make('p', { class: 'note' }, 'The page has no rows of it as a table: the graphs show it.');
  const copy = /** @type {HTMLTableElement} */ (make('table', { class: 'copy' }));
  copy.append(from.tHead.cloneNode(true), make('tbody'));
  for (const head of copy.querySelectorAll('th')) { head.textContent = head.textContent; head.removeAttribute('aria-sort'); }
  copy.tBodies[0].append(...shownRows.slice(0, 10).map(row => row.cloneNode(true)));
  for (const button of copy.querySelectorAll('td button')) button.replaceWith(...button.childNodes);
  const scroll = make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Rows of the finding' });
  scroll.append(copy);
  return scroll;
};
