// Short messages at the edge of the page. Errors stay until they are closed.
import { html, signal } from '../lib/html.js';
import { Text } from './text.js';

const toasts = signal([]);
let last = 0;

function show(tone, text) {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-4), { id, tone, text }];
  if (tone === 'good') setTimeout(() => close(id), 5000);
}
const close = (id) => { toasts.value = toasts.value.filter((t) => t.id !== id); };

export const said = (text) => show('good', text);
export const failed = (err) => show('bad', err?.message || String(err));

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map((t) => html`<div key=${t.id} class=${'toast ' + t.tone}>
      <${Text} value=${t.text} start=${600} />
      <button type="button" class="quiet" aria-label="Close this message" onClick=${() => close(t.id)}>✕</button>
    </div>`)}
  </div>`;
}
