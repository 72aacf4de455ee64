// What a person has typed and not sent: it outlives the page and an error.
import { useState } from './html.js';

// useDraft returns [text, set] of a name; an empty text is not kept.
export function useDraft(name) {
  const key = 'rnix-draft-' + name;
  const [text, setText] = useState(() => localStorage.getItem(key) || '');
  const set = (v) => {
    setText(v);
    try {
      if (v) localStorage.setItem(key, v);
      else localStorage.removeItem(key);
    } catch { /* there is no room: it lives as long as the page */ }
  };
  return [text, set];
}
