// The wire: call for one answer, stream for many. Everything that the page knows comes through here.
import { key, expelled } from './session.js';
import { frames } from './sse.js';

// WireError is an error that the server gave, with its code. Code DOWN is ours: nobody answered.
export class WireError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

function post(method, request, more = {}) {
  const { headers, ...rest } = more;
  return fetch('/api/v1/' + method, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Rnix-Key': key(), ...headers },
    body: JSON.stringify(request),
    cache: 'no-store',
    ...rest,
  });
}

// refusal reads why an answer is none.
async function refusal(res, k) {
  let error = {};
  try {
    error = (await res.json()).error || {};
  } catch { /* it was no JSON */ }
  if (res.status === 401) expelled(k);
  return new WireError(error.message || `the server answers ${res.status}`, error.code || 'INTERNAL', res.status);
}

function unreachable(err) {
  if (err instanceof WireError || err.name === 'AbortError') return err;
  return new WireError('rnix web does not answer: does it still run?', 'DOWN', 0);
}

// call calls a method and returns what it answers; it throws a WireError. signal, if given, takes the call back.
export async function call(method, request = {}, { signal } = {}) {
  const k = key();
  try {
    const res = await post(method, request, { signal });
    if (!res.ok) throw await refusal(res, k);
    const answer = await res.json();
    if (!answer.ok) throw new WireError(answer.error?.message || 'refused', answer.error?.code || 'INTERNAL', res.status);
    return answer.data;
  } catch (err) {
    throw unreachable(err);
  }
}

const pauses = [300, 600, 1200, 2500, 5000]; // milliseconds between attempts
const hiddenAfter = 15000; // milliseconds that a tab may be out of sight before its streams end

const slice = 10, rest = 10; // milliseconds of reading, and of leaving the thread to others, in turn, when there is more than can be read

// stream reads the stream of a method until stop, which it returns, is called. It begins again by itself when the daemon or
// the network was away, and goes on behind the last event if it is still the same run of the daemon. A tab that nobody sees
// reads nothing: browsers allow six connections to a server, over all tabs.
//
//   each(data, id)       for each event
//   missed({from, to})   these were lost to us
//   fresh(instance)      what comes next is from the beginning: forget what there was; instance is the run of the daemon that it comes from
//   renewed()            the daemon has begun anew after an event was read: in place of asking it the same, from its beginning
//   awake                it is read out of sight, too
//   state(word, error)   'live', 'down' (with why; it tries again), 'asleep', 'ended' (complete, or refused with error)
export function stream(method, request, { each, missed, fresh, renewed, state = () => {}, resumes = true, awake = false }) {
  let stopped = false, ended = false, last = '', instance = '', attempt = 0;
  let abort = null, timer = 0, sleeper = 0;

  async function run() {
    abort = new AbortController();
    const k = key();
    try {
      const res = await post(method, request, { signal: abort.signal, headers: resumes && last ? { 'Last-Event-ID': last } : {} });
      if (!res.ok) throw await refusal(res, k);
      if (stopped) return;
      const now = res.headers.get('Rnix-Instance') || '';
      if (instance && now !== instance && last && resumes) {
        // Numbers of another run of the daemon mean nothing in this one.
        last = '';
        instance = now;
        abort.abort();
        return renewed ? renewed() : run();
      }
      if (!instance || now !== instance || !resumes) fresh?.(now);
      instance = now;
      attempt = 0;
      state('live');
      const take = frames((f) => {
        if (f.id && f.id !== '0') last = f.id;
        if (f.kind === 'end') ended = true;
        else if (f.kind === 'error') {
          const e = JSON.parse(f.data);
          throw new WireError(e.message, e.code, 200);
        } else if (f.kind === 'missed') missed?.(JSON.parse(f.data));
        else each(JSON.parse(f.data), f.id);
      });
      const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let from = performance.now(); ;) {
        const { done, value } = await reader.read();
        if (done) break;
        take(value);
        // What is there already is read without a pause for the person and the screen: so we make one. What cannot be read in the
        // time that is left waits at the daemon, which says what was too much.
        if (performance.now() - from > slice) {
          await new Promise((r) => setTimeout(r, rest));
          from = performance.now();
        }
        if (stopped) return;
      }
      if (stopped) return;
      if (ended) return state('ended');
      throw new WireError('the daemon ended the stream', 'DEVICE_DISCONNECTED', 0);
    } catch (err) {
      if (stopped || err.name === 'AbortError') return;
      again(unreachable(err));
    }
  }
  // Some refusals stay refusals however often one asks.
  const final = new Set(['NOT_FOUND', 'INVALID', 'PERMISSION', 'AMBIGUOUS']);
  function again(err) {
    if (final.has(err.code)) {
      ended = true;
      return state('ended', err);
    }
    state('down', err);
    timer = setTimeout(run, pauses[Math.min(attempt++, pauses.length - 1)]);
  }
  function cut() {
    clearTimeout(timer);
    abort?.abort();
  }
  function sight() {
    clearTimeout(sleeper);
    if (ended) return;
    if (document.hidden && !awake) {
      sleeper = setTimeout(() => { cut(); abort = null; state('asleep'); }, hiddenAfter);
    } else if (!abort) {
      attempt = 0;
      run();
    }
  }
  document.addEventListener('visibilitychange', sight);
  run();
  return () => {
    stopped = true;
    document.removeEventListener('visibilitychange', sight);
    clearTimeout(sleeper);
    cut();
  };
}
