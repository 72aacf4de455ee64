// What fills the context window, how it grows, and what a prompt cache can use again.
import { html } from '../../lib/html.js';
import { bytes, count } from '../../lib/format.js';
import { useCall } from '../../lib/ask.js';
import { Answer, Facts, Table } from '../../ui/answer.js';
import { Line } from '../../ui/text.js';

const about = (n, estimated) => (estimated ? '~' : '') + count(n);

// Growth is the size of each prompt as a bar; one that a compaction came before is marked.
function Growth({ prompts }) {
  if (prompts.length < 2) return null;
  const most = Math.max(...prompts.map((p) => p.tokens), 1);
  const last = prompts.slice(-200), w = 1000 / last.length;
  return html`<h2>Growth</h2><svg class="growth" viewBox="0 0 1000 120" preserveAspectRatio="none" role="img" aria-label=${`Prompts of ${last.length} steps, up to ${count(most)} tokens`}>
    ${last.map((p, i) => html`<rect class=${p.compacted ? 'compacted' : p.broke ? 'broke' : ''} x=${i * w} y=${120 - (p.tokens / most) * 118} width=${Math.max(w - 1, 0.6)} height=${(p.tokens / most) * 118}><title>step ${p.step}: ${about(p.tokens, p.estimated)} tokens</title></rect>`)}</svg>
    <p><small>Each bar is the prompt of a step${prompts.length > last.length ? `, the last ${last.length} of ${prompts.length}` : ''}; striped: after a compaction; light: its beginning was not that of the one before.</small></p>`;
}

export function Context({ id, query, turn }) {
  const step = Number(query.get('step')) || 0;
  const of = useCall('context_profile', { target: id, step }, { on: turn, every: 2000 });
  return html`<${Answer} of=${of} draw=${(d) => {
    const { window: w, cache: c } = d;
    const most = Math.max(...d.sections.map((s) => s.tokens), 1);
    return html`<${Facts} facts=${[
        ['In the prompt', html`${about(d.tokens, d.estimated)} tokens${w.tokens ? ` of ${count(w.tokens)} (${(w.used_per_mille / 10).toFixed(1)} %)` : ''}, ${d.shown_messages} messages${d.step ? `, of step ${d.step}` : ''}`],
        ['Window', html`<${Line} value=${w.from} />`], ['Is compacted at', w.compact_at ? count(w.compact_at) + ' tokens' : null],
        ['Grows by', w.over ? `${count(w.growth)} tokens a step, over the last ${w.over}` : null], ['Steps left', w.steps_left ?? null],
        ['Compactions', d.compactions || null], ['Left out by them', d.dropped_messages || null],
        ['A cache can use again', c.sent_tokens ? `${Math.round((c.stable_tokens / c.sent_tokens) * 100)} % of what was sent` : null],
        ['The provider says', c.said ? `${count(c.read_tokens)} tokens read from its cache, ${count(c.write_tokens)} written` : null],
        ['The beginning broke', c.breaks ? `${c.breaks} times, before steps ${(c.break_steps || []).slice(-8).join(', ')}` : null],
        ['Not the provider’s counts', d.uncounted && html`<${Line} value=${d.uncounted} />`],
      ]} />
      <h2>What fills it</h2>
      <${Table} label="Sections" rows=${d.sections} columns=${[
        { text: 'Section', cell: (s) => html`${s.section.replaceAll('_', ' ')} <small><${Line} value=${s.name || ''} most=${60} /></small>` },
        { text: 'Tokens', num: true, cell: (s) => about(s.tokens, s.estimated) },
        { text: '', cell: (s) => html`<span class="meter" aria-hidden="true"><span style=${{ width: (s.tokens / most) * 100 + '%' }}></span></span>` },
        { text: 'Messages', num: true, cell: (s) => s.messages || '' }, { text: 'Size', num: true, cell: (s) => bytes(s.bytes) },
      ]} />
      <${Growth} prompts=${d.prompts} />
      <h2>The largest messages</h2>
      <${Table} label="The largest messages" rows=${d.largest} columns=${[
        { text: 'No', num: true, cell: (s) => s.n || '' }, { text: 'Section', cell: (s) => html`${(s.section || s.role).replaceAll('_', ' ')} <${Line} value=${s.name || ''} most=${40} />` },
        { text: 'Tokens', num: true, cell: (s) => about(s.tokens, !s.counted) }, { text: 'Sent', num: true, cell: (s) => s.prompts + ' times' }, { text: 'Begins', cell: (s) => html`<${Line} value=${s.preview || ''} most=${90} />` },
      ]} />
      ${d.missing?.length > 0 && html`<p class="problem"><${Line} value=${d.missing.join('; ')} most=${1000} /></p>`}`;
  }} />`;
}
