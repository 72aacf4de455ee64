// The one store of processes: what watch_procs says, folded. Pages read it and never ask for a list themselves.
import { signal, computed } from './html.js';
import { stream } from './api.js';
import { newTable, fold } from './fold.js';

const table = newTable();
const every = 200; // milliseconds between two frames, at least

// turn counts the changes of the table; who reads it is drawn again after the next.
const turn = signal(0);

// change has the page drawn anew: with the next frame of the screen, but so that drawing takes a third of the time at most. On a
// slow machine, or with ten thousand processes, the table then changes less often, and keys are still answered.
let due = false, after = 0;
function change() {
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(() => {
    due = false;
    const from = performance.now();
    turn.value++;
    // Behind the drawing of this frame: what it took is known then.
    setTimeout(() => { after = performance.now() + 2 * (performance.now() - from); });
  }), Math.max(0, after - performance.now()));
}

// procs is the rows by UUID; totals, seq and hidden are the daemon's own.
export const procs = computed(() => (turn.value, { rows: table.rows, turn: turn.value }));
export const totals = computed(() => (turn.value, table.totals));
export const seq = computed(() => (turn.value, table.seq));
export const hidden = computed(() => (turn.value, table.hidden));

// wire says how it stands with the daemon: {word: connecting | live | down | asleep | ended, error}.
export const wire = signal({ word: 'connecting', error: null });

// everything says whether the store has processes that have ended, too. Set it by want.
export const everything = signal(false);

// clock returns the daemon's time of now, in milliseconds; while nobody answers, that of when it was last heard: what is shown
// then is how it was.
let stopped = 0;
export const clock = () => stopped || Date.now() - table.skew;

// second changes once a second while the page is seen, for what shows ages.
export const second = signal(0);
setInterval(() => { if (!document.hidden) second.value++; }, 1000);

let stop = null;

// startStore reads the table of processes from now on, or anew.
export function startStore() {
  stop?.();
  wire.value = { word: 'connecting', error: null };
  stop = stream('watch_procs', { all: everything.peek(), limit: everything.peek() ? 2000 : 0, every_ms: every }, {
    resumes: false, // its first frame is everything
    each(frame) {
      fold(table, frame, Date.now());
      change();
    },
    state(word, error) {
      if (word === 'live') stopped = 0;
      else stopped ||= Date.now() - table.skew;
      wire.value = { word, error: error || null };
    },
  });
}

export function stopStore() {
  stop?.();
  stop = null;
}

// want says whether processes that have ended are wanted, too.
export function want(all) {
  if (everything.peek() === all) return;
  everything.value = all;
  startStore();
}

// find returns the row of a UUID, or undefined.
export const find = (uuid) => (turn.value, table.rows.get(uuid));
