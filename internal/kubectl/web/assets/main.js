// SPDX-License-Identifier: Apache-2.0
// The page: its content, its address, keys, and the stream of changes.
import { el, byId, ago, tick, setTimedClock } from './dom.js';
import { Model } from './model.js';
import { SlotMap } from './map.js';
import { Panel } from './panel.js';
import { showWaits, showTable, showLegend, paintLegend, showChoices, Search } from './lists.js';
import { showTotals, showSession } from './totals.js';

const model = new Model();
setTimedClock(() => model.now());
const state = { sel: '', q: '', ns: '', driver: '', zone: '', state: '', view: '' };
const nothing = { q: '', ns: '', driver: '', zone: '', state: '' };
let connected = false;
let heard = performance.now();

const actions = {
  href: (ref) => `#${address({ ...state, sel: ref })}`,
  open: (ref) => go(address({ ...state, sel: ref })),
  close: () => {
    go(address({ ...state, sel: '' }));
    byId('map').focus();
  },
  filter: (q) => change({ q }),
  say: (text) => { byId('live').textContent = text; },
  detail: (ref) => ask('detail', { ref }),
};

// ask asks the command.
async function ask(what, params) {
  const answer = await fetch(`${what}?${new URLSearchParams(params)}`);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

const map = new SlotMap(model, actions);
const panel = new Panel(model, actions);
const search = new Search(model, actions);

// address is the state of the page in a link.
function address(s) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(s)) if (value) params.set(name, value);
  return params.toString();
}

// go leads to a state of the page.
function go(to) { location.hash = to; }

// read takes over the state from the address.
function read() {
  const params = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(state)) state[name] = params.get(name) ?? '';
  if (byId('search').value !== state.q && document.activeElement !== byId('search')) byId('search').value = state.q;
  show();
}

// change sets a filter. The browser's back key leads over objects, not over each typed letter.
function change(part) {
  Object.assign(state, part);
  history.replaceState(null, '', `#${address(state)}`);
  show();
}

const filterNow = () => ({ q: state.q.trim().toLowerCase(), namespace: state.ns, driver: state.driver, zone: state.zone, state: state.state });

// show draws all parts that may have changed.
function show() {
  if (!model.ready) return;
  const filter = filterNow();
  document.body.classList.toggle('with-panel', Boolean(state.sel));
  const opened = panel.ref !== state.sel;
  panel.open(state.sel);
  panel.refresh();
  map.update(filter);
  if (opened) {
    map.show(state.sel);
    if (state.sel) byId('panel-title')?.focus({ preventScroll: true });
  }
  showWaits(model, filter, actions.href);
  for (const button of byId('views').children) button.setAttribute('aria-pressed', String(button.dataset.view === state.view));
  for (const id of ['map', 'legend', 'signs']) byId(id).hidden = Boolean(state.view);
  byId('table').hidden = !state.view;
  byId('map-title').textContent = { volumes: 'Volumes', waits: 'Who waits' }[state.view] ?? 'Nodes and slots';
  if (state.view) showTable(model, filter, actions.href, state.view);
  showSession(model);
  showLegend(model, filter, (name) => change({ state: state.state === name ? '' : name }));
  if (!byId('legend').querySelector('canvas')) paintLegend();
  showChoices('namespace', model.namespaces, state.ns);
  showChoices('driver', model.drivers, state.driver);
  showChoices('zone', model.zones, state.zone);
  byId('zone').parentElement.hidden = model.zones.size < 2;
  byId('driver').parentElement.hidden = model.drivers.size < 2;
  byId('clear').hidden = !Object.keys(nothing).some((name) => state[name]);
  const empty = map.rows.length === 0 && !state.view;
  byId('empty').hidden = !empty;
  byId('empty').textContent = model.nodes.size ? 'No slot is left by the filter.' : 'There are no nodes, or you may not see them.';
  showStatus();
  tick();
}

function showStatus() {
  showTotals(model.totals);
  byId('source').textContent = `${model.frozen ? `${model.taken.slice(0, 19).replace('T', ' ')} UTC, ` : ''}${model.source}`; // what does not fit is cut at its end
  document.title = `${model.waits.size ? `(${model.waits.size}) ` : ''}Moorage — ${model.source}`;
  showProblem();
}

// showProblem says why the page may be old, or incomplete.
function showProblem() {
  const silent = model.ready && (!connected || performance.now() - heard > 20000);
  const lines = [];
  if (silent) lines.push(`kubectl moorage web does not answer: what is shown is ${ago((performance.now() - heard) / 1000)} old. Was it ended?`);
  else if (model.problem) lines.push(model.problem);
  const partly = model.unseen.filter((u) => !u.missing);
  if (partly.length) lines.push(`You may not list ${partly.map((u) => (u.namespace ? `${u.resource} outside namespace ${u.namespace}` : u.resource)).join(', ')}: what follows from them is missing.`);
  if (model.unseen.some((u) => u.missing)) lines.push('Moorage is not installed in this cluster, or only in part: Kubernetes does what is shown.');
  const box = byId('problem');
  const text = lines.join(' ');
  box.hidden = !text;
  box.classList.toggle('silent', silent);
  if (box.textContent !== text) box.textContent = text;
}

// listen follows the command.
function listen() {
  const stream = new EventSource('stream');
  stream.addEventListener('message', (event) => {
    const message = JSON.parse(event.data);
    heard = performance.now();
    connected = true;
    model.take(message);
    if (message.view) announce(show);
    else showStatus();
  });
  stream.addEventListener('error', () => {
    connected = false;
    showProblem();
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
}

// announce tells a screen reader the new waiters.
function announce(draw) {
  const before = announce.waits;
  draw();
  announce.waits = new Set(model.waits.keys());
  if (!before) return;
  const added = [...announce.waits].filter((ref) => !before.has(ref));
  const ended = [...before].filter((ref) => !announce.waits.has(ref));
  const words = (list, verb) => (list.length > 3 ? `${list.length} ${verb}` : list.map((ref) => `${ref.replace('/', ' ')} ${verb}`).join(', '));
  const text = [added.length ? words(added, added.length > 1 ? 'wait' : 'waits') : '', ended.length ? words(ended, ended.length > 1 ? 'no longer wait' : 'no longer waits') : ''].filter(Boolean).join('; ');
  if (text) actions.say(text);
}

const keys = [
  ['/', 'search'], ['m', 'go to the map'], ['w', 'go to who waits'], ['← → ↑ ↓', 'from slot to slot, and from node to node'], ['Page ↑ ↓, Home, End', 'further'],
  ['Enter', 'open the volume of a slot'], ['n', 'open the node of a slot'], ['Esc', 'close the panel, then the filters'], ['?', 'these keys'],
];

function help() {
  const dialog = byId('help');
  dialog.replaceChildren(el('h2', { id: 'help-title', text: 'Keys' }), el('dl', {}, keys.map(([key, what]) => [el('dt', {}, el('kbd', { text: key })), el('dd', { text: what })])),
    el('p', { text: 'The address of the page is a link to what it shows. Nothing here changes the cluster.' }),
    el('button', { type: 'button', on: { click: () => dialog.close() } }, 'Close'));
  dialog.showModal();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === 'Escape') {
    if (state.sel) actions.close();
    else change(nothing);
    if (!state.q) byId('search').value = '';
    return;
  }
  if (typing) return;
  const does = {
    '/': () => { byId('search').focus(); byId('search').select(); },
    '?': help,
    m: () => byId('map').focus(),
    w: () => (byId('waits').querySelector('a') ?? byId('map')).focus(),
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('map').focus();
});
byId('namespace').addEventListener('change', (event) => change({ ns: event.target.value }));
byId('zone').addEventListener('change', (event) => change({ zone: event.target.value }));
byId('views').addEventListener('click', (event) => event.target.dataset.view !== undefined && change({ view: event.target.dataset.view }));
byId('driver').addEventListener('change', (event) => change({ driver: event.target.value }));
byId('clear').addEventListener('click', () => {
  byId('search').value = '';
  change(nothing);
  byId('map').focus();
});
byId('help-open').addEventListener('click', help);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => requestAnimationFrame(paintLegend));
addEventListener('hashchange', read);
setInterval(() => {
  tick();
  showProblem();
  if (model.ready) showSession(model);
}, 1000);

listen();
read();
search.hide();
// For readers of the page from outside, such as its tests.
window.moorage = { model, map, panel, state };
