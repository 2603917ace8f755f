// SPDX-License-Identifier: Apache-2.0
// The page's data: the view that the command has sent, and values derived from it for the screen. Nothing
// is decided here: states, reasons and links are the command's.

// states of slots in the order of the legend, with their meanings.
export const states = [
  ['used', 'Attached or being attached, and wanted'],
  ['kept', 'Unwanted, and kept for a while (detachDelay)'],
  ['leaving', 'Unwanted, and not detached yet'],
  ['reserved', 'Promised or asked for, and not attached yet'],
  ['unknown', 'Nobody can say whether the volume is still used there: it counts'],
  ['free', 'Free'],
];

// none are the totals of an empty view.
const none = { nodes: 0, notReady: 0, full: 0, taken: 0, limit: 0, stuck: 0, waiting: 0, moving: 0 };

// mostSession bounds the history of a session for its plots.
const mostSession = 2000;

// mostCells bounds the cells of one driver at one node.
const mostCells = 256;

const names = (list, key) => new Map((list ?? []).map((item) => [item[key], item]));

// whole is a node with all its lists, and names as in references.
const whole = (node) => ({ ...node, name: node.node, drivers: (node.drivers ?? []).map((driver) => ({ ...driver, name: driver.driver, slots: (driver.volumes ?? []).map(slotOf) })) });
const slotOf = (v) => ({ ...v, slot: v.slot.toLowerCase(), users: v.users?.map(refOf) });
const refOf = (who) => `${who.kind === 'Pod' ? 'pod' : 'ticket'}/${who.namespace}/${who.name}`;

// rank puts nodes first that are not ready, and full nodes after them.
const rank = (node) => (node.missing || !node.ready ? 0 : node.drivers.some((driver) => driver.exhausted || driver.free === 0) ? 1 : 2);

export class Model {
  constructor() {
    this.ready = false;
    this.nodes = new Map();
    this.volumes = new Map();
    this.waits = new Map();
    this.links = [];
    this.unseen = [];
    this.totals = none;
    this.positions = new Map();
    this.history = new Map();
    this.session = { waiting: [], calls: [], begun: new Map() };
    this.problem = '';
    this.source = '';
    this.frozen = false;
    this.base = Date.now() / 1000;
    this.at = performance.now();
    this.began = 0;
    this.index();
  }

  // now is the cluster's time, in seconds since 1970.
  now() { return this.frozen ? this.base : this.base + (performance.now() - this.at) / 1000; }

  // take takes a message in.
  take(message) {
    this.problem = message.problem ?? '';
    this.frozen = Boolean(message.frozen);
    this.source = message.source ?? this.source;
    this.base = Date.parse(message.now) / 1000;
    this.at = performance.now();
    if (!message.view) return;
    this.replace(message.view);
    this.ready = true;
    this.began ||= this.base;
    const { waiting } = this.session;
    if (waiting.at(-1)?.n !== this.totals.waiting) waiting.push({ at: this.base, n: this.totals.waiting });
    if (waiting.length > mostSession) waiting.shift();
    this.index();
  }

  replace(view) {
    this.taken = view.taken;
    const nodes = names((view.nodes ?? []).map(whole), 'name');
    if (this.ready) for (const node of nodes.values()) this.remember(this.nodes.get(node.name), node);
    this.nodes = nodes;
    this.volumes = names(view.volumes, 'key');
    this.waits = names(view.waits?.map((wait) => ({ ...wait, ref: refOf(wait.who) })), 'ref');
    this.links = view.links ?? [];
    this.unseen = view.unseen ?? [];
    this.totals = view.totals ?? none;
  }

  // remember keeps the changes of volumes at a node while the page is open.
  remember(was, is) {
    const statesOf = (node) => new Map((node?.drivers ?? []).flatMap((d) => d.slots.map((s) => [s.volume, s])));
    const before = statesOf(was);
    const after = statesOf(is);
    const note = (volume, from, to) => {
      if (!this.history.has(volume)) this.history.set(volume, []);
      this.history.get(volume).push({ node: is.name, at: this.base, from, to });
    };
    for (const [volume, slot] of after) {
      const old = before.get(volume);
      if (old?.slot !== slot.slot) note(volume, old?.slot, slot.slot);
      this.timed(is.name, volume, old?.state, slot.state);
    }
    for (const [volume, old] of before) {
      if (after.has(volume)) continue;
      note(volume, old.slot, undefined);
      this.timed(is.name, volume, old.state, undefined);
    }
  }

  // timed measures attaches and detaches that begin and end while the page is open.
  timed(node, volume, was, is) {
    const { begun, calls } = this.session;
    const key = `${node}\n${volume}`;
    if (was === is) return;
    if (begun.has(key) && (was === 'Attaching' || was === 'Detaching')) {
      const done = was === 'Attaching' ? is && !is.endsWith('Failed') : !is;
      if (done) calls.push({ at: this.base, seconds: this.base - begun.get(key), attach: was === 'Attaching' });
      if (calls.length > mostSession) calls.shift();
      begun.delete(key);
    }
    if (is === 'Attaching' || is === 'Detaching') begun.set(key, this.base);
  }

  // index computes frequent lookups.
  index() {
    this.from = Map.groupBy(this.links, (link) => link.from);
    this.to = Map.groupBy(this.links.filter((link) => link.to), (link) => link.to);
    this.drivers = new Set();
    this.namespaces = new Set();
    this.zones = new Set([...this.nodes.values()].map((node) => node.zone).filter(Boolean));
    this.rows = [];
    this.counts = Object.fromEntries(states.map(([state]) => [state, 0]));
    for (const volume of this.volumes.values()) if (volume.claim) this.namespaces.add(volume.claim.split('/', 1)[0]);
    for (const wait of this.waits.values()) this.namespaces.add(wait.ref.split('/')[1]);
    const sorted = [...this.nodes.values()].sort((a, b) => rank(a) - rank(b) || compareNames(a.zone ?? '', b.zone ?? '') || compareNames(a.name, b.name));
    for (const node of sorted) {
      if (node.drivers.length === 0) this.rows.push({ key: `${node.name}\n`, node, driver: null, cells: [] });
      for (const driver of node.drivers) this.rows.push(this.row(node, driver));
    }
  }

  // row has a cell for each slot. A volume keeps its place while it is there.
  row(node, driver) {
    const key = `${node.name}\n${driver.name}`;
    this.drivers.add(driver.name);
    const slots = new Map(driver.slots.map((slot) => [slot.volume, slot]));
    const places = (this.positions.get(key) ?? []).map((volume) => (slots.has(volume) ? volume : null));
    const placed = new Set(places);
    let hole = 0;
    for (const volume of slots.keys()) {
      if (placed.has(volume)) continue;
      while (hole < places.length && places[hole] !== null) hole++;
      places[hole] = volume;
    }
    while (places.length && places.at(-1) === null) places.pop();
    this.positions.set(key, places);
    const free = driver.free ?? 0;
    const holes = places.filter((place) => place === null).length;
    const cells = places.map((volume) => this.cell(slots.get(volume)));
    for (let i = holes; i < free && cells.length < mostCells; i++) cells.push({ state: 'free' });
    for (const slot of driver.slots) this.counts[slot.slot]++;
    this.counts.free += free;
    return { key, node, driver, cells };
  }

  cell(slot) {
    if (!slot) return { state: 'free' };
    const volume = this.volumes.get(slot.volume);
    const namespace = volume?.claim?.split('/', 1)[0] ?? slot.users?.[0]?.split('/')[1];
    if (namespace) this.namespaces.add(namespace);
    return { state: slot.slot, slot, volume, namespace };
  }

  // matches says whether a cell passes a filter.
  matches(row, cell, filter) {
    if (filter.state && cell.state !== filter.state) return false;
    if (filter.namespace && cell.namespace !== filter.namespace) return false;
    if (!filter.q) return true;
    const q = filter.q;
    if (row.node.name.toLowerCase().includes(q)) return true;
    return Boolean(cell.slot) && [cell.slot.volume, cell.volume?.claim, cell.volume?.handle, cell.volume?.reason, ...(cell.slot.users ?? [])]
      .some((text) => text?.toLowerCase().includes(q));
  }

  // visible are the rows that pass a filter.
  visible(filter) {
    const narrowed = filter.state || filter.namespace || filter.q;
    return this.rows.filter((row) => {
      if (filter.driver && row.driver?.name !== filter.driver || filter.zone && row.node.zone !== filter.zone) return false;
      if (!narrowed) return true;
      if (row.cells.length === 0) return !filter.state && !filter.namespace && row.node.name.toLowerCase().includes(filter.q);
      return row.cells.some((cell) => this.matches(row, cell, filter));
    });
  }

  // find lists the objects with a text in their names.
  find(text, most) {
    const q = text.toLowerCase();
    const found = new Map();
    const add = (ref, about) => { if (found.size < most && !found.has(ref)) found.set(ref, about); };
    const has = (value) => value?.toLowerCase().includes(q);
    for (const wait of this.waits.values()) if (has(wait.ref) || has(wait.code)) add(wait.ref, `waits: ${wait.code ?? wait.state}`);
    for (const name of this.nodes.keys()) if (has(name)) add(`node/${name}`, this.nodes.get(name).ready ? 'node' : 'node, not ready');
    for (const v of this.volumes.values()) {
      if (found.size >= most) break;
      if (has(v.key) || has(v.claim) || has(v.handle) || has(v.reason)) add(`volume/${v.key}`, [v.claim, v.state, v.holder && `at ${v.holder}`].filter(Boolean).join(', '));
    }
    for (const row of this.rows) {
      if (found.size >= most) break;
      for (const cell of row.cells) for (const user of cell.slot?.users ?? []) if (has(user)) add(user, `at ${row.node.name}, with ${cell.slot.volume}`);
    }
    return [...found].map(([ref, about]) => ({ ref, about }));
  }

  // slotsOf are the slots that a volume takes, with their nodes.
  slotsOf(key) {
    return this.rows.flatMap((row) => row.cells.filter((cell) => cell.slot?.volume === key).map((cell) => ({ row, cell })));
  }

  // about is the view's whole content about an object: a change of it has the object drawn anew.
  about(ref) {
    const [kind, name] = split(ref);
    const of = { volume: () => [this.volumes.get(name), this.slotsOf(name).map(({ row, cell }) => [row.node.name, cell.slot])], node: () => this.nodes.get(name) }[kind];
    return JSON.stringify([of?.(), this.waits.get(ref), this.from.get(ref), this.to.get(ref)]);
  }

  knows(ref) {
    const [kind, name] = split(ref);
    if (kind === 'volume') return this.volumes.has(name);
    if (kind === 'node') return this.nodes.has(name);
    return true;
  }
}

// split takes a reference apart: the name follows the first slash.
export function split(ref) {
  const at = ref.indexOf('/');
  return [ref.slice(0, at), ref.slice(at + 1)];
}

const collator = new Intl.Collator('en', { numeric: true });

// compareNames puts worker-2 before worker-10.
export const compareNames = (a, b) => collator.compare(a, b);
