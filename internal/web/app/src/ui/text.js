// Text is the one way by which text of agents gets into the page: as a text node, with what hides or steers made visible, and
// no more of it at once than a browser can bear.
import { html, useState } from '../lib/html.js';
import { visible, head, line } from '../lib/visible.js';
import { count } from '../lib/format.js';

const first = 4000; // characters that are shown at once
const more = 100000; // that each "more" adds

// Text shows text with its lines. value may be of any length.
export function Text({ value, start = first, class: cls = '' }) {
  const [most, setMost] = useState(start);
  const s = String(value ?? '');
  const part = head(s, most);
  const left = s.length - part.length;
  return html`<div class=${'text ' + cls} dir="auto">${visible(part)}${left > 0 && html`<span class="cut"> … <button type="button" class="quiet" onClick=${() => setMost(most + more)}>${left > more ? `Show ${count(more)} of the ${count(left)} characters that follow` : `Show the other ${count(left)} characters`}</button></span>`}</div>`;
}

// Line shows the beginning of a text on one line.
export function Line({ value, most = 300, class: cls = '' }) {
  return html`<bdi class=${'line ' + cls}>${line(String(value ?? ''), most)}</bdi>`;
}
