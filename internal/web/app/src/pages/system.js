// The system: what doctor finds, the daemon, providers, MCP servers, storage, supervisors, work trees.
import { html } from '../lib/html.js';
import { Doctor } from './system/doctor.js';
import { clock, second } from '../lib/store.js';
import { age, bytes, count, duration, moment } from '../lib/format.js';
import { href } from '../lib/router.js';
import { useCall } from '../lib/ask.js';
import { call } from '../lib/api.js';
import { atOnce, callsNow } from '../lib/traffic.js';
import { tell } from '../ui/dialog.js';
import { failed } from '../ui/toast.js';
import { Copy } from '../ui/copy.js';
import { Answer, Facts, Table } from '../ui/answer.js';
import { Line } from '../ui/text.js';

const Mono = ({ v }) => html`<${Line} value=${v} class="mono" most=${200} />`;
const Problems = ({ list }) => (list?.length ? html`<ul class="problem">${list.map((x) => html`<li><${Line} value=${x} most=${400} /></li>`)}</ul>` : null);
const pid = (p) => html`<a href=${href('process', { id: p.uuid })}>${p.pid} <${Line} value=${p.name || ''} most=${40} /></a>`;

// invite shows a link for another browser of this person.
async function invite() {
  try {
    const { link } = await call('link', {});
    tell('Let another browser in', html`<p>This link lets one browser on this machine in, once, with all that you can do here. It is for you alone.</p><p class="mono"><${Line} value=${link} /></p><p><${Copy} text=${link} what="the link">Copy the link<//></p>`);
  } catch (err) {
    failed(err);
  }
}

function System() {
  second.value;
  const slow = Math.floor(second.value / 5);
  const daemon = useCall('daemon_status', {}, { on: slow, every: 4000 });
  const providers = useCall('providers', {});
  const traffic = useCall('provider_calls', {}, { on: second.value, every: 2000 });
  const mcp = useCall('mcp_list', {}, { on: slow, every: 8000 });
  const beat = useCall('heartbeat', {}, { on: slow, every: 4000 });
  const tops = useCall('supervisors', {}, { on: slow, every: 4000 });
  const groups = useCall('list_groups', {}, { on: slow, every: 8000 });
  const trees = useCall('list_worktrees', {}, { on: Math.floor(slow / 6), every: 20000 });
  const du = useCall('du', {});
  return html`<h1>System</h1>
    <p><button type="button" onClick=${invite}>Let another browser in…</button></p>
    <${Doctor} />
    <h2>The daemon</h2><${Answer} of=${daemon} draw=${(s) => html`
      <${Problems} list=${[...(s.misread || []), ...(s.checkpoint_failure ? [`${s.checkpoint_failures} checkpoints could not be written: ${s.checkpoint_failure}`] : [])]} />
      <${Facts} facts=${[['Version', s.version], ['Runs since', `${moment(s.started)} (${age(Date.now() - Date.parse(s.started))})`], ['PID', s.pid], ['Running', s.running], ['Suspended', s.suspended], ['Histories', s.stored],
        ['Archived', s.storage?.archived], ['Garbage collection', s.storage?.gc_mode || 'off'], ['OS children', s.os_children], ['Memory in use', bytes(s.heap_bytes)], ['Goroutines', count(s.goroutines)], ['Freezer', s.freezer],
        ['Data', html`<${Mono} v=${s.data_dir} />`], ['Log', html`<${Mono} v=${s.log} />`], ['Socket', html`<${Mono} v=${s.socket} />`]]} />
      ${s.recovered?.length > 0 && html`<details><summary>What the last start found and mended (${s.recovered.length})</summary><ul>${s.recovered.map((x) => html`<li><${Line} value=${x} most=${400} /></li>`)}</ul></details>`}
      ${s.init?.length > 0 && html`<h3>Started with the daemon</h3><${Table} label="init.yaml" rows=${s.init} columns=${[{ text: 'Supervisor', cell: (i) => html`<${Line} value=${i.name} />` }, { text: 'How', cell: (i) => i.how }, { text: 'PID', num: true, cell: (i) => i.pid || '' }, { text: '', cell: (i) => html`<${Line} value=${i.error || ''} most=${200} />` }]} />`}`} />
    <h2>Models</h2><${Answer} of=${providers} draw=${(d) => html`<${Problems} list=${d.problems} /><p>Chosen: <b><${Line} value=${d.chosen || 'none'} /></b>, <${Line} value=${d.why} most=${300} /></p>
      <${Table} label="Providers" rows=${d.providers} columns=${[{ text: 'Provider', cell: (p) => html`<${Line} value=${p.name} />` }, { text: 'Model', cell: (p) => html`<${Line} value=${p.model || ''} />` }, { text: 'Usable', cell: (p) => html`<span class=${'badge ' + (p.available ? 'run' : 'done')}>${p.available ? 'yes' : 'no'}</span>` }, { text: 'Calls at once', cell: (p) => html`<${Line} value=${atOnce(p)} most=${160} />` }, { text: 'Why', cell: (p) => html`<${Line} value=${p.detail} most=${160} />` }, { text: 'From', cell: (p) => html`<${Mono} v=${p.source} />` }]} />`} />
    <h3>Calls now</h3><${Answer} of=${traffic} draw=${(d) => html`<${Table} label="Calls now" empty="No provider is in use." rows=${d.providers} columns=${[{ text: 'Provider', cell: (c) => html`<${Line} value=${c.provider} />` }, { text: 'Calls', cell: (c) => callsNow(c, clock()) }, { text: 'Limit from', cell: (c) => html`<${Mono} v=${c.concurrency_from || 'no limit'} />` }]} />
      <p>How many calls a provider gets at once is <code>concurrency</code> in <code>config.yaml</code>, or of the provider in <code>providers.yaml</code>.</p>`} />
    <h2>MCP servers</h2><${Answer} of=${mcp} draw=${(d) => html`<${Problems} list=${d.problems} />
      <${Table} label="MCP servers" empty="None is configured." rows=${d.servers} columns=${[{ text: 'Server', cell: (s) => html`<${Line} value=${s.name} />` }, { text: 'Type', cell: (s) => s.type }, { text: 'Command or address', cell: (s) => html`<${Mono} v=${s.command} />` }, { text: 'State', cell: (s) => (s.problem ? html`<span class="badge bad">unusable</span> <${Line} value=${s.problem} most=${160} />` : s.disabled ? 'switched off' : 'usable') }]} />
      ${d.mounts.length > 0 && html`<h3>Mounted</h3><${Table} label="Mounted" rows=${d.mounts} columns=${[{ text: 'Path', cell: (m) => html`<${Mono} v=${m.path} />` }, { text: 'Of PID', num: true, cell: (m) => m.pid || 'all' }, { text: 'Tools', num: true, cell: (m) => m.tools }, { text: 'Since', cell: (m) => moment(m.since) }]} />`}`} />
    <h2>Supervisors</h2><${Answer} of=${tops} draw=${(d) => html`<${Table} label="Supervisors" empty="None runs." rows=${d.supervisors} columns=${[{ text: 'Supervisor', cell: pid }, { text: 'State', cell: (s) => html`${s.state} <${Line} value=${s.wait || ''} most=${80} />` }, { text: 'Strategy', cell: (s) => s.strategy }, { text: 'Restarts', cell: (s) => `${s.restarts} of ${s.max_restarts} in ${duration(s.window_ns / 1e6)}` }, { text: 'Children', num: true, cell: (s) => s.children?.length ?? 0 }]} />`} />
    <h2>Heartbeat</h2><${Answer} of=${beat} draw=${(d) => html`<p>${d.enabled ? `Without progress for ${duration(d.stall_ns / 1e6)}: ${d.policy}.` : 'Switched off.'}</p>
      <${Table} label="Heartbeat" empty="Nothing runs." rows=${d.beats.slice(0, 200)} columns=${[{ text: 'Process', cell: pid }, { text: 'Verdict', cell: (b) => html`<span class=${'badge ' + (b.verdict === 'suspect' ? 'bad' : b.verdict === 'ok' ? 'run' : 'done')}>${b.verdict}</span> <${Line} value=${b.exempt || ''} most=${80} />` }, { text: 'Last progress', num: true, cell: (b) => age(b.age_ns / 1e6) + ' ago' }, { text: 'Step', num: true, cell: (b) => b.step }]} />`} />
    <h2>Groups</h2><${Answer} of=${groups} draw=${(d) => html`<${Table} label="Groups" empty="There is none." rows=${d.groups || []} columns=${[{ text: 'Group', cell: (g) => html`${g.pgid ?? g.id ?? ''} <${Line} value=${g.name || ''} />` }, { text: 'Members', cell: (g) => html`<${Line} value=${(g.members || []).map((m) => m.pid ?? m).join(', ')} most=${120} />` }]} />`} />
    <h2>Git work trees</h2><${Answer} of=${trees} draw=${(d) => html`<${Table} label="Work trees" empty="No process has one." rows=${d.worktrees} columns=${[{ text: 'Process', cell: pid }, { text: 'Branch', cell: (t) => html`<${Mono} v=${t.branch || ''} />` }, { text: 'Changes', cell: (t) => (t.gone ? 'not there any more' : t.problem ? html`<${Line} value=${t.problem} most=${120} />` : `${t.commits} commits, ${t.files.length} files${t.uncommitted ? ', not all committed' : t.merged ? ', merged' : ''}`) }, { text: 'Changed elsewhere too', cell: (t) => html`<${Line} value=${(t.overlaps || []).map((o) => `PID ${o.pid}: ${o.paths.join(', ')}`).join('; ')} most=${160} />` }, { text: 'Directory', cell: (t) => html`<${Mono} v=${t.dir} />` }]} />`} />
    <h2>Storage</h2><${Answer} of=${du} draw=${(d) => html`<${Problems} list=${d.warnings} /><p>${bytes(d.total.total)} in <${Mono} v=${d.data_dir} />, of it ${bytes(d.shared.total)} that belong to no single history.</p>
      <${Table} label="The largest histories" empty="There is none." rows=${d.histories.slice(0, 30)} columns=${[{ text: 'Process', cell: pid }, { text: 'State', cell: (h) => h.state }, { text: 'Room', num: true, cell: (h) => bytes(h.total) }, { text: 'steps', num: true, cell: (h) => bytes(h.steps) }, { text: 'events', num: true, cell: (h) => bytes(h.events) }, { text: 'snapshots', num: true, cell: (h) => bytes(h.snapshots) }, { text: 'work', num: true, cell: (h) => bytes(h.workspace + h.scratch) }]} />`} />`;
}

export default { name: 'system', path: '/system', title: 'System', nav: 'System', Page: System };
