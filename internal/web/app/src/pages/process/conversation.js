// The conversation: what was said, what the model says just now, and what a person says next.
import { html, useEffect, useRef, useState } from '../../lib/html.js';
import { useCall } from '../../lib/ask.js';
import { open } from '../../lib/asks.js';
import { ended } from '../../lib/fold.js';
import { href } from '../../lib/router.js';
import { talks } from '../../lib/say.js';
import { thoughts, underWay } from '../../lib/speech.js';
import { useSpeech } from '../../lib/speaking.js';
import { turns } from '../../lib/turns.js';
import { useTalk } from '../../lib/talk.js';
import { Markdown } from '../../ui/markdown.js';
import { Line } from '../../ui/text.js';
import { Messages, Thought } from './message.js';
import { Say, Waiting } from './say.js';

const most = 40000; // characters of an answer under way that are drawn: its end

// Live is the answer under way, until the conversation has it.
function Live({ speech, last, over, drawn }) {
  const [, draw] = useState(0);
  useEffect(() => speech.on(() => draw((n) => n + 1)), []);
  const s = underWay(speech.now(), last);
  useEffect(drawn);
  if (!s) return null;
  const broken = over && s.over;
  const cut = s.output.length > most ? s.output.indexOf('\n', s.output.length - most) : -1;
  return html`<article class="message assistant live" aria-label="The answer under way">
    <header><b>assistant</b> <small>${broken ? 'this answer was broken off' : s.output ? 'answers' : 'thinks'}</small></header>
    ${s.think && html`<${Thought} text=${s.think} />`}
    ${cut > 0 && html`<p><small>Its beginning is shown when it is complete.</small></p>`}
    ${s.output && html`<${Markdown} value=${cut > 0 ? s.output.slice(cut) : s.output} start=${2 * most} />`}
  </article>`;
}

export function Conversation({ id, p, detail, query, turn }) {
  const step = Number(query.get('step')) || 0;
  const over = ended(p);
  const speech = useSpeech(id, step || over ? '' : p.state === 'suspended' ? 'suspended' : 'works');
  const talk = useTalk(id, step, `${turn} ${speech.turn}`);
  const { data: d, error } = talk;
  const asks = useCall('asks', step || p.kind ? null : { target: id, all: true, max_input: 64 << 10 }, { on: `${turn} ${speech.turn} ${open.value} ${p.wait || ''}` }).data?.asks || [];
  const box = useRef(), end = useRef(true);
  // Who is at the end stays there.
  const follow = () => { if (end.current && box.current) box.current.scrollTop = box.current.scrollHeight; };
  const scrolled = (e) => { end.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40; };
  useEffect(follow);
  if (error && !d) return html`<p class="problem" role="alert"><${Line} value=${error.message} most=${1000} /> <button type="button" onClick=${talk.again}>Try again</button></p>`;
  if (!d) return html`<p class="empty" role="status">Reading …</p>`;
  const shown = turns(d.messages).length; // a result stands with its call
  const last = d.messages.findLast((m) => m.role === 'assistant');
  return html`<p class="about">${d.prev > 0 ? `${d.total} messages, results of calls among them` : shown === 1 ? '1 message' : shown + ' messages'}${step ? html` as step ${step} was sent them; <a href=${href('process', { id, tab: 'conversation' })}>as it is now</a>` : ''}${d.compactions ? `, ${d.compactions} compactions` : ''}. <button type="button" class="quiet to-end" onClick=${() => box.current.lastElementChild?.scrollIntoView({ block: 'end' })}>To the end</button></p>
    ${d.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}
    ${!step && detail.data?.interrupted?.length > 0 && html`<p class="problem">It is not known whether all of its calls have run. When it is resumed it is told so; <a href=${href('process', { id, tab: 'summary' })}>which they are, and what else can be done</a>.</p>`}
    <div class="talk" ref=${box} onScroll=${scrolled} tabindex="0" role="region" aria-label="Conversation">
      ${d.prev > 0 && html`<p><button type="button" onClick=${talk.earlier}>Earlier messages</button></p>`}
      ${d.messages.length === 0 && html`<p class="empty">Nothing was said yet.</p>`}
      <${Messages} messages=${d.messages} id=${id} step=${step} thoughts=${thoughts(speech.now())} working=${!over} asks=${asks} />
      ${!step && html`<${Live} speech=${speech} last=${last} over=${over} drawn=${follow} />`}
      ${!step && talks(p) && html`<${Waiting} id=${id} turn=${`${turn} ${speech.turn}`} />`}
    </div>
    ${!step && talks(p) && html`<${Say} p=${p} />`}`;
}
