// A conversation as it is shown: each call of an answer with its result. And what calls are, in words. Pure.

// turns joins messages: [{m}] for one that stands for itself, with calls: [{call, result}] where it has some. A result whose call is not among the
// messages stands for itself.
export function turns(messages) {
  const calls = new Map(), out = [];
  for (const m of messages) {
    const of = m.role === 'tool' && calls.get(m.tool_call_id);
    if (of && !of.result) {
      of.result = m;
      continue;
    }
    const item = { m, calls: (m.tool_calls || []).map((call) => ({ call, result: null })) };
    for (const c of item.calls) calls.set(c.call.id, c);
    out.push(item);
  }
  return out;
}

// input returns the input of a call as an object; null = it is none, or was cut.
export function input(call) {
  if (call.cut) return null;
  try {
    const v = JSON.parse(call.input);
    return v && typeof v === 'object' && !Array.isArray(v) ? v : null;
  } catch {
    return null;
  }
}

const text = (v) => typeof v === 'string';

// edit returns what a call changes in a file, {path, lines, whole}, or null. Lines are those of a difference; whole says that they are all that the
// file has now, and what it had before is not known of the call.
export function edit(call) {
  const v = input(call);
  if (!v) return null;
  const path = v.path ?? v.file_path ?? v.filePath;
  if (!text(path)) return null;
  const [old, now] = [v.old ?? v.old_string ?? v.oldString, v.new ?? v.new_string ?? v.newString];
  if (text(old) && text(now)) return { path, lines: changed(old, now) };
  if (text(v.content) && /write/i.test(call.name)) return { path, lines: changed('', v.content), whole: true };
  return null;
}

// changed returns the lines of a difference: what is the same at the beginning and at the end stays.
export function changed(old, now) {
  const a = old === '' ? [] : old.replace(/\n$/, '').split('\n'), b = now === '' ? [] : now.replace(/\n$/, '').split('\n');
  let from = 0, end = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from++;
  while (end < a.length - from && end < b.length - from && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [...a.slice(0, from).map((l) => ' ' + l), ...a.slice(from, a.length - end).map((l) => '-' + l), ...b.slice(from, b.length - end).map((l) => '+' + l), ...a.slice(a.length - end).map((l) => ' ' + l)];
}

// about says in a line what a call is about: its command, its file, or else its input.
export function about(call) {
  const v = input(call);
  if (!v) return call.input;
  for (const key of ['command', 'cmd', 'path', 'file_path', 'filePath', 'pattern', 'url', 'intent', 'query', 'question', 'text', 'result']) if (text(v[key])) return v[key];
  return Object.keys(v).length ? call.input : '';
}

// result returns what an agent hands over with a call of complete, or null.
export function result(call) {
  const v = call.name === 'complete' ? input(call) : null;
  return v && text(v.result) ? v.result : null;
}

// tone says how a line of a difference is coloured.
export function tone(l) {
  if (l.startsWith('+++') || l.startsWith('---') || l.startsWith('diff ') || l.startsWith('index ')) return 'file';
  return l[0] === '+' ? 'add' : l[0] === '-' ? 'del' : l[0] === '@' ? 'hunk' : '';
}

// parts takes the notices of the kernel off a text that is read so far: {before, text, behind}. They are counted in bytes, of the whole message.
export function parts(text, m) {
  if (!m.notice_before && !m.notice_behind) return { before: '', text, behind: '' };
  const b = new TextEncoder().encode(text), read = new TextDecoder();
  const from = Math.min(m.notice_before || 0, b.length), to = b.length < m.bytes ? b.length : Math.max(from, b.length - (m.notice_behind || 0));
  return { before: read.decode(b.subarray(0, from)).trim(), text: read.decode(b.subarray(from, to)).trim(), behind: read.decode(b.subarray(to)).trim() };
}
