// SPDX-License-Identifier: Apache-2.0
// The map: a row for each driver at each node, a cell for each slot. It is drawn in tiles, each a canvas of
// some lines. Only the tiles in sight and beside it exist: the browser itself scrolls, and the page draws a
// tile now and then.
import { el, byId } from './dom.js';
import { states } from './model.js';

const narrowWidth = 560;
const gap = 2;

// The height of a tile: a frame has time to draw one. tilesAhead tiles beside the visible part are drawn
// ahead, one in a frame; tiles further away are removed.
const tileHeight = 120;
const tilesAhead = 4;

// tileMargin is the margin around the lines of a tile: outlines reach out of their cells.
const tileMargin = 3;

export class SlotMap {
  // actions has open(ref) and hover texts.
  constructor(model, actions) {
    this.model = model;
    this.actions = actions;
    this.box = byId('map');
    this.filter = {};
    this.rows = [];
    this.focus = null;
    this.selected = '';
    this.labels = new Map();
    this.tiles = new Map();
    this.painted = 0;
    new ResizeObserver(() => this.update()).observe(this.box);
    for (const scrolls of [this.box, window]) scrolls.addEventListener('scroll', () => this.draw(), { passive: true });
    this.box.addEventListener('keydown', (event) => this.key(event));
    for (const event of ['focus', 'blur']) this.box.addEventListener(event, () => this.touch(this.rowIndex()));
    this.box.addEventListener('pointermove', (event) => this.hover(event));
    this.box.addEventListener('pointerleave', () => { byId('tooltip').hidden = true; });
    this.box.addEventListener('click', (event) => this.click(event));
    for (const query of ['(prefers-color-scheme: dark)', '(prefers-contrast: more)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => { this.sprites = null; this.redraw(); });
    }
  }

  // update takes over rows and filter, and lays them out anew.
  update(filter = this.filter) {
    this.filter = filter;
    this.domainOf = -1;
    this.rows = this.model.visible(filter);
    this.layout();
    this.restoreFocus();
    this.redraw();
  }

  // layout chooses the largest cells with which the whole map is in sight, and else cells of the usual
  // size. Where a node's slots need several lines, these have the same length.
  layout() {
    const width = this.box.clientWidth - 16;
    const longest = this.rows.reduce((most, row) => Math.max(most, row.cells.length), 1);
    const touch = width < narrowWidth;
    this.flows = matchMedia('(max-width: 900px)').matches; // the page scrolls, and not the map
    this.stacked = touch || this.model.drivers.size > 1;
    this.zoned = this.model.zones.size > 1;
    const usual = touch ? 20 : 14;
    const height = (cell) => {
      this.cell = cell;
      this.pitch = cell + gap;
      this.labelWidth = this.stacked ? 0 : (this.zoned ? 206 : 168) + (cell > 20 ? 50 : 0);
      this.zoneRoom = this.zoned ? cell > 20 ? 74 : 48 : 0;
      this.labelHeight = this.stacked ? 18 : 0;
      const room = Math.max(1, Math.floor((width - this.labelWidth) / this.pitch));
      this.lines = Math.ceil(longest / room);
      this.perLine = Math.ceil(longest / this.lines);
      this.rowHeight = this.labelHeight + this.lines * this.pitch + (this.stacked ? 8 : 4);
      this.blockWidth = Math.max(this.labelWidth + this.perLine * this.pitch + 20, this.stacked ? Math.min(width, 220) : 0);
      this.columns = Math.max(1, Math.floor((width + 20) / this.blockWidth));
      return Math.ceil(this.rows.length / this.columns) * this.rowHeight + 16;
    };
    let size = this.flows ? 0 : 56;
    while (size > usual && (height(size) > this.box.clientHeight || this.lines > 3)) size -= 2;
    if (size <= usual) {
      size = usual;
      height(size);
      for (let least = usual - 2; this.lines > 1 && least >= 10; least -= 2) if (height(least) && this.lines === 1) size = least;
    }
    byId('map-size').style.height = `${height(size)}px`;
    const ratio = window.devicePixelRatio || 1;
    this.ratio = ratio;
    this.linesOfTile = Math.max(1, Math.round(tileHeight / this.rowHeight));
    if (this.spriteCell !== this.cell || this.spriteRatio !== ratio) this.sprites = null;
    this.box.setAttribute('aria-rowcount', this.rows.length);
    this.box.setAttribute('aria-colcount', longest);
  }

  // sight is the visible part of the map: by its own scrolling, or by the page's.
  sight() {
    if (!this.flows) return { top: this.box.scrollTop, height: this.box.clientHeight };
    return { top: Math.max(0, -this.box.getBoundingClientRect().top), height: innerHeight };
  }

  scrollBy(distance) {
    if (this.flows) window.scrollBy(0, distance);
    else this.box.scrollTop += distance;
  }

  // redraw has all tiles drawn anew; touch has a row's tile drawn anew.
  redraw() {
    for (const tile of this.tiles.values()) tile.stale = true;
    this.draw();
  }

  touch(i) {
    const tile = this.tiles.get(this.tileOf(i));
    if (tile) tile.stale = true;
    this.draw();
  }

  tileOf(i) { return Math.floor(Math.floor(i / this.columns) / this.linesOfTile); }

  // draw asks for one frame, for any number of calls before it.
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  // paint draws the tiles in sight, and a tile beside them.
  paint() {
    if (!this.sprites) this.makeSprites();
    const { top, height } = this.sight();
    const size = this.linesOfTile * this.rowHeight;
    const last = Math.ceil(Math.ceil(this.rows.length / this.columns) / this.linesOfTile) - 1;
    const from = Math.max(0, Math.floor((top - 8 - tileMargin) / size));
    const to = Math.min(last, Math.floor((top + height - 8 + tileMargin) / size));
    for (const [t, tile] of this.tiles) {
      if (t > last || t < from - tilesAhead || t > to + tilesAhead) {
        tile.canvas.remove();
        this.tiles.delete(t);
      }
    }
    for (let t = from; t <= to; t++) this.paintTile(t);
    for (let away = 1; away <= tilesAhead; away++) {
      for (const t of [to + away, from - away]) {
        if (t >= 0 && t <= last && this.paintTile(t)) {
          this.draw();
          return;
        }
      }
    }
  }

  // paintTile draws a tile, unless it is unchanged.
  paintTile(t) {
    let tile = this.tiles.get(t);
    if (tile && !tile.stale) return false;
    const size = this.linesOfTile * this.rowHeight;
    const [width, height] = [this.box.clientWidth, size + 2 * tileMargin];
    if (!tile) {
      tile = { canvas: document.createElement('canvas') };
      this.tiles.set(t, tile);
      byId('tiles').append(tile.canvas);
    }
    tile.stale = false;
    this.painted++;
    const { canvas } = tile;
    const c = canvas.getContext('2d');
    const [w, h] = [Math.round(width * this.ratio), Math.round(height * this.ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    const top = 8 + t * size - tileMargin;
    Object.assign(canvas.style, { top: `${top}px`, width: `${width}px`, height: `${height}px` });
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const first = t * this.linesOfTile * this.columns;
    const end = Math.min(this.rows.length, first + this.linesOfTile * this.columns);
    for (let i = first; i < end; i++) {
      const [x, y] = this.origin(i);
      c.setTransform(this.ratio, 0, 0, this.ratio, x * this.ratio, Math.round((y - top) * this.ratio));
      this.paintRow(c, this.rows[i]);
    }
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.paintMarks(c, top, first, end);
    return true;
  }

  // origin is where a row begins in the map.
  origin(i) {
    return [8 + (i % this.columns) * this.blockWidth, 8 + Math.floor(i / this.columns) * this.rowHeight];
  }

  // cellIn is the place of a cell in its row, cellAt in the map.
  cellIn(j) { return [this.labelWidth + (j % this.perLine) * this.pitch, this.labelHeight + Math.floor(j / this.perLine) * this.pitch]; }

  cellAt(i, j) {
    const [x, y] = this.origin(i);
    const [cx, cy] = this.cellIn(j);
    return [x + cx, y + cy];
  }

  paintRow(c, row) {
    const narrowed = this.filter.state || this.filter.namespace || this.filter.q;
    const dead = !row.node.ready || row.node.missing;
    if (dead) {
      c.fillStyle = this.colours['alert-back'];
      c.fillRect(-4, -1, this.blockWidth - 12, this.rowHeight - 2);
    }
    this.paintLabel(c, row, dead);
    row.cells.forEach((cell, j) => {
      const dim = narrowed && !this.model.matches(row, cell, this.filter);
      const [x, y] = this.cellIn(j);
      c.drawImage(this.sprites.get(cell.state)[dim ? 1 : dead ? 2 : 0], x, y, this.cell, this.cell);
      if (stays(cell) && !dim) {
        c.fillStyle = this.colours.alert;
        c.fillRect(x + this.cell - 5, y, 5, 5);
      }
    });
    if (row.cells.length === 0) {
      c.fillStyle = this.colours.faint;
      c.fillText(!row.driver ? 'no driver that attaches' : row.node.ready ? 'no volumes, no limit' : 'no volumes', this.labelWidth, this.labelHeight + this.cell / 2);
    }
  }

  paintLabel(c, row, dead) {
    const sign = row.node.missing ? '? ' : !row.node.ready ? '✕ ' : row.node.outOfService ? '! ' : row.node.cordoned ? '⊘ ' : '';
    const count = row.driver ? `${row.driver.slots.length}${row.driver.limit === undefined ? '' : `/${row.driver.limit}`}` : '';
    const room = (this.stacked ? this.blockWidth - 20 : this.labelWidth - 8) - (count.length + 1) * 7;
    const name = this.stacked && row.driver && this.model.drivers.size > 1 ? `${sign}${this.short(row.node.name)}  ${row.driver.name}` : sign + this.short(row.node.name);
    const middle = (this.stacked ? 9 : this.cell / 2);
    c.font = this.font;
    c.textBaseline = 'middle';
    c.fillStyle = sign && sign !== '⊘ ' ? this.colours.alert : row.driver && !row.driver.registered ? this.colours.alert : this.colours.text;
    const shown = this.shorten(c, name, room - this.zoneRoom);
    c.fillText(shown, 0, middle);
    const end = c.measureText(shown).width;
    if (dead) c.fillRect(0, middle, end, 1.5);
    if (this.zoned && row.node.zone) {
      c.fillStyle = this.colours.faint;
      c.fillText(this.shorten(c, row.node.zone, this.zoneRoom - 6), end + 6, middle);
    }
    c.fillStyle = row.driver?.exhausted || (row.node.ready && row.driver?.free === 0) ? this.colours.alert : this.colours.faint;
    if (this.stacked) c.fillText(count, room + 4, middle);
    else {
      c.textAlign = 'right';
      c.fillText(count, this.labelWidth - 8, middle);
      c.textAlign = 'left';
    }
  }

  // short is a node's name without the domain that all nodes share.
  short(name) {
    const domain = (text) => text.slice(text.indexOf('.'));
    if (this.domainOf !== this.model.nodes.size) {
      this.domainOf = this.model.nodes.size;
      const all = [...this.model.nodes.keys()];
      this.domain = all.length > 1 && all[0].includes('.') && all.every((other) => other.includes('.') && domain(other) === domain(all[0])) ? domain(all[0]) : '';
    }
    return this.domain && name.endsWith(this.domain) ? name.slice(0, -this.domain.length) : name;
  }

  // shorten removes the middle of a long name: nodes differ at both ends.
  shorten(c, text, room) {
    const key = `${room}\n${text}`;
    if (this.labels.has(key)) return this.labels.get(key);
    let short = text;
    for (let keep = text.length - 1; c.measureText(short).width > room && keep > 2; keep--) {
      short = `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(text.length - Math.floor(keep / 2))}`;
    }
    if (this.labels.size > 5000) this.labels.clear();
    this.labels.set(key, short);
    return short;
  }

  paintMarks(c, top, first, end) {
    const outline = (i, j, colour, width) => {
      const [x, y] = this.cellAt(i, j);
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.strokeRect(x - 1, y - top - 1, this.cell + 2, this.cell + 2);
    };
    if (this.selected) {
      for (let i = first; i < end; i++) {
        const row = this.rows[i];
        if (this.selected === `node/${row.node.name}`) {
          const [x, y] = this.origin(i);
          c.fillStyle = this.colours.focus;
          c.fillRect(x - 7, y - top, 3, this.rowHeight - 4);
        }
        row.cells.forEach((cell, j) => {
          if (cell.slot && (this.selected === `volume/${cell.slot.volume}` || cell.slot.users?.includes(this.selected))) outline(i, j, this.colours.focus, 2.5);
        });
      }
    }
    if (this.focus && document.activeElement === this.box) {
      const i = this.rowIndex();
      if (i >= first && i < end) {
        outline(i, this.focus.j, this.colours.back, 4);
        outline(i, this.focus.j, this.colours.text, 2);
      }
    }
  }

  // makeSprites draws each kind of cell once. Kinds differ in form, not only in colour.
  makeSprites() {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    this.colours = Object.fromEntries(['text', 'faint', 'alert', 'alert-back', 'focus', 'back'].map((name) => [name, colour(name)]));
    this.font = `${this.cell > 20 ? 15 : 12}px ${colour('font')}`;
    this.sprites = new Map();
    this.spriteCell = this.cell;
    this.spriteRatio = this.ratio;
    for (const [state] of states) this.sprites.set(state, [1, 0.22, 0.5].map((alpha) => sprite(state, colour(state), this.cell, this.ratio, alpha)));
    this.labels.clear();
  }

  // hit is the row and cell at a point of the page.
  hit(event) {
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left - this.box.clientLeft - 8;
    const y = event.clientY - box.top - this.box.clientTop + this.box.scrollTop - 8;
    const column = Math.floor(x / this.blockWidth);
    if (x < 0 || y < 0 || column >= this.columns) return null;
    const i = Math.floor(y / this.rowHeight) * this.columns + column;
    const row = this.rows[i];
    if (!row) return null;
    const cx = Math.floor((x - column * this.blockWidth - this.labelWidth) / this.pitch);
    const cy = Math.floor(((y % this.rowHeight) - this.labelHeight) / this.pitch);
    const j = cy * this.perLine + cx;
    const inside = cx >= 0 && cx < this.perLine && cy >= 0 && cy < this.lines && j < row.cells.length;
    return { i, row, j: inside ? j : -1, cell: inside ? row.cells[j] : null };
  }

  click(event) {
    const hit = this.hit(event);
    if (!hit) return;
    if (hit.j >= 0) this.moveTo(hit.i, hit.j);
    this.actions.open(hit.cell?.slot && this.model.volumes.has(hit.cell.slot.volume) ? `volume/${hit.cell.slot.volume}` : `node/${hit.row.node.name}`);
  }

  hover(event) {
    const tooltip = byId('tooltip');
    const hit = event.pointerType === 'mouse' ? this.hit(event) : null;
    this.box.style.cursor = hit ? 'pointer' : '';
    tooltip.hidden = !hit;
    if (!hit) return;
    const lines = hit.cell ? describeCell(hit.row, hit.cell) : describeNode(hit.row);
    tooltip.replaceChildren(...lines.map((line) => el('div', { text: line })));
    tooltip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8))}px`;
    tooltip.style.top = `${Math.min(event.clientY + 14, innerHeight - tooltip.offsetHeight - 8)}px`;
  }

  rowIndex() { return this.focus ? this.rows.findIndex((row) => row.key === this.focus.key) : -1; }

  // restoreFocus keeps the focus on its node where rows have changed.
  restoreFocus() {
    if (!this.focus) {
      this.moveTo(0, 0, false);
      return;
    }
    const i = this.rowIndex();
    if (i < 0 && this.rows.length) this.moveTo(Math.min(this.focus.i, this.rows.length - 1), this.focus.j, false);
    else if (i >= 0) this.moveTo(i, this.focus.j, false);
    else this.focus = null;
  }

  moveTo(i, j, scroll = true) {
    const row = this.rows[i];
    if (!row) return;
    const was = this.rowIndex();
    this.focus = { key: row.key, i, j: Math.max(0, Math.min(j, row.cells.length - 1)) };
    const [, y] = this.cellAt(i, this.focus.j);
    const [, top] = this.origin(i);
    const sight = this.sight();
    const below = y + this.pitch + 8 - sight.top - sight.height;
    if (scroll && top - 8 < sight.top) this.scrollBy(top - 8 - sight.top);
    else if (scroll && below > 0) this.scrollBy(below);
    const cell = row.cells[this.focus.j];
    byId('focus-row').setAttribute('aria-rowindex', i + 1);
    const name = byId('focus-node');
    name.textContent = row.node.name;
    const text = byId('focus-cell');
    text.setAttribute('aria-colindex', this.focus.j + 1);
    text.textContent = cell ? `slot ${this.focus.j + 1} of ${row.cells.length}: ${describeCell(row, cell).join(', ')}` : describeNode(row).join(', ');
    this.box.setAttribute('aria-activedescendant', 'focus-cell');
    this.touch(was);
    this.touch(i);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.rows.length === 0) return;
    if (!this.focus) this.moveTo(0, 0);
    const i = Math.max(0, this.rowIndex());
    const { j } = this.focus;
    const row = this.rows[i];
    const page = Math.max(1, Math.floor(this.sight().height / this.rowHeight) - 1) * this.columns;
    const clamp = (n) => Math.max(0, Math.min(n, this.rows.length - 1));
    const moves = {
      ArrowRight: () => (j + 1 < row.cells.length ? this.moveTo(i, j + 1) : i + 1 < this.rows.length && this.moveTo(i + 1, 0)),
      ArrowLeft: () => (j > 0 ? this.moveTo(i, j - 1) : i > 0 && this.moveTo(i - 1, this.rows[i - 1].cells.length - 1)),
      ArrowDown: () => this.down(i, j, 1),
      ArrowUp: () => this.down(i, j, -1),
      PageDown: () => this.moveTo(clamp(i + page), j),
      PageUp: () => this.moveTo(clamp(i - page), j),
      Home: () => this.moveTo(event.shiftKey ? 0 : i, 0),
      End: () => this.moveTo(event.shiftKey ? this.rows.length - 1 : i, Infinity),
      Enter: () => this.open(row, row.cells[j]),
      ' ': () => this.open(row, row.cells[j]),
      n: () => this.actions.open(`node/${row.node.name}`),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }

  // down moves within a node's lines first, then to the node below.
  down(i, j, step) {
    const line = Math.floor(j / this.perLine) + step;
    const cells = this.rows[i].cells.length;
    if (line >= 0 && line * this.perLine < cells) {
      this.moveTo(i, Math.min(j + step * this.perLine, cells - 1));
      return;
    }
    const next = this.rows[i + step * this.columns] ? i + step * this.columns : i;
    if (next === i) return;
    const lastLine = Math.floor((this.rows[next].cells.length - 1) / this.perLine) * this.perLine;
    this.moveTo(next, step > 0 ? j % this.perLine : Math.max(0, lastLine) + (j % this.perLine));
  }

  open(row, cell) {
    this.actions.open(cell?.slot && this.model.volumes.has(cell.slot.volume) ? `volume/${cell.slot.volume}` : `node/${row.node.name}`);
  }

  // show scrolls to an object.
  show(ref) {
    this.selected = ref;
    const i = this.rows.findIndex((row) => ref === `node/${row.node.name}` || row.cells.some((cell) => cell.slot && (ref === `volume/${cell.slot.volume}` || cell.slot.users?.includes(ref))));
    if (i >= 0) {
      const [, y] = this.origin(i);
      const { top, height } = this.sight();
      if (!this.flows && (y < top || y + this.rowHeight > top + height)) this.scrollBy(Math.max(0, y - height / 3) - top);
    }
    this.redraw();
  }
}

// stays says whether a volume should leave its node and can't.
const stays = (cell) => Boolean(cell.volume?.reason) && cell.state !== 'reserved';

// describeNode is the text of a row's label.
export function describeNode(row) {
  const { node, driver } = row;
  const lines = [`node ${node.name}`];
  if (node.missing) lines.push('there is no such node');
  else if (!node.ready) lines.push('not ready');
  if (node.zone) lines.push(`zone ${node.zone}`);
  if (node.cordoned) lines.push('cordoned');
  if (node.outOfService) lines.push('taint out-of-service');
  if (!driver) return [...lines, 'no driver that attaches volumes'];
  const free = node.ready ? `, ${driver.free} free` : ', and nobody gets the others while the node is not ready';
  lines.push(`${driver.name}: ${driver.slots.length} taken${driver.limit === undefined ? ', no limit' : ` of ${driver.limit}${free}`}`);
  if (!driver.registered) lines.push('driver not registered');
  if (driver.exhausted) lines.push('the driver says ResourceExhausted');
  return lines;
}

// describeCell is the text of a cell.
export function describeCell(row, cell) {
  if (!cell.slot) return ['free', `node ${row.node.name}`];
  const lines = [`${cell.state}, ${cell.slot.state}`, `volume ${cell.slot.volume}`];
  if (cell.volume?.claim) lines.push(`claim ${cell.volume.claim}`);
  if (stays(cell)) lines.push(`can't leave: ${cell.volume.reason}`);
  for (const user of cell.slot.users ?? []) lines.push(user.replace('/', ' '));
  lines.push(`node ${row.node.name}${row.node.ready ? '' : ', not ready'}`);
  return lines;
}

export function sprite(state, colour, size, ratio, alpha) {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = Math.round(size * ratio);
  const c = canvas.getContext('2d');
  c.scale(ratio, ratio);
  c.globalAlpha = alpha;
  c.fillStyle = c.strokeStyle = colour;
  const box = new Path2D();
  box.roundRect(1, 1, size - 2, size - 2, 2.5);
  const forms = {
    used: () => c.fill(box),
    kept: () => {
      c.lineWidth = 1.5;
      c.stroke(box);
      c.fillRect(1, size / 2, size - 2, size / 2 - 1);
    },
    leaving: () => {
      c.lineWidth = 1.5;
      c.stroke(box);
      c.clip(box);
      c.beginPath();
      for (let x = -size; x < size; x += 4) { c.moveTo(x, size); c.lineTo(x + size, 0); }
      c.lineWidth = 2;
      c.stroke();
    },
    reserved: () => {
      c.lineWidth = 2.5;
      c.setLineDash([3, 2]);
      c.stroke(box);
    },
    unknown: () => {
      c.fill(box);
      c.globalCompositeOperation = 'destination-out';
      c.font = `bold ${size - 3}px sans-serif`;
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.globalAlpha = 1;
      c.fillText('?', size / 2, size / 2 + 0.5);
    },
    free: () => {
      c.lineWidth = 1;
      box.roundRect(1, 1, size - 2, size - 2, 2.5);
      c.stroke(box);
    },
  };
  forms[state]();
  return canvas;
}
