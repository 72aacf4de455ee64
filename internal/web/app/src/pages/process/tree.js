// The git work tree of a process: what is in it, and how it gets into the branch of the person.
import { html, useState } from '../../lib/html.js';
import { call } from '../../lib/api.js';
import { treeCommands, undoCommand } from '../../lib/advice.js';
import { useCall } from '../../lib/ask.js';
import { find } from '../../lib/store.js';
import { together } from '../../lib/compare.js';
import { who } from '../../lib/actions.js';
import { works } from '../../lib/say.js';
import { ask } from '../../ui/dialog.js';
import { failed, said } from '../../ui/toast.js';
import { line } from '../../lib/visible.js';
import { Facts } from '../../ui/answer.js';
import { Copy } from '../../ui/copy.js';
import { Line } from '../../ui/text.js';

const few = 15; // files that the question of a merge names

const many = (n, one, more) => `${n} ${n === 1 ? one : more}`;

function state(w) {
  if (w.gone) return 'its directory is gone';
  if (w.uncommitted) return w.commits ? `${many(w.commits, 'commit', 'commits')}, and more that is not committed` : 'not committed';
  return many(w.commits, 'commit', 'commits');
}

// preview asks whether work is merged, and shows what is not merged yet; null = nothing is, or the person would rather not.
async function preview(p, w) {
  const [d, trees] = await Promise.all([call('merge', { target: p.uuid, preview: true }), call('list_worktrees', {})]);
  const overlaps = trees.worktrees.find((t) => t.uuid === p.uuid)?.overlaps || [];
  const auto = d.autorun || [], { files } = d;
  if (d.already) return null;
  return ask({
    title: `Merge the work of ${who(p)}?`, yes: 'Merge', danger: auto.length > 0,
    body: html`<p>Into what is checked out in <${Line} value=${w.repo} class="mono" />, all of it or nothing.${w.uncommitted ? ' What is not committed is committed first, on its branch.' : ''}</p>
      <p>${many(files.length, 'file', 'files')}:</p><ul class="files">${files.slice(0, few).map((f) => html`<li key=${f.path}><${Line} value=${f.path} class="mono" /> <small>${f.binary ? 'binary' : `+${f.added || 0} −${f.deleted || 0}`}</small></li>`)}${files.length > few ? html`<li>and ${files.length - few} more</li>` : ''}</ul>
      ${d.preview?.conflicts?.length > 0 && html`<p class="problem">It would be refused: both sides have changed the same places in <${Line} value=${d.preview.conflicts.join(', ')} most=${400} class="mono" /></p>`}
      ${d.preview?.in_the_way && html`<p class="problem">It would be refused: <${Line} value=${d.preview.in_the_way} most=${400} /></p>`}
      ${together(overlaps).map((o) => html`<p class="problem">${o.by.map((u) => who({ name: find(u.uuid)?.name, ...u })).join(', ')} ${o.by.length === 1 ? 'has' : 'have'} changed <${Line} value=${o.paths.join(', ')} most=${300} class="mono" />, too: merging more than one of them may conflict.</p>`)}
      ${auto.map((f) => html`<p class="problem">Run or obeyed unasked by other programs: ${f.change} <${Line} value=${f.file} class="mono" />: <${Line} value=${f.note} most=${300} /></p>`)}`,
    fields: auto.length ? [{ name: 'auto', type: 'check', value: false, label: 'merge it although other programs run or obey these files' }] : [],
  });
}

function Merged({ m }) {
  if (m.already) return html`<p class="done-note" role="status"><${Line} value=${m.target} class="mono" /> has all of it already.</p>`;
  return html`<p class="done-note" role="status">Merged: <${Line} value=${m.target} class="mono" /> was at <code>${m.before.slice(0, 10)}</code> and is at <code>${m.commit.slice(0, 10)}</code>. To undo it: <code>${undoCommand(m)}</code> <${Copy} text=${undoCommand(m)} what="the command that undoes the merge" /></p>
    ${(m.unseen || []).map((u) => html`<p class="problem">Not merged: <${Line} value=${u} most=${400} /></p>`)}`;
}

export function Tree({ id, p, turn }) {
  const of = useCall('show_worktree', { target: id }, { on: turn, every: 3000 });
  const [merged, setMerged] = useState(null);
  const [busy, setBusy] = useState('');
  const w = of.data;
  const left = useCall('merge', w?.files.length && !w.gone && !works(p) ? { target: id, preview: true } : null, { on: `${turn} ${w?.commits} ${w?.uncommitted} ${merged?.commit}`, every: 3000 }); // what is not merged yet
  if (!w) return null;
  const rest = works(p) ? null : left.data;
  const merge = async () => {
    setBusy('Looking …');
    try {
      const a = await preview(p, w);
      if (a) {
        setBusy('Merging …');
        const m = await call('merge', { target: id, ...(a.auto ? { allow_autorun: true } : {}) });
        setMerged(m);
        said(m.already ? `${line(m.target, 80)} has all of it already` : `Merged into ${line(m.target, 80)}: ${many(m.files.length, 'file', 'files')}`);
      }
    } catch (err) {
      failed(new Error(err.message.replace(/^Merge(: | )/, '')));
    }
    of.again(); // what was not committed may be now, also if it was not merged
    left.again();
    setBusy('');
  };
  return html`<section class="tree" aria-label="Its git work tree"><h2>Its git work tree</h2>
    ${w.problem && html`<p class="problem"><${Line} value=${w.problem} most=${600} /></p>`}
    <${Facts} facts=${[['Branch', w.branch ? html`<${Line} value=${w.branch} class="mono" />` : 'none'], ['Began at', html`<code>${w.base.slice(0, 10)}</code> <${Line} value=${w.base_name || ''} class="mono" />`], ['Changed', `${many(w.files.length, 'file', 'files')}, ${state(w)}`], ['Of', html`<${Line} value=${w.repo} class="mono" />`]]} />
    ${(w.unseen || []).map((u) => html`<p class="problem">In no difference and no merge: <${Line} value=${u} most=${400} /></p>`)}
    ${!merged && rest?.already && html`<p class="done-note" role="status"><${Line} value=${rest.target} class="mono" /> has all of it already.</p>`}
    ${w.files.length > 0 && !rest?.already && html`<div class="buttons"><button type="button" class="main" disabled=${busy || works(p)} onClick=${merge}>${busy || 'Merge…'}</button>${rest && html` <small>${many(rest.files.length, 'file is', 'files are')} not merged yet</small>`}${works(p) ? html` <small>when it has ended, or is paused</small>` : ''}</div>`}
    ${merged && html`<${Merged} m=${merged} />`}
    ${treeCommands(w, !!p.exit).length > 0 && html`<details><summary>In a terminal</summary><ul class="commands">${treeCommands(w, !!p.exit).map((c) => html`<li key=${c.command}>To ${c.what}: <code>${c.command}</code> <${Copy} text=${c.command} what=${`the command to ${c.what}`} /></li>`)}</ul></details>`}
  </section>`;
}
