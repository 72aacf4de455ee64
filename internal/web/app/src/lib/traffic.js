// Which calls providers run, and which wait, in words. Pure.
import { age } from './format.js';

// callsNow says how many calls of a provider run, and how many wait since when; now is the daemon's clock in milliseconds.
export function callsNow(c, now) {
  const runs = c.concurrency ? `${c.running} of ${c.concurrency} calls run` : c.running === 1 ? '1 call runs' : `${c.running} calls run`;
  return runs + (c.waiting ? `, ${c.waiting} ${c.waiting === 1 ? 'waits' : 'wait'}, the first for ${age(Math.max(0, now - Date.parse(c.oldest_since)))}` : '');
}

// atOnce says how many calls a provider gets at once, and where that is set.
export const atOnce = (p) => (p.concurrency ? `${p.concurrency}${p.concurrency_from ? ` (${p.concurrency_from})` : ''}` : 'any number');
