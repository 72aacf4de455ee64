// The timeline: who ran when, as a waterfall, and the chain that decided when it ended.
import { html, useMemo, useState } from '../../lib/html.js';
import { count, dollars, duration, moment } from '../../lib/format.js';
import { href } from '../../lib/router.js';
import { useCall } from '../../lib/ask.js';
import { rows as arrange, shares } from '../../lib/waterfall.js';
import { Answer } from '../../ui/answer.js';
import { Line } from '../../ui/text.js';
import { Rows } from '../../ui/rows.js';

const words = { process: 'process', step: 'step', model: 'model', tool: 'tool', wait: 'wait', node: 'node' };
const ms = (ns) => duration(ns / 1e6);

function Blame({ chain }) {
  if (!chain.length) return null;
  return html`<div class="problem"><b>Why it failed</b><ol>${chain.map((b) => html`<li><a href=${href('process', { id: b.uuid, tab: 'steps' }, { step: b.step || undefined })}>PID ${b.pid}${b.step ? ', step ' + b.step : ''}</a> ${words[b.kind]} <${Line} value=${b.name} most=${60} />: <${Line} value=${b.error} most=${300} />${b.not_run ? html`; not run because of it: <${Line} value=${b.not_run.join(', ')} most=${300} />` : ''}</li>`)}</ol></div>`;
}

function SpanRow({ row, place, toggle, pick, here }) {
  const s = row.span;
  const title = s.kind === 'step' ? 'step ' + s.step : s.name || s.model || words[s.kind];
  const to = s.kind === 'process' ? href('process', { id: s.uuid }) : s.step ? href('process', { id: s.uuid, tab: 'steps' }, { step: s.step }) : undefined;
  return html`<div role="row" class=${'span ' + s.kind + (s.critical ? ' critical' : '') + (here ? ' here' : '')} style=${place} onClick=${pick}>
    <span role="gridcell" class="label" style=${{ paddingLeft: Math.min(row.depth, 12) * 12 + 'px' }}>
      ${row.kids > 0 ? html`<button type="button" class="twist" aria-label=${(row.open ? 'Close ' : 'Open ') + title} aria-expanded=${row.open} onClick=${toggle}>${row.open ? '▾' : '▸'}</button>` : html`<span class="twist"></span>`}
      ${s.status === 'error' ? html`<span class="failed" title="failed">✖</span> ` : ''}${s.critical_ns > 0 ? html`<span class="onpath" title="it decided">◆</span> ` : ''}
      ${to ? html`<a href=${to}><${Line} value=${title} most=${80} /></a>` : html`<${Line} value=${title} most=${80} />`}
    </span>
    <span role="gridcell" class="lane" aria-hidden="true"><span class=${'bar ' + s.kind + ' ' + s.status} style=${{ left: row.left / 10 + '%', width: `max(2px, ${row.width / 10}%)` }}></span></span>
    <span role="gridcell" class="num took">${ms(s.dur_ns)}${s.open ? ' …' : ''}</span>
  </div>`;
}

function Chosen({ s }) {
  if (!s) return null;
  return html`<p class="chosen"><b>${words[s.kind]} <${Line} value=${s.name} most=${80} /></b> from ${moment(s.start)}, ${ms(s.dur_ns)}${s.open ? ', without an end' : ''}${s.critical_ns ? `; decided for ${ms(s.critical_ns)}` : ''}
    ${s.tokens ? html`; ${s.estimated ? '~' : ''}${count(s.tokens)} tokens` : ''}${s.cost_usd ? '; ' + dollars(s.cost_usd) : ''}${s.verdict ? '; ' + s.verdict : ''}${s.error ? html`; <${Line} value=${s.error} most=${300} />` : ''}</p>`;
}

function Waterfall({ t }) {
  const [closed, setClosed] = useState(() => new Set());
  const [at, setAt] = useState('');
  const list = useMemo(() => arrange(t, closed), [t, closed]);
  const part = useMemo(() => shares(t), [t]);
  const toggle = (id) => setClosed((c) => {
    const next = new Set(c);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  return html`<${Blame} chain=${t.blame} />
    <p>${t.live ? 'So far ' : ''}${duration(Date.parse(t.end) - Date.parse(t.start))}${part.length ? html`; on the path that decided${t.live ? ' so far' : ''} (◆): ${part.map((x, i) => html`${i ? ', ' : ''}<b>${x.kind}</b> ${x.percent} %`)}` : ''}${t.cut ? html`. ${t.cut} spans that matter less are left out` : ''}</p>
    ${t.missing?.length > 0 && html`<p class="problem">Not to be read: <${Line} value=${t.missing.join(', ')} /></p>`}
    <${Chosen} s=${t.spans.find((s) => s.id === at)} />
    <div class="waterfall" role="grid" aria-label="Waterfall" aria-rowcount=${list.length}><${Rows} count=${list.length} height=${26} role="rowgroup" tabindex="0" aria-label="Spans"
      draw=${(i, place) => html`<${SpanRow} key=${list[i].span.id} row=${list[i]} place=${place} here=${list[i].span.id === at} pick=${() => setAt(list[i].span.id)} toggle=${() => toggle(list[i].span.id)} />`} /></div>`;
}

export function Timeline({ id, turn }) {
  const of = useCall('trace', { target: id }, { on: turn, every: 2000 });
  return html`<${Answer} of=${of} draw=${(t) => html`<${Waterfall} t=${t} />`} />`;
}
