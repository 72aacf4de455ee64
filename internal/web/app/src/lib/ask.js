// Questions to the daemon, for components: asked when they appear, and again when what they depend on changes.
import { useEffect, useRef, useState } from './html.js';
import { call } from './api.js';

// useCall calls a method and returns {data, error, loading, again}; again asks anew, at once, and then loading is true until there is an answer. It asks anew when the request or on changes, not more often than every
// ms, and keeps showing the last answer meanwhile. With request null nothing is asked.
export function useCall(method, request, { on = null, every = 1000 } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const last = useRef({ at: 0, body: '', turn: 0 });
  const [turn, setTurn] = useState(0);
  const body = JSON.stringify(request);
  useEffect(() => {
    if (request === null) return undefined;
    const abort = new AbortController();
    const other = last.current.body !== body; // about something else
    if (other) setState((s) => ({ data: last.current.body ? null : s.data, error: null, loading: true }));
    last.current.body = body;
    const ask = async () => {
      last.current.at = Date.now();
      try {
        const data = await call(method, request, { signal: abort.signal });
        if (!abort.signal.aborted) setState({ data, error: null, loading: false });
      } catch (error) {
        if (!abort.signal.aborted) setState((s) => ({ data: s.data, error, loading: false }));
      }
    };
    const now = other || last.current.turn !== turn; // a person waits
    last.current.turn = turn;
    const left = now ? 0 : Math.max(0, last.current.at + every - Date.now());
    const timer = setTimeout(ask, left);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [method, body, on, turn]);
  const again = () => {
    setState((s) => ({ ...s, loading: true }));
    setTurn((n) => n + 1);
  };
  return { ...state, again };
}
