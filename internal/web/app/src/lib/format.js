// Numbers and times for people. Pure.

export function duration(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + ' ms';
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 60) return Math.floor(s) + ' s';
  const m = Math.floor(s / 60);
  if (m < 60) return m + ' m ' + String(Math.floor(s % 60)).padStart(2, '0') + ' s';
  const h = Math.floor(m / 60);
  if (h < 48) return h + ' h ' + String(m % 60).padStart(2, '0') + ' m';
  return Math.floor(h / 24) + ' d ' + (h % 24) + ' h';
}

export function count(n) {
  if (!(n >= 10000)) return String(Number(n) || 0);
  const units = ['k', 'M', 'G', 'T'];
  let u = -1;
  do {
    n /= 1000;
    u++;
  } while (n >= 999.5 && u < units.length - 1);
  return (n < 100 ? n.toFixed(1) : Math.round(n)) + units[u];
}

// dollars returns an amount as the command line writes it.
export function dollars(usd) {
  if (!(usd > 0)) return '$0';
  if (usd < 0.000001) return '<$0.000001';
  return '$' + (usd < 0.01 ? usd.toFixed(6).replace(/0+$/, '') : usd.toFixed(usd < 1 ? 3 : 2));
}

// spent returns what something has cost, in the words of the command line: "-" where nothing was used, "free" where it costs nothing, "?" where
// nobody knows, "$1.25", and "$1.25+?" where it is known of a part. unpriced are those of the tokens that have no known price.
export function spent(usd, tokens, unpriced) {
  if (unpriced > 0) return usd > 0 ? dollars(usd) + '+?' : '?';
  if (usd > 0) return dollars(usd);
  return tokens > 0 ? 'free' : '-';
}

// cost is spent of a process, or of anything else with its fields.
export const cost = (p) => spent(p.cost_usd, p.tokens_used ?? p.tokens, p.unpriced_tokens);

export function bytes(n) {
  if (!(n >= 1024)) return (Number(n) || 0) + ' B';
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let u = -1;
  do {
    n /= 1024;
    u++;
  } while (n >= 1023.5 && u < units.length - 1);
  return n.toFixed(n < 10 ? 1 : 0) + ' ' + units[u];
}

// moment returns a time as this browser's person writes times, with the day unless that is today.
export function moment(iso, today = new Date()) {
  const t = new Date(iso);
  if (isNaN(t) || t.getFullYear() < 1971) return '–';
  const day = t.toDateString() === today.toDateString() ? '' : t.toLocaleDateString() + ' ';
  return day + t.toLocaleTimeString();
}
