// The list of the steps of a process, of which those are known that somebody has looked at; and the search through all of them. Pure:
// requests of list_steps go out of here, and answers come in.

export const page = 100; // steps in an answer
const margin = 50; // entries that are asked for before and behind those in sight
const kept = 4000; // that are known; what is far away is forgotten then

// newBook returns a list that knows nothing. known is by number; null = there is no such step. first and last are 0 as long as there is none.
export function newBook() {
  return { first: 0, last: 0, known: new Map(), damage: '' };
}

// newest is the request for the end of the list: what is new there.
export function newest(b, target) {
  // The last one may have been run again.
  return { target, last: true, bare: true, limit: page, ...(b.last > 1 ? { after: b.last - 1 } : {}) };
}

// take enters an answer, in place.
export function take(b, req, r) {
  const n = r.steps.length;
  b.first = r.first || r.steps[0]?.step_number || 0;
  b.last = r.last || r.steps[n - 1]?.step_number || 0;
  b.damage = r.damage || '';
  if (!b.last) return;
  let from = Math.max((req.after || 0) + 1, b.first), to = b.last;
  if (req.last && n) from = r.steps[0].step_number;
  else if (!req.last && req.before) to = Math.min(to, req.before - 1);
  if (r.next) to = Math.min(to, r.next);
  for (; from <= to; from++) b.known.set(from, null); // what is not among them is not there
  for (const s of r.steps) b.known.set(s.step_number, s);
}

// entries is how long the list is. Numbers that no step has are entries, too: entry i is the step of the number first + i.
export function entries(b) {
  return b.last ? b.last - b.first + 1 : 0;
}

// beside returns the number of the next step in a direction (1 or -1) that is not known to be none; 0 = there is none.
export function beside(b, number, by) {
  for (let n = Math.min(Math.max(number + by, b.first), b.last); n !== number && n >= b.first && n <= b.last; n += by) {
    if (b.known.get(n) !== null && (by > 0 ? n > number : n < number)) return n;
  }
  return 0;
}

// missing is the request for what is not known of the entries from one to before another; null = all is known. It forgets what is far away.
export function missing(b, target, from, to) {
  from = Math.max(0, from);
  to = Math.min(to, entries(b));
  while (from < to && b.known.has(b.first + from)) from++;
  while (to > from && b.known.has(b.first + to - 1)) to--;
  if (from >= to) return null;
  from = Math.max(0, from - margin);
  to = Math.min(to + margin, entries(b), from + 1000);
  if (b.known.size > kept) {
    for (const n of b.known.keys()) if (n < b.first + from - kept / 4 || n > b.first + to + kept / 4) b.known.delete(n);
  }
  return { target, bare: true, limit: to - from, after: b.first + from - 1, before: b.first + to };
}

// newHunt begins a search for a text from a step on, down (by 1) or up (-1), and once around: what was behind the start is looked at last.
export function newHunt(text, from, by) {
  return { text, by, start: from, at: from, round: false };
}

// quest is the request for the next part of a search.
export function quest(h, target) {
  const r = { target, find: h.text, limit: 1, bare: true };
  if (h.by < 0) return { ...r, last: true, before: h.at, ...(h.round ? { after: h.start - 1 } : {}) };
  return { ...r, after: h.at, ...(h.round ? { before: h.start + 1 } : {}) };
}

// found takes an answer to that in: the number of a step, -1 = no step has the text, 0 = it is to be asked on.
export function found(h, r) {
  if (r.steps.length) return r.steps[0].step_number;
  const to = (h.by < 0 ? r.prev : r.next) || 0;
  if (h.round && (!to || (h.by > 0 ? to >= h.start : to <= h.start))) return -1;
  if (to && to === h.at) return -1;
  h.at = to;
  if (!to) h.round = true;
  return 0;
}
