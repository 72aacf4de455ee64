// The ledger: every attempt of every call, and what became of it.
import { html } from '../../lib/html.js';
import { duration } from '../../lib/format.js';
import { href } from '../../lib/router.js';
import { useCall } from '../../lib/ask.js';
import { Answer, Table } from '../../ui/answer.js';
import { Line } from '../../ui/text.js';

const tone = { done: 'run', failed: 'bad', running: 'wait', 'in doubt': 'bad', 'told unknown': 'hold', skipped: 'hold' };

export function Calls({ id, turn }) {
  const of = useCall('ledger', { target: id }, { on: turn, every: 2000 });
  return html`<${Answer} of=${of} draw=${(d) => html`<p>${Object.entries(d.counts || {}).map(([v, n], i) => html`${i ? ', ' : ''}${n} ${v}`)}</p>
    ${d.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}
    <${Table} label="Calls" empty="It has called nothing yet." rows=${d.calls.slice(-1000)} columns=${[
      { text: 'Step', num: true, cell: (c) => html`<a href=${href('process', { id, tab: 'steps' }, { step: c.step })}>${c.step}</a>` },
      { text: 'Tool', cell: (c) => html`<${Line} value=${c.tool} most=${60} />${c.attempt > 1 ? html` <small>attempt ${c.attempt}</small>` : ''}` },
      { text: 'Path', cell: (c) => html`<${Line} value=${c.path || ''} class="mono" />` }, { text: 'Effect', cell: (c) => c.effect || '' },
      { text: 'What became of it', cell: (c) => html`<span class=${'badge ' + (tone[c.verdict] || 'done')}>${c.verdict}</span> <${Line} value=${c.error || c.result || ''} most=${90} />` },
      { text: 'Took', num: true, cell: (c) => (c.duration_ns ? duration(c.duration_ns / 1e6) : '') },
      { text: 'Child', cell: (c) => c.child && html`<a href=${href('process', { id: c.child })}>${c.child.slice(0, 8)}</a>` },
    ]} />`} />`;
}
