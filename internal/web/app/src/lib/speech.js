// What a model says, put together from the pieces and lines in which it comes, each byte of it once. Pure.

const most = 1 << 20; // characters of an answer that are kept; the record has all of it
const kept = 200; // steps of which is kept what was thought

const encoder = new TextEncoder(), decoder = new TextDecoder();

// newSpeech returns what was said by a model of which nothing was heard yet.
export function newSpeech() {
  return { step: 0, answer: 0, of: 0, over: false, text: { output: '', think: '' }, at: { output: 0, think: 0 }, thoughts: new Map() };
}

// hear takes an event in, and reports whether something was said.
export function hear(s, e) {
  if (e.kind === 'step_started') s.step = e.step;
  if (e.kind === 'step_ended' || e.kind === 'exited') {
    keep(s);
    s.over = true;
  }
  if ((e.kind !== 'piece' && e.kind !== 'log') || !e.answer || e.answer < s.answer || !(e.name in s.at)) return false;
  if (e.answer > s.answer) {
    keep(s);
    Object.assign(s, { answer: e.answer, of: s.step, over: false, text: { output: '', think: '' }, at: { output: 0, think: 0 } });
  }
  let bytes = encoder.encode(e.text || '');
  const at = e.at || 0, covers = e.kind === 'log' ? e.total || 0 : bytes.length;
  if (covers > bytes.length) bytes = encoder.encode((e.text || '') + '\n');
  const known = Math.max(0, s.at[e.name] - at);
  s.at[e.name] = Math.max(s.at[e.name], at + covers);
  if (known >= bytes.length || known >= covers) return false;
  s.text[e.name] += decoder.decode(bytes.subarray(known));
  if (s.text[e.name].length > 2 * most) s.text[e.name] = s.text[e.name].slice(-most);
  return true;
}

function keep(s) {
  if (!s.text.think || !s.of) return;
  s.thoughts.set(s.of, s.text.think);
  if (s.thoughts.size > kept) s.thoughts.delete(s.thoughts.keys().next().value);
}

// thoughts returns what was thought in each step, as far as it was heard.
export const thoughts = (s) => (s.of && s.text.think ? new Map(s.thoughts).set(s.of, s.text.think) : s.thoughts);

// underWay returns what was said of an answer that is not in the conversation, {output, think, over}, or null. last is the last answer that the
// conversation has: {step, content}, or undefined.
export function underWay(s, last) {
  const { output, think } = s.text;
  if (!output && !think) return null;
  if (last && (s.of ? s.of <= last.step : last.content.trimStart().startsWith(output.trim().slice(0, 400)))) return null;
  return { output, think, over: s.over };
}
