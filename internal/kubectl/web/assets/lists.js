// SPDX-License-Identifier: Apache-2.0
// The waiters, the legend, the filters and the search.
import { el, byId, plural, since } from './dom.js';
import { states, split, compareNames } from './model.js';
import { sprite } from './map.js';
import { refLink, remedy } from './panel.js';

const mostRows = 500;
const mostNamed = 24;
const mostFound = 30;

// waitsOf are the waiters that pass a filter, the longest first.
function waitsOf(model, filter) {
  return [...model.waits.values()]
    .filter((wait) => (!filter.namespace || wait.ref.split('/')[1] === filter.namespace)
      && (!filter.q || wait.ref.toLowerCase().includes(filter.q) || wait.code?.toLowerCase().includes(filter.q) || (model.from.get(wait.ref) ?? []).some((link) => link.to?.toLowerCase().includes(filter.q))))
    .sort((a, b) => (a.since ?? '').localeCompare(b.since ?? '') || compareNames(a.ref, b.ref));
}

// showWaits has a card for each cause, with its waiters and the remedy: dead nodes first, then the most
// frequent cause.
export function showWaits(model, filter, href) {
  const all = waitsOf(model, filter);
  const box = byId('waits');
  if (all.length === 0) {
    box.replaceChildren(el('p', { class: 'calm', text: model.waits.size ? 'Nobody that the filter shows.' : 'No pod waits for a volume or a slot.' }));
    return;
  }
  const causes = [...Map.groupBy(all, (wait) => (wait.behind ? `node/${wait.behind}` : wait.code ?? wait.state))];
  const dead = ([cause]) => (cause.startsWith('node/') ? 0 : 1);
  causes.sort((a, b) => dead(a) - dead(b) || b[1].length - a[1].length);
  const open = new Set([...box.querySelectorAll('details[open]')].map((d) => d.dataset.name));
  box.replaceChildren(...causes.map(([cause, list]) => card(model, cause, list, href, open.has(cause))));
}

function card(model, cause, list, href, open) {
  const codes = [...Map.groupBy(list, (wait) => wait.code ?? wait.state)].sort((a, b) => b[1].length - a[1].length);
  const links = codes.flatMap(([, waits]) => waits).flatMap((wait) => model.from.get(wait.ref) ?? []);
  const todo = links.find((link) => link.do)?.do ?? links.flatMap((link) => model.from.get(link.to) ?? []).find((link) => link.do)?.do;
  const node = cause.startsWith('node/') ? model.nodes.get(cause.slice(5)) : null;
  const head = cause.startsWith('node/')
    ? [refLink(cause, href), !node || node.missing ? ' is gone' : ' is not ready', node?.since ? [' for ', since(node.since)] : '']
    : el('span', { class: 'code', text: cause });
  const [first] = codes[0][1];
  const named = (waits) => el('ul', { class: 'waiting' }, waits.map((wait) => el('li', {}, refLink(wait.ref, href, wait.ref.startsWith('pod/')), wait.since ? [' ', since(wait.since)] : '')));
  return el('section', { class: cause.startsWith('node/') ? 'card dead' : 'card' },
    el('h3', {}, el('span', {}, head), el('b', { class: 'count', text: list.length === 1 ? '1 waits' : `${list.length.toLocaleString('en')} wait` })),
    codes[0][0] !== cause ? el('p', { class: 'codes' }, codes.map(([code, waits]) => el('span', { class: 'code' }, code, waits.length > 1 ? ` ${waits.length}` : ''))) : '',
    el('p', { class: 'what' }, `${split(first.ref)[1]} ${first.answer}`),
    named(list.slice(0, mostNamed)),
    list.length > mostNamed ? el('details', { 'data-name': cause, open }, el('summary', { text: `${(list.length - mostNamed).toLocaleString('en')} more` }), named(list.slice(mostNamed, mostRows))) : '',
    todo ? remedy(todo) : '');
}

// showTable lists volumes, the stuck volumes first, or waiters.
export function showTable(model, filter, href, view) {
  const link = (ref) => (ref ? refLink(ref, href, true) : '');
  const has = (...texts) => !filter.q || texts.some((text) => text?.toLowerCase().includes(filter.q));
  const places = new Map();
  for (const row of model.rows) for (const { slot } of row.cells) if (slot) places.set(slot.volume, [...places.get(slot.volume) ?? [], row.node.name]);
  let names = ['Waiting', 'Node', 'Why', 'Waited', 'Answer'];
  let rows = [];
  if (view === 'volumes') {
    names = ['Claim', 'Volume', 'State', 'Node', 'Next', 'Waiting'];
    const need = (v) => (v.reason ? 0 : v.waiting || v.next ? 1 : 2);
    rows = [...model.volumes.values()]
      .filter((v) => (!filter.namespace || v.claim?.startsWith(`${filter.namespace}/`)) && (!filter.driver || v.driver === filter.driver) && has(v.key, v.claim, v.handle, v.reason, v.holder))
      .sort((a, b) => need(a) - need(b) || compareNames(a.claim ?? '', b.claim ?? ''))
      .map((v) => [v.claim ?? '', link(`volume/${v.key}`), el('span', { class: v.reason ? 'bad' : '', text: v.reason ?? v.state }), (places.get(v.key) ?? []).slice(0, 3).map((name, i) => [i ? ', ' : '', link(`node/${name}`)]), link(v.next), v.waiting ? String(v.waiting) : '']);
  } else {
    rows = waitsOf(model, filter).map((w) => [link(w.ref), w.node && model.nodes.has(w.node) ? link(`node/${w.node}`) : w.node ?? '', w.code ?? w.state, since(w.since), w.answer]);
  }
  byId('table').replaceChildren(
    el('table', {}, el('thead', {}, el('tr', {}, names.map((text) => el('th', { scope: 'col', text })))),
      el('tbody', {}, rows.slice(0, mostRows).map((cells) => el('tr', {}, cells.map((cell) => el('td', {}, cell)))))),
    rows.length > mostRows ? el('p', { class: 'more', text: `and ${(rows.length - mostRows).toLocaleString('en')} more: search, or choose a namespace` }) : '',
    rows.length === 0 ? el('p', { class: 'calm', text: view === 'volumes' ? 'No volume is left by the filter.' : 'Nobody waits.' }) : '');
}

// showLegend has a button for each state, with the number of its slots.
export function showLegend(model, filter, toggle) {
  const box = byId('legend');
  if (!box.firstChild) {
    for (const [state, meaning] of states) {
      box.append(el('button', { type: 'button', title: meaning, 'data-state': state, on: { click: () => toggle(state) } },
        el('span', { class: 'swatch', 'aria-hidden': 'true' }), el('span', { class: 'name', text: state }), ' ', el('b')));
    }
  }
  for (const button of box.children) {
    const { state } = button.dataset;
    button.setAttribute('aria-pressed', String(filter.state === state));
    button.querySelector('b').textContent = model.counts[state].toLocaleString('en');
  }
}

// paintLegend draws the cells of the legend as on the map.
export function paintLegend() {
  const css = getComputedStyle(document.documentElement);
  for (const button of byId('legend').children) {
    const { state } = button.dataset;
    button.querySelector('.swatch').replaceChildren(sprite(state, css.getPropertyValue(`--${state}`).trim(), 14, window.devicePixelRatio || 1, 1));
  }
}

// showChoices fills a select, and does not touch it without a change.
export function showChoices(id, values, chosen) {
  const select = byId(id);
  const list = ['', ...[...values].sort(compareNames)];
  if (chosen && !list.includes(chosen)) list.push(chosen);
  const key = list.join('\n');
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(...list.map((value) => el('option', { value, text: value || 'all' })));
  }
  select.value = chosen ?? '';
}

// Search is the search box, with the list of its results.
export class Search {
  constructor(model, actions) {
    this.model = model;
    this.actions = actions;
    this.input = byId('search');
    this.list = byId('results');
    this.at = -1;
    this.found = [];
    this.input.addEventListener('input', () => {
      this.actions.filter(this.input.value);
      this.show();
    });
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.input.addEventListener('focus', () => this.show());
    this.input.addEventListener('blur', () => this.hide());
    this.list.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      const option = event.target.closest('[role=option]');
      if (option) this.choose(Number(option.dataset.at));
    });
  }

  show() {
    const text = this.input.value.trim();
    this.found = text ? this.model.find(text, mostFound) : [];
    this.at = -1;
    this.list.replaceChildren(...this.found.map(({ ref, about }, i) => {
      const [kind, name] = split(ref);
      return el('li', { role: 'option', id: `result-${i}`, 'data-at': i, 'aria-selected': 'false' },
        el('span', { class: 'kind', text: kind }), ' ', el('span', { class: 'name', text: name }), ' ', el('span', { class: 'about', text: about }));
    }));
    this.list.hidden = this.found.length === 0;
    this.input.setAttribute('aria-expanded', String(!this.list.hidden));
    this.input.removeAttribute('aria-activedescendant');
    if (text) this.actions.say(this.found.length === 0 ? 'Nothing found' : `${plural(this.found.length, 'object')} found`);
  }

  hide() {
    this.list.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
  }

  move(step) {
    if (this.found.length === 0) return;
    this.at = (this.at + step + this.found.length) % this.found.length;
    for (const option of this.list.children) option.setAttribute('aria-selected', String(Number(option.dataset.at) === this.at));
    this.list.children[this.at].scrollIntoView({ block: 'nearest' });
    this.input.setAttribute('aria-activedescendant', `result-${this.at}`);
  }

  choose(i) {
    const hit = this.found[i];
    if (!hit) return;
    this.hide();
    this.actions.open(hit.ref);
  }

  key(event) {
    const keys = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(this.at < 0 ? 0 : -1),
      Enter: () => this.choose(Math.max(0, this.at)),
      Escape: () => {
        if (!this.list.hidden && this.input.value) this.hide();
        else if (this.input.value) {
          this.input.value = '';
          this.actions.filter('');
          this.show();
        } else this.input.blur();
      },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }
}
