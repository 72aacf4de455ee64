// The steps, and one of them in full: what was sent, what came back, what was done, and what it changed.
import { html, useEffect, useRef, useState } from '../../lib/html.js';
import { count, dollars, duration, moment } from '../../lib/format.js';
import { href, go } from '../../lib/router.js';
import { fork } from '../../lib/actions.js';
import { useCall } from '../../lib/ask.js';
import { Answer, Facts } from '../../ui/answer.js';
import { Line, Text } from '../../ui/text.js';
import { Rows } from '../../ui/rows.js';
import { Message } from './conversation.js';
import { Diff } from './files.js';

const ms = (ns) => duration(ns / 1e6);

// Prompt is what the model was sent, behind a button: it is long.
function Prompt({ id, step }) {
  const [open, setOpen] = useState(false);
  const of = useCall('list_messages', open ? { target: id, step, from: -40, limit: 40 } : null);
  if (!open) return html`<p><button type="button" onClick=${() => setOpen(true)}>Show the prompt</button></p>`;
  return html`<${Answer} of=${of} draw=${(d) => html`<p><small>${d.messages.length} of ${d.total} messages${d.prev ? ', the last ones' : ''}; <a href=${href('process', { id, tab: 'conversation' }, { step })}>all</a></small></p>${d.messages.map((m) => html`<${Message} key=${m.n} m=${m} id=${id} />`)}`} />`;
}

function Changes({ id, step }) {
  const [open, setOpen] = useState(false);
  const of = useCall('diff_files', open ? { target: id, from: step - 1, to: step } : null);
  if (!open) return html`<p><button type="button" onClick=${() => setOpen(true)}>Show what it changed</button></p>`;
  return html`<${Answer} of=${of} draw=${(d) => html`<${Diff} d=${d} />`} />`;
}

function Step({ s, p, id }) {
  return html`<article class="step" aria-label=${'Step ' + s.step_number}>
    <h2>Step ${s.step_number} <small>${s.action}</small> <button type="button" onClick=${() => fork(p, s.step_number)}>Fork from here</button></h2>
    <${Facts} facts=${[
      ['When', moment(s.timestamp)], ['Took', `${ms(s.duration_ns)}, of it the model ${ms(s.model_ns)}`],
      ['Model', html`<${Line} value=${[s.provider, s.model].filter(Boolean).join('/')} />`], ['Stopped because of', s.stop_reason],
      ['Tokens', `${s.estimated ? '~' : ''}${count(s.tokens_used)}: ${count(s.input_tokens ?? 0)} in, ${count(s.output_tokens ?? 0)} out` + (s.cache_read_tokens ? `, ${count(s.cache_read_tokens)} from the cache` : '')],
      ['Cost', s.cost_usd ? dollars(s.cost_usd) : null], ['Messages sent', s.message_count],
    ]} />
    ${s.error && html`<p class="problem"><${Line} value=${s.error} most=${1000} /></p>`}
    <h3>What the model said</h3>
    ${s.raw_response ? html`<${Text} value=${s.raw_response} class="box" />` : html`<p class="empty">Nothing beside its calls.</p>`}
    ${(s.tool_calls || []).map((c, i) => html`<section class="call" key=${i}><h3>${i + 1}. <${Line} value=${c.name} most=${80} /> <small><${Line} value=${c.path} class="mono" />, ${ms(c.duration_ns || 0)}</small>${c.error ? html` <span class="badge bad">failed</span>` : ''}</h3>
      ${c.input && html`<${Text} value=${c.input} class="box mono" start=${1500} />`}
      ${c.error && html`<p class="problem"><${Line} value=${c.error} most=${1000} /></p>`}
      ${(c.result || c.output) && html`<${Text} value=${c.result || c.output} class="box mono" start=${3000} />`}</section>`)}
    <${Prompt} key=${'p' + s.step_number} id=${id} step=${s.step_number} />
    ${s.files && html`<${Changes} key=${'c' + s.step_number} id=${id} step=${s.step_number} />`}
  </article>`;
}

function Inspector({ d, p, id, query }) {
  const wanted = Number(query.get('step')) || d.steps.at(-1)?.step_number || 0;
  const place = Math.max(0, d.steps.findIndex((s) => s.step_number === wanted));
  const [find, setFind] = useState('');
  const at = useRef();
  at.current = place;
  const to = (i) => {
    const s = d.steps[Math.max(0, Math.min(d.steps.length - 1, i))];
    if (s) go(href('process', { id, tab: 'steps' }, { step: s.step_number }), true);
  };
  const next = (sign) => {
    const words = find.toLowerCase();
    for (let n = 1; n <= d.steps.length; n++) {
      const i = (at.current + sign * n + d.steps.length * n) % d.steps.length;
      const s = d.steps[i];
      if ([s.raw_response, s.summary, s.error, ...(s.tool_calls || []).flatMap((c) => [c.name, c.input, c.result, c.output, c.error])].some((t) => t && t.toLowerCase().includes(words))) return to(i);
    }
    return null;
  };
  useEffect(() => {
    const key = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || document.querySelector('dialog[open]')) return;
      const by = { h: -1, ArrowLeft: -1, l: 1, ArrowRight: 1 };
      if (e.key in by) { e.preventDefault(); to(at.current + by[e.key]); }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, [d]);
  if (!d.steps.length) return html`<p class="empty">No step has ended yet.</p>`;
  return html`<div class="tools"><button type="button" disabled=${place === 0} onClick=${() => to(place - 1)}>← Previous</button><button type="button" disabled=${place === d.steps.length - 1} onClick=${() => to(place + 1)}>Next →</button>
      <input type="search" aria-label="Search in the steps" placeholder="Search in the steps" value=${find} onInput=${(e) => setFind(e.target.value)} onKeyDown=${(e) => { if (e.key === 'Enter' && find) next(e.shiftKey ? -1 : 1); }} />
      <button type="button" disabled=${!find} onClick=${() => next(1)}>Find</button></div>
    ${d.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}
    <div class="inspector">
      <div class="list" role="listbox" aria-label="Steps" tabindex="0"><${Rows} count=${d.steps.length} height=${30} at=${place} draw=${(i, style) => {
        const s = d.steps[i];
        return html`<div key=${s.step_number} role="option" aria-selected=${i === place} class=${'item' + (i === place ? ' here' : '')} style=${style} onClick=${() => to(i)}><span class="num">${s.step_number}</span> ${s.error || s.tool_error ? html`<span class="failed">✖</span> ` : ''}<${Line} value=${s.summary || s.action} most=${80} /></div>`;
      }} /></div>
      <${Step} key=${d.steps[place].step_number} s=${d.steps[place]} p=${p} id=${id} />
    </div>`;
}

export function Steps({ id, p, query, turn }) {
  const of = useCall('list_steps', { target: id }, { on: turn, every: 2000 });
  return html`<${Answer} of=${of} draw=${(d) => html`<${Inspector} d=${d} p=${p} id=${id} query=${query} />`} />`;
}
