// Messages of a conversation, and the calls in them with their results.
import { html, useState } from '../../lib/html.js';
import { call } from '../../lib/api.js';
import { answerText, byCall } from '../../lib/asked.js';
import { bytes, moment } from '../../lib/format.js';
import { href } from '../../lib/router.js';
import { about, edit, input, parts, result, turns } from '../../lib/turns.js';
import { failed } from '../../ui/toast.js';
import { Lines } from '../../ui/lines.js';
import { Markdown } from '../../ui/markdown.js';
import { Previews } from '../../ui/preview.js';
import { Line, Text } from '../../ui/text.js';

const froms = { steer: 'said by a person', message: 'from another process', child: 'from a child', compaction: 'left by a compaction', user: 'said by a person', system: 'a notice to the agent' };
const names = { message: 'message', child: 'message', compaction: 'system', system: 'system' }; // who speaks, where it is not the role
const few = 60; // lines of an edit that are shown at once

// useRest returns the text of a message as far as it was read, and a button that reads more of a long one.
function useRest(m, id, step) {
  const [more, setMore] = useState({ text: '', cut: m.cut || 0 });
  const read = async () => {
    try {
      const d = await call('list_messages', { target: id, step, from: m.n, limit: 1, skip: m.bytes - more.cut, max_bytes: 1 << 20 });
      setMore({ text: more.text + d.messages[0].content, cut: d.messages[0].cut || 0 });
    } catch (err) {
      failed(err);
    }
  };
  return [m.content + more.text, more.cut > 0 && html`<button type="button" onClick=${read}>Read ${bytes(Math.min(more.cut, 1 << 20))} more of ${bytes(more.cut)}</button>`];
}

function Result({ m, id, step }) {
  const [text, rest] = useRest(m, id, step);
  return html`<div class="came">${text.trim() ? html`<${Text} value=${text} class="mono" start=${2000} />` : html`<small>nothing came back</small>`}${rest}</div>`;
}

function Input({ c }) {
  const v = input(c), keys = v && Object.keys(v);
  if (v && keys.length === 1 && typeof v[keys[0]] === 'string') return html`<${Text} value=${v[keys[0]]} class="mono given" start=${2000} />`;
  return html`<${Text} value=${v ? JSON.stringify(v, null, 2) : c.input} class="mono given" start=${2000} />${c.cut ? html`<small>${bytes(c.cut)} more</small>` : ''}`;
}

// Act is a call: folded but for what it changes in files, or hands over at the end. working says that its result may still come, and ask is what a person was asked about it.
// at is the step that it belongs to.
function Act({ c, r, id, step, at, working, ask }) {
  const handed = result(c), change = r?.is_error ? null : edit(c); // a failed one has changed nothing
  if (handed !== null && !r?.is_error) return html`<div class="handed"><small>Result</small><${Markdown} value=${handed} /></div>`;
  const waits = working && ask && !ask.answer;
  const exit = r && !r.is_error && c.name === 'shell' && /\[exit code ([1-9]\d*)[^\n]*\]\s*$/.exec(r.content); // the last line of what the shell answers
  const state = r ? (r.is_error && html`<span class="badge bad">failed</span>`) || (exit && html`<span class="badge bad">exit ${exit[1]}</span>`) : html`<span class=${'badge ' + (!working ? '' : waits ? 'ask' : 'run')}>${!working ? 'no result' : waits ? 'waits for you' : 'in hand'}</span>`;
  const told = r && !r.is_error && change ? '' : r?.content.trim().split('\n', 1)[0];
  return html`<div class="act" data-tool=${c.name}>
    <details><summary><b class="tool"><${Line} value=${c.name} most=${60} /></b> <${Line} value=${about(c)} most=${140} class="mono" /> ${state}${told && !change ? html` <${Line} value=${told} most=${100} class="told" />` : ''}</summary>
      ${!change && html`<${Input} c=${c} />`}${r && html`<${Result} m=${r} id=${id} step=${step} />`}</details>
    ${ask?.answer && html`<p class="answered"><${Line} value=${answerText(ask)} most=${400} /> <small>${moment(ask.answer.time)}</small></p>`}
    <${Previews} of=${r?.attachments} id=${id} />
    ${change && html`<${Lines} lines=${change.lines} start=${few} label=${'Change of ' + change.path.slice(0, 200)} />${change.whole && r && at > 0 ? html`<small>The whole file, as it was written. <a href=${href('process', { id, tab: 'files' }, { from: at > 1 ? at - 1 : undefined, to: at })}>What step ${at} changed</a></small>` : ''}`}
  </div>`;
}

// Said is a message in words: those of the kernel around it stand apart.
function Said({ m, text }) {
  const words = (value) => html`<${Text} value=${value} class=${m.role === 'tool' ? 'mono' : ''} start=${m.role === 'tool' ? 600 : 4000} />`;
  const p = parts(text, m);
  const notice = (value) => value && html`<div class="notice-of"><small>system, a notice to the agent</small>${words(value)}</div>`;
  return html`${notice(p.before)}${p.text.trim() && words(p.text)}${notice(p.behind)}`;
}

// Message is one message with its calls. thought is what the model has thought before it, as far as that was heard.
export function Message({ m, calls = [], id, step = 0, thought = '', working = false, asks = new Map() }) {
  const [text, rest] = useRest(m, id, step);
  const body = m.role === 'system' ? html`<details><summary>${bytes(m.bytes)} of instructions</summary><${Text} value=${text} />${rest}</details>`
    : html`${text.trim() && (m.role === 'assistant' ? html`<${Markdown} value=${text} />` : html`<${Said} m=${m} text=${text} />`)}${rest}<${Previews} of=${m.attachments} id=${id} />`;
  const name = m.role === 'tool' ? 'result of an earlier call' : (m.role === 'user' && names[m.from]) || m.role;
  return html`<article class=${'message ' + (name === 'system' && m.role === 'user' ? 'notice-from' : m.role)} data-n=${m.n}>
    <header><b>${name}</b> <small>${froms[m.from] || ''} ${m.step ? html`<a href=${href('process', { id, tab: 'steps' }, { step: m.step })}>${m.role === 'user' ? 'after ' : ''}step ${m.step}</a>` : ''} ${moment(m.time)}${m.is_error ? html` <span class="badge bad">error</span>` : ''}${m.shortened ? ' · shortened by a compaction' : ''}</small></header>
    ${thought && html`<${Thought} text=${thought} />`}
    ${body}
    ${calls.map(({ call: c, result: r }) => html`<${Act} key=${c.id} c=${c} r=${r} id=${id} step=${step} at=${m.step} working=${working} ask=${asks.get(c.id)} />`)}
  </article>`;
}

export function Thought({ text, open = false }) {
  return html`<details class="thought" open=${open}><summary>Thinking</summary><${Text} value=${text} start=${8000} /></details>`;
}

// Messages is a list of them. thoughts are by step; working says that what the last answer has called may still run, and asks are what persons were asked.
export function Messages({ messages, id, step = 0, thoughts = new Map(), working = false, asks = [] }) {
  const list = turns(messages);
  const last = list.findLast((t) => t.m.role === 'assistant');
  const by = byCall(asks, list.flatMap((t) => t.calls.map((c) => c.call)));
  return list.map((t) => html`<${Message} key=${t.m.n} ...${t} id=${id} step=${step} thought=${t.m.role === 'assistant' ? thoughts.get(t.m.step) : ''} working=${working && t === last} asks=${by} />`);
}
