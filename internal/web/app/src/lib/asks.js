// The one list of what a person is asked: read when the table of processes says that it may be another, and by the clock while a
// row cannot say it. Actions that answer.
import { html, signal, computed, effect } from './html.js';
import { call, stream } from './api.js';
import { changed, commandOf, ends, gone, heading, inputOf, pulse, runs, scoped, scopes } from './asked.js';
import { who } from './actions.js';
import { line } from './visible.js';
import { inside } from './session.js';
import { procs, second, wire } from './store.js';
import { title } from './router.js';
import { ask, drop } from '../ui/dialog.js';
import { said, failed } from '../ui/toast.js';

const most = 64 << 10; // bytes of an input that are read with the list; a longer one is read when it is wanted
const often = 5; // seconds between two looks while something is open: an answer to what is only on disk changes no row
const seldom = 15000; // milliseconds between two while the tab is out of sight, for its title
const rest = 500; // milliseconds after a change of the list in which a click is not taken: it was meant for what stood there before
const told = 5; // about so many that are over it is said how

// asks is what waits for an answer, the oldest first.
export const asks = signal([]);
export const open = computed(() => asks.value.length);

// busy has the numbers that are just being answered; settling is true for a moment after cards have moved.
export const busy = signal(new Set());
export const settling = signal(false);

// asked has the processes that are asked about.
export const asked = computed(() => new Set(asks.value.map((a) => a.uuid)));

const mine = new Set(); // answered here
const key = (list) => list.map((a) => `${a.number} ${a.pid} ${a.suspended} ${a.since}`).join('\n');

let reading = false, again = false, timer = 0;

// look reads the list; while it is read already, once more behind that.
export async function look() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    do {
      again = false;
      take((await call('asks', { max_input: most })).asks);
    } while (again);
  } catch { /* what is shown is how it was; the page says already that the daemon does not answer */ } finally {
    reading = false;
  }
}

function take(list) {
  const before = asks.peek();
  if (key(list) === key(before)) return;
  const over = gone(before, list, mine);
  const shown = new Set(list.map((a) => a.number));
  if (before.some((a) => !shown.has(a.number))) settle();
  asks.value = list;
  for (const a of over) drop('ask ' + a.number);
  if (over.length) report(over);
}

function settle() {
  settling.value = true;
  clearTimeout(timer);
  timer = setTimeout(() => { settling.value = false; }, rest);
}

const name = (a) => `Ask ${a.number}, ${who(a)}: ${line(a.text, 80)}`;

// report says what became of asks that were answered elsewhere, or are about what has ended.
function report(list) {
  if (list.length > told) {
    said(`${list.length} asks were answered elsewhere, or are about processes that have ended`);
    return;
  }
  const events = [];
  const stop = stream('events', { history: true, kinds: ['answered', 'exited'], targets: [...new Set(list.map((a) => a.uuid))] }, {
    each: (e) => events.push(e),
    fresh: () => { events.length = 0; },
    state(word) {
      if (word !== 'ended' && word !== 'down') return;
      stop();
      // Of a process that is just being resumed nothing is open for a moment: then there is nothing to say.
      for (const { ask: a, word: w } of ends(list, events)) said(`${name(a)} ${w}`);
    },
  });
}

async function answer(a, reply, word) {
  busy.value = new Set(busy.peek()).add(a.number);
  try {
    const r = await call('answer', { number: a.number, ...reply });
    mine.add(a.number);
    const g = r.grant;
    said(`${name(a)}: ${word}` + (g ? `. ${line(g.text, 200)} passes without asking for ${g.scope === 'family' ? 'the family of ' : ''}PID ${g.pid}` : '') + (a.suspended ? '. It is suspended: the answer counts when it is resumed' : ''));
    if (asks.peek().some((o) => o.number === a.number)) {
      settle();
      asks.value = asks.peek().filter((o) => o.number !== a.number);
    }
  } catch (err) {
    failed(err);
  } finally {
    const left = new Set(busy.peek());
    left.delete(a.number);
    busy.value = left;
  }
  look();
}

export const allow = (a) => answer(a, { allow: true }, 'allowed');

// reply answers a question.
export const reply = (a, text) => answer(a, { allow: true, text }, 'answered');

const about = (a) => html`<p class="mono"><bdi>${line(runs(a), 400)}</bdi></p>`;

export async function deny(a) {
  const r = await ask({
    tag: 'ask ' + a.number, title: a.question ? `Do not answer ask ${a.number} of ${who(a)}?` : `Deny ask ${a.number} of ${who(a)}?`, yes: a.question ? 'Do not answer' : 'Deny', danger: true, body: about(a),
    fields: [{ name: 'because', type: 'area', label: 'Why', hint: 'May be empty. The agent is told, and works on.' }],
  });
  return r && answer(a, { allow: false, because: r.because.trim() }, 'refused');
}

export async function allowFor(a) {
  const r = await ask({
    tag: 'ask ' + a.number, title: `Allow ask ${a.number} of ${who(a)}, and more`, yes: 'Allow', body: about(a),
    fields: [
      { name: 'scope', type: 'choice', label: 'For', value: 'process', options: scopes },
      { name: 'match', label: 'Which calls', hint: `Empty: the same call again. Else a pattern, such as ${commandOf(a) === null ? 'docs/**' : 'go test *'}` },
    ],
  });
  return r && answer(a, { allow: true, ...scoped(r.scope, r.match) }, 'allowed');
}

// edit has a person change what runs, until it is something that can.
export async function edit(short) {
  const a = await whole(short);
  if (!a) return;
  const command = commandOf(a);
  for (let text = command ?? inputOf(a), problem = ''; ;) {
    const r = await ask({
      tag: 'ask ' + a.number, title: `Change ask ${a.number} of ${who(a)}, and allow it`, yes: 'Allow this instead',
      body: problem && html`<p class="problem" role="alert">${problem}</p>`,
      fields: [{ name: 'text', type: 'area', mono: true, value: text, label: command === null ? 'Input, as JSON' : 'Command', hint: 'The agent is told what has run.' }],
    });
    if (!r) return;
    const c = changed(a, r.text);
    if (c.input) {
      await answer(a, { allow: true, input: c.input }, 'changed, and allowed');
      return;
    }
    ({ problem, text } = { problem: c.problem, text: r.text });
  }
}

// whole returns an ask with all of its input, or null if that cannot be had, which it says.
export async function whole(a) {
  if (!a.input_bytes) return a;
  try {
    const r = await call('asks', { number: a.number });
    if (r.asks.length) return r.asks[0];
    failed(new Error(`Ask ${a.number} is not open any more`));
  } catch (err) {
    failed(err);
  }
  return null;
}

const moved = computed(() => pulse(procs.value.rows, asked.value));

// startAsks keeps the list as it is at the daemon.
export function startAsks() {
  effect(() => {
    moved.value;
    if (inside.value && wire.value.word === 'live') look();
  });
  effect(() => {
    if (second.value % often === 0 && open.peek() && wire.peek().word === 'live') look();
  });
  setInterval(() => { if (document.hidden && inside.peek()) look(); }, seldom);
  effect(() => { document.title = heading(inside.value ? open.value : 0, title.value); });
}
