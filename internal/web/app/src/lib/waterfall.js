// The spans of a trace as rows of a waterfall. Pure.

// rows returns the spans that are shown, each {span, depth, kids, open, left, width} in per mille of the whole; closed is a Set of ids.
// A parent stands before its children, as the wire gives them.
export function rows(trace, closed) {
  const start = Date.parse(trace.start);
  let end = Date.parse(trace.end);
  const depth = new Map(), kids = new Map(), hidden = new Set();
  for (const s of trace.spans) {
    if (s.parent) kids.set(s.parent, (kids.get(s.parent) || 0) + 1);
    end = Math.max(end, Date.parse(s.start) + s.dur_ns / 1e6);
  }
  const whole = Math.max(end - start, 0.001);
  const out = [];
  for (const s of trace.spans) {
    const d = s.parent && depth.has(s.parent) ? depth.get(s.parent) + 1 : 0;
    depth.set(s.id, d);
    if (s.parent && (hidden.has(s.parent) || closed.has(s.parent))) {
      hidden.add(s.id);
      continue;
    }
    const left = Math.min(Math.max((Date.parse(s.start) - start) / whole, 0), 1) * 1000;
    const width = Math.min(Math.max(s.dur_ns / 1e6 / whole, 0) * 1000, 1000 - left);
    out.push({ span: s, depth: d, kids: kids.get(s.id) || 0, open: !closed.has(s.id), left, width });
  }
  return out;
}

// shares returns how much of the critical path is of which kind, the largest first: [{kind, ns, percent}]. The percents are whole and add up to 100: those with
// the largest remainders are rounded up, as on the command line.
export function shares(trace) {
  const by = new Map(), kind = new Map(trace.spans.map((s) => [s.id, s.kind]));
  let sum = 0;
  for (const part of trace.critical) {
    const ns = Math.max(0, Date.parse(part.to) - Date.parse(part.from)) * 1e6;
    const k = kind.get(part.span) || 'left out';
    by.set(k, (by.get(k) || 0) + ns);
    sum += ns;
  }
  const parts = [...by].map(([kind, ns]) => ({ kind, ns, exact: sum ? (100 * ns) / sum : 0 })).sort((a, b) => b.ns - a.ns);
  const rest = (p) => p.exact - Math.floor(p.exact);
  const left = sum ? 100 - parts.reduce((n, p) => n + Math.floor(p.exact), 0) : 0;
  const up = new Set([...parts].sort((a, b) => rest(b) - rest(a)).slice(0, left));
  return parts.map((p) => ({ kind: p.kind, ns: p.ns, percent: Math.floor(p.exact) + (up.has(p) ? 1 : 0) }));
}
