// The field in which a person says something to the agent, and what was said and is not heard yet.
import { html, signal, useEffect, useRef } from '../../lib/html.js';
import { useCall } from '../../lib/ask.js';
import { useDraft } from '../../lib/draft.js';
import { interrupt } from '../../lib/actions.js';
import { known, label } from '../../lib/attach.js';
import { ended } from '../../lib/fold.js';
import { say, works } from '../../lib/say.js';
import { shared } from '../../lib/shared.js';
import { wire } from '../../lib/store.js';
import { Attached, useAttach } from '../../ui/attach.js';
import { Previews } from '../../ui/preview.js';
import { said } from '../../ui/toast.js';
import { Line } from '../../ui/text.js';

// Waiting is what lies in its mailbox from persons.
export function Waiting({ id, turn }) {
  const of = useCall('mailbox', { target: id, limit: 50 }, { on: turn, every: 500 });
  const list = (of.data?.letters || []).filter((l) => l.kind === 'steer');
  return list.map((l) => html`<article key=${l.seq} class="message user waits"><header><b>user</b> <small>it is heard before the next step</small></header><${Line} value=${l.line} most=${400} />${(l.attachments || []).map((a, i) => html` <small key=${i + a.sha256}><${Line} value=${label(known(a))} most=${160} /></small>`)}<${Previews} of=${l.attachments} id=${id} /></article>`);
}

const hints = { works: 'The agent gets it before its next step', suspended: 'It is suspended; your message resumes it', ended: 'It has ended; your message resumes it' };

// under is where the key of a sending is kept that has no answer yet: what is sent again after the page was loaded anew is then heard once.
const under = (id) => 'rnix-sending-' + id;

function remember(id, text, key) {
  try {
    if (key) sessionStorage.setItem(under(id), JSON.stringify({ text, key }));
    else sessionStorage.removeItem(under(id));
  } catch { /* it lives as long as the page */ }
}

function remembered(id, text) {
  try {
    const s = JSON.parse(sessionStorage.getItem(under(id)));
    return s?.text === text ? s.key : '';
  } catch {
    return '';
  }
}

export function Say({ p }) {
  const [text, setText, sent] = useDraft(p.uuid);
  const out = shared('sending ' + p.uuid, () => ({ busy: signal(false), problem: signal(''), key: '' })); // an answer may come when a person is elsewhere, and comes back
  const busy = out.busy.value, problem = out.problem.value;
  const field = useRef();
  const other = () => { // it is another message now
    out.key = '';
    remember(p.uuid, '', '');
  };
  const at = useAttach(p.uuid, other);
  const phase = ended(p) ? 'ended' : works(p) ? 'works' : 'suspended';
  const off = busy || wire.value.word !== 'live';
  const type = (v) => {
    other();
    if (!v) out.problem.value = '';
    setText(v);
  };
  const send = async () => {
    if (off || out.busy.peek() || !text.trim()) return;
    out.busy.value = true;
    try {
      const more = await at.gather();
      out.key ||= remembered(p.uuid, text) || crypto.randomUUID();
      remember(p.uuid, text, out.key);
      const r = await say(p, text, out.key, more.request);
      out.problem.value = '';
      other();
      sent(text); // what was typed or attached meanwhile stays
      if (more.files.length) at.sent(more.files);
      if (r.warnings?.length) said(r.warnings.join('; '));
    } catch (err) {
      out.problem.value = err.message;
    }
    out.busy.value = false;
    if (document.activeElement === document.body || field.current?.form.contains(document.activeElement)) field.current?.focus();
  };
  useEffect(() => { // it is as high as what is typed
    field.current.style.height = 'auto';
    field.current.style.height = Math.min(field.current.scrollHeight + 2, 260) + 'px';
  }, [text]);
  return html`<form class="say" ...${at.on} onSubmit=${(e) => { e.preventDefault(); send(); }}>
    ${problem && html`<p class="problem" role="alert"><${Line} value=${problem} most=${1000} /></p>`}
    <label class="sr" for="say">Your message to it</label>
    <textarea id="say" ref=${field} rows="1" maxlength="1000000" value=${text} placeholder="Your message" aria-describedby="say-keys" ...${at.pasted} onInput=${(e) => type(e.target.value)}
      onKeyDown=${(e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } }}></textarea>
    <div class="buttons"><button type="submit" class="main" disabled=${off || !text.trim()}>${busy ? 'Sending …' : phase === 'works' ? 'Send' : 'Send and resume'}</button>
      ${phase === 'works' && html`<button type="button" onClick=${() => interrupt(p)}>Interrupt</button>`}</div>
    <${Attached} at=${at} id="say-files" />
    <small id="say-keys"><span class="by-key">Enter sends, Shift+Enter is a new line. </span>${hints[phase]}.${at.files.length && !text.trim() ? ' Say what it should do with what is attached.' : ''}</small>
  </form>`;
}
