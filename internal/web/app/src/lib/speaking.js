// What the model of a process says while it says it: one stream, as long as somebody looks at the process.
import { useEffect, useRef, useState } from './html.js';
import { stream } from './api.js';
import { hear, newSpeech } from './speech.js';

const kinds = ['log', 'step_started', 'step_ended', 'exited', 'resumed', 'messaged', 'delivered', 'compacted'];
const past = 2000; // events that are read of what was before
const soon = 120; // milliseconds between two looks at the conversation

// useSpeech returns {now, on, turn}: now() is what was heard, on(f) calls f after it has changed and returns what ends that, and turn is another number when
// the conversation may have more than before. phase changes when the stream has to be opened anew; with '' there is none.
export function useSpeech(id, phase) {
  const ref = useRef();
  ref.current ??= { said: newSpeech(), all: new Set() };
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!phase) return undefined;
    const r = ref.current;
    let timer = 0, drawing = 0, after = 0;
    const look = () => { timer ||= setTimeout(() => { timer = 0; setTurn((n) => n + 1); }, soon); };
    const draw = () => { // so that drawing takes a third of the time at most
      drawing ||= setTimeout(() => requestAnimationFrame(() => {
        drawing = 0;
        const from = performance.now();
        for (const f of r.all) f();
        setTimeout(() => { after = performance.now() + 2 * (performance.now() - from); });
      }), Math.max(0, after - performance.now()));
    };
    const stop = stream('events', { target: id, history: true, follow: true, speech: true, tail: past, kinds }, {
      fresh() {
        r.said = newSpeech();
        draw();
        look();
      },
      each(e) {
        if (e.uuid !== id) return;
        if (hear(r.said, e)) draw();
        if (e.kind !== 'piece' && (e.kind !== 'log' || e.name === 'tool')) {
          look();
          draw();
        }
      },
      missed: look,
    });
    return () => { stop(); clearTimeout(timer); clearTimeout(drawing); };
  }, [id, phase]);
  return {
    turn, now: () => ref.current.said,
    on(f) { ref.current.all.add(f); return () => ref.current.all.delete(f); },
  };
}
