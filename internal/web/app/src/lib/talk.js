// The conversation of a process as it is read: its end is kept fresh, earlier parts come when they are asked for.
import { useEffect, useRef, useState } from './html.js';
import { call } from './api.js';
import { failed } from '../ui/toast.js';

const page = 50; // messages that are read at once

// join adds the newest messages to those that were read before; if there is a gap, these go.
function join(old, r) {
  const first = r.messages[0]?.n ?? 0;
  const kept = old ? old.messages.filter((m) => m.n < first) : [];
  const joined = kept.length && r.prev && kept.at(-1).n < r.prev ? [] : kept;
  return { ...r, prev: joined.length ? old.prev : r.prev, messages: [...joined, ...r.messages] };
}

// useTalk returns {data, error, earlier} of the conversation as a step had it; 0 = as it is. It is read anew when turn changes, one answer at a time.
export function useTalk(id, step, turn) {
  const [state, setState] = useState({ data: null, error: null });
  const r = useRef();
  r.current ??= { busy: false, again: false, over: false };
  useEffect(() => () => { r.current.over = true; }, []);
  const read = async () => {
    const { current: c } = r;
    c.again = true;
    if (c.busy) return;
    c.busy = true;
    while (c.again && !c.over) {
      c.again = false;
      try {
        const data = await call('list_messages', { target: id, step, from: -page, limit: page });
        if (!c.over) setState((s) => ({ data: join(s.data, data), error: null }));
      } catch (error) {
        if (!c.over) setState((s) => ({ ...s, error }));
      }
    }
    c.busy = false;
  };
  useEffect(() => { read(); }, [turn]);
  const earlier = async () => {
    const d = state.data;
    try {
      const more = await call('list_messages', { target: id, step, from: d.prev, limit: page });
      const have = d.messages[0]?.n ?? Infinity;
      // The end may have grown meanwhile, or been compacted: then what was asked for has no place before it.
      setState((s) => (s.data.messages[0]?.n === d.messages[0]?.n ? { data: { ...s.data, prev: more.prev, messages: [...more.messages.filter((m) => m.n < have), ...s.data.messages] }, error: null } : s));
    } catch (err) {
      failed(err);
    }
  };
  return { ...state, earlier, again: read };
}
