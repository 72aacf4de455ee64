// Keys are data: what a page lets a person press, and what it does. Help derives from it.
import { signal } from './html.js';

// shown is the keys of the page that is open: [{key, text, run}]. key is as KeyboardEvent.key says it.
export const shown = signal([]);

const writing = (el) => el instanceof HTMLElement && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName));

export function startKeys(always) {
  addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || writing(e.target) || document.querySelector('dialog[open]')) return;
    const hit = [...shown.value, ...always].find((k) => k.key === e.key);
    if (!hit) return;
    e.preventDefault();
    hit.run(e);
  });
}
