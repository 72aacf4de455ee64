// The curve of what was used, live: one reader of the ends of steps for the whole page, which begins with what the daemon still
// knows of the past and ends when nobody looks.
import { signal } from './html.js';
import { stream } from './api.js';
import { newCurve, addStep } from './curve.js';
import { clock } from './store.js';

const often = 1000; // milliseconds between two changes of the curve, at least
const kinds = ['step_ended'];

let curve = newCurve();
let looking = 0, stop = null, told = 0, read = false;

// usage changes when there are new points, at most once a second. read says that the past is in it.
export const usage = signal({ curve, read });

function tell() {
  clearTimeout(told);
  told = 0;
  usage.value = { curve, read };
}

// later tells of what is new. The past is told of as a whole, unless it is so long that a second does not do.
function later() { told ||= setTimeout(tell, often); }

// readers reads what the daemon still knows of the past, to its end, and then what comes. Two streams do that, because one would not say where the past ends.
// What was read stays when the daemon begins anew.
function readers(keep = false) {
  let instance = '', last = 0;
  const renewed = () => { stop(); readers(true); };
  const takes = {
    renewed,
    each(e, id) {
      last = Number(id) || last;
      addStep(curve, e);
      curve.from = Math.min(curve.from, Date.parse(e.time) / 1000 || curve.from);
      later();
    },
    missed({ from, to }) {
      last = Math.max(last, to);
      curve.lost += to - from + 1;
      later();
    },
  };
  stop = stream('events', { history: true, kinds }, {
    ...takes,
    fresh(now) {
      instance = now;
      last = 0;
      if (keep) return;
      curve = newCurve();
      curve.from = clock() / 1000;
      read = false;
    },
    state(word, refused) {
      if (word !== 'ended') return;
      read = true;
      tell();
      if (refused) return;
      stop();
      stop = stream('events', { ...(last ? { from: last + 1 } : { history: true }), follow: true, kinds }, {
        ...takes, fresh(now) { if (now !== instance) renewed(); },
      });
    },
  });
}

// look reads the curve until the function that it returns is called.
export function look() {
  if (looking++ === 0) readers();
  return () => {
    if (--looking > 0) return;
    stop();
    clearTimeout(told);
    told = 0;
  };
}
