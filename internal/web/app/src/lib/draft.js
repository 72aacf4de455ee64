// What a person has typed and not sent: it outlives the page and an error.
import { signal } from './html.js';
import { shared } from './shared.js';

// useDraft returns [text, set, sent] of a name; an empty text is not kept. sent takes away a text that was sent, and leaves what was typed meanwhile.
export function useDraft(name) {
  const key = 'rnix-draft-' + name;
  const draft = shared(key, () => signal(localStorage.getItem(key) || ''));
  const set = (v) => {
    draft.value = v;
    try {
      if (v) localStorage.setItem(key, v);
      else localStorage.removeItem(key);
    } catch { /* there is no room: it lives as long as the page */ }
  };
  return [draft.value, set, (text) => set(unsent(draft.peek(), text))];
}

// unsent returns what of a text is still to be sent when its beginning was.
export const unsent = (now, text) => (now.startsWith(text) ? now.slice(text.length).trimStart() : now);
