// What a person can do to a process. Each asks first where it cannot be taken back, says what became of it, and never throws.
import { html } from './html.js';
import { call } from './api.js';
import { ended } from './fold.js';
import { count, dollars } from './format.js';
import { line } from './visible.js';
import { raisable, unlimited, usedUp } from './budget.js';
import { href, go } from './router.js';
import { ask } from '../ui/dialog.js';
import { said, failed } from '../ui/toast.js';

const SIGKILL = 'SIGKILL', SIGPAUSE = 'SIGPAUSE';

// who names a process for people.
export const who = (p) => `PID ${p.pid}` + (p.name ? ` (${line(p.name, 40)})` : '');

const many = (n) => (n === 1 ? '1 process' : n + ' processes');

async function act(work, good) {
  try {
    const r = await work();
    said(typeof good === 'function' ? good(r) : good);
    return r;
  } catch (err) {
    failed(err);
    return null;
  }
}

export const pause = (p) => act(() => call('signal_tree', { target: p.uuid, signal: SIGPAUSE }), (r) => `Paused ${many(r.affected)}`);

// refused is an error in the words of this page, where they are others.
export const refused = (err, p) => (err.code === 'RESOURCE_EXHAUSTED' && p ? new Error(usedUp(p)) : err);

async function resumeWith(p, input = '', more = {}) {
  const r = await call('resume', { target: p.uuid, ...(input.trim() ? { new_input: input, ...more } : {}) }).catch((err) => { throw refused(err, p); });
  said(`${who({ ...p, pid: r.pid })} resumed` + (r.warnings?.length ? ': ' + r.warnings.join('; ') : ''));
  return r;
}

export const resume = (p) => resumeWith(p).catch((err) => { failed(err); return null; });

// files is the field of a question in which a person attaches images and PDFs.
const files = { name: 'files', type: 'files' };

// resumeEnded resumes a process that has ended. It asks first: what it does then is paid for, and one that was done needs a task.
export function resumeEnded(p) {
  const done = p.exit && (p.exit.code ?? 0) === 0;
  return ask({
    title: `Resume ${who(p)}?`, yes: 'Resume',
    body: html`<p><bdi>${line(p.intent, 200)}</bdi></p><p>${p.kind ? 'What it runs uses models again, which costs tokens.' : 'It has ended. Its model is asked again with the whole conversation, which costs tokens.'}</p>`,
    fields: p.kind ? [] : [{ name: 'text', type: 'area', required: done, label: 'What to do next', hint: done ? 'It was done: say what it should do now.' : 'May be empty: then it continues with its task.' }, files],
    run: (a) => resumeWith(p, a.text, a.files),
  });
}

export async function kill(p) {
  const a = await ask({
    title: `End ${who(p)}?`, danger: true, yes: 'End it',
    body: html`<p><bdi>${line(p.intent, 200)}</bdi></p><p>It ends at once. Its history stays, and it can be resumed or forked from there.</p>`,
    fields: [{ name: 'tree', type: 'check', value: true, label: 'its descendants too' }],
  });
  return a && act(() => call(a.tree ? 'signal_tree' : 'signal', { target: p.uuid, signal: SIGKILL }), (r) => `Ended ${many(r.affected)}`);
}

export function steer(p) {
  let before = '', key = '';
  return ask({
    title: `Say something to ${who(p)}`, yes: 'Send',
    fields: [{ name: 'text', type: 'area', required: true, label: 'What it should know or do differently', hint: 'It hears it before its next step, as from the person whom it works for.' }, files],
    run: async (a) => {
      const now = JSON.stringify([a.text, a.files]);
      if (now !== before) key = crypto.randomUUID(); // the same that is sent twice is heard once
      before = now;
      const r = await call('steer', { target: p.uuid, text: a.text, key, ...a.files });
      said(r.state === 'running' ? 'Sent: it hears it before its next step' : 'Kept: it hears it when it is resumed');
      return r;
    },
  });
}

// interrupt asks a process and what is below it to end before their next action.
export const interrupt = (p) => act(() => call('signal_tree', { target: p.uuid, signal: 'SIGINT' }), (r) => (r.handled ? 'It is told of the interrupt, and works on' : r.blocked ? 'It blocks the interrupt: end it with End' : 'Interrupted: it ends before its next action'));

// fork starts a copy of a process that goes on after a step; without one, after its last.
export async function fork(p, step) {
  const r = await ask({
    title: step === undefined ? `Fork ${who(p)}` : `Fork ${who(p)} from step ${step}`, yes: 'Fork',
    body: html`<p>A copy with the conversation and the files as they were then is started, in its own directory. The original stays as it is.</p>`,
    fields: [
      { name: 'name', label: 'Name of the fork', value: '' },
      { name: 'text', type: 'area', label: 'What to tell it first', hint: 'May be empty.' }, files,
    ],
    run: async (a) => {
      const f = await call('resume', { target: p.uuid, fork: true, ...(step === undefined ? {} : { from_step: step }), name: a.name.trim(), new_input: a.text, ...a.files });
      said(`PID ${f.pid} is the fork` + (f.warnings?.length ? ': ' + f.warnings.join('; ') : ''));
      return f;
    },
  });
  if (r) go(href('process', { id: r.uuid })); // not if the person is elsewhere by now
  return r;
}

// addBudget raises the budget of a process, or the one above it for which it waits.
export async function addBudget(p) {
  const b = ended(p) ? null : raisable(p);
  if (!b) return said(ended(p) ? `${who(p)} has ended` : unlimited(p));
  const a = await ask({
    title: b.own ? `Raise the budget of ${who(p)}` : `Raise the budget for which ${who(p)} waits`, yes: 'Raise',
    body: html`<p>${!b.own ? 'It is that of an ancestor. What waits for it is resumed then.' : p.purse || /budget/.test(p.wait || '') ? 'What waits for it is resumed then.' : 'It and its descendants may use so much more.'}</p>`,
    fields: [
      b.tokens && { name: 'tokens', type: 'number', min: 0, step: 1, label: `Tokens more (now ${count(b.tokens)})` },
      b.usd && { name: 'usd', type: 'number', min: 0, step: 'any', label: `US dollars more (now ${dollars(b.usd)})` },
    ].filter(Boolean),
  });
  if (!a || (!a.tokens && !a.usd)) return null;
  return act(() => call('add_budget', { target: b.uuid, tokens: a.tokens || 0, usd: a.usd || 0 }), (r) => 'Raised' + (r.resumed?.length ? `; resumed: PID ${r.resumed.join(', ')}` : '') + (r.warnings?.length ? ': ' + r.warnings.join('; ') : ''));
}

// actions returns what can be done to a process as it is now: [{name, key, text, danger, run}].
export function actions(p) {
  const live = !ended(p);
  const list = [];
  if (live && p.state === 'suspended') list.push({ name: 'resume', key: 'R', text: 'Resume', run: () => resume(p) });
  else if (live) list.push({ name: 'pause', key: 'p', text: 'Pause', run: () => pause(p) });
  if (live && !p.kind) list.push({ name: 'steer', key: 's', text: 'Steer', run: () => steer(p) });
  if (live && raisable(p)) list.push({ name: 'budget', key: 'b', text: 'Budget', run: () => addBudget(p) });
  if (!p.kind && p.step > 0) list.push({ name: 'fork', key: 'F', text: 'Fork', run: () => fork(p) });
  if (!live) list.push({ name: 'resume', key: 'R', text: 'Resume…', run: () => resumeEnded(p) });
  if (live) list.push({ name: 'kill', key: 'K', text: 'End', danger: true, run: () => kill(p) });
  return list;
}
