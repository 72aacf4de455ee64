// What waits for the answer of a person, and what was granted with answers.
import { html, useEffect } from '../lib/html.js';
import { call } from '../lib/api.js';
import { age } from '../lib/format.js';
import { href } from '../lib/router.js';
import { useCall } from '../lib/ask.js';
import { asks, open } from '../lib/asks.js';
import { line } from '../lib/visible.js';
import { shown } from '../lib/keys.js';
import { clock, second } from '../lib/store.js';
import { Answer, Table } from '../ui/answer.js';
import { Cards } from '../ui/asks.js';
import { Line } from '../ui/text.js';
import { said, failed } from '../ui/toast.js';

function Grants() {
  second.value;
  const of = useCall('asks', { grants: true, max_input: 1 }, { on: asks.value });
  const revoke = async (g) => {
    try {
      await call('revoke', { number: g.number });
      said(`${line(g.text, 200)} is asked about again`);
    } catch (err) {
      failed(err);
    }
    of.again();
  };
  const left = (g) => (!g.until ? 'no time limit' : Date.parse(g.until) > clock() ? age(Date.parse(g.until) - clock()) + ' more' : 'over');
  return html`<h2>What passes without asking</h2><${Answer} of=${of} draw=${(d) => html`<${Table} label="Grants" empty="Nothing now. What an answer allows for a process, or for its family, passes as long as one of them runs, and again when it is resumed." rows=${(d.grants || []).map((g) => ({ ...g, key: g.number }))} columns=${[
    { text: 'Calls', cell: (g) => html`<${Line} value=${g.text} most=${400} class="mono" />` },
    { text: 'For', cell: (g) => html`${g.scope === 'family' ? 'the family of ' : ''}<a href=${href('process', { id: g.uuid })}>PID ${g.pid} <${Line} value=${g.name} most=${40} /></a>` },
    { text: 'How long', cell: (g) => (g.ended ? 'it has ended; counts when it is resumed, ' : '') + left(g) },
    { text: '', cell: (g) => html`<button type="button" aria-label=${`Take back what was granted with ask ${g.number}`} onClick=${() => revoke(g)}>Take back</button>` },
  ]} />`} />`;
}

// what says what waits, of n asks.
function what(n) {
  const questions = asks.value.filter((a) => a.question).length;
  if (questions && questions < n) return 'calls and questions wait';
  return (questions ? 'question' : 'call') + (n === 1 ? ' waits' : 's wait');
}

function Asks() {
  useEffect(() => {
    shown.value = [{ key: 'j', text: 'to the next one', run: () => step(1) }, { key: 'k', text: 'to the one before', run: () => step(-1) }];
    return () => { shown.value = []; };
  }, []);
  const n = open.value;
  return html`<h1>${n ? `${n} ${what(n)} for your answer` : 'Nothing waits for your answer'}</h1>
    <${Cards} empty=${html`<p class="empty">Rules say about which calls you are asked: <code>--ask</code>, and <code>permissions:</code> in <code>config.yaml</code>.</p>`} />
    <${Grants} />`;
}

// step leads to the next card, or to the one before.
function step(by) {
  const cards = [...document.querySelectorAll('[data-ask]')];
  const at = cards.indexOf(document.activeElement?.closest?.('[data-ask]'));
  cards[at < 0 ? 0 : Math.max(0, Math.min(cards.length - 1, at + by))]?.focus();
}

export default { name: 'asks', path: '/asks', title: 'Asks', nav: 'Asks', Page: Asks };
