// The conversation, as the model has it: the last part first, earlier ones when they are asked for.
import { html, useEffect, useState } from '../../lib/html.js';
import { call } from '../../lib/api.js';
import { bytes, moment } from '../../lib/format.js';
import { href } from '../../lib/router.js';
import { failed } from '../../ui/toast.js';
import { Line, Text } from '../../ui/text.js';

const page = 50; // messages that are read at once
const froms = { steer: 'said by a person', message: 'from another process', child: 'from a child', compaction: 'left by a compaction', user: 'said by a person' };

// Message is one message; the rest of a long one is read when it is asked for.
export function Message({ m, id, step = 0 }) {
  const [more, setMore] = useState({ text: '', cut: m.cut || 0 });
  const whole = m.content + more.text;
  const rest = async () => {
    try {
      const skip = m.bytes - more.cut;
      const d = await call('list_messages', { target: id, step, from: m.n, limit: 1, skip, max_bytes: 1 << 20 });
      const next = d.messages[0];
      setMore({ text: more.text + next.content, cut: next.cut || 0 });
    } catch (err) {
      failed(err);
    }
  };
  return html`<article class=${'message ' + m.role} data-n=${m.n}>
    <header><b>${m.role}</b> <small>${froms[m.from] || ''} ${m.step ? html`<a href=${href('process', { id, tab: 'steps' }, { step: m.step })}>step ${m.step}</a>` : ''} ${moment(m.time)} · ${bytes(m.bytes)}${m.is_error ? html` <span class="badge bad">error</span>` : ''}${m.shortened ? ' · shortened by a compaction' : ''}</small></header>
    ${whole && html`<${Text} value=${whole} class=${m.role === 'tool' ? 'mono' : ''} />`}
    ${more.cut > 0 && html`<button type="button" onClick=${rest}>Read ${bytes(Math.min(more.cut, 1 << 20))} more of ${bytes(more.cut)}</button>`}
    ${(m.tool_calls || []).map((c) => html`<div class="asked" key=${c.id}>→ <b><${Line} value=${c.name} most=${80} /></b> <${Text} value=${c.input} class="mono" start=${1000} />${c.cut ? html`<small>${bytes(c.cut)} more</small>` : ''}</div>`)}
  </article>`;
}

export function Conversation({ id, query, turn }) {
  const step = Number(query.get('step')) || 0;
  const [d, setD] = useState(null);
  const [why, setWhy] = useState(null);
  // The end is read anew when something has happened; what was read before stays.
  useEffect(() => {
    const abort = new AbortController();
    call('list_messages', { target: id, step, from: -page, limit: page }, { signal: abort.signal }).then((r) => {
      setWhy(null);
      setD((old) => {
        const first = r.messages[0]?.n ?? 0;
        const kept = old && old.step === step ? old.messages.filter((m) => m.n < first) : [];
        const joined = kept.length && r.prev && kept.at(-1).n < r.prev ? [] : kept; // a gap: begin anew
        return { ...r, step, prev: joined.length ? old.prev : r.prev, messages: [...joined, ...r.messages] };
      });
    }, (err) => { if (err.name !== 'AbortError') setWhy(err); });
    return () => abort.abort();
  }, [id, step, turn]);
  const earlier = async () => {
    try {
      const r = await call('list_messages', { target: id, step, from: d.prev, limit: page });
      const have = d.messages[0]?.n ?? Infinity;
      setD({ ...d, prev: r.prev, messages: [...r.messages.filter((m) => m.n < have), ...d.messages] });
    } catch (err) {
      failed(err);
    }
  };
  if (why && !d) return html`<p class="problem" role="alert"><${Line} value=${why.message} most=${1000} /></p>`;
  if (!d) return html`<p class="empty" role="status">Reading …</p>`;
  return html`<p>${d.total} messages${step ? html` as step ${step} was sent them; <a href=${href('process', { id, tab: 'conversation' })}>as it is now</a>` : ''}${d.compactions ? `, ${d.compactions} compactions` : ''}.</p>
    ${d.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}
    ${d.prev > 0 && html`<p><button type="button" onClick=${earlier}>Earlier messages</button></p>`}
    ${d.messages.length === 0 ? html`<p class="empty">Nothing was said yet.</p>` : d.messages.map((m) => html`<${Message} key=${m.n} m=${m} id=${id} step=${step} />`)}`;
}
