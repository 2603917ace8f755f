// SPDX-License-Identifier: Apache-2.0
// The tiles with totals, and the events while the page is open.
import { el, svg, byId, plural, ago } from './dom.js';

const number = (n) => n.toLocaleString('en');

// showTotals has a tile for each total. The command counts.
export function showTotals(totals) {
  const { nodes, notReady, full, taken, limit, stuck, waiting, moving } = totals;
  const meter = el('span', { class: 'meter', 'aria-hidden': 'true' }, el('i'));
  meter.firstChild.style.width = `${limit ? Math.min(100, (taken / limit) * 100) : 0}%`;
  const tile = (...parts) => el('span', { class: 'tile' }, ...parts);
  const bad = (n, text) => (n ? [', ', el('span', { class: 'bad', text: `${number(n)} ${text}` })] : '');
  const tiles = [
    tile(el('b', { text: number(nodes) }), nodes === 1 ? ' node' : ' nodes', bad(notReady, 'not ready'), bad(full, 'full')),
    tile(el('b', { text: number(taken) }), limit ? ` of ${number(limit)} slots taken` : ' slots taken, no limit known', bad(stuck, 'more at nodes not ready'), meter),
    tile(el('b', { class: waiting ? 'bad' : '', text: number(waiting) }), ' waiting'),
    tile(el('b', { text: number(moving) }), ' on their way'),
  ];
  const box = byId('status');
  const text = tiles.map((t) => t.textContent).join(' ');
  if (box.dataset.text !== text) {
    box.dataset.text = text;
    box.replaceChildren(...tiles);
  }
}

// The size of a plot, in its own units.
const [wide, high] = [320, 56];

// showSession plots the number of waiters, and the duration of attaches and detaches.
export function showSession(model) {
  const { waiting, calls } = model.session;
  const now = model.now();
  const span = Math.max(60, now - model.began);
  const x = (at) => (wide * (1 - (now - at) / span)).toFixed(1);
  const most = Math.max(1, ...waiting.map((w) => w.n));
  const y = (n, top) => (high - 2 - (n / top) * (high - 6)).toFixed(1);
  const steps = waiting.map((w, i) => `${i ? `H${x(w.at)}V` : `M${x(w.at)} `}${y(w.n, most)}`).join('');
  const slowest = Math.max(1, ...calls.map((c) => c.seconds));
  const of = (attach) => calls.filter((c) => c.attach === attach);
  const told = (list, what) => `${plural(list.length, what)}${list.length ? `, slowest ${ago(Math.max(...list.map((c) => c.seconds)))}` : ''}`;
  const plot = (label, ...children) => svg('svg', { viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': label, class: 'plot', preserveAspectRatio: 'none' }, svg('path', { d: `M0 ${high - 1}H${wide}`, class: 'axis' }), ...children);
  const waits = `Waiting: ${model.totals.waiting} now, ${Math.max(0, ...waiting.map((w) => w.n))} at most`;
  const times = `${told(of(true), 'attach').replace('attachs', 'attaches')}; ${told(of(false), 'detach').replace('detachs', 'detaches')}`;
  byId('session').replaceChildren(
    el('h2', { text: `The last ${ago(span)}` }),
    el('p', { class: 'faint', text: waits }), plot(waits, svg('path', { d: steps ? `${steps}H${wide}` : '', class: 'line' })),
    el('p', { class: 'faint', text: times }), plot(times, ...calls.map((c) => svg('circle', { cx: x(c.at), cy: y(c.seconds, slowest), r: 2.5, class: c.attach ? 'attach' : 'detach' }))),
  );
}
