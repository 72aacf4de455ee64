// What rnix doctor finds, in its own words, and what mends it.
import { html } from '../../lib/html.js';
import { moment } from '../../lib/format.js';
import { useCall } from '../../lib/ask.js';
import { Answer } from '../../ui/answer.js';
import { Line } from '../../ui/text.js';

const looks = { ok: 'run', warning: 'wait', broken: 'bad' }; // the others are neither good nor bad

// verdict says in one sentence what a person has to know.
export function verdict(list) {
  const n = (status) => list.filter((f) => f.status === status).length;
  const [broken, warnings] = [n('broken'), n('warning')];
  const said = [broken && (broken === 1 ? '1 thing is broken' : `${broken} things are broken`), warnings && (warnings === 1 ? '1 warning' : `${warnings} warnings`)].filter(Boolean);
  return said.length ? said.join(', ') + '.' : 'Nothing is broken.';
}

export function Doctor() {
  const found = useCall('doctor', {});
  return html`<h2>Can agents be run here?</h2>
    <${Answer} of=${found} draw=${({ findings, at }) => html`<p class="doctor"><span role="status">${verdict(findings || [])}</span> <small>Looked at ${moment(at)}, in the directory where <code>rnix web</code> runs.</small>
      <button type="button" onClick=${found.loading ? undefined : found.again} aria-disabled=${found.loading ? 'true' : 'false'}>${found.loading ? 'Checking …' : 'Check again'}</button></p>
      <ul class="checks">${(findings || []).map((f) => html`<li key=${f.check + f.detail} data-check=${f.check}><span class="state"><span class=${'badge ' + (looks[f.status] || 'done')}>${f.status}</span></span>
        <b class="check"><${Line} value=${f.check} /></b><span class="found"><${Line} value=${f.detail} most=${600} /></span>${f.mend && html`<span class="mend"><${Line} value=${f.mend} most=${600} /></span>`}</li>`)}</ul>`} />`;
}
