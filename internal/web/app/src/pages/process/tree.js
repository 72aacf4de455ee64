// The git work tree of a process: what is in it, and how it gets into the branch of the person.
import { html, useState } from '../../lib/html.js';
import { call } from '../../lib/api.js';
import { treeCommands, undoCommand } from '../../lib/advice.js';
import { useCall } from '../../lib/ask.js';
import { who } from '../../lib/actions.js';
import { works } from '../../lib/say.js';
import { ask } from '../../ui/dialog.js';
import { failed } from '../../ui/toast.js';
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

// preview asks whether work is merged, and shows what.
async function preview(p, w) {
  const [d, trees] = await Promise.all([call('diff_files', { target: p.uuid, stat: true }), call('list_worktrees', {})]);
  const overlaps = trees.worktrees.find((t) => t.uuid === p.uuid)?.overlaps || [];
  const auto = d.autorun || [];
  return ask({
    title: `Merge the work of ${who(p)}?`, yes: 'Merge', danger: auto.length > 0,
    body: html`<p>Into what is checked out in <${Line} value=${w.repo} class="mono" />, all of it or nothing.${w.uncommitted ? ' What is not committed is committed first, on its branch.' : ''}</p>
      <p>${many(w.files.length, 'file', 'files')}:</p><ul class="files">${w.files.slice(0, few).map((f) => html`<li key=${f.path}><${Line} value=${f.path} class="mono" /> <small>${f.binary ? 'binary' : `+${f.added || 0} −${f.deleted || 0}`}</small></li>`)}${w.files.length > few ? html`<li>and ${w.files.length - few} more</li>` : ''}</ul>
      ${overlaps.map((o) => html`<p class="problem">PID ${o.pid} has changed ${o.paths.length} of these files, too: merging both may conflict.</p>`)}
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
  const [busy, setBusy] = useState(false);
  const w = of.data;
  if (!w) return null;
  const merge = async () => {
    setBusy(true);
    try {
      const a = await preview(p, w);
      if (a) {
        setMerged(await call('merge', { target: id, ...(a.auto ? { allow_autorun: true } : {}) }));
      }
    } catch (err) {
      failed(new Error(err.message.replace(/^Merge(: | )/, '')));
    }
    of.again(); // what was not committed may be now, also if it was not merged
    setBusy(false);
  };
  return html`<section class="tree" aria-label="Its git work tree"><h2>Its git work tree</h2>
    ${w.problem && html`<p class="problem"><${Line} value=${w.problem} most=${600} /></p>`}
    <${Facts} facts=${[['Branch', w.branch ? html`<${Line} value=${w.branch} class="mono" />` : 'none'], ['Began at', html`<code>${w.base.slice(0, 10)}</code> <${Line} value=${w.base_name || ''} class="mono" />`], ['Changed', `${many(w.files.length, 'file', 'files')}, ${state(w)}`], ['Of', html`<${Line} value=${w.repo} class="mono" />`]]} />
    ${(w.unseen || []).map((u) => html`<p class="problem">In no difference and no merge: <${Line} value=${u} most=${400} /></p>`)}
    ${w.files.length > 0 && html`<div class="buttons"><button type="button" class="main" disabled=${busy || works(p)} onClick=${merge}>Merge…</button>${works(p) ? html` <small>when it has ended, or is paused</small>` : ''}</div>`}
    ${merged && html`<${Merged} m=${merged} />`}
    ${treeCommands(w).length > 0 && html`<details><summary>In a terminal</summary><ul class="commands">${treeCommands(w).map((c) => html`<li key=${c.command}>To ${c.what}: <code>${c.command}</code> <${Copy} text=${c.command} what=${`the command to ${c.what}`} /></li>`)}</ul></details>`}
  </section>`;
}
