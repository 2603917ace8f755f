// SPDX-License-Identifier: Apache-2.0
// Who waits, the legend, the filters and the search.
import { el, byId, plural, since, until } from './dom.js';
import { states, split, compareNames } from './model.js';
import { sprite } from './map.js';

const mostWaits = 100;
const mostFound = 30;

export const kindNames = { pod: 'pod', ticket: 'ticket', volume: 'volume', node: 'node', claim: 'claim' };

// refLink is a link to an object: its address is that of the state in which it is shown.
export function refLink(ref, href, short = false) {
  const [kind, name] = split(ref);
  return el('a', { href: href(ref), class: 'ref' }, short ? name : `${kindNames[kind] ?? kind} ${name}`);
}

// showWaits lists who waits, the longest first.
export function showWaits(model, filter, href) {
  const all = [...model.waits.values()]
    .filter((wait) => (!filter.namespace || wait.ref.split('/')[1] === filter.namespace)
      && (!filter.q || wait.ref.toLowerCase().includes(filter.q) || wait.code?.toLowerCase().includes(filter.q) || (model.from.get(wait.ref) ?? []).some((link) => link.to?.toLowerCase().includes(filter.q))))
    .sort((a, b) => (a.since ?? '').localeCompare(b.since ?? '') || compareNames(a.ref, b.ref));
  const box = byId('waits');
  if (all.length === 0) {
    box.replaceChildren(el('p', { class: 'calm', text: model.waits.size ? 'Nobody that the filter shows.' : 'No pod waits for a volume or a slot.' }));
    return;
  }
  const codes = [...Map.groupBy(all, (wait) => wait.code ?? wait.state)].sort((a, b) => b[1].length - a[1].length);
  const groups = el('p', { class: 'codes' }, codes.map(([code, list]) => el('span', { class: 'code' }, code, ' ', el('b', { text: String(list.length) }))));
  const rows = all.slice(0, mostWaits).map((wait) => {
    const ends = (model.from.get(wait.ref) ?? []).map((link) => link.until ?? model.from.get(link.to)?.find((next) => next.until)?.until).find(Boolean);
    return el('li', {},
      el('div', { class: 'who' }, refLink(wait.ref, href), ' ', el('span', { class: 'code', text: wait.code ?? wait.state })),
      el('div', { class: 'what', text: wait.answer }),
      el('div', { class: 'when' }, wait.since && ['for ', since(wait.since)], ends && [' · ', until(ends)]));
  });
  const scrolled = box.querySelector('ol')?.scrollTop ?? 0;
  const list = el('ol', { class: 'waiting', tabindex: '0', 'aria-label': 'Who waits, the longest first' }, rows);
  box.replaceChildren(codes.length > 1 ? groups : '', list,
    all.length > mostWaits ? el('p', { class: 'more', text: `and ${(all.length - mostWaits).toLocaleString('en')} more: search, or choose a namespace` }) : '');
  list.scrollTop = scrolled;
}

// showLegend has a button for each state, with how many slots are in it.
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

// paintLegend draws the cells of the legend as they are on the map.
export function paintLegend() {
  const css = getComputedStyle(document.documentElement);
  for (const button of byId('legend').children) {
    const { state } = button.dataset;
    button.querySelector('.swatch').replaceChildren(sprite(state, css.getPropertyValue(`--${state}`).trim(), 14, window.devicePixelRatio || 1, 1));
  }
}

// showChoices fills a select, and leaves it alone where nothing differs.
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

// Search is the box in which names are typed, and the list of what is found.
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
