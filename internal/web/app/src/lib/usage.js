// The curve of what was used, live: one reader of the ends of steps for the whole page, which begins with what the daemon still
// knows of the past and ends when nobody looks.
import { signal } from './html.js';
import { stream } from './api.js';
import { newCurve, addStep } from './curve.js';
import { clock } from './store.js';

const quiet = 80, often = 1000; // milliseconds: without an event, after which the past is there; between two changes of the curve, at most

let curve = newCurve();
let looking = 0, stop = null, told = 0, since = 0, read = false;

// usage changes when there are new points, at most once a second. read says that the past is in it.
export const usage = signal({ curve, read });

function tell() {
  clearTimeout(told);
  told = 0;
  read = true;
  usage.value = { curve, read };
}

// later tells of what is new: of the past when all of it seems to be there, else once a second.
function later() {
  if (read) told ||= setTimeout(tell, often);
  else if (performance.now() - since > often) tell();
  else {
    clearTimeout(told);
    told = setTimeout(tell, quiet);
  }
}

// look reads the curve until the function that it returns is called.
export function look() {
  if (looking++ === 0) {
    stop = stream('events', { history: true, follow: true, kinds: ['step_ended'] }, {
      fresh() {
        curve = newCurve();
        curve.from = clock() / 1000;
        read = false;
        since = performance.now();
        clearTimeout(told);
        told = setTimeout(tell, 3 * quiet); // nothing was used
      },
      each(e) {
        addStep(curve, e);
        curve.from = Math.min(curve.from, Date.parse(e.time) / 1000 || curve.from);
        later();
      },
      missed({ from, to }) {
        curve.lost += to - from + 1;
        later();
      },
    });
  }
  return () => {
    if (--looking > 0) return;
    stop();
    clearTimeout(told);
    told = 0;
  };
}
