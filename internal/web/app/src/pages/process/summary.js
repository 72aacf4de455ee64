// What a process is, has and was given.
import { html } from '../../lib/html.js';
import { age, bytes, count, dollars, moment, spent } from '../../lib/format.js';
import { href } from '../../lib/router.js';
import { useCall } from '../../lib/ask.js';
import { clock, second } from '../../lib/store.js';
import { ended, fullModel, labels, misses, outcome, outcomeWhy } from '../../lib/fold.js';
import { Answer, Facts, Table } from '../../ui/answer.js';
import { Markdown } from '../../ui/markdown.js';
import { Line, Text } from '../../ui/text.js';
import { holds } from '../../lib/budget.js';
import { doubtCommand } from '../../lib/advice.js';

const list = (l) => (l?.length ? l.join(', ') : '');

function Budget({ id, turn }) {
  const of = useCall('budget', { target: id }, { on: turn });
  const limited = (b) => b.tokens.limit !== null || b.usd.limit !== null;
  return html`<${Answer} of=${of} draw=${(d) => html`<h2>Budget</h2>${holds(d.budgets, id) && html`<p>${holds(d.budgets, id)}</p>`}
    ${d.budgets.some(limited) && html`<${Table} label="Budgets" rows=${d.budgets.filter((b) => limited(b) || b.uuid === id)} columns=${[
      { text: 'Of', cell: (b) => html`<a href=${href('process', { id: b.uuid })}>${b.pid} <${Line} value=${b.name || b.intent} most=${40} /></a>${b.above ? html` <small>above it</small>` : ''}` },
      { text: 'Tokens used', num: true, cell: (b) => count(b.tokens.used) },
      { text: 'reserved', num: true, cell: (b) => count(b.tokens.reserved) },
      { text: 'of', num: true, cell: (b) => (b.tokens.limit === null ? 'no limit' : count(b.tokens.limit)) },
      { text: 'Dollars used', num: true, cell: (b) => spent(b.usd.used, b.tokens.used, b.unpriced_tokens) },
      { text: 'of', num: true, cell: (b) => (b.usd.limit === null ? 'no limit' : dollars(b.usd.limit)) },
    ]} />`}`} />`;
}

export function Summary({ id, p, detail, turn }) {
  second.value;
  const d = detail.data;
  const parent = p.parent_uuid && html`<a href=${href('process', { id: p.parent_uuid })}>${p.ppid || p.parent_uuid.slice(0, 8)}</a>`;
  return html`${(d?.result || p.exit) && html`<h2>${!p.exit ? 'Result' : ended(p) ? 'How it ended' : 'Why it is suspended'}</h2>
      ${p.exit && html`<p>${ended(p) && html`<b>${outcome(p.exit)}</b> `}<${Line} value=${ended(p) ? outcomeWhy(p.exit) : p.exit.reason} most=${400} />${misses(p) && html` · <b class="failed">${misses(p)}</b>`}</p>`}
      ${d?.result && html`<div class="box" tabindex="0"><${Markdown} value=${d.result} /></div>`}`}
    ${d?.plan && html`<h2>Plan</h2><div class="box" tabindex="0"><${Markdown} value=${d.plan} /></div>`}
    ${d?.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}
    ${d?.interrupted?.length > 0 && html`<h2>Interrupted</h2><p>It is not known whether these calls have run. When it is resumed, the agent is told so. To run them again instead, or to skip them, in a terminal: <code>${doubtCommand(p, 'retry')}</code> or <code>${doubtCommand(p, 'skip')}</code></p>
      <${Table} label="Interrupted calls" rows=${d.interrupted} columns=${[{ text: 'Step', num: true, cell: (c) => c.step }, { text: 'Tool', cell: (c) => html`<${Line} value=${c.tool} />` }, { text: 'Path', cell: (c) => html`<${Line} value=${c.path} />` }]} />`}
    <h2>What it is</h2>
    <${Facts} facts=${[
      ['Intent', html`<${Text} value=${d?.intent ?? p.intent} start=${1500} />`],
      ['UUID', html`<code>${p.uuid}</code>`], ['Parent', parent], ['Agent', p.agent && html`<${Line} value=${p.agent} />`], ['Kind', p.kind],
      ['Model', fullModel(p) && html`<${Line} value=${fullModel(p)} />`],
      ['Works in', p.work_dir && html`<${Line} value=${p.work_dir} class="mono" />`], ['Its files', d?.dir && html`<${Line} value=${d.dir} class="mono" />`],
      ['Started', moment(p.created_at)], ['Paused since', p.paused_at && moment(p.paused_at)], ['Resumes', p.wait_until && moment(p.wait_until)],
      ['No progress since', p.suspect_since && moment(p.suspect_since)],
      ['Labels', p.labels && html`<${Text} value=${labels(p)} />`], ['Groups', list(p.groups)], ['May use', d && (d.allowed_devices ? list(d.allowed_devices) || 'nothing' : 'everything')], ['May not use', list(d?.denied_devices)],
      ['Sandbox', p.sandbox && (p.sandbox === 'off' ? html`<b>off: its commands are not confined</b>` : `${p.sandbox}, ${{ open: 'network open', hosts: 'network to hosts' }[p.net] || 'no network'}`)],
      ['MCP servers', list(d?.mcp_mounts)], ['Skills', list(d?.skills)], ['Tools', list(d?.tools)],
      ['Blocks', list(p.blocked_signals)], ['Signals that wait', list(p.pending_signals)], ['Told at SIGINT', p.on_interrupt && html`<${Line} value=${p.on_interrupt} />`],
    ]} />
    <${Budget} id=${id} turn=${turn} />
    <h2>Processes of the operating system</h2>
    <${Table} label="Processes of the operating system" empty="None." rows=${p.os_children || []} columns=${[
      { text: 'PID', num: true, cell: (c) => c.pid }, { text: 'Kind', cell: (c) => c.kind }, { text: 'Command', cell: (c) => html`<${Line} value=${c.command} class="mono" />` },
      { text: 'For', num: true, cell: (c) => age(Math.max(0, clock() - Date.parse(c.started))) }, { text: 'Memory', num: true, cell: (c) => (c.rss_bytes ? bytes(c.rss_bytes) : '–') },
    ]} />`;
}
