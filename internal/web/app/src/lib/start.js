// What a person fills in to start agents, as requests of spawn; and where errors belong. Pure.

const most = 1 << 20; // bytes of an intent
const encoder = new TextEncoder();
const units = { ms: 1, s: 1000, m: 60000, h: 3600000 };

// tokens reads a number of tokens with k or M behind it; NaN = it is none.
export function tokens(s) {
  const m = /^(\d+(?:\.\d*)?|\.\d+)([kKmM]?)$/.exec(s.trim());
  return m ? Math.trunc(Number(m[1]) * { '': 1, k: 1e3, m: 1e6 }[m[2].toLowerCase()]) : NaN;
}

// span reads a time such as 90s or 1h30m, in milliseconds; NaN = it is none.
export function span(s) {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(s.trim())) return NaN;
  let sum = 0;
  for (const [, n, , unit] of s.matchAll(/(\d+(\.\d+)?)(ms|s|m|h)/g)) sum += Number(n) * units[unit];
  return sum;
}

const list = (s) => (s || '').split(/[\s,]+/).filter(Boolean);

// requests returns {requests, errors}: a request of each model that is named, or what is wrong by the names of the fields, in the words of the command line.
export function requests(v) {
  const errors = {};
  const intent = (v.intent || '').trim() ? v.intent : '';
  if (!intent) errors.intent = 'Say what is to be done';
  else if (encoder.encode(intent).length > most) errors.intent = `The intent has ${encoder.encode(intent).length} bytes and ${most} are allowed: put the text into a file and tell the agent to read it`;
  const r = { intent };
  for (const key of ['agent', 'cwd', 'effort', 'sandbox', 'net']) if (v[key]?.trim()) r[key === 'effort' ? 'reasoning_effort' : key] = v[key].trim();
  if (v.tokens?.trim()) {
    r.context_budget = tokens(v.tokens);
    if (!(r.context_budget <= 1e15)) errors.tokens = 'Want a number of tokens such as 50000, 200k or 1.5M';
  }
  if (v.usd?.trim()) {
    r.budget_usd = /^\d*\.?\d+$/.test(v.usd.trim()) ? Number(v.usd) : NaN;
    if (!(r.budget_usd <= 1e9)) errors.usd = 'Want an amount of dollars such as 2.50';
  }
  if (v.steps?.trim()) {
    r.max_steps = /^\d+$/.test(v.steps.trim()) ? Number(v.steps) : NaN;
    if (!(r.max_steps <= 1e9)) errors.steps = 'Want a number of steps; 0 = no limit';
  }
  if (v.timeout?.trim()) {
    r.timeout_ms = span(v.timeout);
    if (!(r.timeout_ms >= 1)) errors.timeout = 'Give a time such as 90s or 10m';
  }
  if (list(v.hosts).length) r.hosts = list(v.hosts);
  if (v.tree) r.worktree = { ...(v.branch?.trim() ? { branch: v.branch.trim() } : {}), ...(v.base?.trim() ? { base: v.base.trim() } : {}) };
  const models = list(v.model), name = v.name?.trim();
  if (models.length > 12) errors.model = 'At most 12 models at once';
  if (models.length > 1 && v.tree && v.branch?.trim()) errors.branch = 'Several agents cannot have one branch: leave it empty';
  const each = models.length ? models : [''];
  return { errors, requests: each.map((model, i) => ({ ...r, ...(model ? { model } : {}), ...(name ? { name: each.length > 1 ? `${name}-${i + 1}` : name } : {}) })) };
}

// suggestions are what the field of the model proposes: models that can be started, each with its provider.
export const suggestions = (providers) => providers.map((p) => (p.model ? `${p.name}/${p.model}` : p.driver === 'replay' ? `${p.name}/replay` : '')).filter(Boolean);

// plain returns what a refusal says, as the command line shows it.
export const plain = (err) => err.message.replace(/^Spawn(: | )/, '');

// belongs returns the name of the field that a refusal is about; '' = of no one.
export function belongs(err, v) {
  const text = plain(err), about = (s) => s && text.includes(s);
  const signs = [
    ['intent', /cannot be attached|attached files|files are attached/], ['hosts', /^hosts\b/], ['sandbox', /^sandbox level/], ['net', /^sandbox net/], ['agent', /no agent of this name/], ['model', /no provider|no model/], ['tree', /work ?tree|git repository/i], ['branch', /branch/i],
    ['sandbox', /sandbox|bwrap|landlock/i], ['usd', /budget_usd|dollars/], ['tokens', /budget/], ['steps', /step limit|max_steps/], ['timeout', /time limit/], ['effort', /effort/i], ['cwd', /directory/i], ['model', /model/i], ['name', /\bname\b/],
  ];
  if (v.tree && about(v.branch?.trim())) return 'branch';
  if (v.tree && about(v.base?.trim())) return 'base';
  if (about(v.cwd?.trim()) && /directory|no such file|not exist/i.test(text)) return 'cwd';
  return signs.find(([, sign]) => sign.test(text))?.[0] || '';
}
