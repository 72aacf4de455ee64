// Questions to the daemon, for components: asked when they appear, and again when what they depend on changes.
import { useEffect, useRef, useState } from './html.js';
import { call } from './api.js';

// useCall calls a method and returns {data, error, loading, again, on}, where on is that of the last answer; again asks anew, at once, and then loading is true until there is an answer. It asks anew when the request or on changes, not more often than every
// ms, and keeps showing the last answer meanwhile. What is under way is waited for, unless it is about something else. With request null nothing is asked.
export function useCall(method, request, { on = null, every = 1000 } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: true, of: '', on: null });
  const last = useRef({ at: 0, body: '', turn: 0, flight: null, stale: false, on: null });
  last.current.on = on;
  const [turn, setTurn] = useState(0);
  const body = JSON.stringify(request);
  useEffect(() => () => last.current.flight?.abort(), []);
  useEffect(() => {
    const r = last.current;
    if (request === null) return undefined;
    const other = r.body !== body; // about something else
    if (other) setState({ data: null, error: null, loading: true, of: body });
    const now = other || r.turn !== turn; // a person waits
    if (now) {
      r.flight?.abort();
      r.flight = null;
    }
    r.body = body;
    r.turn = turn;
    const ask = async () => {
      if (r.flight) {
        r.stale = true;
        return;
      }
      const abort = (r.flight = new AbortController());
      r.stale = false;
      r.at = Date.now();
      const { on: about } = r; // what it is asked for now
      try {
        const data = await call(method, request, { signal: abort.signal });
        if (!abort.signal.aborted) setState({ data, error: null, loading: false, of: body, on: about });
      } catch (error) {
        if (!abort.signal.aborted) setState((s) => ({ data: s.data, error, loading: false, of: body }));
      }
      if (r.flight !== abort) return;
      r.flight = null;
      if (r.stale && !abort.signal.aborted) ask();
    };
    const timer = setTimeout(ask, now ? 0 : Math.max(0, r.at + every - Date.now()));
    return () => clearTimeout(timer);
  }, [method, body, on, turn]);
  const again = () => {
    setState((s) => ({ ...s, loading: true }));
    setTurn((n) => n + 1);
  };
  if (request !== null && state.of !== body) return { data: null, error: null, loading: true, again }; // what is known is about something else
  return { ...state, again };
}
