// What a person says to an agent: while it works it is steered, else it is resumed with it.
import { call } from './api.js';
import { refused } from './actions.js';
import { ended } from './fold.js';

// talks reports whether one can say something to a process at all.
export const talks = (p) => !p.kind && p.state !== 'archived';

// works reports whether a process hears something before its next step; else it is resumed with it.
export const works = (p) => !ended(p) && p.state !== 'suspended';

const over = new Set(['BROKEN_PIPE', 'NOT_FOUND', 'CONFLICT']); // it has ended meanwhile

// say says it, and returns how: steered or resumed, with warnings. key names the sending: what is sent again with it is heard once. more are the attachments.
export async function say(p, text, key, more = {}) {
  const steer = async () => ({ how: 'steered', state: (await call('steer', { target: p.uuid, text, key, ...more })).state });
  const resume = async () => ({ how: 'resumed', warnings: (await call('resume', { target: p.uuid, new_input: text, ...more })).warnings || [] });
  try {
    if (!works(p)) return await resume();
    const r = await steer();
    return r.state === 'running' ? r : await resumed(p, r);
  } catch (err) {
    if (works(p) && over.has(err.code)) return resume();
    if (!works(p) && err.code === 'CONFLICT') { // another person has resumed it just now
      const r = await steer().catch(() => null);
      if (r?.state === 'running') return r;
    }
    throw refused(err, p);
  }
}

// resumed resumes a process in whose mailbox the message lies already.
async function resumed(p, r) {
  await call('resume', { target: p.uuid });
  return { ...r, how: 'resumed' };
}

// reason is what an error says without the operation and the process, which stand on the page.
export const reason = (text) => text.replace(/^[A-Z][A-Za-z]* [0-9a-f-]{36}: /, '');
