// The table of processes, folded from the frames of watch_procs. Pure.
import { waits } from './asked.js';
import { age, duration } from './format.js';

// newTable returns a table without rows. Rows are kept by UUID in a Map: what an agent names something can then never be
// taken for a part of the table itself.
export function newTable() {
  return { seq: 0, hidden: 0, skew: 0, totals: {}, rows: new Map() };
}

// fold takes a frame into a table, in place. now is this browser's clock in milliseconds.
export function fold(table, frame, now) {
  const at = Date.parse(frame.at);
  if (frame.whole) {
    table.rows.clear();
    table.skew = now - at;
  }
  // The quickest frame says best how far apart the two clocks are.
  table.skew = Math.min(table.skew, now - at);
  for (const p of frame.procs || []) table.rows.set(p.uuid, { ...p, at });
  for (const uuid of frame.gone || []) table.rows.delete(uuid);
  table.seq = frame.seq;
  table.hidden = frame.hidden || 0;
  table.totals = frame.totals || {};
}

// stands reports whether the time of a process does not run: it waits for a person, is paused, suspended or over.
export function stands(p) {
  return Boolean(p.clock_paused) || p.state !== 'running' && p.state !== 'created';
}

// elapsed returns how long a process has worked, in milliseconds, at the moment now of the daemon's clock.
export function elapsed(p, now) {
  return stands(p) ? p.elapsed_ms : p.elapsed_ms + Math.max(0, now - p.at);
}

// took is elapsed for people: exact of one that has ended within a second.
export function took(p, now) {
  const ms = elapsed(p, now);
  return ended(p) && ms < 1000 ? duration(ms) : age(ms);
}

export function ended(p) {
  return p.state === 'dead' || p.state === 'zombie' || p.state === 'archived';
}

// misses says how many calls of a process failed, if any did; one that is done may have some, too.
export const misses = (p) => (p.failed_calls_unknown ? 'failed calls unknown' : p.failed_calls ? (p.failed_calls === 1 ? '1 failed call' : p.failed_calls + ' failed calls') : '');

// ending is the reason with which a process ended, if it has one to tell, and its failed calls.
export const ending = (p) => [outcomeWhy(p.exit) || (misses(p) && p.exit?.reason), misses(p)].filter(Boolean).join(' · ');

// outcomes says of the exit codes of the kernel, which are not those of the command line, what they mean: in a word or two, and in a sentence.
const outcomes = {
  0: ['done', ''], 1: ['failed', ''], 2: ['out of budget', 'Its budget is used up.'], 3: ['taken over', 'Another owner took its session.'], 4: ['cancelled', 'A signal ended it.'],
  5: ['blocked', 'A decision is needed, and no person can be asked.'], 6: ['repeated itself', 'It repeated itself and was stopped.'], 7: ['refused', 'It ended after a call that was refused, and did nothing else.'],
};
const bare = new Set(['', 'completed', 'refused', 'budget_exceeded']); // reasons that say no more than the outcome

// outcome returns how something ended, in a word or two.
export const outcome = (exit) => outcomes[exit?.code ?? 0]?.[0] ?? `exit ${exit.code}`;

// outcomeWhy says why something failed; '' = it did not, or there is nothing to say.
export function outcomeWhy(exit) {
  if (!exit?.code) return '';
  const reason = bare.has(exit.reason || '') ? '' : exit.reason;
  return [outcomes[exit.code]?.[1], reason].filter(Boolean).join(' ');
}

// modelOf names the model of a process; with its provider, as the command line does, where the model alone says nothing.
export const modelOf = (p) => (!p.model || p.model === 'replay' || p.model === 'script' ? fullModel(p) : p.model);

// fullModel names the provider and the model of a process.
export const fullModel = (p) => [p.provider, p.model].filter(Boolean).join('/');

// paused reports whether a person has paused a process, whether or not it has been on disk since.
export const paused = (p) => p.state === 'suspended' && Boolean(p.paused_at);

// limited reports whether a living process waits for a rate limit, a quota or a budget, as the daemon's totals count it.
export function limited(p) {
  return Boolean(p.wait_until || p.purse) || /^(the )?budget/.test(p.wait || '');
}

// condition returns what there is to say of a process: a word, and a tone (run, wait, hold, bad, done, ask).
export function condition(p) {
  if (p.exit && ended(p)) {
    return { word: outcome(p.exit), tone: p.exit.code ? 'bad' : 'done' };
  }
  if (ended(p)) return { word: p.state, tone: 'done' };
  if (p.asked || waits(p)) return { word: 'asks you', tone: 'ask' };
  if (p.suspect_since) return { word: 'no progress', tone: 'bad' };
  if (paused(p)) return { word: 'paused', tone: 'hold' };
  if (p.state === 'suspended') return { word: 'suspended', tone: 'wait' };
  if (limited(p)) return { word: 'waiting', tone: 'wait' };
  return { word: p.state, tone: 'run' };
}

// labels returns the labels of a process on one line, ordered by key, as `rnix ps` shows them.
export const labels = (p) => Object.keys(p.labels || {}).sort().map((k) => `${k}=${/[ "]/.test(p.labels[k]) ? JSON.stringify(p.labels[k]) : p.labels[k]}`).join(' ');

// task returns what a process is to do, for lists; that of a fork says where it began, since the forks of one start have the same intent.
export const task = (p) => (p.origin_uuid ? `[fork from step ${p.origin_step ?? 0}] ${p.intent || ''}` : p.intent || '');

const text = (s) => (s || '').toLowerCase();

// sorts are the columns by which rows can stand in order, each a function to a number or a text.
export const sorts = {
  pid: (p) => p.pid,
  name: (p) => text(p.name || p.agent || p.intent),
  state: (p) => condition(p).word,
  step: (p) => p.step,
  model: (p) => text(modelOf(p)),
  tokens: (p) => p.tokens_used,
  cost: (p) => p.cost_usd || 0,
  elapsed: (p) => p.elapsed_ms,
};

// matches reports whether a process has every word of a query in what is shown of it.
export function matches(p, words) {
  if (!words.length) return true;
  const all = text([p.pid, p.uuid, p.name, p.agent, p.intent, p.model, p.provider, condition(p).word, p.state, p.wait, p.kind, p.doing?.tool, labels(p), ended(p) && p.exit?.code ? 'failed' : '', ...(p.groups || [])].join('\n'));
  return words.every((w) => all.includes(w));
}

// arrange returns the rows in the order in which they are shown, each {p, depth, kids, open, dim}. view is {tree, sort, down,
// query, ended, closed: Set of UUIDs}. In a tree the ancestors of what matches stay, dim.
export function arrange(rows, view) {
  const words = text(view.query).split(/\s+/).filter(Boolean);
  const by = sorts[view.sort] || sorts.pid;
  const sign = view.down ? -1 : 1;
  const order = (a, b) => {
    const x = by(a), y = by(b);
    return x < y ? -sign : x > y ? sign : a.pid - b.pid || (a.uuid < b.uuid ? -1 : 1);
  };
  const shown = [];
  for (const p of rows.values()) {
    if ((view.ended || !ended(p)) && matches(p, words)) shown.push(p);
  }
  if (!view.tree) return shown.sort(order).map((p) => ({ p, depth: 0, kids: 0, open: true, dim: false }));

  const matched = new Set(shown.map((p) => p.uuid));
  const inTree = new Set(matched);
  for (const p of shown) {
    for (let up = rows.get(p.parent_uuid); up && !inTree.has(up.uuid); up = rows.get(up.parent_uuid)) inTree.add(up.uuid);
  }
  const kids = new Map();
  const roots = [];
  for (const uuid of inTree) {
    const p = rows.get(uuid);
    if (p.parent_uuid && inTree.has(p.parent_uuid) && p.parent_uuid !== uuid) {
      const list = kids.get(p.parent_uuid);
      if (list) list.push(p);
      else kids.set(p.parent_uuid, [p]);
    } else roots.push(p);
  }
  const out = [];
  const stack = roots.sort(order).reverse().map((p) => [p, 0]);
  while (stack.length) {
    const [p, depth] = stack.pop();
    const below = kids.get(p.uuid) || [];
    const open = words.length > 0 || !view.closed?.has(p.uuid);
    out.push({ p, depth, kids: below.length, open, dim: !matched.has(p.uuid) });
    if (open) for (const k of below.sort(order).reverse()) stack.push([k, depth + 1]);
  }
  return out;
}
