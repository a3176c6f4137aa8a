
// A canvas as sharp as the screen, drawn anew when its width or the colours change.
const redraws = [];
// The widths of what is drawn on, as they were when it was laid out last: to ask anew would lay out the page in the middle of a change.
const widths = new WeakMap();
const widthOf = element => Math.max(widths.get(element) ?? element.clientWidth, 1);
const sharp = (canvas, height) => {
  const width = widthOf(canvas.parentElement);
  const scale = Math.min(window.devicePixelRatio || 1, 16000 / Math.max(width, height));
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  const context = canvas.getContext('2d');
  if (canvas.width === across && canvas.height === down) context.reset();
  else { canvas.width = across; canvas.height = down; canvas.style.height = height + 'px'; }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return [context, width];
};
const follow = (element, draw) => {
  redraws.push(draw);
  widths.set(element, element.clientWidth);
  new ResizeObserver(() => { if (element.clientWidth !== widths.get(element)) { widths.set(element, element.clientWidth); draw(); } }).observe(element);
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { colors.clear(); redraws.forEach(draw => draw()); });

const place = (tip, holder, event) => {
  const box = holder.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  tip.style.left = clamp(x + 12, 0, Math.max(0, box.width - tip.offsetWidth - 2)) + 'px';
  tip.style.top = y + 18 + 'px';
};

const rgb = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
// Lines beside colours, as the areas of charts have them: none, rising, level, falling, dots, upright, crossed.
const ETCHES = ['', 'M-1 1L1-1M-1 9L9-1M7 9L9 7', 'M0 4H8', 'M-1 7L1 9M-1-1L9 9M7-1L9 1', 'M3 3h2v2h-2z', 'M4 0V8', 'M-1-1L9 9M-1 9L9-1'];
const etched = (context, etch) => {
  const small = make('canvas', { width: 8, height: 8 });
  const lines = small.getContext('2d');
  lines.strokeStyle = color('etch');
  lines.stroke(new Path2D(ETCHES[etch]));
  return context.createPattern(small, 'repeat');
};
