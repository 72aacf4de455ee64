// Whose budget can be raised for a process, and what holds where there is none. Pure.

// raisable returns the budget that can be raised for a process: {uuid, tokens, usd, own}, with 0 where it has no limit, or null. It is
// that of one above it only if the process waits for that.
export function raisable(p) {
  const b = p.purse;
  if (b && b.uuid !== p.uuid) return { uuid: b.uuid, tokens: b.tokens || 0, usd: b.usd || 0, own: false };
  if (p.context_budget || p.budget_usd) return { uuid: p.uuid, tokens: p.context_budget || 0, usd: p.budget_usd || 0, own: true };
  return null;
}

// unlimited says why there is nothing to raise.
export function unlimited(p) {
  return 'It has no own budget, so there is nothing to raise. ' + (p.parent_uuid ? 'What it uses counts for those above it.' : 'Nothing bounds what it uses.');
}

// usedUp says what to press, where the server refuses to let a process go on because of a budget.
export function usedUp(p) {
  const b = raisable(p);
  if (!b) return 'A budget that it draws on is used up. Open the process that has the budget (Summary, Budget), and press Budget there.';
  return (b.own ? 'Its budget is used up.' : 'The budget of one above it, which it draws on, is used up.') + ' Press Budget on its page, or b, and raise it: it is resumed then.';
}

// holds says what bounds a process, after the lines of the method budget: its own, and those above it.
export function holds(lines, id) {
  const limited = (b) => b.tokens.limit !== null || b.usd.limit !== null;
  const own = lines.find((b) => b.uuid === id);
  if (own && limited(own)) return '';
  const above = lines.filter((b) => b.above && limited(b)).map((b) => `PID ${b.pid}`);
  return above.length ? `It has no own budget, and draws on that of ${above.join(' and ')}.` : 'It has none, nor has one above it: nothing bounds what it uses.';
}
