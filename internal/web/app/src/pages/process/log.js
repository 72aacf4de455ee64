// The log, live: what it thinks, says and reads.
import { html, useEffect, useRef, useState } from '../../lib/html.js';
import { stream } from '../../lib/api.js';
import { askText } from '../../lib/asked.js';
import { outcome, outcomeWhy } from '../../lib/fold.js';
import { moment } from '../../lib/format.js';
import { Line, Text } from '../../ui/text.js';

const keep = 2000; // lines
const categories = ['think', 'tool', 'output', 'warning', 'ask'];
const kinds = { refused: 'warning', asked: 'ask', answered: 'ask' };
const categoryOf = (e) => kinds[e.kind] || e.name;

export function Log({ id }) {
  const [lines, setLines] = useState([]);
  const [gap, setGap] = useState(0);
  const [state, setState] = useState({ word: 'connecting' });
  const [off, setOff] = useState(() => new Set());
  const [follow, setFollow] = useState(true);
  const box = useRef(), waiting = useRef([]);
  useEffect(() => {
    let timer = 0;
    const flush = () => { // many events make one drawing
      timer = 0;
      const more = waiting.current.splice(0);
      setLines((l) => [...l, ...more].slice(-keep));
    };
    const stop = stream('events', { target: id, history: true, follow: true, kinds: ['log', 'step_started', 'exited', 'refused', 'asked', 'answered'] }, {
      each(e) {
        waiting.current.push(e);
        if (waiting.current.length > keep) waiting.current.splice(0, waiting.current.length - keep);
        timer ||= setTimeout(flush, 100);
      },
      fresh() { waiting.current = []; setLines([]); },
      missed(m) { setGap((n) => n + (m.to - m.from + 1)); },
      state(word, error) { setState({ word, error }); },
    });
    return () => { stop(); clearTimeout(timer); };
  }, [id]);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, follow]);
  const toggle = (c) => setOff((o) => {
    const next = new Set(o);
    if (!next.delete(c)) next.add(c);
    return next;
  });
  const seen = lines.filter((e) => ['step_started', 'exited'].includes(e.kind) || !off.has(categoryOf(e)));
  return html`<div class="tools">${categories.map((c) => html`<label class="check"><input type="checkbox" checked=${!off.has(c)} onChange=${() => toggle(c)} /> ${c}</label>`)}
      <label class="check"><input type="checkbox" checked=${follow} onChange=${(e) => setFollow(e.target.checked)} /> stay at the end</label>
      <small role="status">${state.word === 'live' ? 'live' : state.word === 'ended' ? '' : state.word}${lines.length >= keep ? ` · the last ${keep} lines` : ''}${gap ? ` · ${gap} events came too fast and are not shown` : ''}</small></div>
    ${state.error && html`<p class="problem"><${Line} value=${state.error.message} /></p>`}
    <div class="log mono" ref=${box} tabindex="0" role="log" aria-label="Log" aria-live="off">
      ${seen.length === 0 ? html`<p class="empty">Nothing yet.</p>` : seen.map((e) => (e.kind === 'step_started' ? html`<div key=${e.seq + e.time} class="mark">step ${e.step}${e.total ? '/' + e.total : ''}</div>`
        : e.kind === 'exited' ? html`<div key=${e.seq + e.time} class="mark">ended: ${outcome(e.exit)} <${Line} value=${outcomeWhy(e.exit)} /></div>`
        : html`<div key=${e.seq + e.time} class=${'entry ' + categoryOf(e)}><small>${moment(e.time)} ${categoryOf(e)}</small><${Text} value=${askText(e) ?? e.text} start=${2000} /></div>`))}
    </div>`;
}
