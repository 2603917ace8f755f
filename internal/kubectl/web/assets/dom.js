// SPDX-License-Identifier: Apache-2.0
// Elements of the page. Every text is set as text: names come from the cluster, and never become markup.

// el makes an element. attributes are set unchanged, except "on", which has listeners, and "text". Children
// are elements, texts or nothing.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === 'text') {
      element.textContent = value;
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ''));
  return element;
}

// svg makes an element of a drawing; the namespace comes from the page's logo.
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(document.querySelector('svg').namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

// ago is a time span as kubectl prints it.
export function ago(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return h < 8 && m % 60 ? `${h}h${m % 60}m` : `${h}h`;
  return `${Math.floor(h / 24)}d`;
}

export const plural = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

// ticking are texts that change with time, at each tick.
const ticking = new Set();

// timed is a span with a text that is computed from the time in seconds since 1970.
export function timed(compute, attributes = {}) {
  const span = el('span', attributes);
  const entry = { span, compute };
  ticking.add(entry);
  span.textContent = compute(timedNow());
  return span;
}

let timedNow = () => Date.now() / 1000;

export function setTimedClock(now) { timedNow = now; }

export function tick() {
  const now = timedNow();
  for (const entry of ticking) {
    if (!entry.span.isConnected) {
      if (entry.seen) ticking.delete(entry);
      continue;
    }
    entry.seen = true;
    const text = entry.compute(now);
    if (entry.span.textContent !== text) entry.span.textContent = text;
  }
}

// since is "for 3m", counted on.
export const since = (at) => (at ? timed((now) => ago(now - Date.parse(at) / 1000), { class: 'since' }) : '');
