// Copy puts a text into the clipboard.
import { html, useState } from '../lib/html.js';
import { failed } from './toast.js';

export function Copy({ text, what, children = 'Copy' }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 2000);
    } catch (err) {
      failed(err);
    }
  };
  return html`<button type="button" class="quiet copy" aria-label=${`Copy ${what}`} onClick=${copy}>${done ? 'Copied' : children}</button>`;
}
