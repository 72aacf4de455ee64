// What stands where an answer is not there yet, or was refused.
import { html } from '../lib/html.js';
import { Line } from './text.js';
import { reason } from '../lib/say.js';

// Answer shows draw(data), or why there is nothing to draw. calm says that it may well be that there is nothing, which is no fault.
export function Answer({ of, draw, empty, calm }) {
  const { data, error, loading, again } = of;
  if (data) {
    return html`${error && html`<p class="problem" role="alert"><${Line} value=${error.message} /> <button type="button" onClick=${again}>${loading ? 'Trying …' : 'Try again'}</button></p>`}${draw(data)}`;
  }
  if (calm && error?.code === 'NOT_FOUND') return html`<p class="empty"><${Line} value=${reason(error.message)} most=${1000} /></p>`;
  if (error) return html`<p class="problem" role="alert"><${Line} value=${error.message} most=${1000} /> <button type="button" onClick=${again}>${loading ? 'Trying …' : 'Try again'}</button></p>`;
  return html`<p class="empty" role="status">${loading ? 'Reading …' : empty || 'Nothing.'}</p>`;
}

// Facts is a list of names and values; those without a value are left out.
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false).map(([name, v]) => html`<div><dt>${name}</dt><dd>${v}</dd></div>`)}</dl>`;
}

// Table is a small table; columns are [{text, num, cell(row)}]. It scrolls sideways by itself where it must.
export function Table({ label, columns, rows, empty = 'Nothing.', row: attrs = () => ({}) }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="table"><caption class="sr">${label}</caption>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.num ? 'num' : ''}>${c.text}</th>`)}</tr></thead>
    <tbody>${rows.map((r, i) => html`<tr key=${r.key ?? i} ...${attrs(r)}>${columns.map((c) => html`<td class=${c.num ? 'num' : ''}>${c.cell(r)}</td>`)}</tr>`)}</tbody></table></div>`;
}
