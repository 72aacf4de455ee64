// The files that it has changed, with their differences, over all steps or between two.
import { html, useMemo, useRef } from '../../lib/html.js';
import { count } from '../../lib/format.js';
import { href, go } from '../../lib/router.js';
import { useCall } from '../../lib/ask.js';
import { neighbours } from '../../lib/compare.js';
import { ended } from '../../lib/fold.js';
import { procs } from '../../lib/store.js';
import { diffCommand } from '../../lib/advice.js';
import { Answer, Table } from '../../ui/answer.js';
import { Lines } from '../../ui/lines.js';
import { Tree } from './tree.js';
import { Line } from '../../ui/text.js';

const words = { A: 'added', D: 'deleted', M: 'changed', T: 'another type' };

// Diff is the difference d of process p. steps are those that `rnix diff` takes for it.
export function Diff({ d, p, steps }) {
  const lines = useMemo(() => (d.diff || '').split('\n'), [d]);
  return html`${d.to.limited && html`<p class="problem">Not all files are kept: <${Line} value=${d.to.limited} most=${400} /></p>`}
    ${(d.autorun || []).map((f) => html`<p key=${f.file} class="problem">Run or obeyed unasked by other programs: ${f.change} <${Line} value=${f.file} most=${400} class="mono" />: <${Line} value=${f.note} most=${400} /></p>`)}
    <${Table} label="Changed files" empty="No file was changed." rows=${d.files} columns=${[
      { text: 'File', cell: (f) => html`<${Line} value=${f.path} class="mono" />` }, { text: '', cell: (f) => words[f.status] || f.status },
      { text: 'Lines added', num: true, cell: (f) => (f.binary ? 'binary' : f.added || '') }, { text: 'deleted', num: true, cell: (f) => (f.binary ? '' : f.deleted || '') },
    ]} />
    ${d.diff && html`<${Lines} key=${d.diff.length} lines=${lines} />`}
    ${d.missing > 0 && html`<p><small>${count(d.missing)} bytes more are not shown. In a terminal: <code>${diffCommand(p, steps, d.missing)}</code></small></p>`}
    ${d.diff_bytes && html`<p><small>The difference is not UTF-8. In a terminal: <code>${diffCommand(p, steps)}</code></small></p>`}`;
}

// until says up to when a difference is.
function until({ to, from }) {
  const since = from.base ? 'the beginning of its branch' : from.step ? `the end of step ${from.step}` : 'before its first step';
  const end = to.now ? 'now' : `the end of ${to.broken ? '' : 'its '}step ${to.step}`;
  return `From ${since} to ${end}.` + (to.broken ? ` Step ${to.broken} did not end: what it has changed is not kept.` : '');
}

export function Files({ id, p, query, turn }) {
  const from = Number(query.get('from')) || 0, to = query.get('to');
  const request = { target: id, from, ...(to ? { to: Number(to) } : {}) };
  const of = useCall('diff_files', request, { on: turn, every: 3000 });
  const steps = to ? [from, to] : from ? [from, p.step] : [];
  const at = (f, t) => go(href('process', { id, tab: 'files' }, { from: f || undefined, to: t || undefined }), true);
  const tree = useRef(false); // it has a git work tree: a difference from its beginning says so
  tree.current ||= Boolean(of.data?.from.base);
  const others = useMemo(() => neighbours([...procs.value.rows.values()], p), [procs.value, p]);
  return html`${tree.current && html`<${Tree} id=${id} p=${p} turn=${turn} />`}<div class="tools"><label>From the end of step <input type="number" min="0" max=${p.step} placeholder="start" value=${from || ''} onChange=${(e) => at(e.target.value, to)} /></label>
      <label>to the end of step <input type="number" min="0" max=${p.step} placeholder=${ended(p) ? 'last' : 'now'} value=${to ?? ''} onChange=${(e) => at(from, e.target.value)} /></label></div>
    ${others.length > 0 && html`<p class="problem">${others.length === 1 ? 'PID' : 'PIDs'} ${others.slice(0, 8).join(', ')}${others.length > 8 ? ` and ${others.length - 8} more` : ''} worked in this directory at the same time: these changes may be the work of any of them.</p>`}
    <${Answer} of=${of} calm draw=${(d) => html`<p>${until(d)}</p><${Diff} d=${d} p=${p} steps=${steps} />`} />`;
}
