// What a notification says. Pure.
import { outcome, outcomeWhy } from './fold.js';
import { line } from './visible.js';

// notice returns {title, body, tag} for an event of process p, or null: of ends, those of what a person has started are told.
export function notice(e, p) {
  const name = `PID ${p.pid}` + (p.name ? ` (${line(p.name, 40)})` : '');
  if (e.kind === 'asked') return { title: `${name} asks you`, body: line(e.text || p.intent || '', 200), tag: `ask ${p.uuid} ${e.args || ''}` };
  if (e.kind !== 'exited' || p.parent_uuid) return null;
  const failed = e.exit?.code ? `${name} failed` + (outcome(e.exit) === 'failed' ? '' : ': ' + outcome(e.exit)) : '';
  return { title: failed || `${name} is done`, body: line([outcomeWhy(e.exit), p.intent].filter(Boolean).join(' · '), 200), tag: `end ${p.uuid}` };
}
