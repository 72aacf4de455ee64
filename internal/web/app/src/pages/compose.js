// Workflows: the runs, and one of them as a graph, live.
import { html, useMemo } from '../lib/html.js';
import { find, procs } from '../lib/store.js';
import { condition, ended, outcome } from '../lib/fold.js';
import { cost, count, dollars, duration, moment } from '../lib/format.js';
import { call } from '../lib/api.js';
import { href } from '../lib/router.js';
import { actions, refused } from '../lib/actions.js';
import { line } from '../lib/visible.js';
import { useCall } from '../lib/ask.js';
import { workflow } from '../lib/workflow.js';
import { graph, path } from '../lib/drawtree.js';
import { ask } from '../ui/dialog.js';
import { said, failed } from '../ui/toast.js';
import { Answer, Facts, Table } from '../ui/answer.js';
import { Line, Text } from '../ui/text.js';

const tones = { succeeded: 'run', failed: 'bad', running: 'main', retrying: 'wait', paused: 'hold', suspended: 'hold', stopped: 'hold', skipped: 'done', waiting: 'done', expanded: 'done' };
const marks = { succeeded: '✔', failed: '✖', running: '▶', retrying: '↻', paused: '❚❚', suspended: '❚❚', stopped: '■', skipped: '–', waiting: '◔', expanded: '◔' };
const wide = 236, high = 64;

const State = ({ s }) => html`<span class=${'badge ' + (tones[s] || 'done')}><span aria-hidden="true">${marks[s] || ''}</span> ${s}</span>`;

function Runs() {
  const of = useCall('compose_list', { all: true }, { on: procs.value.turn, every: 2000 });
  return html`<h1>Workflows</h1><${Answer} of=${of} draw=${(d) => html`<${Table} label="Runs" empty="No workflow was run. Start one in a terminal: rnix compose up -f FILE" rows=${d.runs.toReversed()} columns=${[
    { text: 'PID', num: true, cell: (r) => r.pid }, { text: 'Run', cell: (r) => html`<a href=${href('compose', { id: r.uuid })}><${Line} value=${r.name || r.uuid.slice(0, 8)} most=${60} /></a> <small><${Line} value=${r.intent || ''} most=${80} /></small>` },
    { text: 'State', cell: (r) => html`${r.state} <small><${Line} value=${r.wait || (r.exit ? outcome(r.exit) : '')} most=${60} /></small>` },
    { text: 'Nodes', cell: (r) => Object.entries(r.counts || {}).map(([s, n]) => `${n} ${s}`).join(', ') },
    { text: 'Tokens', num: true, cell: (r) => (r.estimated ? '~' : '') + count(r.tokens_used) }, { text: 'Cost', num: true, cell: (r) => cost(r) },
    { text: 'Time', num: true, cell: (r) => duration(r.elapsed_ms) }, { text: 'Started', cell: (r) => moment(r.created_at) },
  ]} />`} />`;
}

async function down(run) {
  const a = await ask({ title: `Stop the run ${line(run.name || run.uuid, 40)}?`, danger: true, yes: 'Stop it',
    fields: [{ name: 'how', type: 'choice', label: 'How', value: 'pause', options: [{ value: 'pause', text: 'Pause all nodes; it can go on' }, { value: 'end', text: 'End all nodes' }] }] });
  if (!a) return;
  try {
    await call('compose_down', { target: run.uuid, pause: a.how === 'pause' });
    said(a.how === 'pause' ? 'Paused' : 'Ended');
  } catch (err) { failed(err); }
}

async function goOn(run, row, node) {
  const a = await ask({ title: node ? `Do ${line(node, 40)} again, and what follows it?` : `Let the run go on?`, yes: node ? 'Do it again' : 'Go on',
    body: html`<p>What has succeeded is not done again${node ? ', but for this node and those below it' : ''}.</p>` });
  if (!a) return;
  try {
    const r = await call('compose_resume', { target: run.uuid, ...(node ? { node } : {}) });
    said(`PID ${r.pid} resumed` + (r.redo?.length ? '; done again: ' + r.redo.join(', ') : ''));
  } catch (err) { failed(refused(err, row)); }
}

function Dag({ w, id }) {
  const shape = w.nodes.map((n) => n.key).join('\n') + w.edges.map((e) => e.from + '\n' + e.to).join('\n\n');
  const g = useMemo(() => graph(w.nodes, w.edges, wide, high), [shape]);
  const by = new Map(w.nodes.map((n) => [n.key, n]));
  return html`<div class="scroll drawing" tabindex="0" role="region" aria-label="Graph of the workflow"><svg width=${g.width + 4} height=${g.height + 4} viewBox=${`0 0 ${g.width + 4} ${g.height + 4}`}>
    ${g.lines.map((l) => html`<path class=${'edge' + (by.get(l.from)?.critical && by.get(l.to)?.critical ? ' critical' : '')} d=${path(l.points)}><title>${line(l.from, 40)} before ${line(l.to, 40)}</title></path>`)}
    ${g.boxes.map((b) => {
      const n = by.get(b.key), one = n.instances.length === 1 ? n.instances[0] : null;
      const to = one?.uuid ? href('process', { id: one.uuid }) : href('compose', { id }, { node: n.key });
      const below = n.instances.length > 1 ? `${n.done} of ${n.instances.length} done` : n.ms ? duration(n.ms) : '';
      return html`<a href=${to} key=${b.key} data-node=${b.key} data-state=${n.state}><g transform=${`translate(${b.x},${b.y})`} class=${'box ' + (tones[n.state] || 'done') + (n.critical ? ' critical' : '')}>
        <rect width=${wide} height=${high} rx="8" /><text x="10" y="23"><tspan class="mark">${marks[n.state] || ''}</tspan> <tspan class="strong">${line(n.key, 20)}</tspan>${n.critical ? ' ◆' : ''}</text>
        <text x="10" y="44" class="soft">${[n.instances.length > 1 && n.state === 'succeeded' ? '' : n.state, below, n.tokens ? count(n.tokens) + ' tokens' : ''].filter(Boolean).join(' · ').slice(0, 36)}</text></g></a>`;
    })}
  </svg></div>`;
}

function Run({ id, query }) {
  const row = find(id);
  const turn = procs.value.turn;
  const status = useCall('compose_status', { target: id }, { on: row && !ended(row) ? turn : row?.state, every: 700 });
  const plan = useCall('compose_plan', { target: id }, { on: row?.state });
  const over = status.data?.exit ? 'over' : '';
  const trace = useCall('trace', { target: id, limit: 2000 }, { on: over || Math.floor(turn / 20), every: 4000 });
  const critical = useMemo(() => new Set((trace.data?.spans || []).filter((s) => s.critical && s.kind === 'process').map((s) => s.uuid)), [trace.data]);
  const w = useMemo(() => plan.data && status.data && workflow(plan.data, status.data, critical), [plan.data, status.data, critical]);
  const only = query.get('node');
  return html`<${Answer} of=${status} draw=${(r) => html`
    <div class="head"><h1><span class="num">${r.pid}</span> <${Line} value=${r.name || 'workflow'} most=${60} /> <span class="badge">${row ? condition(row).word : r.state}</span></h1>
      <p class="intent"><${Line} value=${r.intent || r.path || ''} most=${300} /></p>
      <p class="glance"><span>${Object.entries(r.counts || {}).map(([s, n]) => `${n} ${s}`).join(', ')}</span><span>${count(r.tokens_used)} tokens${r.budget ? ' of ' + count(r.budget) : ''}</span><span>cost ${cost(r)}${r.budget_usd ? ' of ' + dollars(r.budget_usd) : ''}</span><span>${duration(r.elapsed_ms)}</span>${r.wait && html`<span class="why"><${Line} value=${r.wait} most=${200} /></span>`}</p>
      <div class="buttons" role="group" aria-label="What can be done to the run">${row && !ended(row) ? html`<button type="button" onClick=${() => down(r)}>Stop</button>${actions(row).filter((a) => a.name === 'budget').map((a) => html`<button type="button" onClick=${a.run}>${a.text}</button>`)}` : ''}
        ${!row || ended(row) || row.state === 'suspended' ? html`<button type="button" onClick=${() => goOn(r, row)}>Go on</button>` : ''}<a class="button" href=${href('process', { id, tab: 'timeline' })}>Timeline</a></div></div>
    <${Answer} of=${plan} draw=${() => w && html`<${Dag} w=${w} id=${id} />`} />
    <p><small>◆ is on the path that decided when the run ended${over ? '' : ', so far'}.</small></p>
    <h2>${only ? html`Instances of <${Line} value=${only} /> <a href=${href('compose', { id })}>all</a>` : 'Nodes'}</h2>
    <${Table} label="Nodes" rows=${(r.nodes || []).filter((n) => !only || n.name === only || n.name.startsWith(only + '['))} columns=${[
      { text: 'Node', cell: (n) => html`${n.uuid ? html`<a href=${href('process', { id: n.uuid })}><${Line} value=${n.name} most=${60} /></a>` : html`<${Line} value=${n.name} most=${60} />`} <small><${Line} value=${n.item || ''} most=${50} /></small>` },
      { text: 'State', cell: (n) => html`<${State} s=${n.state} /> <${Line} value=${n.why || (n.needs?.length ? 'after ' + n.needs.join(', ') : '')} most=${100} />` },
      { text: 'Attempt', num: true, cell: (n) => n.attempt || '' }, { text: 'PID', num: true, cell: (n) => n.pid || '' }, { text: 'Step', num: true, cell: (n) => n.step || '' },
      { text: 'Tokens', num: true, cell: (n) => count(n.tokens_used) }, { text: 'Cost', num: true, cell: (n) => cost(n) }, { text: 'Time', num: true, cell: (n) => (n.elapsed_ms ? duration(n.elapsed_ms) : '') },
      { text: '', cell: (n) => (['succeeded', 'failed', 'stopped', 'skipped'].includes(n.state) && (!row || ended(row)) ? html`<button type="button" class="quiet" onClick=${() => goOn(r, row, n.name)}>Do again</button>` : '') },
    ]} />
    ${r.result && html`<h2>Result</h2><${Text} value=${r.result} class="box" />`}
    <${Facts} facts=${[['File', r.path && html`<${Line} value=${r.path} class="mono" />`], ['Works in', r.work_dir && html`<${Line} value=${r.work_dir} class="mono" />`], ['UUID', html`<code>${r.uuid}</code>`]]} />`} />`;
}

function Compose({ params, query }) {
  return params.id ? html`<${Run} key=${params.id} id=${params.id} query=${query} />` : html`<${Runs} />`;
}

export default { name: 'compose', path: '/compose/:id?', title: 'Workflows', nav: 'Workflows', Page: Compose };
