// The overview: every process, how it is and why, live.
import { Component } from 'preact';
import { html, useMemo, useEffect, useRef, useState } from '../lib/html.js';
import { procs, totals, seq, hidden, everything, want, clock, second } from '../lib/store.js';
import { arrange, ended, ending, fullModel, modelOf, paused, task, took } from '../lib/fold.js';
import { age, cost, costWhy, count, dollars, moment } from '../lib/format.js';
import { line } from '../lib/visible.js';
import { href, go, route } from '../lib/router.js';
import { actions, addBudget, who } from '../lib/actions.js';
import { shown } from '../lib/keys.js';
import { asked } from '../lib/asks.js';
import { waits } from '../lib/asked.js';
import { byUUID, short, sumParts } from '../lib/family.js';
import { useCall } from '../lib/ask.js';
import { callsNow } from '../lib/traffic.js';
import { look, usage } from '../lib/usage.js';
import { series } from '../lib/curve.js';
import { Chart } from '../ui/chart.js';
import { Rows } from '../ui/rows.js';
import { Line } from '../ui/text.js';
import { Badge } from '../ui/badge.js';
import { wide } from '../ui/shell.js';

const columns = [
  { name: 'pid', text: 'PID', num: true },
  { name: 'name', text: 'Process' },
  { name: 'state', text: 'State' },
  { name: 'step', text: 'Step', num: true },
  { name: 'model', text: 'Model' },
  { name: 'tokens', text: 'Tokens', num: true },
  { name: 'cost', text: 'Cost', num: true },
  { name: 'elapsed', text: 'Time', num: true },
];

// useEnded counts those that have ended, and how many of them failed: asked for when others are listed, or counted, than before.
function useEnded() {
  const t = totals.value;
  return useCall('list_procs', { all: true, limit: 1 }, { on: [t.running, t.waiting, t.suspended, [...procs.value.rows.values()].reduce((n, p) => Math.max(n, p.pid), 0)].join(), every: 3000 }).data?.ended;
}

function Totals({ ended: e, failed }) {
  const t = totals.value, day = new Date(clock()).toISOString().slice(0, 10);
  const used = useCall('cost', { by: 'model', since: day + 'T00:00:00Z' }, { on: procs.value.turn, every: 5000 }).data; // also of what has ended
  const unpriced = (used?.lines || []).filter((l) => l.unpriced_tokens > 0).map((l) => l.key);
  const cells = [['Running', t.running, 'run'], ['Waiting', t.waiting, 'wait'], ['Suspended', t.suspended, 'hold'],
    ['Failed', e ? e.failed && html`<button type="button" class="quiet" title="Show those that have ended without success" onClick=${failed}>${e.failed}</button>` : '…', e?.failed ? 'bad' : ''],
    ['Tokens today', used ? (used.total.estimated ? '~' : '') + count(used.total.tokens) : '…'], ['Cost today', used ? html`<span title=${costWhy({ ...used.total, unpriced_models: unpriced })}>${cost(used.total)}</span>` : '…']];
  return html`<dl class="totals" data-seq=${seq.value}>${cells.map(([name, value, tone]) => html`<div class=${value && tone ? tone : ''}><dt title=${name.endsWith('today') ? 'since midnight, UTC' : undefined}>${name}</dt><dd>${value ?? 0}</dd></div>`)}</dl>`;
}

// Traffic says which providers are in use, and where calls wait for a place.
function Traffic() {
  second.value;
  const list = useCall('provider_calls', {}, { on: procs.value.turn, every: 2000 }).data?.providers || [];
  return list.length > 0 && html`<p class="traffic">${list.slice(0, 6).map((c) => html`<span class=${c.waiting ? 'waits' : ''}><${Line} value=${c.provider} most=${40} />: ${callsNow(c, clock())}</span> `)}${list.length > 6 ? html`<a href=${href('system')}>and ${list.length - 6} more</a>` : ''}</p>`;
}

const span = 30 * 60; // seconds that the curves show

function Curves() {
  useEffect(() => look(), []);
  second.value; // they move on when nothing is used
  const { curve, read } = usage.value;
  const step = Math.floor(clock() / 1000 / 5);
  const s = useMemo(() => series(curve, clock() / 1000, span), [usage.value, step]);
  const when = s.since ? 'since ' + moment(s.since * 1000) : 'in the last 30 minutes'; // the daemon does not remember everything
  const all = (s.since ? 'in steps that ended ' : 'in all ') + when;
  const lost = curve.lost ? `; ${count(curve.lost)} events came too fast to count` : '';
  return html`<div class="curves">
    <${Chart} title="Tokens per minute" text=${read ? `${count(s.lately)} now, ${count(s.sum)} ${all}${lost}` : 'reading …'} x=${s.x} y=${s.tokens} unit=${count} ink="--link" />
    <${Chart} title="Dollars per minute" text=${read ? (s.dollars || !s.sum ? `${dollars(s.spent)} now, ${dollars(s.dollars)} ${all}` : `none known ${when}`) : 'reading …'} x=${s.x} y=${s.usd} unit=${dollars} ink="--run" />
  </div>`;
}

// doing says what a process has in hand or waits for, and for how long it has.
function doing(p, now) {
  const since = (at) => (at ? ' · ' + age(Math.max(0, now - Date.parse(at))) : '');
  if (waits(p)) return p.wait + since(p.wait_since);
  if (ended(p)) return ending(p);
  if (p.state === 'suspended') return !paused(p) ? p.wait || '' : since(p.paused_at).replace(' · ', 'for ');
  if (p.wait_until) return `${p.wait} · ${age(Math.max(0, Date.parse(p.wait_until) - now))} more`;
  if (p.doing) return (p.doing.tool || 'model') + (p.doing.calls > 1 ? ` (${p.doing.calls} at once)` : '') + since(p.doing.since);
  return p.wait ? p.wait + since(p.wait_since) : '';
}

// A row is drawn again when its process, its place in the tree or the second has changed.
class Row extends Component {
  shouldComponentUpdate(next) {
    const a = this.props, b = next;
    return a.row.p !== b.row.p || a.now !== b.now || a.here !== b.here || a.top !== b.top || a.row.depth !== b.row.depth || a.row.kids !== b.row.kids || a.row.open !== b.row.open || a.row.dim !== b.row.dim || a.row.level !== b.row.level || a.asked !== b.asked || a.sum !== b.sum;
  }

  render({ row, place, here, pick, toggle, now, asked: is, sum, why }) {
    return drawRow(row, is ? { ...row.p, asked: true } : row.p, place, here, pick, toggle, now, sum, why);
  }
}

function drawRow(row, p, place, here, pick, toggle, now, sum, why) {
  const asks = p.asked || waits(p);
  const to = href('process', { id: p.uuid });
  const title = html`<${Line} value=${p.name || p.agent || p.kind || 'agent'} most=${60} class="name" />${sum ? html` <small class="sum" title=${why}><span aria-hidden="true">Σ</span><span class="sr">with its descendants</span> ${sum}</small>` : ''} <${Line} value=${task(p)} most=${160} class="intent" />${p.sandbox === 'off' && !p.kind ? html` <small title="Its commands are not confined">sandbox off</small>` : ''}`;
  return html`<div role="row" aria-rowindex=${row.n + 2} aria-selected=${here} aria-level=${row.level} aria-expanded=${row.kids ? row.open : undefined}
      class=${'row' + (here ? ' here' : '') + (row.dim ? ' dim' : '')} style=${place} onMouseDown=${pick} data-pid=${p.pid}>
    <span role="gridcell" class="num pid">${p.pid}</span>
    <span role="gridcell" class="what" style=${{ paddingLeft: Math.min(row.depth, 12) * 14 + 'px' }}>
      ${row.kids > 0 ? html`<button type="button" class="twist" tabindex="-1" aria-label=${(row.open ? 'Close ' : 'Open ') + who(p)} onClick=${toggle}>${row.open ? '▾' : '▸'}</button>` : html`<span class="twist"></span>`}
      ${to ? html`<a href=${to} tabindex="-1" class="title" title=${line(p.intent || '', 400)}>${title}</a>` : html`<span class="title">${title}</span>`}
    </span>
    <span role="gridcell" class="state" title=${line(doing(p, now), 400)}><${Badge} p=${p} /> <${Line} value=${doing(p, now)} most=${120} class="doing" /></span>
    <span role="gridcell" class="num step">${p.step}${p.max_steps ? html`<small>/${p.max_steps}</small>` : ''}</span>
    <span role="gridcell" class="model" title=${line(fullModel(p), 200)}><${Line} value=${modelOf(p)} most=${60} /></span>
    <span role="gridcell" class="num tokens">${p.estimated ? '~' : ''}${count(p.tokens_used)}</span>
    <span role="gridcell" class="num cost" title=${costWhy(p)}>${cost(p)}</span>
    <span role="gridcell" class="num elapsed">${took(p, now)}</span>
    <span role="gridcell" class="acts">${asks && html`<a class="button main" href=${to} tabindex=${here ? 0 : -1} aria-label=${'Answer ' + who(p)}>Answer</a>`}${actions(p).filter((a) => a.name !== 'budget' && a.name !== 'fork' && !(asks && a.name === 'steer')).map((a) => html`<button type="button" tabindex=${here ? 0 : -1} class=${a.danger ? 'quiet danger' : 'quiet'} aria-label=${a.text + ' ' + who(p)} onClick=${a.run}>${a.text}</button>`)}</span>
  </div>`;
}

// saved keeps how the table is looked at, between visits.
const saved = 'rnix-overview';
function load() {
  try {
    return { tree: true, sort: 'pid', down: false, ...JSON.parse(localStorage.getItem(saved)) };
  } catch {
    return { tree: true, sort: 'pid', down: false };
  }
}

function Overview() {
  const [view, setView] = useState(load);
  const [closed, setClosed] = useState(() => new Set());
  const [query, setQuery] = useState(route.value.query.get('q') || '');
  const [at, setAt] = useState('');
  const search = useRef(), grid = useRef();
  useEffect(() => localStorage.setItem(saved, JSON.stringify(view)), [view]);

  const { rows: all, turn } = procs.value;
  const rows = useMemo(() => arrange(all, { ...view, query, ended: everything.value, closed }), [turn, view, query, closed, everything.value]);
  second.value; // ages go on when nothing else happens
  const now = Math.floor(clock() / 1000) * 1000; // seconds are enough, and rows of which nothing changed are left alone
  const families = useCall('families', { all: everything.value }, { on: turn, every: 5000 }).data; // also of what has ended and is not listed
  const sums = useMemo(() => byUUID(families), [families]);
  const gone = useEnded();
  const showFailed = () => {
    want(true);
    setQuery('failed');
  };
  const place = rows.findIndex((r) => r.p.uuid === at);
  const focus = place < 0 ? 0 : place;

  const move = (to) => {
    const r = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (r) setAt(r.p.uuid);
  };
  const toggle = (uuid, open) => {
    const next = new Set(closed);
    if (open ?? next.has(uuid)) next.delete(uuid);
    else next.add(uuid);
    setClosed(next);
  };
  // The keys act on the row as it is when one is pressed.
  const now_ = useRef();
  now_.current = { row: rows[focus], rows, focus, at };
  useEffect(() => {
    const on = (name) => () => {
      const { row } = now_.current;
      if (row && now_.current.at) actions(row.p).find((a) => a.name === name)?.run();
    };
    shown.value = [
      { key: '/', text: 'search', run: () => search.current.focus() },
      { key: 't', text: 'tree or list', run: () => setView((v) => ({ ...v, tree: !v.tree })) },
      { key: 'e', text: 'show those that have ended, or not', run: () => want(!everything.value) },
      { key: 'p', text: 'pause the chosen one, with its descendants', run: on('pause') },
      { key: 'R', text: 'resume the chosen one', run: on('resume') },
      { key: 's', text: 'say something to the chosen one', run: on('steer') },
      { key: 'b', text: 'raise its budget', run: () => now_.current.at && now_.current.row && addBudget(now_.current.row.p) },
      { key: 'F', text: 'fork it', run: on('fork') },
      { key: 'K', text: 'end the chosen one', run: on('kill') },
    ];
    return () => { shown.value = []; };
  }, []);

  const keys = (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[e.key];
    const row = rows[focus];
    if (by) move(place < 0 ? 0 : focus + by);
    else if (e.key === 'Enter' && row && e.target === grid.current) go(href('process', { id: row.p.uuid }));
    else if (e.key === 'ArrowLeft' && row) toggle(row.p.uuid, false);
    else if (e.key === 'ArrowRight' && row) toggle(row.p.uuid, true);
    else return;
    e.preventDefault();
  };
  const order = (name) => setView((v) => ({ ...v, sort: name, down: v.sort === name ? !v.down : ['tokens', 'cost', 'elapsed'].includes(name) }));
  const tall = wide.value ? 34 : 84;

  return html`<h1 class="sr">Overview</h1>
    <div class="top"><${Totals} ended=${gone} failed=${showFailed} />${wide.value && html`<${Curves} />`}</div>
    <${Traffic} />
    <div class="tools">
      <input ref=${search} type="search" aria-label="Search processes" placeholder=${wide.value ? 'Search: name, intent, state, model …' : 'Search'} value=${query} onInput=${(e) => setQuery(e.target.value)}
        onKeyDown=${(e) => { if (e.key === 'Escape') { setQuery(''); grid.current?.focus(); } }} />
      <div class="choice" role="group" aria-label="Form">
        <button type="button" aria-pressed=${view.tree} onClick=${() => setView({ ...view, tree: true })}>Tree</button>
        <button type="button" aria-pressed=${!view.tree} onClick=${() => setView({ ...view, tree: false })}>List</button>
      </div>
      <label class="check"><input type="checkbox" checked=${everything.value} onChange=${(e) => want(e.target.checked)} /> ended ones too${gone?.count > 0 && html` <small>(${gone.count})</small>`}</label>
      <label class="sorter">Order <select value=${view.sort} onChange=${(e) => order(e.target.value)}>${columns.map((c) => html`<option value=${c.name}>${c.text}</option>`)}</select></label>
    </div>
    ${rows.length === 0 ? html`<div class="grid"><p class="empty">${query ? html`No process matches.${!everything.value && gone?.count > 0 ? html` <button type="button" onClick=${() => want(true)}>Search in the ${gone.count} that ${gone.count === 1 ? 'has' : 'have'} ended, too</button>` : ''}` : html`No agent runs.${!everything.value && gone?.count > 0 ? html` <button type="button" onClick=${() => want(true)}>Show the ${gone.count} that ${gone.count === 1 ? 'has' : 'have'} ended</button>${gone.failed ? html` <small>${gone.failed} of them failed</small>` : ''}<br />` : ''} <a href=${href('start')}>Start one</a>, here or in a terminal: <code>rnix "Report on this project"</code>`}</p></div>`
      : html`<div class="grid" role=${view.tree ? 'treegrid' : 'grid'} aria-label="Processes" aria-rowcount=${rows.length + 1} tabindex="0" ref=${grid} onKeyDown=${keys}
        onFocus=${(e) => { if (!at && e.target === grid.current) move(0); }}>
      <div role="row" class="row head" aria-rowindex="1">
        ${columns.map((c) => html`<span role="columnheader" class=${c.name === 'name' ? 'what' : (c.num ? 'num ' : '') + c.name} aria-sort=${view.sort === c.name ? (view.down ? 'descending' : 'ascending') : 'none'}>
          <button type="button" class="quiet" onClick=${() => order(c.name)}>${c.text}${view.sort === c.name ? (view.down ? ' ↓' : ' ↑') : ''}</button></span>`)}
        <span role="columnheader" class="acts"><span class="sr">Actions</span></span>
      </div>
      <${Rows} count=${rows.length} height=${tall} at=${place} role="rowgroup"
          draw=${(i, style) => {
            const r = rows[i];
            r.n = i;
            r.level = view.tree ? r.depth + 1 : undefined;
            const below = sums.get(r.p.uuid)?.with_descendants;
            return html`<${Row} sum=${below ? short(below) : ''} why=${below ? 'With its descendants: ' + sumParts(below).join(', ') : ''} key=${r.p.uuid} row=${r} top=${style.top + style.height} place=${style} here=${r.p.uuid === at} now=${now} asked=${asked.value.has(r.p.uuid)} pick=${() => setAt(r.p.uuid)} toggle=${() => toggle(r.p.uuid)} />`;
          }} />
    </div>`}
    ${rows.some((r) => r.p.unpriced_tokens > 0) && html`<p class="foot">Cost “?”: no price is known for ${[...new Set(rows.flatMap((r) => r.p.unpriced_models || []))].slice(0, 5).map((m, i) => html`${i ? ', ' : ''}<${Line} value=${m} most=${60} class="mono" />`)}. Set it in <code>prices.yaml</code>: <code>rnix help cost</code> says how.</p>`}
    ${rows.some((r) => sums.get(r.p.uuid)?.with_descendants) && html`<p class="foot">Σ: tokens, cost and failed calls with all descendants, also those that have ended.</p>`}
    <p class="foot">${rows.length} shown${hidden.value ? `, ${hidden.value} older ones are not` : ''}. Keys: <kbd>?</kbd></p>`;
}

export default { name: 'overview', path: '/', title: 'Overview', nav: 'Overview', Page: Overview };
