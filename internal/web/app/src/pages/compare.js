// Several agents side by side: those with one task, or a process and its forks.
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { useCall } from '../lib/ask.js';
import { ended, fullModel, modelOf, outcome, outcomeWhy, stands, took } from '../lib/fold.js';
import { cost, costWhy, count, moment } from '../lib/format.js';
import { sumParts } from '../lib/family.js';
import { href } from '../lib/router.js';
import { clock, find, procs, second } from '../lib/store.js';
import { groups, peers, sharing } from '../lib/compare.js';
import { Answer, Facts, Table } from '../ui/answer.js';
import { Badge } from '../ui/badge.js';
import { Copy } from '../ui/copy.js';
import { Markdown } from '../ui/markdown.js';
import { Line } from '../ui/text.js';

const most = 12; // that stand side by side
const few = 12; // files that are named

// Removed says that a work tree is gone, and what is still known of it.
function Removed({ r }) {
  return html`<p class="removed">Its work tree was removed. ${r.branch ? html`Its branch <${Line} value=${r.branch} class="mono" /> is still in <${Line} value=${r.repo} class="mono" />, with ${r.commits === 1 ? '1 commit' : r.commits + ' commits'} at <code>${(r.head || '').slice(0, 10)}</code>.` : 'It has no branch any more.'}</p>
    <details><summary>What was kept of its files</summary><p>In a terminal: <code>${r.kept}</code> <${Copy} text=${r.kept} what="the command that lists what was kept" /></p></details>`;
}

function Files({ id, turn, shared }) {
  const of = useCall('diff_files', { target: id, stat: true, removed: true }, { on: turn, every: 3000 });
  const behind = of.on !== turn; // it is as it was before
  return html`<${Answer} of=${of} calm draw=${(d) => d.removed ? html`<${Removed} r=${d.removed} />` : html`<p>${d.files.length === 1 ? '1 file' : d.files.length + ' files'} changed${d.files.length ? html`, <a href=${href('process', { id, tab: 'files' })}>the differences</a>` : ''}${behind ? html` <small>so far; reading …</small>` : ''}</p>
    ${shared.length > 0 && html`<p class="problem">It shares its directory with ${shared.join(', ')}: these files may be the work of any of them.</p>`}
    ${d.files.length > 0 && html`<ul class="files">${d.files.slice(0, few).map((f) => html`<li key=${f.path}><${Line} value=${f.path} class="mono" /> <small>${f.binary ? 'binary' : `+${f.added || 0} −${f.deleted || 0}`}</small></li>`)}${d.files.length > few ? html`<li>and ${d.files.length - few} more</li>` : ''}</ul>`}`} />`;
}

function One({ id, places, place }) {
  second.value;
  const row = find(id);
  const over = useRef(false); // else it may have ended before the table had a row of it
  const turn = row ? `${row.state} ${row.step} ${row.tokens_used}` : over.current ? 'over' : String(procs.value.turn);
  const detail = useCall('get_proc_detail', { target: id }, { on: turn });
  over.current = !row && Boolean(detail.data && ended(detail.data));
  const pid = row?.pid || detail.data?.pid, dir = row?.work_dir || detail.data?.work_dir;
  useEffect(() => place(id, pid, dir), [id, pid, dir]);
  const sums = useCall('families', { targets: [id] }, { on: `${turn} ${procs.value.turn}`, every: 3000 });
  return html`<section class="one" aria-label=${'Process ' + (detail.data?.pid || id.slice(0, 8))}><${Answer} of=${detail} draw=${(d) => {
    const p = row || { ...d, at: clock() };
    const f = sums.data?.families[0];
    return html`<h2><a href=${href('process', { id })}>${p.pid} <${Line} value=${p.name || modelOf(p) || p.agent || 'agent'} most=${60} /></a> <${Badge} p=${p} /></h2>
      <${Facts} facts=${[
        ['Model', fullModel(p) && html`<${Line} value=${fullModel(p)} />`], ['Agent', p.agent && html`<${Line} value=${p.agent} />`],
        ['Steps', String(p.step)], ['Tokens', `${p.estimated ? '~' : ''}${count(p.tokens_used)}`], ['Cost', html`<span title=${costWhy(p)}>${cost(p)}</span>${costWhy(p) && html` <small>${costWhy(p)}</small>`}`], ['Time', took(p, clock()) + (stands(p) ? '' : ' so far')],
        ['With descendants', f?.with_descendants && sumParts(f.with_descendants).join(', ')], ['With all forks', f?.with_forks && sumParts(f.with_forks).join(', ')],
        ['End', ended(p) && html`${outcome(p.exit)} <${Line} value=${outcomeWhy(p.exit)} most=${200} />`], ['Failed calls', p.failed_calls_unknown ? 'unknown' : p.failed_calls > 0 && html`<b class="failed">${p.failed_calls}</b>`], ['Works in', p.work_dir && html`<${Line} value=${p.work_dir} class="mono" />`],
      ]} />
      <${Files} id=${id} turn=${turn} shared=${sharing(places, id)} />
      ${d.result && html`<details open><summary>Result</summary><${Markdown} value=${d.result} start=${4000} /></details>`}`;
  }} /></section>`;
}

// Tasks are those that several processes have, with what these have used together with all that they have started.
function Tasks({ list }) {
  const sets = list.map((g) => g.of.map((p) => p.uuid));
  const sums = useCall('families', sets.length ? { sets } : null, { on: procs.value.turn, every: 5000 }).data?.sums;
  const sum = (g) => sums?.[list.indexOf(g)];
  return html`<${Table} label="Tasks" empty="No two processes have the same task." rows=${list} columns=${[
    { text: 'Task', cell: (g) => html`<a href=${href('compare', {}, { of: g.of.slice(0, most).map((p) => p.uuid).join(',') })}><${Line} value=${g.intent} most=${160} /></a>` },
    { text: 'Processes', num: true, cell: (g) => html`${g.of.length}${sum(g)?.processes > g.of.length ? html` <small>${sum(g).processes} with descendants</small>` : ''}` }, { text: 'Models', cell: (g) => html`<${Line} value=${g.models.join(', ')} most=${120} />` },
    { text: 'Σ Tokens', num: true, cell: (g) => (sum(g) ? (sum(g).estimated ? '~' : '') + count(sum(g).tokens) : '…') }, { text: 'Σ Cost', num: true, cell: (g) => (sum(g) ? html`<span title=${costWhy(sum(g))}>${cost(sum(g))}</span>` : '…') },
    { text: 'Σ Failed calls', num: true, cell: (g) => (sum(g) ? html`${sum(g).failed_calls > 0 ? html`<b class="failed">${sum(g).failed_calls}</b>` : '0'}${sum(g).failed_calls_unknown > 0 ? '+?' : ''}` : '…') },
    { text: 'Last', cell: (g) => moment(g.last) },
  ]} />${list.length > 0 && html`<p class="foot">Σ: of all processes with this task and all their descendants, each once.</p>`}`;
}

// Choices are the tasks that several processes have.
function Choices() {
  const of = useCall('list_procs', { all: true, limit: 1000 }, { on: procs.value.rows.size, every: 3000 });
  return html`<h1>Side by side</h1><p>Agents with the same task. <a href=${href('start')}>Start</a> some with several models, or fork one.</p>
    <${Answer} of=${of} draw=${(d) => html`<${Tasks} list=${groups(d.procs || []).slice(0, 100)} />`} />`;
}

// Like shows those that have the same task as one.
function Like({ id }) {
  const of = useCall('list_procs', { all: true, limit: 1000 }, { on: procs.value.rows.size, every: 3000 });
  return html`<${Answer} of=${of} draw=${(d) => html`<${Beside} ids=${[...new Set([id, ...peers(d.procs || [], id).map((p) => p.uuid)])]} />`} />`;
}

function Compare({ query }) {
  const ids = [...new Set((query.get('of') || '').split(',').filter(Boolean))], like = query.get('like');
  if (ids.length) return html`<${Beside} ids=${ids} />`;
  return like ? html`<${Like} id=${like} />` : html`<${Choices} />`;
}

function Beside({ ids }) {
  const first = useCall('get_proc_detail', { target: ids[0] }).data;
  const [places, setPlaces] = useState(new Map());
  const place = (id, pid, dir) => { setPlaces((all) => new Map(all).set(id, { pid, dir })); };
  const shown = new Map([...places].filter(([id]) => ids.includes(id)));
  return html`<h1>Side by side</h1>${first && html`<p><${Line} value=${first.intent} most=${400} /></p>`}
    <div class="beside">${ids.slice(0, most).map((id) => html`<${One} key=${id} id=${id} places=${shown} place=${place} />`)}</div>
    ${ids.length > most && html`<p>${ids.length - most} more are not shown.</p>`}
    ${ids.length === 1 && html`<p class="empty">No other agent has had this task. <a href=${href('start')}>Start</a> it with several models, or fork this one.</p>`}<p><a href=${href('compare')}>Others with the same task</a></p>`;
}

export default { name: 'compare', path: '/compare', title: 'Side by side', nav: 'Side by side', Page: Compare };
