// Markdown shows what a model has written, as elements of ours with text nodes in them. Addresses are shown and lead nowhere; HTML and images are text.
import { html, useMemo, useState } from '../lib/html.js';
import { count } from '../lib/format.js';
import { markdown } from '../lib/markdown.js';
import { head, visible } from '../lib/visible.js';
import { Copy } from './copy.js';
import { Lines } from './lines.js';

const first = 20000, more = 100000; // characters that are shown at once, and that each "more" adds

function Block({ n }) {
  if (n.lang === 'diff' || n.lang === 'patch') return html`<${Lines} lines=${n.text.split('\n')} start=${400} />`;
  return html`<div class="code"><pre class="mono" tabindex="0" dir="ltr">${visible(n.text)}</pre><${Copy} text=${n.text} what="this code" /></div>`;
}

const address = (to) => html` <small class="address mono"><bdi>${visible(head(to, 300))}</bdi></small>`;

function draw(n) {
  if (typeof n === 'string') return visible(n);
  switch (n.tag) {
    case 'block': return html`<${Block} n=${n} />`;
    case 'code': return html`<code>${visible(n.text)}</code>`;
    case 'hr': return html`<hr />`;
    case 'br': return html`<br />`;
    case 'link': return html`<span class="link">${n.kids.map(draw)}</span>${n.kids.length === 1 && n.kids[0] === n.to ? '' : address(n.to)}`;
    case 'image': return html`<span class="link">[image${n.text ? ': ' + visible(n.text) : ''}]</span>${address(n.to)}`;
    case 'table': return html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="table">${n.kids.map(draw)}</table></div>`;
    case 'ol': return html`<ol start=${n.start}>${n.kids.map(draw)}</ol>`;
    case 'th': return n.kids.length ? html`<th scope="col">${n.kids.map(draw)}</th>` : html`<td></td>`;
  }
  return html`<${n.tag}>${n.kids.map(draw)}<//>`;
}

export function Markdown({ value, start = first }) {
  const [most, setMost] = useState(start);
  const s = String(value ?? '');
  const part = head(s, most);
  const nodes = useMemo(() => markdown(part), [part]);
  const left = s.length - part.length;
  return html`<div class="prose" dir="auto">${nodes.map(draw)}${left > 0 && html`<p class="cut">… <button type="button" class="quiet" onClick=${() => setMost(most + more)}>Show ${count(Math.min(left, more))} of the ${count(left)} characters that follow</button></p>`}</div>`;
}
