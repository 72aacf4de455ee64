// The curve of what was used, live: one reader of the ends of steps for the whole page, which begins with what the daemon still
// knows of the past and ends when nobody looks.
import { signal } from './html.js';
import { stream } from './api.js';
import { newCurve, addStep } from './curve.js';
import { clock } from './store.js';

let curve = newCurve();
let looking = 0, stop = null, told = 0;

// usage changes when there are new points, at most once a second.
export const usage = signal({ curve });

function tell() {
  if (told) return;
  told = setTimeout(() => { told = 0; usage.value = { curve }; }, 1000);
}

// look reads the curve until the function that it returns is called.
export function look() {
  if (looking++ === 0) {
    stop = stream('events', { history: true, follow: true, kinds: ['step_ended'] }, {
      fresh() {
        curve = newCurve();
        curve.from = clock() / 1000;
        usage.value = { curve };
      },
      each(e) {
        addStep(curve, e);
        curve.from = Math.min(curve.from, Date.parse(e.time) / 1000 || curve.from);
        tell();
      },
      missed({ from, to }) {
        curve.lost += to - from + 1;
        tell();
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
