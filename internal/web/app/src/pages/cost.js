// What agents have used: by day, agent, model and process.
import { html } from '../lib/html.js';
import { procs } from '../lib/store.js';
import { count, cost } from '../lib/format.js';
import { href, go } from '../lib/router.js';
import { useCall } from '../lib/ask.js';
import { Answer, Table } from '../ui/answer.js';
import { Line } from '../ui/text.js';

const ways = [{ by: 'day', text: 'By day' }, { by: 'agent', text: 'By agent' }, { by: 'model', text: 'By model' }, { by: 'process', text: 'By process' }];
const spans = [{ days: 0, text: 'All' }, { days: 30, text: '30 days' }, { days: 7, text: '7 days' }, { days: 1, text: 'Today' }];

function Cost({ query }) {
  const by = ways.some((w) => w.by === query.get('by')) ? query.get('by') : 'day';
  const days = Number(query.get('days')) || 0;
  const since = days ? new Date(Date.now() - (days - 1) * 86400000).toISOString().slice(0, 10) + 'T00:00:00Z' : undefined;
  const of = useCall('cost', { by, ...(since ? { since } : {}) }, { on: procs.value.turn, every: 5000 });
  const to = (more) => go(href('cost', {}, { by, days: days || undefined, ...more }), true);
  return html`<h1>Cost</h1>
    <div class="tools"><div class="choice" role="group" aria-label="By what">${ways.map((w) => html`<button type="button" aria-pressed=${w.by === by} onClick=${() => to({ by: w.by })}>${w.text}</button>`)}</div>
      <div class="choice" role="group" aria-label="Since when">${spans.map((s) => html`<button type="button" aria-pressed=${s.days === days} onClick=${() => to({ days: s.days || undefined })}>${s.text}</button>`)}</div></div>
    <${Answer} of=${of} draw=${(d) => {
      const most = Math.max(...d.lines.map((l) => l.cost_usd ?? 0), 0), mostTokens = Math.max(...d.lines.map((l) => l.tokens), 1);
      const share = (l) => (most > 0 ? (l.cost_usd ?? 0) / most : l.tokens / mostTokens);
      const lines = by === 'day' ? d.lines.toReversed() : d.lines;
      return html`<dl class="totals"><div><dt>Cost</dt><dd>${cost(d.total)}</dd></div><div><dt>Tokens</dt><dd>${d.total.estimated ? '~' : ''}${count(d.total.tokens)}</dd></div><div><dt>Answers</dt><dd>${count(d.total.answers)}</dd></div><div><dt>Processes</dt><dd>${count(d.total.processes)}</dd></div></dl>
        ${d.total.unpriced_tokens ? html`<p>${count(d.total.unpriced_tokens)} tokens have no known price and are in no sum of dollars; add their models to <code>prices.yaml</code>, see <code>rnix cost --help</code>.</p>` : ''}
        <${Table} label=${'Cost ' + by} empty="Nothing was used." rows=${lines.slice(0, 1000)} columns=${[
          { text: ways.find((w) => w.by === by).text.slice(3), cell: (l) => (by === 'process' ? html`<a href=${href('process', { id: l.uuid })}>${l.pid} <${Line} value=${l.name || l.intent || l.key} most=${60} /></a>` : html`<${Line} value=${l.key || 'none'} most=${80} />`) },
          { text: 'Cost', num: true, cell: cost }, { text: '', cell: (l) => html`<span class="meter" aria-hidden="true"><span style=${{ width: share(l) * 100 + '%' }}></span></span>` },
          { text: 'Tokens', num: true, cell: (l) => (l.estimated ? '~' : '') + count(l.tokens) }, { text: 'in', num: true, cell: (l) => count(l.input_tokens) }, { text: 'out', num: true, cell: (l) => count(l.output_tokens) },
          { text: 'from caches', num: true, cell: (l) => count(l.cache_read_tokens) }, { text: 'Answers', num: true, cell: (l) => count(l.answers) }, { text: 'Processes', num: true, cell: (l) => count(l.processes) },
        ]} />`;
    }} />`;
}

export default { name: 'cost', path: '/cost', title: 'Cost', nav: 'Cost', Page: Cost };
