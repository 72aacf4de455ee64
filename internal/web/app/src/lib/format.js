// Numbers and times for people, as the command line writes them (package debug). Pure.

const digits = (x, unit) => {
  const s = x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0);
  return (s.includes('.') ? s.replace(/0+$/, '').replace(/\.$/, '') : s) + unit;
};
const two = (n) => String(n).padStart(2, '0');

// duration returns milliseconds with three digits: 15µs, 1.25ms, 32.1s, 4m05s, 2h10m, 9d04h.
export function duration(ms) {
  if (ms < 0) return '-' + duration(-ms);
  const s = ms / 1000, m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (!(ms > 0)) return '0s';
  if (ms < 0.001) return Math.round(ms * 1e6) + 'ns';
  if (ms < 1) return digits(ms * 1000, 'µs');
  if (ms < 1000) return digits(ms, 'ms');
  if (s < 60) return digits(s, 's');
  if (m < 60) return m + 'm' + two(Math.floor(s) % 60) + 's';
  if (h < 48) return h + 'h' + two(m % 60) + 'm';
  return Math.floor(h / 24) + 'd' + two(h % 24) + 'h';
}

// age returns milliseconds that are still growing, or that nobody needs more exactly, in whole seconds: 0s, 32s, 4m05s, 2h10m.
export const age = (ms) => (ms >= 1000 ? duration(Math.floor(ms / 1000) * 1000) : '0s');

export function count(n) {
  if (!(n >= 10000)) return String(Number(n) || 0).replace(/^(\d)(\d{3})$/, '$1,$2');
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

// costWhy explains the "?" of a cost; undefined = there is none.
export const costWhy = (p) => (p.unpriced_tokens > 0 ? `No price is known for ${(p.unpriced_models || []).join(', ') || 'a model'}: set one in prices.yaml (rnix help cost says how). A price counts from then on.` : undefined);

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

// hour returns the hour and the minute of a time.
export const hour = (t) => `${two(t.getHours())}:${two(t.getMinutes())}`;

// moment returns a time as the command line writes times, with the day unless that is today.
export function moment(iso, today = new Date()) {
  const t = new Date(iso);
  if (isNaN(t) || t.getFullYear() < 1971) return '–';
  if (t.toDateString() === today.toDateString()) return `${hour(t)}:${two(t.getSeconds())}`;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${hour(t)}`;
}
