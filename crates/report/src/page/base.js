'use strict';
// What the page says stands in it without this script, which adds sorting, zoom, flame graphs, lanes, the map of the heap, and shows any part of it.
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
// A colour is looked up once: asked in the middle of a change, the browser would do all styles anew.
const colors = new Map();
const color = name => colors.get(name) ?? colors.set(name, getComputedStyle(root).getPropertyValue('--' + name).trim()).get(name);
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
const grouped = new Intl.NumberFormat('en-US');
const whole = value => grouped.format(Math.round(value));
// A value and its unit stay on one line.
const size = bytes => {
  if (bytes < 1000) return bytes + '\u00a0B';
  let unit = 0;
  for (bytes /= 1000; bytes >= 999.5 && unit < 4; bytes /= 1000) unit++;
  return digits(bytes) + '\u00a0' + ['kB', 'MB', 'GB', 'TB', 'PB'][unit];
};
const duration = ns => {
  if (ns < 1000) return Math.round(ns) + '\u00a0ns';
  if (ns >= 3600e9) return Math.floor(ns / 3600e9) + '\u00a0h ' + Math.floor(ns / 60e9) % 60 + '\u00a0min';
  if (ns >= 100e9) return Math.floor(ns / 60e9) + '\u00a0min ' + Math.floor(ns / 1e9) % 60 + '\u00a0s';
  if (ns < 999500) return digits(ns / 1e3) + '\u00a0µs';
  if (ns < 999500000) return digits(ns / 1e6) + '\u00a0ms';
  return digits(ns / 1e9) + '\u00a0s';
};
const shown = { ns: duration, bytes: size, count: whole };
const percent = (part, all) => (all > 0 ? part / all * 100 : 0).toFixed(1) + '\u00a0%';
