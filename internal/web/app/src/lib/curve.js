// What was used over time, folded from the ends of steps. Pure.

export const bucket = 10; // seconds that a point stands for
const most = 360; // points that are kept: an hour

// newCurve returns a curve without points. from is the first moment of which everything is known, in seconds; 0 = none yet.
export function newCurve() {
  return { points: new Map(), from: 0, lost: 0 };
}

// addStep takes the event of a step's end.
export function addStep(curve, e) {
  const at = Math.floor(Date.parse(e.time) / 1000 / bucket);
  if (!Number.isFinite(at)) return;
  let p = curve.points.get(at);
  if (!p) {
    curve.points.set(at, (p = { tokens: 0, usd: 0 }));
    if (curve.points.size > most) curve.points.delete(Math.min(...curve.points.keys()));
  }
  p.tokens += e.tokens || 0;
  p.usd += e.cost_usd || 0;
}

// series returns what a chart draws: the moments in seconds, and tokens and dollars per minute, over the last span seconds up to
// now, in seconds. What nobody knows is null, and is no zero. sum and dollars are
// of all the time, lately and spent of the last minute; since is the first moment that is known, 0 = all of them are.
export function series(curve, now, span) {
  const x = [], tokens = [], usd = [];
  const last = Math.floor(now / bucket), first = last - Math.ceil(span / bucket) + 1;
  let sum = 0, dollars = 0, lately = 0, spent = 0;
  for (let at = first; at <= last; at++) {
    const p = curve.points.get(at);
    const known = p || at * bucket >= curve.from;
    x.push(at * bucket);
    tokens.push(known ? ((p?.tokens || 0) * 60) / bucket : null);
    usd.push(known ? ((p?.usd || 0) * 60) / bucket : null);
    sum += p?.tokens || 0;
    dollars += p?.usd || 0;
    if (at > last - 60 / bucket) [lately, spent] = [lately + (p?.tokens || 0), spent + (p?.usd || 0)];
  }
  return { x, tokens, usd, sum, dollars, lately, spent, since: curve.from > now - span ? curve.from : 0 };
}
