// How a process is: a word with a mark of its own shape, so that colour is not all that tells them apart.
import { html } from '../lib/html.js';
import { condition } from '../lib/fold.js';
import { line } from '../lib/visible.js';

const marks = { run: '▶', wait: '◔', hold: '❚❚', bad: '✖', done: '✔', ask: '?' };

export function Badge({ p }) {
  const c = condition(p);
  return html`<span class=${'badge ' + c.tone} title=${line(p.wait || p.exit?.reason || p.state, 300)}><span aria-hidden="true">${marks[c.tone]}</span> ${c.word}</span>`;
}
