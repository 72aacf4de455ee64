import assert from 'node:assert/strict';
import test from 'node:test';
import { markdown } from '../src/lib/markdown.js';
import { hear, newSpeech, thoughts, underWay } from '../src/lib/speech.js';
import { belongs, requests, span, suggestions, tokens } from '../src/lib/start.js';
import { groups } from '../src/lib/compare.js';
import { notice } from '../src/lib/notice.js';
import { about, changed, edit, parts, result, turns } from '../src/lib/turns.js';

const bytes = (s) => Buffer.byteLength(s);

test('what a model says is put together once, however it comes', () => {
  const whole = 'Grüße, Jürgen 😀\nnext line\nand the rest';
  const lines = whole.split('\n');
  const events = []; // as the stream of one reader has them, and another one that comes later
  let at = 0;
  for (const l of lines.slice(0, 2)) {
    events.push({ kind: 'log', name: 'output', answer: 5, at, total: bytes(l) + 1, text: l });
    at += bytes(l) + 1;
  }
  events.push({ kind: 'piece', name: 'output', answer: 5, at, text: lines[2] });
  const s = newSpeech();
  hear(s, { kind: 'step_started', step: 3 });
  for (const e of events) hear(s, e);
  assert.equal(s.text.output, whole);
  for (const e of events) hear(s, e); // the stream was opened anew
  hear(s, { kind: 'piece', name: 'output', answer: 5, at: 0, text: whole + '!' });
  assert.equal(s.text.output, whole + '!');
  hear(s, { kind: 'log', name: 'output', answer: 4, at: 0, total: 3, text: 'old' });
  assert.equal(s.text.output, whole + '!');
  assert.equal(hear(s, { kind: 'log', name: 'tool', text: 'shell' }), false);
  hear(s, { kind: 'piece', name: 'think', answer: 5, text: 'hm' });
  assert.deepEqual(underWay(s, { step: 2, content: 'x' }), { output: whole + '!', think: 'hm', over: false });
  assert.equal(underWay(s, { step: 3, content: 'x' }), null);
  assert.equal(thoughts(s).get(3), 'hm');
  hear(s, { kind: 'step_ended', step: 3 });
  assert.equal(s.thoughts.get(3), 'hm');
  hear(s, { kind: 'step_started', step: 4 });
  hear(s, { kind: 'piece', name: 'output', answer: 6, text: 'again' });
  assert.deepEqual(underWay(s, { step: 3, content: 'x' }), { output: 'again', think: '', over: false });
  const late = newSpeech(); // it does not know the step
  hear(late, { kind: 'piece', name: 'output', answer: 9, text: 'The ans' });
  assert.equal(underWay(late, { step: 3, content: 'The answer' }), null);
  assert.equal(underWay(late, { step: 3, content: 'Another' }).output, 'The ans');
  assert.equal(underWay(newSpeech(), undefined), null);
});

// flat returns the tags and texts of a tree.
const flat = (nodes) => nodes.flatMap((n) => (typeof n === 'string' ? [n] : [n.tag, ...(n.text === undefined ? [] : [n.text]), ...(n.to === undefined ? [] : ['@' + n.to]), ...flat(n.kids || [])]));

test('markdown becomes only what the page may show', () => {
  assert.deepEqual(flat(markdown('# A\n\n- b `c`\n- **d**\n\n```go\nx := 1\n```')), ['h3', 'A', 'ul', 'li', 'b ', 'code', 'c', 'li', 'strong', 'd', 'block', 'x := 1']);
  assert.deepEqual(flat(markdown('|a|b|\n|-|-|\n|1|2|')), ['table', 'thead', 'tr', 'th', 'a', 'th', 'b', 'tbody', 'tr', 'td', '1', 'td', '2']);
  assert.deepEqual(flat(markdown('[x](https://e.example/) ![y](https://e.example/p.png)')), ['p', 'link', '@https://e.example/', 'x', ' ', 'image', 'y', '@https://e.example/p.png']);
  const allowed = new Set(['p', 'ul', 'ol', 'li', 'blockquote', 'strong', 'em', 's', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'h3', 'h4', 'h5', 'h6', 'hr', 'br', 'code', 'block', 'link', 'image']);
  const tags = (nodes) => nodes.flatMap((n) => (typeof n === 'string' ? [] : [n.tag, ...tags(n.kids || [])]));
  for (const text of ['<script>x</script>', '<img src=x onerror=y>', '[x](javascript:alert(1))', '[x](data:text/html,y)', '![x](javascript:y)', '<a href="x">y</a>', 'a\0b', '&lt;script&gt;',
    '>'.repeat(5000) + 'x', '['.repeat(50000), '*a '.repeat(20000), '`'.repeat(30000), '- '.repeat(5000), '|a'.repeat(3000) + '\n' + '|-'.repeat(3000), '![['.repeat(20000)]) {
    for (const tag of tags(markdown(text))) assert.ok(allowed.has(tag), `${tag} of ${text.slice(0, 40)}`);
  }
  assert.deepEqual(flat(markdown('<script>x</script>')), ['p', '<script>x</script>']);
  assert.deepEqual(flat(markdown('[x](javascript:alert(1))')), ['p', '[x](javascript:alert(1))']);
});

test('a call stands with its result, and says what it is about', () => {
  const call = (id, name, v) => ({ id, name, input: JSON.stringify(v) });
  const m = [{ n: 1, role: 'tool', tool_call_id: 'gone' }, { n: 2, role: 'assistant', tool_calls: [call('a', 'shell', { command: 'ls' }), call('b', 'read_file', { path: 'f' })] }, { n: 3, role: 'tool', tool_call_id: 'b' }, { n: 4, role: 'tool', tool_call_id: 'a' }];
  const t = turns(m);
  assert.deepEqual(t.map((x) => x.m.n), [1, 2]);
  assert.deepEqual(t[1].calls.map((c) => c.result.n), [4, 3]);
  assert.equal(about(m[1].tool_calls[0]), 'ls');
  assert.equal(about({ name: 'x', input: 'no json' }), 'no json');
  assert.deepEqual(edit(call('e', 'edit_file', { path: 'f', old: 'a\nb\nc', new: 'a\nB\nc' })), { path: 'f', lines: [' a', '-b', '+B', ' c'] });
  assert.deepEqual(edit(call('w', 'Write', { file_path: 'f', content: 'x\ny\n' })), { path: 'f', lines: ['+x', '+y'], whole: true });
  assert.equal(edit(call('s', 'shell', { command: 'ls' })), null);
  assert.equal(edit({ name: 'edit_file', input: '{"path":"f","old":', cut: 10 }), null);
  assert.deepEqual(changed('a\na', 'a'), [' a', '-a']);
  assert.equal(result(call('c', 'complete', { result: '# Done\n' })), '# Done\n');
  assert.equal(result(call('c', 'shell', { result: 'x' })), null);
});

test('what is filled in becomes requests, or says what is wrong', () => {
  assert.deepEqual(requests({ intent: ' do it ', tokens: '200k', usd: '2.50', tree: true, base: 'main', model: 'a, b', name: 'x', hosts: 'npm,go', timeout: '1h30m', steps: '0', cwd: ' /d ', effort: 'high', sandbox: '' }), {
    errors: {}, requests: ['a', 'b'].map((model, i) => ({ intent: ' do it ', cwd: '/d', reasoning_effort: 'high', context_budget: 200000, budget_usd: 2.5, max_steps: 0, timeout_ms: 5400000, hosts: ['npm', 'go'], worktree: { base: 'main' }, model, name: `x-${i + 1}` })),
  });
  assert.deepEqual(requests({ intent: 'x' }), { errors: {}, requests: [{ intent: 'x' }] });
  assert.deepEqual(Object.keys(requests({ intent: ' ', tokens: '-1', usd: '1e3', steps: 'x', timeout: '5', model: 'a b', tree: true, branch: 'c' }).errors), ['intent', 'tokens', 'usd', 'steps', 'timeout', 'branch']);
  assert.ok(requests({ intent: 'é'.repeat(600000) }).errors.intent.includes('1200000'));
  for (const [s, n] of [['50000', 50000], ['1.5M', 1500000], ['0', 0], ['', NaN], ['1e9', NaN], ['k', NaN], ['Infinity', NaN]]) assert.deepEqual(tokens(s), n, s);
  for (const [s, n] of [['90s', 90000], ['1h30m', 5400000], ['500ms', 500], ['10', NaN], ['-1s', NaN]]) assert.deepEqual(span(s), n, s);
});

test('only what can be started is suggested as a model', () => {
  assert.deepEqual(suggestions([{ name: 'anthropic', driver: 'anthropic', model: 'claude-sonnet-4-5' }, { name: 'modela', driver: 'replay' }, { name: 'offline', driver: 'offline' }]), ['anthropic/claude-sonnet-4-5', 'modela/replay']);
});

test('a refusal belongs to a field', () => {
  const of = (message, v = {}) => belongs({ message }, v);
  assert.equal(of('Spawn: hosts: "a/" is no host: a name has letters'), 'hosts');
  assert.equal(of('x: no agent of this name; there is assistant'), 'agent');
  assert.equal(of('Spawn /nosuch: no such file or directory', { cwd: '/nosuch' }), 'cwd');
  assert.equal(of('/d: there can be no work tree of it', { cwd: '/d' }), 'tree');
  assert.equal(of('the daemon is stopping'), '');
});

test('agents with one task stand together', () => {
  const p = (pid, intent, model, created_at, more) => ({ pid, intent, model, created_at, ...more });
  assert.deepEqual(groups([p(1, 'a', 'm', '1'), p(2, 'b', 'm', '2'), p(3, 'a', 'n', '3'), p(4, 'b', 'm', '9', { kind: 'compose' }), p(5, 'c', 'm', '4'), p(6, 'c', 'm', '5')]).map((g) => [g.intent, g.of.map((x) => x.pid), g.models]),
    [['c', [6, 5], ['m']], ['a', [3, 1], ['m', 'n']]]);
});

test('a notification tells of asks, and of the ends of what a person has started', () => {
  const p = { pid: 3, uuid: 'u', name: 'night\u202e', intent: 'do\nit' };
  assert.deepEqual(notice({ kind: 'asked', text: 'shell rm x', args: '7' }, p), { title: 'PID 3 (night‹U+202E›) asks you', body: 'shell rm x', tag: 'ask u 7' });
  assert.deepEqual(notice({ kind: 'exited', exit: { code: 1 } }, p), { title: 'PID 3 (night‹U+202E›) failed', body: 'do it', tag: 'end u' });
  assert.deepEqual(notice({ kind: 'exited', exit: { code: 2, reason: 'budget_exceeded' } }, p), { title: 'PID 3 (night‹U+202E›) failed: out of budget', body: 'Its budget is used up. · do it', tag: 'end u' });
  assert.equal(notice({ kind: 'exited' }, p).title, 'PID 3 (night‹U+202E›) is done');
  assert.equal(notice({ kind: 'exited', exit: { code: 1 } }, { ...p, parent_uuid: 'v' }), null);
});

test('notices of the kernel stand apart from the words around which they are', () => {
  const before = '[a fork of ü]', behind = '[left out]', text = `${before}\n\nmy wörds\n\n${behind}`;
  const m = { bytes: bytes(text), notice_before: bytes(before), notice_behind: bytes(behind) };
  assert.deepEqual(parts(text, m), { before, text: 'my wörds', behind });
  assert.deepEqual(parts(text.slice(0, 20), m), { before, text: 'my wö', behind: '' }, 'what is not read yet');
  assert.deepEqual(parts(before, { bytes: bytes(before), notice_before: bytes(before) }), { before, text: '', behind: '' });
  assert.deepEqual(parts('plain ', { bytes: 6 }), { before: '', text: 'plain ', behind: '' });
});
