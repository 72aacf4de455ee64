// A process, alive or dead: what it is, and a tab for each way of looking at it.
import { html, useEffect, useRef } from '../lib/html.js';
import { find, clock, procs, second } from '../lib/store.js';
import { elapsed, ended, fullModel, outcomeWhy } from '../lib/fold.js';
import { age, cost, count, moment } from '../lib/format.js';
import { href, go } from '../lib/router.js';
import { actions, addBudget, who } from '../lib/actions.js';
import { sumParts } from '../lib/family.js';
import { away } from '../lib/advice.js';
import { shown } from '../lib/keys.js';
import { useCall } from '../lib/ask.js';
import { Answer } from '../ui/answer.js';
import { Line } from '../ui/text.js';
import { asked } from '../lib/asks.js';
import { Cards } from '../ui/asks.js';
import { Badge } from '../ui/badge.js';
import { Copy } from '../ui/copy.js';
import { Summary } from './process/summary.js';
import { Timeline } from './process/timeline.js';
import { Steps } from './process/steps.js';
import { Conversation } from './process/conversation.js';
import { Context } from './process/context.js';
import { Files } from './process/files.js';
import { Calls } from './process/calls.js';
import { Log } from './process/log.js';
import { Lineage } from './process/lineage.js';

// tabs are the ways of looking, in the order of the keys 1 to 9.
const tabs = [
  { name: 'conversation', text: 'Conversation', View: Conversation },
  { name: 'summary', text: 'Summary', View: Summary },
  { name: 'timeline', text: 'Timeline', View: Timeline },
  { name: 'steps', text: 'Steps', View: Steps },
  { name: 'context', text: 'Context', View: Context },
  { name: 'files', text: 'Files', View: Files },
  { name: 'calls', text: 'Calls', View: Calls },
  { name: 'log', text: 'Log', View: Log },
  { name: 'lineage', text: 'Lineage', View: Lineage },
];

// Together says what a process has used with its descendants, and with all forks of its start, if it has any.
function Together({ id, turn }) {
  const f = useCall('families', { targets: [id] }, { on: `${turn} ${procs.value.turn}`, every: 3000 }).data?.families[0];
  const line = (of, l) => l && html`<p class="glance family"><span>${of}: ${sumParts(l)[0]}</span>${sumParts(l).slice(1).map((t) => html` <span>${t}</span>`)}</p>`;
  return html`${line('with its descendants', f?.with_descendants)}${line('with all forks of its start', f?.with_forks)}`;
}

function Head({ p, id, tab }) {
  second.value;
  const now = clock();
  const acts = actions(p).filter((a) => tab !== 'conversation' || a.name !== 'steer'); // there is a field for it
  const nav = useRef();
  useEffect(() => { // on a phone not all of them are in sight
    const a = nav.current.querySelector('[aria-current]');
    if (a) nav.current.scrollLeft = a.offsetLeft - nav.current.offsetLeft - (nav.current.clientWidth - a.offsetWidth) / 2;
  }, [tab]);
  return html`<div class="head">
    <h1><span class="num">${p.pid}</span> <${Line} value=${p.name || p.agent || p.kind || 'agent'} most=${60} /> <${Badge} p=${p} /></h1>
    <p class="intent"><${Line} value=${p.intent} most=${400} /></p>
    <p class="glance">
      <span>step ${p.step}${p.max_steps ? '/' + p.max_steps : ''}</span>
      <span>${p.estimated ? '~' : ''}${count(p.tokens_used)} tokens</span>
      <span>cost ${cost(p)}</span>
      <span>${age(elapsed(p, now))}</span>
      ${fullModel(p) && html`<span><${Line} value=${fullModel(p)} most=${80} /></span>`}
      <span>since ${moment(p.created_at)}</span>
      ${p.wait && html`<span class="why"><${Line} value=${p.wait} most=${200} /></span>`}
      ${p.doing && !p.wait && html`<span><${Line} value=${p.doing.tool || 'asking the model'} most=${80} /> for ${age(Math.max(0, now - Date.parse(p.doing.since)))}</span>`}
    </p>
    ${ended(p) && outcomeWhy(p.exit) && html`<p class="problem outcome"><${Line} value=${outcomeWhy(p.exit)} most=${1000} /></p>`}
    ${away(p).map((d) => html`<p class="without">Works without the MCP server <${Line} value=${d.text} most=${400} />. To start it again, in a terminal: <code>${d.command}</code> <${Copy} text=${d.command} what="the command that starts it again" /></p>`)}
    <${Together} id=${id} turn=${`${p.state} ${p.step} ${p.tokens_used}`} />
    <div class="buttons" role="group" aria-label=${'What can be done to ' + who(p)}>
      ${acts.map((a) => html`<button type="button" class=${a.danger ? 'danger' : ''} onClick=${a.run}>${a.text}</button>`)}
      ${p.intent && !p.kind && html`<a class="button" href=${href('compare', {}, { like: id })} title="Agents that have the same task">Side by side</a>`}
      ${p.kind === 'compose' && html`<a class="button" href=${href('compose', { id })}>Workflow</a>`}
    </div>
    <nav class="tabs" ref=${nav} aria-label="Ways of looking">${tabs.map((t) => html`<a href=${href('process', { id, tab: t.name })} aria-current=${t.name === tab ? 'page' : undefined}>${t.text}</a>`)}</nav>
  </div>`;
}

// toField leads to where a person says something.
function toField(id) {
  const field = document.getElementById('say');
  if (field) return field.focus();
  go(href('process', { id }));
  setTimeout(() => document.getElementById('say')?.focus(), 300); // when it is there
}

function Process({ params, query }) {
  const { id } = params;
  const row = find(id);
  // What it looks like on disk is asked for once, and again when the table says that it has changed. The table does not have what has ended, and a run that
  // begins and ends between two looks at it leaves no trace there: so it is asked for every third second then.
  const detail = useCall('get_proc_detail', { target: id }, { on: row ? `${row.state} ${row.step} ${row.tokens_used} ${row.wait || ''}` : `${Math.floor(second.value / 3)}` });
  const found = row || (detail.data && { ...detail.data, at: clock() });
  const p = found && asked.value.has(id) ? { ...found, asked: true } : found;
  const tab = params.tab || (p?.kind ? 'summary' : 'conversation');
  const here = useRef();
  here.current = p;
  useEffect(() => {
    const on = (name) => () => here.current && actions(here.current).find((a) => a.name === name)?.run();
    shown.value = [
      ...tabs.map((t, i) => ({ key: String(i + 1), text: t.text.toLowerCase(), run: () => go(href('process', { id, tab: t.name })) })),
      { key: 'p', text: 'pause it, with its descendants', run: on('pause') },
      { key: 'R', text: 'resume it', run: on('resume') },
      { key: 's', text: 'say something to it', run: () => toField(id) },
      { key: 'F', text: 'fork it', run: on('fork') },
      { key: 'b', text: 'raise its budget', run: () => here.current && addBudget(here.current) },
      { key: 'K', text: 'end it', run: on('kill') },
    ];
    return () => { shown.value = []; };
  }, [id]);
  if (!p) return html`<h1>Process</h1><${Answer} of=${detail} draw=${() => null} />`;
  const { View } = tabs.find((t) => t.name === tab) || tabs[0];
  const turn = `${p.state} ${p.step} ${p.tokens_used} ${ended(p)}`;
  return html`<${Head} p=${p} id=${id} tab=${tab} /><${Cards} of=${id} /><section class=${'view tab-' + tab} aria-label=${tab}><${View} key=${id + tab + (tab === 'conversation' ? query.get('step') || '' : '')} id=${id} p=${p} detail=${detail} query=${query} turn=${turn} /></section>`;
}

// Page has a component for each process: nothing that was known of one is shown of another.
const Page = (props) => html`<${Process} key=${props.params.id} ...${props} />`;

export default { name: 'process', path: '/process/:id/:tab?', title: 'Process', Page };
