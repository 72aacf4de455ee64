// What a person is asked, and what an answer means. Pure.

const shell = '/dev/shell';

// waits reports whether a process waits for the answer of a person.
export const waits = (p) => p.wait_kind === 'ask' && p.state !== 'dead' && p.state !== 'zombie' && p.state !== 'archived';

// pulse is what of a table of processes says that something else is asked than before. asked are the UUIDs of those that were asked about then.
export function pulse(rows, asked) {
  let s = '';
  for (const p of rows.values()) if (asked.has(p.uuid) || waits(p)) s += `${p.uuid} ${p.state} ${p.wait_since} ${p.wait}\n`;
  return s;
}

// commandOf returns the command line that a call runs, or null if it is none of the shell, or not known.
export function commandOf(a) {
  return a.path === shell && typeof a.input?.command === 'string' ? a.input.command : null;
}

// runs returns what a call does, as it is shown: the command, or else the call in a line without its tool. Of a question it is that.
export const runs = (a) => a.question?.text ?? commandOf(a) ?? (a.text.startsWith(a.tool + ' ') ? a.text.slice(a.tool.length + 1) : a.text);

// inputOf returns the input of a call as people read it; '' if it is not here.
export const inputOf = (a) => (a.input === undefined || a.input === null ? '' : JSON.stringify(a.input, null, 2));

// changed returns the input that runs instead of what is asked about: {input}, or {problem}. text is a command line for the shell, else JSON.
export function changed(a, text) {
  if (commandOf(a) !== null) return text.trim() ? { input: { ...a.input, command: text } } : { problem: 'It is empty. To run nothing, deny it.' };
  try {
    const input = JSON.parse(text);
    if (input && typeof input === 'object' && !Array.isArray(input)) return { input };
  } catch (err) {
    return { problem: `This is not JSON: ${err.message}` };
  }
  return { problem: 'The input of a call is a JSON object: {"name": value}.' };
}

const verdicts = { allow: 'a person has allowed it', edit: 'a person has allowed it, with a change', deny: 'a person has denied it', answer: 'a person has answered', default: 'no person has answered in time, and its default counts', withdrawn: 'no person has answered, and it is not waited for any more' };

// byCall returns the asks that calls of tools have been about, by the IDs of the calls. Both are in their order; of calls that are the same the last ones have the last asks.
export function byCall(asks, calls) {
  const out = new Map(), left = asks.slice();
  const same = (a, c) => {
    if (a.tool ? a.tool !== c.name : c.name !== 'ask') return false;
    if (a.input === undefined || a.input === null) return true;
    try {
      return JSON.stringify(a.input) === JSON.stringify(JSON.parse(c.input));
    } catch {
      return false;
    }
  };
  for (const c of calls.toReversed()) {
    const at = left.findLastIndex((a) => same(a, c));
    if (at >= 0) out.set(c.id, left.splice(at, 1)[0]);
  }
  return out;
}

// answerText says who has answered an ask, and how.
export const answerText = ({ number, answer: r }) => `ask ${number}: ${verdicts[r.verdict] || r.verdict}${r.text ? ': ' + r.text : ''}`;

// askText says in the log what was asked, who has answered it and how; undefined = the event tells of neither.
export function askText(e) {
  if (e.kind === 'asked') return `ask ${e.args}${e.result ? `, because of the rule ${e.result}` : ', a question of the agent'}: ${e.text}`;
  if (e.kind === 'answered') return `ask ${e.args}: ${verdicts[e.result] || e.result}${e.text ? ': ' + e.text : ''}`;
  return undefined;
}

// scopes are for what else an answer can count.
export const scopes = [
  { value: 'process', text: 'this process, also when it is resumed' },
  { value: 'family', text: 'its whole family of processes' },
  { value: '1h', text: 'its family, for an hour' },
];

// scoped returns what an answer that counts for a scope says, with a pattern or without.
export const scoped = (scope, match) => ({ ...(scope === '1h' ? { for_ms: 3600000 } : { for: scope }), ...(match.trim() ? { match: match.trim() } : {}) });

// gone returns the asks of before that are not open any more, without those that were answered here.
export function gone(before, now, mine) {
  const open = new Set(now.map((a) => a.number));
  return before.filter((a) => !open.has(a.number) && !mine.has(a.number));
}

const words = { allow: 'was allowed elsewhere', edit: 'was changed and allowed elsewhere', answer: 'was answered elsewhere', default: 'was answered by its default', withdrawn: 'is not waited for any more' };

// ends returns what became of asks, as far as events say it: [{ask, word}].
export function ends(asks, events) {
  const out = [];
  for (const a of asks) {
    const reply = events.find((e) => e.kind === 'answered' && e.uuid === a.uuid && e.args === String(a.number));
    if (reply) out.push({ ask: a, word: words[reply.result] ?? 'was refused elsewhere' });
    else if (events.some((e) => e.kind === 'exited' && e.uuid === a.uuid)) out.push({ ask: a, word: 'is over: its process has ended' });
  }
  return out;
}

// heading is the title of the document while so many calls wait for an answer.
export const heading = (n, title) => (n ? `(${n}) ` : '') + title;
