// The history: every process that there is a record of, alive or not, with search.
import { html, useMemo, useRef, useEffect, useState } from '../lib/html.js';
import { procs, clock } from '../lib/store.js';
import { matches, misses, modelOf, fullModel, outcomeWhy, sorts, ended, task, took } from '../lib/fold.js';
import { cost, costWhy, count, moment } from '../lib/format.js';
import { line } from '../lib/visible.js';
import { href, go, route } from '../lib/router.js';
import { shown } from '../lib/keys.js';
import { useCall } from '../lib/ask.js';
import { actions } from '../lib/actions.js';
import { Answer } from '../ui/answer.js';
import { Rows } from '../ui/rows.js';
import { Line } from '../ui/text.js';
import { Badge } from '../ui/badge.js';
import { wide } from '../ui/shell.js';

const most = 5000;
const kinds = [{ value: '', text: 'All' }, { value: 'failed', text: 'Failed' }, { value: 'suspended', text: 'Suspended' }, { value: 'running', text: 'Running' }, { value: 'archived', text: 'Archived' }];
const is = { failed: (p) => p.exit && (p.exit.code ?? 0) !== 0, suspended: (p) => p.state === 'suspended', running: (p) => p.state === 'running' || p.state === 'created', archived: (p) => p.state === 'archived' };

function Row({ p, style, n }) {
  return html`<div role="row" aria-rowindex=${n + 2} class="row" style=${style} data-pid=${p.pid}>
    <span role="gridcell" class="num pid">${p.pid}</span>
    <span role="gridcell" class="what"><a class="title" href=${href('process', { id: p.uuid })}><${Line} value=${p.name || p.agent || p.kind || 'agent'} most=${60} class="name" /> <${Line} value=${task(p)} most=${160} class="intent" /></a></span>
    <span role="gridcell" class="state"><${Badge} p=${p} /> <${Line} value=${[ended(p) ? outcomeWhy(p.exit) : p.wait || p.exit?.reason, misses(p)].filter(Boolean).join(' · ')} most=${100} class="doing" /></span>
    <span role="gridcell" class="num step">${p.step}</span>
    <span role="gridcell" class="model" title=${line(fullModel(p), 200)}><${Line} value=${modelOf(p)} most=${60} /></span>
    <span role="gridcell" class="num tokens">${p.estimated ? '~' : ''}${count(p.tokens_used)}</span>
    <span role="gridcell" class="num cost" title=${costWhy(p)}>${cost(p)}</span>
    <span role="gridcell" class="num elapsed">${took({ at: clock(), ...p }, clock())}</span>
    <span role="gridcell" class="acts">${ended(p) || p.state === 'suspended' ? html`<small>${moment(p.updated_at || p.created_at)}</small>` : html`<small>now</small>`} ${actions({ at: clock(), ...p }).filter((a) => a.name === 'resume').map((a) => html`<button type="button" class="quiet" onClick=${a.run}>${a.text}</button>`)}</span>
  </div>`;
}

function History() {
  const query = route.value.query.get('q') || '', kind = route.value.query.get('is') || '';
  const [text, setText] = useState(query);
  const search = useRef();
  const of = useCall('list_procs', { all: true, limit: most }, { on: procs.value.turn, every: 3000 });
  useEffect(() => {
    const timer = setTimeout(() => { if (text !== query) go(href('history', {}, { q: text, is: kind }), true); }, 250);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    shown.value = [{ key: '/', text: 'search', run: () => search.current?.focus() }];
    return () => { shown.value = []; };
  }, []);
  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return (of.data?.procs || []).filter((p) => (!kind || is[kind]?.(p)) && matches(p, words)).sort((a, b) => sorts.pid(b) - sorts.pid(a));
  }, [of.data, text, kind]);
  const tall = wide.value ? 34 : 84;
  return html`<h1 class="sr">History</h1><div class="tools">
      <input ref=${search} type="search" aria-label="Search the history" placeholder="Search: name, intent, state, model, UUID …" value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${(e) => { if (e.key === 'Escape') setText(''); }} />
      <div class="choice" role="group" aria-label="Which">${kinds.map((k) => html`<button type="button" aria-pressed=${kind === k.value} onClick=${() => go(href('history', {}, { q: text, is: k.value }), true)}>${k.text}</button>`)}</div></div>
    <${Answer} of=${of} draw=${(d) => html`<div class="grid" role="grid" aria-label="History" aria-rowcount=${rows.length + 1}>
        <div role="row" class="row head" aria-rowindex="1">${[['pid', 'PID', 'num '], ['what', 'Process', ''], ['state', 'State', ''], ['step', 'Steps', 'num '], ['model', 'Model', ''], ['tokens', 'Tokens', 'num '], ['cost', 'Cost', 'num '], ['elapsed', 'Time', 'num '], ['acts', 'Last', '']].map(([c, t, n]) => html`<span role="columnheader" class=${n + c}>${t}</span>`)}</div>
        ${rows.length === 0 ? html`<p class="empty">No process matches.</p>` : html`<${Rows} count=${rows.length} height=${tall} role="rowgroup" tabindex="0" aria-label="Processes" draw=${(i, style) => html`<${Row} key=${rows[i].uuid} p=${rows[i]} style=${style} n=${i} />`} />`}
      </div><p class="foot">${rows.length} of ${d.procs?.length ?? 0}${d.hidden ? `; ${d.hidden} older ones are not here: rnix ps -a lists them` : ''}.</p>`} />`;
}

export default { name: 'history', path: '/history', title: 'History', nav: 'History', Page: History };
