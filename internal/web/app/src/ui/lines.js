// Lines shows the lines of a difference; what one says by its colour its first character says, too.
import { html, useState } from '../lib/html.js';
import { count } from '../lib/format.js';
import { tone } from '../lib/turns.js';
import { head, visible } from '../lib/visible.js';

export function Lines({ lines, start = 3000, label = 'Differences' }) {
  const [shown, setShown] = useState(start);
  return html`<div class="diff mono" tabindex="0" role="region" aria-label=${label}>${lines.slice(0, shown).map((l, i) => html`<div key=${i} class=${tone(l)}>${visible(head(l, 2000)) || ' '}${l.length > 2000 ? ` … ${count(l.length - 2000)} more characters` : ''}</div>`)}</div>
    ${lines.length > shown && html`<p><button type="button" onClick=${() => setShown(shown + 30000)}>Show ${count(lines.length - shown)} more lines</button></p>`}`;
}
