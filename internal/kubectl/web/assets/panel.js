// SPDX-License-Identifier: Apache-2.0
// The known facts about one object: its users, its waiters, the chain of waits, and explain's answer.
import { el, byId, ago, since } from './dom.js';
import { split } from './model.js';

export const kindNames = { pod: 'pod', ticket: 'ticket', volume: 'volume', node: 'node', claim: 'claim' };

// refLink is a link to an object, with the address of the page's state that shows it.
export function refLink(ref, href, short = false) {
  const [kind, name] = split(ref);
  return el('a', { href: href(ref), class: 'ref' }, short ? name : `${kindNames[kind] ?? kind} ${name}`);
}

// mostChain bounds the depth of a chain of waits, mostBranches its width, and mostItems the number of its
// links.
const mostChain = 12;
const mostBranches = 12;
const mostItems = 500;

const verbs = {
  'waits for': 'waits for', 'is next for': 'is next for', "can't leave": "can't leave", 'is at': 'is at', 'is used by': 'is used by',
};

export class Panel {
  // actions has href(ref), close() and detail(ref), which resolves to the command's answer.
  constructor(model, actions) {
    this.model = model;
    this.actions = actions;
    this.box = byId('panel');
    this.ref = '';
    this.detail = null;
    this.problem = '';
  }

  // open shows an object; closes the panel where there is none.
  open(ref) {
    if (ref === this.ref) return;
    this.ref = ref;
    this.detail = null;
    this.problem = '';
    this.asking = Boolean(ref);
    this.box.hidden = !ref;
    this.about = '';
    this.box.replaceChildren();
    this.refresh();
    this.box.scrollTop = 0;
  }

  // refresh draws the object anew where the view about it has changed.
  refresh() {
    if (!this.ref) return;
    const about = this.model.about(this.ref);
    if (about === this.about) return;
    this.about = about;
    this.draw();
    this.load();
  }

  // key is the volume of the open object, by the map's name.
  key() {
    const v = this.detail?.volume;
    const [kind, name] = split(this.ref);
    if (!v) return kind === 'volume' ? name : '';
    return !v.persistentVolume || !this.model.volumes.has(v.persistentVolume) && this.model.volumes.has(`${v.driver}^${v.handle}`) ? `${v.driver}^${v.handle}` : v.persistentVolume;
  }

  async load() {
    const { ref } = this;
    const asked = this.asked = (this.asked ?? 0) + 1;
    this.box.setAttribute('aria-busy', 'true');
    let detail = null;
    let problem = '';
    try {
      detail = await this.actions.detail(ref);
    } catch (error) {
      problem = error.message;
    }
    if (asked !== this.asked || ref !== this.ref) return;
    this.box.removeAttribute('aria-busy');
    this.detail = detail;
    this.problem = problem;
    this.asking = false;
    this.draw();
  }

  draw() {
    const { model, ref } = this;
    const [kind, name] = split(ref);
    const scrolled = this.box.scrollTop;
    const open = new Map([...this.box.querySelectorAll('details')].map((d) => [d.dataset.name, d.open]));
    const focused = document.activeElement?.closest?.('.panel') ? document.activeElement.id : '';
    this.box.replaceChildren(
      el('div', { class: 'panel-head' },
        el('h2', { id: 'panel-title', tabindex: '-1' }, el('span', { class: 'kind', text: kindNames[kind] ?? kind }), ' ', el('span', { class: 'name', text: name })),
        el('button', { type: 'button', id: 'panel-close', 'aria-label': 'Close', title: 'Close (Esc)', on: { click: () => this.actions.close() } }, '✕')),
      ...this.headline(),
      this.problem ? el('p', { class: 'problem', text: this.problem }) : '',
      ...this.chain(),
      ...(kind === 'node' ? this.node(name) : []),
      ...this.facts(),
      ...this.bars(),
      ...this.texts(),
    );
    for (const details of this.box.querySelectorAll('details')) if (open.has(details.dataset.name)) details.open = open.get(details.dataset.name);
    this.box.scrollTop = scrolled;
    if (focused) byId(focused)?.focus({ preventScroll: true });
    if (!this.detail && !this.problem && !model.knows(ref)) this.box.append(el('p', { class: 'faint', text: 'It is not there any more.' }));
  }

  // headline is the answer, with the remedy.
  headline() {
    const { detail } = this;
    const wait = this.model.waits.get(this.ref);
    const answer = detail?.answer ?? wait?.answer;
    const out = [el('p', { class: detail?.cause || wait ? 'answer bad' : 'answer', text: answer ?? (this.asking ? 'Asking…' : '') })];
    const cause = detail?.cause;
    if (cause) out.push(el('p', { class: 'reason' }, el('span', { class: 'code', text: cause.code }), cause.since ? [' for ', since(cause.since)] : ''));
    if (cause?.do) out.push(remedy(cause.do));
    if (cause?.changes) out.push(el('p', { class: 'changes' }, el('b', { text: 'What changes it: ' }), cause.changes));
    return out;
  }

  // chain follows the waits in both directions.
  chain() {
    const { model, ref } = this;
    const out = [];
    if (model.from.has(ref)) {
      out.push(el('h3', { text: 'Waits for' }), this.branch(ref, new Set([ref]), 0, { items: mostItems }));
    }
    const waiting = (model.to.get(ref) ?? []).filter((link) => link.how !== 'is used by');
    if (waiting.length) {
      out.push(el('h3', { text: 'Who waits for it' }), el('ul', { class: 'chain' }, waiting.slice(0, mostBranches).map((link) => el('li', {},
        refLink(link.from, this.actions.href), ` ${verbs[link.how] ?? link.how} it`, link.code ? [' ', el('span', { class: 'code', text: link.code })] : '',
        link.since ? [', for ', since(link.since)] : '')),
      waiting.length > mostBranches ? el('li', { text: `and ${waiting.length - mostBranches} more` }) : ''));
    }
    return out;
  }

  // unsaid says whether a message is not part of the answer above.
  unsaid(message) {
    return message && !(this.detail?.answer ?? this.model.waits.get(this.ref)?.answer ?? '').includes(message.replace(/\.$/, ''));
  }

  branch(ref, seen, depth, left) {
    const links = this.model.from.get(ref) ?? [];
    const shown = links.slice(0, Math.min(mostBranches, left.items));
    left.items -= shown.length;
    return el('ol', { class: 'chain' }, shown.map((link) => {
      const again = link.to && seen.has(link.to);
      const node = link.to?.startsWith('node/') ? this.model.nodes.get(split(link.to)[1]) : null;
      return el('li', {},
        el('span', { class: 'how', text: `${verbs[link.how] ?? link.how} ` }),
        link.to ? refLink(link.to, this.actions.href) : '',
        link.code ? [' ', el('span', { class: 'code', text: link.code })] : '',
        link.since ? [', for ', since(link.since)] : '',
        node && !node.ready ? el('span', { class: 'bad' }, ' — not ready', node.since ? [' for ', since(node.since)] : '') : '',
        this.unsaid(link.message) ? el('p', { class: 'message', text: link.message }) : '',
        again ? el('span', { class: 'bad', text: ' — they wait for each other' }) : '',
        link.to && !again && depth < mostChain && this.model.from.has(link.to) ? this.branch(link.to, new Set([...seen, link.to]), depth + 1, left) : '');
    }), links.length > shown.length ? el('li', { text: `and ${links.length - shown.length} more` }) : '');
  }

  // node lists the slots of a node.
  node(name) {
    const rows = this.model.rows.filter((row) => row.node.name === name);
    const out = [];
    const plan = this.detail?.plan;
    if (plan) {
      out.push(el('h3', { text: 'If it is drained' }), el('p', { class: plan.waits ? 'answer bad' : 'answer', text: plan.answer }), fold('drain', 'Drain plan', el('pre', { tabindex: '0', text: plan.text })));
    }
    for (const row of rows) {
      if (!row.driver) continue;
      const taken = row.cells.filter((cell) => cell.slot);
      out.push(el('h3', {}, row.driver.name, el('span', { class: 'faint', text: `  ${row.driver.slots.length} taken${row.driver.limit === undefined ? ', no limit' : ` of ${row.driver.limit}`}` })));
      if (!row.driver.registered) out.push(el('p', { class: 'bad', text: 'The driver is not registered at this node: nothing is placed there.' }));
      if (taken.length) {
        out.push(el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Volumes of ${row.driver.name}` }, el('table', {},
          el('thead', {}, el('tr', {}, ['Slot', 'Volume', 'Claim', 'Used by'].map((text) => el('th', { scope: 'col', text })))),
          el('tbody', {}, taken.map((cell) => el('tr', {},
            el('td', {}, el('span', { class: `state ${cell.state}`, text: cell.state })),
            el('td', {}, cell.volume ? refLink(`volume/${cell.slot.volume}`, this.actions.href, true) : cell.slot.volume),
            el('td', { text: cell.volume?.claim ?? '' }),
            el('td', {}, (cell.slot.users ?? []).map((user, i) => [i ? ', ' : '', refLink(user, this.actions.href, true)]))))))));
      }
    }
    return out;
  }

  // facts are the lines about a volume.
  facts() {
    const v = this.detail?.volume;
    const line = (term, ...value) => [el('dt', { text: term }), el('dd', {}, ...value)];
    const who = (r) => refLink(`${r.kind === 'Pod' ? 'pod' : 'ticket'}/${r.namespace}/${r.name}`, this.actions.href);
    const node = (name) => name === '(detached)' ? name : refLink(`node/${name}`, this.actions.href);
    if (!v) return [];
    return [el('h3', { text: 'Volume' }), el('dl', {},
      line('state', v.state),
      v.holder ? line('held by', node(v.holder.node), v.holder.since ? [' for ', since(v.holder.since)] : '', v.holder.for?.length ? [', for ', ...v.holder.for.map((r, i) => [i ? ', ' : '', who(r)])] : ', no pod uses it there') : '',
      v.next ? line('next', who(v.next.who), v.next.node === '(detached)' ? ' to stay detached' : v.next.node ? [' at ', node(v.next.node)] : '') : '',
      (v.waiting ?? []).map((w) => line('waiting', who(w.who), w.node === '(detached)' ? ' to stay detached' : w.node ? [' at ', node(w.node)] : ', without a node', w.since ? [', for ', since(w.since)] : '')),
      ...described(v, line))];
  }

  // bars are the places of a volume over time: a bar for each node, from its attach.
  bars() {
    const { model } = this;
    const v = this.detail?.volume;
    if (!v) return [];
    const now = model.now();
    const key = this.key();
    const slots = new Map(model.slotsOf(key).map(({ row, cell }) => [row.node.name, cell.state]));
    const nodes = (v.nodes ?? []).filter((n) => slots.has(n.node));
    const parts = barParts(nodes, slots, model.history.get(key) ?? [], model.began, now);
    if (parts.length === 0) return [];
    const begin = Math.min(now - 60, ...parts.map((part) => part.from));
    const span = Math.max(1, now - begin);
    const names = [...new Set(parts.map((part) => part.node))];
    return [el('h3', { text: 'Where it has been' }), el('div', { class: 'bars', role: 'list', 'aria-label': 'Nodes at which the volume is or was' },
      names.map((at) => {
        const own = parts.filter((part) => part.node === at);
        const lane = el('div', { class: 'lane', 'aria-hidden': 'true' }, own.map((part) => {
          const bar = el('span', { class: `bar-part ${part.state}`, title: `${part.state}, ${ago(part.to - part.from)}` });
          bar.style.left = `${((part.from - begin) / span) * 100}%`;
          bar.style.width = `max(3px, ${((part.to - part.from) / span) * 100}%)`;
          return bar;
        }));
        const words = own.map((part) => `${part.state} ${part.to === now ? 'for' : 'was for'} ${ago(part.to - part.from)}`).join(', ');
        return el('div', { class: 'bar-row', role: 'listitem' }, el('span', { class: 'bar-node' }, refLink(`node/${at}`, this.actions.href, true)), lane, el('span', { class: 'bar-words', text: words }));
      })), el('p', { class: 'faint', text: `The last ${ago(span)}. What was before the page was opened is seen as far as objects that still exist tell it.` })];
  }

  texts() {
    const { detail } = this;
    if (!detail) return [];
    return [
      detail.text ? fold('explain', 'What explain says', el('pre', { tabindex: '0', text: detail.text })) : '',
      ...(detail.commands ?? []).map(command),
    ];
  }
}

// described are the names of a volume and its access, as far as they are known.
function described(v, line) {
  return [
    v.claim ? line('claim', v.claim) : '',
    v.persistentVolume ? line('volume', v.persistentVolume) : '',
    line('driver', v.driver),
    line('handle', el('code', { text: v.handle })),
    line('serves', v.access),
    v.transitions ? line('moved', v.transitions === 1 ? 'once' : `${v.transitions} times`) : ''];
}

// barParts are the spans of time of a volume's states at a node. A state at the time of the page's opening,
// or of the recording's begin, began then or earlier.
function barParts(nodes, slots, history, began, now) {
  const parts = [];
  const names = new Set([...nodes.map((n) => n.node), ...history.map((h) => h.node)]);
  for (const node of names) {
    const is = nodes.find((n) => n.node === node);
    const changes = history.filter((h) => h.node === node);
    let from = Math.min(is?.since ? Date.parse(is.since) / 1000 : began, changes[0]?.at ?? now);
    let state = changes.length ? changes[0].from : slots.get(node);
    for (const change of changes) {
      if (state && change.at > from) parts.push({ node, state, from, to: change.at });
      [from, state] = [change.at, change.to];
    }
    if (is) parts.push({ node, state: state ?? slots.get(node), from: Math.min(from, now), to: now });
  }
  return parts;
}

// fold is a part that can be folded away; an open part stays open when it is drawn anew.
function fold(name, title, content, open = false) {
  return el('details', { 'data-name': name, open }, el('summary', { text: title }), content);
}

// command is a command line with a button to copy it.
function command(text) {
  return el('p', { class: 'command' }, el('code', { text }), ' ', el('button', { type: 'button', 'aria-label': `Copy ${text}`, on: { click: (event) => copy(text, event.target) } }, 'Copy'));
}

// advice is the remedy; a command in it stands alone, without punctuation.
function advice(text) {
  return text.split(/`(kubectl [^`]+)`[.,;:)]*/).map((part, i) => (i % 2 ? command(part) : part.trim() && el('p', { text: part.trim() })));
}

// remedy is the remedy, as a box.
export const remedy = (text) => el('div', { class: 'do' }, el('h3', { text: 'What to do' }), advice(text));

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select and copy it';
    getSelection().selectAllChildren(button.previousElementSibling);
  }
}
