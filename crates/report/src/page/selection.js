
// What is chosen: a time, a thread, a route, a type, a method. Every panel shows what belongs to all of it. The address has it.

/** @typedef {{ time: number[] | null, thread: number | null, route: string | null, type: string | null, method: string | null }} Choice */
/** @type {Choice} */
const EVERYTHING = { time: null, thread: null, route: null, type: null, method: null };
/** @type {Choice} */
let chosen = EVERYTHING;
/** @type {{ act: (selection: Choice) => void, element: Element | null }[]} */
const followers = [];
// Panels follow what is chosen: those that are seen at once, the others as soon as nothing else is to be done.
const follows = (act, element = null) => {
  followers.push({ act, element });
  if (element) sight.observe(element);
};
// What is seen, or nearly. To ask for places instead would lay out the page, and parts of it that the browser leaves out as long as no one sees them.
const seen = new Set();
const sight = new IntersectionObserver(entries => { for (const { target, isIntersecting } of entries) { if (isIntersecting) seen.add(target); else seen.delete(target); } }, { rootMargin: '200px' });
/** @type {(() => void)[]} */
let waiting = [];
let isWorking = false;
const workOff = () => {
  const until = performance.now() + 12;
  while (waiting.length && performance.now() < until) waiting.shift()();
  isWorking = waiting.length > 0;
  if (isWorking) setTimeout(workOff);
};
// Behind the next frame, which shows what is seen. A page in the background has no frames.
const later = act => {
  waiting.push(act);
  if (!isWorking) { isWorking = true; if (document.hidden) setTimeout(workOff); else requestAnimationFrame(() => setTimeout(workOff)); }
};
// What is in a closed fold is done when it opens.
/** @type {Map<HTMLDetailsElement, () => void>} */
const folded = new Map();
const whenOpen = (fold, act) => {
  folded.delete(fold);
  if (fold.open) act(); else folded.set(fold, act);
};
const unfold = fold => { const act = folded.get(fold); folded.delete(fold); act?.(); };
addEventListener('toggle', event => { if (event.target instanceof HTMLDetailsElement && event.target.open) unfold(event.target); }, true);
// Does at once what waits: to print, and for whoever reads all panels.
const settle = () => {
  while (waiting.length) waiting.shift()();
  for (const fold of [...folded.keys()]) unfold(fold);
};
addEventListener('beforeprint', settle);
// What the page knows of threads and routes; pages of several recordings have none of it.
const known = { end: 1, threads: [], routes: [], pauses: [] };
const threadName = place => known.threads[place] ? `${known.threads[place][0]}.${known.threads[place][1]}` : '';
const isEverything = selection => Object.values(selection).every(value => value === null);

// Anyone may write an address: one that is not encoded right says nothing.
const decoded = text => { try { return decodeURIComponent(text); } catch { return null; } };
const withoutSelection = () => decoded(location.hash.slice(1).split('&').find(word => word && !word.includes('=')) ?? '') ?? '';
const addressOf = (selection, part) => {
  const { time, thread, route, type, method } = selection;
  const words = [part, time && `t=${Math.round(time[0])}-${Math.round(time[1])}`, thread !== null && 'thread=' + threadName(thread)];
  for (const [name, value] of Object.entries({ route, type, method })) words.push(value !== null && name + '=' + encodeURIComponent(value));
  return words.filter(Boolean).join('&');
};
/** @returns {Choice} */
const selectionOf = hash => {
  const words = new Map(hash.slice(1).split('&').filter(word => word.includes('=')).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]));
  const text = name => words.has(name) ? decoded(words.get(name)) : null;
  const time = /^(\d+)-(\d+)$/.exec(words.get('t') ?? '');
  const [from, to] = time ? [Number(time[1]), Math.min(Number(time[2]), known.end)] : [0, 0];
  const thread = known.threads.findIndex((_, place) => threadName(place) === words.get('thread'));
  return { time: to > from ? [from, to] : null, thread: thread < 0 ? null : thread, route: text('route'), type: text('type'), method: text('method') };
};

// Where a viewer forbids an address, what is chosen has none.
const address = (part, how) => {
  const words = addressOf(chosen, part);
  const to = words ? '#' + words : location.pathname + location.search;
  try { if (how === 'push') history.pushState('selection', '', to); else history.replaceState('selection', '', to); } catch { /* the panels follow anyway */ }
};

const chips = make('div', { class: 'chosen', role: 'status', hidden: '' });
const wordsOf = {
  time: time => `${duration(time[0])} to ${duration(time[1])}`,
  thread: thread => known.threads[thread][2],
  route: route => route, type: type => 'type ' + type, method: method => 'method ' + method,
};
const tell = () => {
  chips.replaceChildren(...Object.entries(chosen).filter(([, value]) => value !== null).map(([name, value]) => {
    const chip = make('button', { type: 'button', 'data-of': name, title: 'no longer choose this' }, `${wordsOf[name](value)} ×`);
    chip.addEventListener('click', () => select({ [name]: null }));
    return chip;
  }));
  chips.hidden = isEverything(chosen);
  if (chips.hidden) return;
  const all = make('button', { type: 'button', 'data-of': 'all' }, 'Everything');
  all.addEventListener('click', () => select(EVERYTHING));
  chips.prepend(make('span', {}, 'Shown:'));
  chips.append(all);
};
const announce = () => {
  waiting = [];
  tell();
  for (const { act, element } of followers) { if (!element || seen.has(element)) act(chosen); else later(() => act(chosen)); }
};

/** Chooses something more, or no longer. `how` is `push` for a step that Back undoes. */
const select = (change, how = 'push') => {
  const next = { ...chosen, ...change };
  if (next.time && next.time[1] - next.time[0] >= known.end) next.time = null;
  if (JSON.stringify(next) === JSON.stringify(chosen)) return;
  chosen = next;
  address(withoutSelection(), how);
  announce();
};
// Scrolls to a part: to below the links and what is chosen, which stand at the top.
const scrollToPart = part => {
  root.style.scrollPaddingTop = `${(document.querySelector('nav')?.offsetHeight ?? 0) + 8}px`;
  part?.scrollIntoView();
};
// A link within the page leads to a part, and leaves what is chosen. Back, Forward and an address with something in it choose that.
const followAddress = isLink => {
  const part = withoutSelection();
  if (isLink && !location.hash.includes('=')) { address(part, 'replace'); return; }
  const next = selectionOf(location.hash);
  if (JSON.stringify(next) !== JSON.stringify(chosen)) { chosen = next; announce(); }
  // A part with a selection is no name that the browser finds.
  if (part && location.hash.includes('=')) scrollToPart(document.getElementById(part));
};
const startSelection = () => {
  document.querySelector('nav')?.append(chips);
  chosen = selectionOf(location.hash);
  address(withoutSelection(), 'replace');
  addEventListener('popstate', event => followAddress(event.state !== 'selection'));
  if (!isEverything(chosen)) { announce(); scrollToPart(document.getElementById(withoutSelection())); }
};
