// What a person is asked, as cards.
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { allow, allowFor, asks, reply, busy, deny, edit, settling, whole } from '../lib/asks.js';
import { commandOf, inputOf, runs } from '../lib/asked.js';
import { age, bytes, moment } from '../lib/format.js';
import { who } from '../lib/actions.js';
import { href } from '../lib/router.js';
import { clock, second, wire } from '../lib/store.js';
import { line } from '../lib/visible.js';
import { Line, Text } from './text.js';

const many = 60; // cards that are drawn at once

function Kin({ p }) {
  return html`<a href=${href('process', { id: p.uuid })}>PID ${p.pid}${p.name ? html` <${Line} value=${p.name} most=${40} />` : ''}</a>`;
}

function Whole({ a }) {
  const [full, setFull] = useState(a.input_bytes ? null : a);
  const more = async () => setFull(await whole(a));
  if (!full) return html`<p class="note">This is its beginning: the input has ${bytes(a.input_bytes)}. <button type="button" onClick=${more}>Show all of it</button></p>`;
  const command = commandOf(full);
  return html`${command !== null && a.input_bytes ? html`<${Text} value=${command} class="mono box" />` : ''}
    <details><summary>Whole input</summary><div class="runs" tabindex="0" role="group" aria-label=${`Input of ask ${a.number}`}><${Text} value=${inputOf(full)} class="mono" /></div></details>`;
}

// Reply has what a question is answered with: what the agent proposes, and a field for anything else.
function Reply({ a, button, off }) {
  const [text, setText] = useState('');
  const { choices = [] } = a.question;
  const send = (e) => {
    e.preventDefault();
    if (text.trim() && !off && !settling.peek()) reply(a, text);
  };
  return html`${choices.length > 0 && html`<div class="buttons" role="group" aria-label=${`What ask ${a.number} proposes`}>
      ${choices.map((c) => button(line(c, 200), () => reply(a, c), '', `Answer ask ${a.number} with ${line(c, 200)}`))}</div>`}
    <form class="reply" onSubmit=${send}>
      <textarea rows="1" maxlength="16384" value=${text} aria-label=${`Your answer to ask ${a.number}`} placeholder=${choices.length ? 'or something else' : 'your answer'} onInput=${(e) => setText(e.target.value)}
        onKeyDown=${(e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) send(e); }}></textarea>
      <button type="submit" class="main" disabled=${off || !text.trim()} aria-label=${`Answer ask ${a.number}, ${who(a)}`}>Answer</button>
      ${button('Do not answer', deny, 'danger')}</form>`;
}

function Default({ q }) {
  return html`<p class="note">Without an answer it would take <${Line} value=${q.default} most=${200} class="mono" />${q.until ? `, at ${moment(q.until)}` : ''}.</p>`;
}

function Card({ a }) {
  second.value;
  const { number } = a;
  const q = a.question;
  const off = wire.value.word !== 'live' || busy.value.has(number);
  const button = (text, run, cls = '', label = `${text} ask ${number}, ${who(a)}`) => html`<button type="button" class=${cls} disabled=${off} aria-disabled=${settling.value ? 'true' : undefined} aria-label=${label}
    onClick=${(e) => { if (!settling.peek() || e.detail === 0) run(a); }}>${text}</button>`;
  return html`<article class="card" tabindex="-1" data-ask=${number} aria-labelledby=${'ask-' + number}>
    <h2 id=${'ask-' + number}><${Kin} p=${a} /> ${q ? 'asks you' : html`wants to call <${Line} value=${a.tool} most=${60} class="mono" />`}</h2>
    ${a.lineage?.length > 0 && html`<p class="line-of">below ${a.lineage.map((k, i) => html`${i ? ' › ' : ''}<${Kin} p=${k} />`)}</p>`}
    <div class="runs" tabindex="0" role="group" aria-label=${`What ask ${number} is about`}><${Text} value=${runs(a)} class=${q ? '' : 'mono'} /></div>
    ${q ? q.default && html`<${Default} q=${q} />` : html`<${Whole} key=${number} a=${a} />`}
    <p class="facts-line">${!q && html`<span>rule <${Line} value=${a.rule} most=${200} class="mono" /></span>`} <span>${a.suspended ? 'suspended: the answer counts when it is resumed' : a.since ? 'for ' + age(Math.max(0, clock() - Date.parse(a.since))) : ''}</span> <span>ask ${number}</span></p>
    ${q ? html`<${Reply} key=${number} a=${a} button=${button} off=${off} />` : html`<div class="buttons" role="group" aria-label=${`Your answer to ask ${number}`}>
      ${button('Allow', allow, 'main')}${button('Deny', deny, 'danger')}${button('Allow … for', allowFor)}${(commandOf(a) !== null || a.input || a.input_bytes) && button('Edit', edit)}
    </div>`}
  </article>`;
}

// Cards are those about a process, or all. empty is what stands there if there are none.
export function Cards({ of, empty = null }) {
  const list = asks.value.filter((a) => !of || a.uuid === of);
  const box = useRef(), at = useRef(0);
  // Who answers with the keyboard goes on at the next card.
  useEffect(() => {
    if (!at.current || list.some((a) => a.number === at.current) || document.activeElement !== document.body) return;
    const next = list.find((a) => a.number > at.current) || list.at(-1);
    at.current = 0;
    (next ? box.current?.querySelector(`[data-ask="${next.number}"]`) : document.querySelector('main'))?.focus();
  });
  if (!list.length) return empty;
  return html`<div class="asks" ref=${box} onFocusIn=${(e) => { at.current = Number(e.target.closest('[data-ask]')?.dataset.ask || 0); }}>
    ${list.slice(0, many).map((a) => html`<${Card} key=${a.number} a=${a} />`)}
    ${list.length > many && html`<p>${list.length - many} more follow when these are answered.</p>`}</div>`;
}
