// SPDX-License-Identifier: Apache-2.0
// A page with clusters side by side, each in a frame, and what is told of them: live, or of a
// recording with one slider for all.
import { el, byId } from './dom.js';

const recording = byId('data') ? JSON.parse(byId('data').textContent) : null;
const frames = [...document.querySelectorAll('iframe')];
const logs = [...document.querySelectorAll('.told')];
const lines = recording?.lines ?? [];
const times = lines.map((line) => Date.parse(line.at) / 1000);
let shown = 0; // so many lines are shown
let chapter = null;
let began = 0;

const option = (i, line) => el('option', { value: String(i), text: line.text });

// showLines shows the first lines, as they were at a time.
function showLines(count) {
  if (count < shown) {
    for (const log of logs) log.replaceChildren();
    shown = 0;
    chapter = null;
  }
  for (; shown < count; shown++) {
    const line = lines[shown];
    if (line.chapter) {
      chapter = shown;
      began = times[shown];
      for (const log of logs) log.replaceChildren();
      continue;
    }
    logs[line.side].append(el('p', {}, el('span', { class: 'faint', text: `${(times[shown] - began).toFixed(1)} s` }), ` ${line.text}`));
  }
  for (const log of logs) log.scrollTop = log.scrollHeight;
  byId('about').textContent = chapter === null ? '' : lines[chapter].about ?? '';
  if (chapter !== null) byId('chapters').value = String(chapter);
}

// follow shows what is told as it is told.
function follow() {
  byId('chapters').disabled = true;
  const stream = new EventSource('lines');
  stream.addEventListener('open', () => { // after a gap all is told anew
    lines.length = times.length = 0;
    byId('chapters').replaceChildren();
    showLines(0);
    byId('problem').hidden = true;
  });
  stream.addEventListener('message', (event) => {
    for (const line of JSON.parse(event.data) ?? []) {
      if (line.chapter) byId('chapters').append(option(lines.length, line));
      lines.push(line);
      times.push(Date.parse(line.at) / 1000);
    }
    showLines(lines.length);
  });
  stream.addEventListener('error', () => {
    byId('problem').textContent = 'The demo is over, or was ended: this is what was shown last.';
    byId('problem').hidden = false;
  });
}

// Player is the slider of a recording.
class Player {
  constructor() {
    this.slider = byId('time-at');
    this.first = times[0] ?? 0;
    this.slider.max = String(Math.ceil((times.at(-1) ?? 0) - this.first) + 1);
    this.slider.value = '0';
    lines.forEach((line, i) => { if (line.chapter) byId('chapters').append(option(i, line)); });
    this.slider.addEventListener('input', () => this.show());
    byId('chapters').addEventListener('change', (event) => this.goTo(times[Number(event.target.value)] - this.first));
    byId('time-play').addEventListener('click', () => this.play(!this.timer));
    addEventListener('message', (event) => { if (event.data === 'ready' && frames.some((frame) => frame.contentWindow === event.source)) this.show(); });
    byId('time').hidden = false;
    this.show();
  }

  goTo(seconds) {
    this.slider.value = String(Math.ceil(seconds * 5) / 5);
    this.show();
  }

  show() {
    const at = this.first + Number(this.slider.value);
    const later = times.findIndex((time) => time > at);
    showLines(later < 0 ? lines.length : later);
    const text = `${Number(this.slider.value).toFixed(0)} s of ${this.slider.max} s`;
    byId('time-text').textContent = text;
    this.slider.setAttribute('aria-valuetext', text);
    for (const frame of frames) frame.contentWindow.postMessage({ at }, '*');
  }

  play(playing) {
    clearInterval(this.timer);
    this.timer = 0;
    byId('time-play').textContent = playing ? 'Pause' : 'Play';
    if (!playing) return;
    if (this.slider.value === this.slider.max) this.slider.value = '0';
    this.timer = setInterval(() => {
      this.goTo(Number(this.slider.value) + 0.2 * Number(byId('time-speed').value));
      if (this.slider.value === this.slider.max) this.play(false);
    }, 200);
  }
}

window.moorage = { player: recording ? new Player() : null, lines };
if (!recording) follow();
