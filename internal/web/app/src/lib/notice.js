// What a notification says. Pure.
import { line } from './visible.js';

// notice returns {title, body, tag} for an event of process p, or null: of ends, those of what a person has started are told.
export function notice(e, p) {
  const name = `PID ${p.pid}` + (p.name ? ` (${line(p.name, 40)})` : '');
  if (e.kind === 'asked') return { title: `${name} asks you`, body: line(e.text || p.intent || '', 200), tag: `ask ${p.uuid} ${e.args || ''}` };
  if (e.kind !== 'exited' || p.parent_uuid) return null;
  const code = e.exit?.code ?? 0;
  return { title: code ? `${name} failed: exit ${code}` : `${name} is done`, body: line(p.intent || '', 200), tag: `end ${p.uuid}` };
}
