// The steps, and one of them in full: what was sent, what came back, what was done, and what it changed.
import { html, useEffect, useRef, useState } from '../../lib/html.js';
import { count, duration, moment, spent } from '../../lib/format.js';
import { href, go } from '../../lib/router.js';
import { fork } from '../../lib/actions.js';
import { useCall } from '../../lib/ask.js';
import { beside, entries } from '../../lib/stepbook.js';
import { useReading } from '../../lib/reading.js';
import { Answer, Facts } from '../../ui/answer.js';
import { Markdown } from '../../ui/markdown.js';
import { Line, Text } from '../../ui/text.js';
import { Rows } from '../../ui/rows.js';
import { Messages } from './message.js';
import { Diff } from './files.js';

const ms = (ns) => duration(ns / 1e6);

// Prompt is what the model was sent, behind a button: it is long.
function Prompt({ id, step }) {
  const [open, setOpen] = useState(false);
  const of = useCall('list_messages', open ? { target: id, step, from: -40, limit: 40 } : null);
  if (!open) return html`<p><button type="button" onClick=${() => setOpen(true)}>Show the prompt</button></p>`;
  return html`<${Answer} of=${of} draw=${(d) => html`<p><small>${d.messages.length} of ${d.total} messages${d.prev ? ', the last ones' : ''}; <a href=${href('process', { id, tab: 'conversation' }, { step })}>all</a></small></p><${Messages} messages=${d.messages} id=${id} />`} />`;
}

function Changes({ id, p, step }) {
  const [open, setOpen] = useState(false);
  const of = useCall('diff_files', open ? { target: id, from: step - 1, to: step } : null);
  if (!open) return html`<p><button type="button" onClick=${() => setOpen(true)}>Show what it changed</button></p>`;
  return html`<${Answer} of=${of} draw=${(d) => html`<${Diff} d=${d} p=${p} steps=${[step]} />`} />`;
}

// unpriced is how many tokens of a step have no known price.
const unpriced = (s) => (s.cost_from || s.cost_usd > 0 ? 0 : s.tokens_used);

function Told({ s, p, id }) {
  return html`<${Facts} facts=${[
      ['When', moment(s.timestamp)], ['Took', `${ms(s.duration_ns)}, of it the model ${ms(s.model_ns)}`],
      ['Model', (s.provider || s.model) && html`<${Line} value=${[s.provider, s.model].filter(Boolean).join('/')} />`], ['Stopped because of', s.stop_reason],
      ['Tokens', `${s.estimated ? '~' : ''}${count(s.tokens_used)}: ${count(s.input_tokens ?? 0)} in, ${count(s.output_tokens ?? 0)} out` + (s.cache_read_tokens ? `, ${count(s.cache_read_tokens)} from the cache` : '')],
      ['Cost', s.tokens_used ? spent(s.cost_usd, s.tokens_used, unpriced(s)) : null], ['Messages sent', s.message_count],
    ]} />
    ${s.error && html`<p class="problem"><${Line} value=${s.error} most=${1000} /></p>`}
    <h3>What the model said</h3>
    ${s.raw_response ? html`<div class="box" tabindex="0"><${Markdown} value=${s.raw_response} /></div>` : html`<p class="empty">Nothing beside its calls.</p>`}
    ${(s.tool_calls || []).map((c, i) => html`<section class="call" key=${i}><h3>${i + 1}. <${Line} value=${c.name} most=${80} /> <small><${Line} value=${c.path} class="mono" />, ${ms(c.duration_ns || 0)}</small>${c.error ? html` <span class="badge bad">failed</span>` : c.failure ? html` <span class="badge bad"><${Line} value=${c.failure} most=${80} /></span>` : ''}</h3>
      ${c.input && html`<${Text} value=${c.input} class="box mono" start=${1500} />`}
      ${c.error && html`<p class="problem"><${Line} value=${c.error} most=${1000} /></p>`}
      ${(c.result || c.output) && html`<${Text} value=${c.result || c.output} class="box mono" start=${3000} />`}</section>`)}
    <${Prompt} id=${id} step=${s.step_number} />
    ${s.files && html`<${Changes} id=${id} p=${p} step=${s.step_number} />`}`;
}

// Step is one step in full. s is what its line in the list says, if that is known; turn changes when it may have been run again.
function Step({ n, s, p, id, turn }) {
  const of = useCall('get_step_detail', { target: id, step: n, alone: true }, { on: turn, every: 2000 });
  return html`<article class="step" aria-label=${'Step ' + n}>
    <h2>Step ${n} <small>${(of.data?.step || s)?.action}</small> ${of.data && html`<button type="button" onClick=${() => fork(p, n)}>Fork from here</button>`}</h2>
    <${Answer} of=${of} draw=${(d) => html`<${Told} s=${d.step} p=${p} id=${id} />`} />
  </article>`;
}

export function Steps({ id, p, query, turn }) {
  const r = useReading(id, turn);
  const b = r.book;
  const [find, setFind] = useState('');
  const here = Number(query.get('step')) || b.last;
  const at = useRef();
  at.current = here;
  const to = (n) => { if (n) go(href('process', { id, tab: 'steps' }, { step: n }), true); };
  const hunt = (by) => { if (find) r.find(find, at.current, by, to); };
  useEffect(() => {
    const key = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || document.querySelector('dialog[open]')) return;
      const by = { h: -1, ArrowLeft: -1, l: 1, ArrowRight: 1 };
      if (e.key in by) { e.preventDefault(); to(beside(b, at.current, by[e.key])); }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, [id]);
  if (!r.read) return html`<${Answer} of=${{ data: null, error: r.error, loading: r.loading, again: () => r.again() }} />`;
  if (!b.last) return html`${b.damage && html`<p class="problem"><${Line} value=${b.damage} most=${1000} /></p>`}<p class="empty">No step has ended yet.</p>`;
  const before = beside(b, here, -1), behind = beside(b, here, 1);
  return html`<div class="tools"><button type="button" disabled=${!before} onClick=${() => to(before)}>← Previous</button><button type="button" disabled=${!behind} onClick=${() => to(behind)}>Next →</button>
      <input type="search" aria-label="Search in the steps" placeholder="Search in the steps" value=${find} onInput=${(e) => { setFind(e.target.value); r.quiet(); }} onKeyDown=${(e) => { if (e.key === 'Enter') hunt(e.shiftKey ? -1 : 1); }} />
      ${r.hunting ? html`<button type="button" onClick=${() => r.quiet()}>Stop</button>` : html`<button type="button" disabled=${!find} onClick=${() => hunt(1)}>Find</button>`}
      <small role="status"><${Line} value=${r.said} most=${300} /></small></div>
    ${r.error && html`<p class="problem" role="alert"><${Line} value=${r.error.message} most=${1000} /> <button type="button" onClick=${() => r.again()}>${r.loading ? 'Trying …' : 'Try again'}</button></p>`}
    ${b.damage && html`<p class="problem"><${Line} value=${b.damage} most=${1000} /></p>`}
    <div class="inspector">
      <div class="list"><${Rows} role="listbox" aria-label=${`Steps ${b.first} to ${b.last}`} tabindex="0" count=${entries(b)} height=${30} at=${here - b.first < entries(b) ? here - b.first : -1} seen=${(from, till) => r.see(from, till)} draw=${(i, style) => {
        const n = b.first + i, s = b.known.get(n);
        return html`<div key=${n} role="option" aria-selected=${n === here} aria-disabled=${s === null} class=${'item' + (n === here ? ' here' : '')} style=${style} onClick=${() => s !== null && to(n)}><span class="num">${n}</span> ${s?.error || s?.tool_error ? html`<span class="failed">✖</span> ` : ''}${s ? html`<${Line} value=${s.summary || s.action} most=${80} />` : html`<small>${s === null ? 'no step has this number' : '…'}</small>`}</div>`;
      }} /></div>
      <${Step} key=${here} n=${here} s=${b.known.get(here)} p=${p} id=${id} turn=${here === b.last ? turn : ''} />
    </div>`;
}
