import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { html } from '../src/lib/html.js';
import { frames } from '../src/lib/sse.js';
import { newTable, fold, arrange, elapsed, condition, ending, labels, matches, modelOf, outcome, outcomeWhy } from '../src/lib/fold.js';
import { holds, raisable, unlimited, usedUp } from '../src/lib/budget.js';
import { visible, head, line } from '../src/lib/visible.js';
import { newCurve, addStep, series } from '../src/lib/curve.js';
import { answerText, askText, byCall, changed, ends, gone, heading, pulse, runs, scoped } from '../src/lib/asked.js';
import { beside, entries, found, missing, newBook, newest, newHunt, quest, take } from '../src/lib/stepbook.js';
import { neighbours, peers, sharing, together } from '../src/lib/compare.js';
import { reason } from '../src/lib/say.js';
import { away } from '../src/lib/advice.js';
import { atOnce, callsNow } from '../src/lib/traffic.js';
import { byUUID, short, sumParts } from '../src/lib/family.js';
import { verdict } from '../src/pages/system/doctor.js';
import { age, duration, hour, moment, count, dollars, bytes, spent } from '../src/lib/format.js';
import { shares } from '../src/lib/waterfall.js';

test('no part of a template outlives what it was made for', () => {
  const made = () => html`<div><b>always the same</b>${1}</div>`.props.children[0];
  assert.equal(made().type, 'b');
  assert.notEqual(made(), made());
  const alone = () => html`<i>always the same</i>`;
  assert.notEqual(alone(), alone());
});

test('one that has completed says how many of its calls failed', () => {
  const of = (code, failed_calls) => ending({ exit: { code, reason: code ? 'error' : 'completed' }, failed_calls });
  assert.deepEqual([of(0, 0), of(0, 1), of(0, 3), of(1, 0), of(1, 2)], ['', 'completed · 1 failed call', 'completed · 3 failed calls', 'error', 'error · 2 failed calls']);
  assert.equal(ending({ exit: { code: 0, reason: 'completed' }, failed_calls_unknown: true }), 'completed · failed calls unknown'); // an earlier version has written its end
});

test('an MCP server that is away says why, and what starts it again', () => {
  const p = { pid: 3, mcp_down: ['tracker: no such file: x', "a 'b: gone"] };
  assert.deepEqual(away(p), [{ text: 'tracker: no such file: x', command: 'rnix mcp reload --process 3 tracker' }, { text: "a 'b: gone", command: "rnix mcp reload --process 3 'a '\\''b'" }]);
  assert.deepEqual([away({ ...p, exit: { code: 0 } }), away({ pid: 1 })], [[], []]); // a resume tries again
});

test('why there is nothing is said without what stands on the page', () => {
  assert.equal(reason('DiffFiles 01a22824-995e-77c1-813e-891be1cb19a4: no files are kept: it has called nothing'), 'no files are kept: it has called nothing');
  assert.equal(reason('no such process: 7'), 'no such process: 7');
});

test('agents with the same task stand side by side', () => {
  const procs = [{ uuid: 'a', pid: 1, intent: 'x' }, { uuid: 'b', pid: 2, intent: 'x' }, { uuid: 'c', pid: 3, intent: 'y' }, { uuid: 'd', pid: 4, intent: 'x', kind: 'compose' }, { uuid: 'e', pid: 5 }];
  const of = (uuid) => peers(procs, uuid).map((p) => p.pid).join();
  assert.deepEqual(['a', 'b', 'c', 'd', 'e', 'gone'].map(of), ['2,1', '2,1', '3', '', '', '']);
});

test('a provider says what it runs, what waits since when, and what limits it', () => {
  const now = Date.parse('2026-01-01T00:00:40Z');
  assert.equal(callsNow({ running: 4, concurrency: 4, waiting: 3, oldest_since: '2026-01-01T00:00:00Z' }, now), '4 of 4 calls run, 3 wait, the first for 40s');
  assert.equal(callsNow({ running: 1, waiting: 0 }, now), '1 call runs');
  assert.equal(callsNow({ running: 2, waiting: 1, oldest_since: '2026-01-01T00:01:00Z' }, now), '2 calls run, 1 waits, the first for 0s');
  assert.deepEqual([atOnce({}), atOnce({ concurrency: 4, concurrency_from: 'default' }), atOnce({ concurrency: 4 })], ['any number', '4 (default)', '4']);
});

test('a sum says of what it is, what it costs and what of that is not known', () => {
  assert.deepEqual(sumParts({ processes: 1, tokens: 0 }), ['1 process', '0 tokens', 'cost -']);
  const l = { processes: 3, tokens: 12300, estimated: true, cost_usd: 1.25, unpriced_tokens: 300, failed_calls: 2, failed_calls_unknown: 1, active_ms: 61000 };
  assert.deepEqual(sumParts(l), ['3 processes', '~12.3k tokens', 'cost $1.25+? (300 tokens have an unknown price)', '2 failed calls', 'failed calls of 1 process unknown', '1m01s of work']);
  assert.equal(short(l), '~12.3k · $1.25+? · 2 failed');
  assert.equal(short({ processes: 2, tokens: 10, unpriced_tokens: 10 }), '10 · ?');
  assert.equal(byUUID({ families: [{ uuid: '__proto__', own: 1 }] }).get('__proto__').own, 1);
  assert.equal(byUUID(null).size, 0);
});

test('an ask stands with the call that it is about', () => {
  const call = (id, name, v) => ({ id, name, input: JSON.stringify(v) });
  const calls = [call('a', 'shell', { command: 'ls' }), call('b', 'shell', { command: 'ls' }), call('c', 'ask', { question: 'Which?' }), call('d', 'write_file', { path: 'x' })];
  const asks = [{ number: 1, tool: 'shell', input: { command: 'ls' } }, { number: 2, tool: 'ask', question: {} }, { number: 3, tool: 'shell', input: { command: 'rm' } }];
  assert.deepEqual([...byCall(asks, calls)].map(([id, a]) => [id, a.number]), [['c', 2], ['b', 1]]);
  assert.equal(answerText({ number: 7, answer: { verdict: 'deny', text: 'no' } }), 'ask 7: a person has denied it: no');
});

test('the log says what was asked, and who has answered how', () => {
  assert.equal(askText({ kind: 'asked', args: '3', result: 'shell', text: 'shell ls' }), 'ask 3, because of the rule shell: shell ls');
  assert.equal(askText({ kind: 'asked', args: '3', text: '"Which?"' }), 'ask 3, a question of the agent: "Which?"');
  assert.equal(askText({ kind: 'answered', args: '3', result: 'deny', text: 'not on a Friday' }), 'ask 3: a person has denied it: not on a Friday');
  assert.equal(askText({ kind: 'log', text: 'x' }), undefined);
});

test('what doctor finds is said in a sentence', () => {
  const of = (...list) => verdict(list.map((status) => ({ status })));
  assert.equal(of(), 'Nothing is broken.');
  assert.equal(of('ok', 'absent'), 'Nothing is broken.');
  assert.equal(of('ok', 'warning'), '1 warning.');
  assert.equal(of('broken', 'warning', 'warning'), '1 thing is broken, 2 warnings.');
  assert.equal(of('broken', 'broken'), '2 things are broken.');
});

test('a stream is the same however it is cut', () => {
  const text = 'id: 1\nevent: a\ndata: {"x":1}\n\n: alive\n\nid: 2\r\ndata: b\r\ndata: c\r\n\r\nevent: end\ndata: {}\n\ndata: half';
  const want = [{ id: '1', kind: 'a', data: '{"x":1}' }, { id: '2', kind: '', data: 'b\nc' }, { id: '', kind: 'end', data: '{}' }];
  for (let size = 1; size < text.length; size++) {
    const got = [];
    const take = frames((f) => got.push(f));
    for (let i = 0; i < text.length; i += size) take(text.slice(i, i + size));
    assert.deepEqual(got, want);
  }
});

test('a line of many megabytes is read in one pass', () => {
  let got = 0;
  const take = frames((f) => { got = f.data.length; });
  take('data: ');
  for (let i = 0; i < 2000; i++) take('x'.repeat(10000));
  take('\n\n');
  assert.equal(got, 2e7);
});

const at = '2026-01-01T00:00:00Z';
const proc = (pid, more = {}) => ({ pid, uuid: 'u' + pid, state: 'running', intent: 'i' + pid, step: 1, tokens_used: pid, elapsed_ms: 1000, ...more });

test('labels are one line in order, and a search finds them', () => {
  const p = proc(1, { labels: JSON.parse('{"b":"two words","a":"x","constructor":"say \\"hi\\"","c":""}') });
  assert.equal(labels(p), 'a=x b="two words" c= constructor="say \\"hi\\""');
  assert.equal(labels(proc(2)), '');
  assert.ok(matches(p, ['b="two']));
  assert.ok(!matches(proc(2), ['constructor=']));
});

test('frames fold into one table', () => {
  const t = newTable();
  fold(t, { seq: 5, at, whole: true, procs: [proc(1), proc(2)], totals: { running: 2 } }, Date.parse(at) + 70);
  fold(t, { seq: 6, at, procs: [proc(2, { state: 'dead' })], gone: ['u1'], totals: { running: 0 } }, Date.parse(at) + 50);
  assert.deepEqual([...t.rows.keys()], ['u2']);
  assert.equal(t.rows.get('u2').state, 'dead');
  assert.equal(t.seq, 6);
  assert.equal(t.skew, 50);
  fold(t, { seq: 9, at, whole: true, procs: [proc(3)] }, Date.parse(at));
  assert.deepEqual([...t.rows.keys()], ['u3']);
});

test('names that mean something to the language mean nothing to the table', () => {
  const t = newTable();
  const evil = JSON.parse('{"seq":1,"at":"' + at + '","whole":true,"procs":[{"pid":1,"uuid":"__proto__","state":"running","name":"constructor","intent":"x","elapsed_ms":0,"__proto__":{"polluted":1}}],"totals":{"__proto__":{"polluted":1}}}');
  fold(t, evil, 0);
  assert.equal(t.rows.size, 1);
  assert.equal({}.polluted, undefined);
  assert.equal(arrange(t.rows, { tree: true, sort: '__proto__', query: '' }).length, 1);
});

test('a tree has children under their parents, and the parents of what matches', () => {
  const rows = new Map([proc(1), proc(2, { parent_uuid: 'u1' }), proc(3, { parent_uuid: 'u2', intent: 'needle' }), proc(4)].map((p) => [p.uuid, p]));
  const shape = (v) => arrange(rows, { tree: true, sort: 'pid', ...v }).map((r) => [r.p.pid, r.depth, r.dim]);
  assert.deepEqual(shape({}), [[1, 0, false], [2, 1, false], [3, 2, false], [4, 0, false]]);
  assert.deepEqual(shape({ query: 'NEEDLE' }), [[1, 0, true], [2, 1, true], [3, 2, false]]);
  assert.deepEqual(shape({ closed: new Set(['u1']) }), [[1, 0, false], [4, 0, false]]);
  assert.deepEqual(shape({ sort: 'tokens', down: true }).map((r) => r[0]), [4, 1, 2, 3]);
});

test('a circle of parents shows nobody twice and ends', () => {
  const rows = new Map([proc(1, { parent_uuid: 'u2' }), proc(2, { parent_uuid: 'u1' }), proc(3, { parent_uuid: 'u3' })].map((p) => [p.uuid, p]));
  const got = arrange(rows, { tree: true, sort: 'pid' });
  assert.ok(got.length <= 3);
});

test('ten thousand rows are arranged by looking at each a few times', () => {
  const rows = new Map();
  let looks = 0;
  for (let i = 1; i <= 10000; i++) {
    const p = proc(i);
    Object.defineProperty(p, 'parent_uuid', { enumerable: true, get: () => { looks++; return i > 1 ? 'u' + (i >> 1) : undefined; } });
    rows.set('u' + i, p);
  }
  assert.equal(arrange(rows, { tree: true, sort: 'tokens', down: true, query: '' }).length, 10000);
  assert.ok(looks >= 10000 && looks < 20 * 10000, `${looks} looks`);
});

test('the time of who does not work stands still', () => {
  assert.equal(elapsed({ ...proc(1), at: 100 }, 600), 1500);
  for (const state of ['suspended', 'dead', 'zombie', 'archived']) assert.equal(elapsed({ ...proc(1), state, at: 100 }, 600), 1000);
  assert.equal(elapsed({ ...proc(1), clock_paused: true, at: 100 }, 600), 1000); // a person is asked
});

test('how a process is has one word', () => {
  assert.equal(condition(proc(1)).tone, 'run');
  assert.equal(condition(proc(1, { wait: 'budget: tokens' })).tone, 'wait');
  assert.equal(condition(proc(1, { state: 'suspended', purse: {} })).tone, 'wait');
  assert.equal(condition(proc(1, { wait: 'model' })).tone, 'run');
  assert.equal(condition(proc(1, { wait: 'budget: tokens' })).word, 'waiting');
  assert.equal(condition(proc(1, { state: 'suspended', wait: 'budget: 2 of 1 tokens are used', purse: {}, exit: { code: 2, reason: 'budget_exceeded' } })).word, 'suspended');
  assert.equal(condition(proc(1, { state: 'suspended', wait: 'paused', paused_at: at })).word, 'paused');
  assert.equal(condition(proc(1, { state: 'suspended', wait: 'paused', paused_at: at, context_budget: 5 })).tone, 'hold');
  assert.equal(condition(proc(1, { state: 'suspended', wait: 'the daemon was stopped' })).word, 'suspended');
  assert.equal(condition(proc(1, { state: 'suspended', wait: 'the quota', wait_until: at })).word, 'suspended');
  assert.equal(condition(proc(1, { state: 'dead', exit: { code: 1 } })).tone, 'bad');
  assert.equal(condition(proc(1, { state: 'dead', exit: { code: 0 } })).word, 'done');
});

test('how a process ended is said in words, and why', () => {
  assert.deepEqual([0, 1, 2, 4, 7, 99].map((code) => outcome({ code })), ['done', 'failed', 'out of budget', 'cancelled', 'refused', 'exit 99']);
  assert.deepEqual([undefined, { reason: 'completed' }, { code: 1, reason: 'no model' }, { code: 6 }].map(outcomeWhy), ['', '', 'no model', 'It repeated itself and was stopped.']);
  assert.equal(outcomeWhy({ code: 7, reason: 'refused' }), 'It ended after a call that was refused, and did nothing else.');
});

test('a model that says nothing alone has its provider', () => {
  assert.deepEqual([['anthropic', 'claude-sonnet-4-5'], ['modela', 'replay'], ['modela', ''], ['', '']].map(([provider, model]) => modelOf({ provider, model })), ['claude-sonnet-4-5', 'modela/replay', 'modela', '']);
});

test('a budget is raised where there is one', () => {
  assert.equal(raisable(proc(1)), null);
  assert.deepEqual(raisable(proc(1, { context_budget: 5 })), { uuid: 'u1', tokens: 5, usd: 0, own: true });
  assert.deepEqual(raisable(proc(1, { budget_usd: 2, purse: { uuid: 'u1', usd: 2 } })), { uuid: 'u1', tokens: 0, usd: 2, own: true });
  assert.deepEqual(raisable(proc(2, { context_budget: 5, purse: { uuid: 'u1', tokens: 9 } })), { uuid: 'u1', tokens: 9, usd: 0, own: false });
  assert.match(unlimited(proc(1)), /Nothing bounds/);
  assert.match(unlimited(proc(2, { parent_uuid: 'u1' })), /those above it/);
  for (const p of [proc(1), proc(1, { context_budget: 5 }), proc(2, { purse: { uuid: 'u1', tokens: 9 } })]) {
    assert.match(usedUp(p), /press Budget/i);
    assert.doesNotMatch(usedUp(p), /--|rnix /);
  }
});

test('what bounds a process is said where it has no limit itself', () => {
  const of = (pid, limit, above) => ({ pid, uuid: 'u' + pid, above, tokens: { limit }, usd: { limit: null } });
  assert.equal(holds([of(1, null, true), of(2, 7)], 'u2'), '');
  assert.match(holds([of(1, 9, true), of(2, null)], 'u2'), /that of PID 1\./);
  assert.match(holds([of(1, null, true), of(2, null), of(3, 5)], 'u2'), /nothing bounds/);
});

test('what steers or hides is seen', () => {
  assert.equal(visible('\u001b[31mred\u0007'), '␛[31mred␇');
  assert.equal(visible('a\u202eb\u2066c\u200bd\ufeff'), 'a‹U+202E›b‹U+2066›c‹U+200B›d‹U+FEFF›');
  assert.equal(visible('\u0085\u009b'), '‹U+0085›‹U+009B›');
  assert.equal(visible('\ud800x\udc00'), '\ufffdx\ufffd');
  assert.equal(visible('\u{e0041}'), '‹U+E0041›');
  assert.equal(visible('tab\tline\nwindows\r\n👩‍👩‍👧'), 'tab\tline\nwindows\n👩‍👩‍👧');
  assert.equal(head('a😀b', 2), 'a');
  assert.equal(line('a \n  b\u001bcd', 7), 'a b␛…');
});

test('numbers for people', () => {
  assert.deepEqual([undefined, null, NaN, 'x'].map(count), ['0', '0', '0', '0']);
  assert.deepEqual([0, 999, 9999, 12345, 999499, 1e6, 2.5e9].map(count), ['0', '999', '9,999', '12.3k', '999k', '1.0M', '2.5G']);
  for (const r of JSON.parse(readFileSync(new URL('../../../../debug/testdata/durations.json', import.meta.url)))) {
    assert.deepEqual([duration(r.ns / 1e6), age(r.ns / 1e6)], [r.duration, r.age], r.ns + ' ns');
  }
  assert.deepEqual([0, 0.00001, 0.1234, 12.5].map(dollars), ['$0', '$0.00001', '$0.123', '$12.50']);
  const noon = new Date(2026, 0, 2, 8, 4, 9);
  assert.deepEqual([moment(noon, noon), moment(noon, new Date(2026, 0, 3)), hour(noon)], ['08:04:09', '2026-01-02 08:04', '08:04']);
  assert.deepEqual([0, 1023, 1536, 1048576].map(bytes), ['0 B', '1023 B', '1.5 KiB', '1.0 MiB']);
});

test('a curve is what was used, and what nobody knows is no zero', () => {
  const c = newCurve();
  c.from = 1000;
  addStep(c, { time: new Date(1005e3).toISOString(), tokens: 60, cost_usd: 0.5 });
  addStep(c, { time: new Date(1006e3).toISOString(), tokens: 60 });
  addStep(c, { time: 'nonsense', tokens: 9 });
  const s = series(c, 1029, 50);
  assert.deepEqual(s.x, [980, 990, 1000, 1010, 1020]);
  assert.deepEqual(s.tokens, [null, null, 720, 0, 0]);
  assert.deepEqual(s.usd, [null, null, 3, 0, 0]);
  assert.equal(s.sum, 120);
  assert.equal(s.dollars, 0.5);
});

test('a curve tells the last minute from all of it', () => {
  const c = newCurve();
  for (const [at, tokens] of [[1000, 5], [1741, 7], [1799, 9]]) addStep(c, { time: new Date(at * 1000).toISOString(), tokens, cost_usd: tokens / 10 });
  const s = series(c, 1800, 1800);
  assert.deepEqual([s.sum, s.lately, s.spent.toFixed(1)], [21, 9, '0.9']);
});

test('a curve forgets what is old', () => {
  const c = newCurve();
  for (let i = 0; i < 5000; i++) addStep(c, { time: new Date(i * 10e3).toISOString(), tokens: 1 });
  assert.equal(c.points.size, 360);
  assert.ok(c.points.has(4999));
});

test('a curve says since when it is known, if that is not all the time', () => {
  const c = newCurve();
  c.from = 1000;
  assert.equal(series(c, 1029, 50).since, 1000);
  assert.equal(series(c, 1050, 50).since, 0);
});

// history is a daemon that answers list_steps as the real one does; has is which steps have the text that is looked for.
function history(numbers, has = () => false) {
  let asked = 0;
  return {
    get asked() { return asked; },
    answer(req, span = 5000) {
      asked++;
      let all = numbers.filter((n) => n > (req.after || 0) && (!req.before || n < req.before));
      if (req.last) all.reverse();
      const looked = all.slice(0, req.find ? span : all.length);
      const got = (req.find ? looked.filter(has) : looked).slice(0, req.limit);
      const end = got.length === req.limit ? got.at(-1) : looked.at(-1);
      const more = end !== undefined && all.at(-1) !== end;
      const lo = req.last ? (more ? end : 0) : numbers[0] < (got[0] ?? 0) ? got[0] : 0;
      const hi = req.last ? 0 : more || (end !== undefined && numbers.at(-1) > end) ? end : 0;
      return { first: numbers[0], last: numbers.at(-1), prev: lo, next: hi, steps: got.sort((a, b) => a - b).map((n) => ({ step_number: n })) };
    },
  };
}

const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);

test('a list of twenty thousand steps is read where somebody looks', () => {
  const d = history(upTo(20000).filter((n) => n !== 10001)), b = newBook();
  const ask = (req) => take(b, req, d.answer(req));
  assert.equal(missing(b, 'x', 0, 30), null);
  ask(newest(b, 'x'));
  assert.deepEqual([entries(b), b.known.size, b.last], [20000, 100, 20000]);
  assert.equal(missing(b, 'x', 19950, 20000), null);
  const req = missing(b, 'x', 9990, 10020);
  assert.deepEqual([req.after, req.before, req.limit], [9940, 10071, 130]);
  ask(req);
  assert.equal(missing(b, 'x', 9990, 10020), null);
  assert.equal(b.known.get(10001), null);
  assert.deepEqual([beside(b, 10000, 1), beside(b, 10002, -1), beside(b, 20000, 1), beside(b, 1, -1), beside(b, 99999, -1), beside(b, 99999, 1)], [10002, 10000, 0, 0, 20000, 0]);
  for (let i = 0; i < 20000; i += 30) {
    const r = missing(b, 'x', i, i + 30);
    if (r) ask(r);
    assert.equal(missing(b, 'x', i, i + 30), null);
  }
  assert.ok(b.known.size < 7000, 'all of them are kept: ' + b.known.size);
});

test('what is new at the end of a list comes in, and what lies between is read when it is seen', () => {
  const b = newBook();
  const grow = (n) => { const req = newest(b, 'x'); take(b, req, history(upTo(n)).answer(req)); return req; };
  take(b, newest(b, 'x'), { steps: [] });
  assert.deepEqual([entries(b), beside(b, 0, 1)], [0, 0]);
  grow(3);
  assert.equal(grow(4).after, 2);
  assert.deepEqual([entries(b), b.known.size], [4, 4]);
  grow(500);
  assert.deepEqual([b.known.has(200), b.known.has(401), b.known.has(500)], [false, true, true]);
  assert.ok(missing(b, 'x', 190, 210));
});

test('a search goes on where an answer has ended, and once around', () => {
  const hunt = (numbers, has, from, by) => {
    const d = history(numbers, has), h = newHunt('x', from, by);
    for (let i = 0; i < 30; i++) {
      const n = found(h, d.answer(quest(h, 'x'), 50));
      if (n) return n;
    }
    throw new Error('it does not end');
  };
  const all = upTo(1000), is = (...l) => (n) => l.includes(n);
  assert.equal(hunt(all, is(700), 500, 1), 700);
  assert.equal(hunt(all, is(700), 800, 1), 700);
  assert.equal(hunt(all, is(700), 700, 1), 700);
  assert.equal(hunt(all, is(300, 700), 500, -1), 300);
  assert.equal(hunt(all, is(700), 500, -1), 700);
  assert.equal(hunt(all, is(700), 700, -1), 700);
  for (const from of [1, 2, 500, 999, 1000]) for (const by of [1, -1]) assert.equal(hunt(all, is(), from, by), -1);
  assert.equal(hunt([1], is(1), 1, 1), 1);
  assert.equal(hunt([1], is(), 1, -1), -1);
});

test('an ask is shown, changed and answered as what it is', () => {
  const shell = { number: 3, uuid: 'u1', tool: 'shell', path: '/dev/shell', text: 'shell ls', input: { command: 'ls -l', timeout: 5 } };
  assert.equal(runs(shell), 'ls -l');
  assert.equal(runs({ ...shell, input: undefined }), 'ls');
  assert.equal(runs({ tool: 'wait', path: '/dev/procs', text: 'wait', input: { command: 'ls' } }), 'wait');
  assert.deepEqual(changed(shell, 'ls -a'), { input: { command: 'ls -a', timeout: 5 } });
  assert.ok(changed(shell, ' \n').problem);
  const file = { ...shell, tool: 'write_file', path: '/dev/workspace', input: { path: 'a' } };
  assert.deepEqual(changed(file, '{"path":"b"}'), { input: { path: 'b' } });
  for (const bad of ['', '[1]', 'null', '"x"', '{"a":']) assert.ok(changed(file, bad).problem, bad);
  assert.deepEqual(scoped('process', '  '), { for: 'process' });
  assert.deepEqual(scoped('1h', ' go * '), { for_ms: 3600000, match: 'go *' });
  assert.equal(heading(0, 'Rnix'), 'Rnix');
  assert.equal(heading(2, 'Rnix'), '(2) Rnix');
});

test('what is not asked any more is told once, by those who did not answer it', () => {
  const list = [1, 2, 3, 4].map((number) => ({ number, uuid: 'u' + number }));
  const over = gone(list, [list[3]], new Set([2]));
  assert.deepEqual(over.map((a) => a.number), [1, 3]);
  const events = [{ kind: 'answered', uuid: 'u1', args: '1', result: 'deny' }, { kind: 'answered', uuid: 'u3', args: '1', result: 'allow' }];
  assert.deepEqual(ends(over, events).map((e) => [e.ask.number, e.word]), [[1, 'was refused elsewhere']]);
  assert.deepEqual(ends(over, [...events, { kind: 'exited', uuid: 'u3' }]).map((e) => e.ask.number), [1, 3]);
});

test('the table says when something else is asked', () => {
  const rows = new Map([['u1', proc(1)], ['u2', proc(2, { wait_kind: 'ask', wait: 'ask: shell ls' })]]);
  const none = new Set();
  const was = pulse(rows, none);
  rows.set('u1', proc(1, { step: 2 }));
  assert.equal(pulse(rows, none), was);
  rows.set('u2', proc(2, { wait_kind: 'ask', wait: 'ask: shell ls', wait_since: at }));
  assert.notEqual(pulse(rows, none), was);
  assert.notEqual(pulse(rows, new Set(['u1'])), pulse(rows, none));
  assert.equal(condition(proc(2, { wait_kind: 'ask' })).tone, 'ask');
  assert.equal(condition(proc(2, { wait_kind: 'ask', state: 'dead', exit: { code: 0 } })).tone, 'done');
});

test('who has changed the same files is said once', () => {
  assert.deepEqual(together([{ uuid: 'a', pid: 1, paths: ['x'] }, { uuid: 'b', pid: 2, paths: ['x', 'y'] }, { uuid: 'c', pid: 3, paths: ['x'] }, { uuid: 'a', pid: 1, paths: ['x'] }]),
    [{ paths: ['x'], by: [{ uuid: 'a', pid: 1 }, { uuid: 'c', pid: 3 }] }, { paths: ['x', 'y'], by: [{ uuid: 'b', pid: 2 }] }]);
});

test('agents side by side that share a directory are named', () => {
  const places = new Map([['a', { pid: 9, dir: '/d' }], ['b', { pid: 4, dir: '/d' }], ['c', { pid: 5, dir: '/e' }], ['d', { pid: 6 }], ['e', { pid: 7 }]]);
  assert.deepEqual(sharing(places, 'a'), [4]);
  assert.deepEqual(sharing(places, 'b'), [9]);
  assert.deepEqual(sharing(places, 'c'), []);
  assert.deepEqual(sharing(places, 'd'), []); // a directory that is not known is shared by none
  assert.deepEqual(sharing(places, 'z'), []);
});

test('who worked in a directory at the same time is named', () => {
  const at = (h) => `2026-01-01T0${h}:00:00Z`;
  const one = { uuid: 'a', pid: 1, work_dir: '/d', state: 'dead', created_at: at(2), updated_at: at(4) };
  const other = (pid, from, to, more) => ({ uuid: 'u' + pid, pid, work_dir: '/d', state: 'dead', created_at: at(from), updated_at: at(to), ...more });
  const all = [one, other(9, 3, 5), other(2, 0, 1), other(3, 5, 6), other(4, 0, 9), other(5, 1, 1, { state: 'running' }), other(6, 1, 1, { state: 'suspended' }), other(7, 3, 3, { work_dir: '/e' }), other(8, 3, 3, { kind: 'supervisor' })];
  assert.deepEqual(neighbours(all, one), [4, 5, 9]);
  assert.deepEqual(neighbours(all, { ...one, work_dir: undefined }), []); // a directory that is not known is shared by none
  assert.deepEqual(neighbours(all, { ...one, state: 'running' }), [3, 4, 5, 9]);
});

test('shares of the path that decided add up to a hundred', () => {
  const at = (ms) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
  const trace = (...lengths) => {
    let from = 0;
    return { spans: lengths.map((_, i) => ({ id: i, kind: 'k' + i })), critical: lengths.map((n, i) => ({ span: i, from: at(from), to: at((from += n)) })) };
  };
  const percents = (...lengths) => shares(trace(...lengths)).map((p) => p.percent);
  assert.deepEqual(percents(1, 1, 1), [34, 33, 33]);
  assert.deepEqual(percents(1, 2, 5, 992), [99, 1, 0, 0]);
  assert.deepEqual(percents(7), [100]);
  assert.deepEqual(percents(0, 0), [0, 0]);
  assert.deepEqual(percents(), []);
  for (let i = 1; i < 200; i++) assert.equal(percents(i, 7 * i + 3, 1000 - i, i % 13).reduce((a, b) => a + b), 100);
});
