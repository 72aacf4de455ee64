// Where a process comes from: its forks as a tree, and its runs.
import { html, useMemo } from '../../lib/html.js';
import { duration, moment } from '../../lib/format.js';
import { outcome } from '../../lib/fold.js';
import { href } from '../../lib/router.js';
import { useCall } from '../../lib/ask.js';
import { line } from '../../lib/visible.js';
import { tree, path } from '../../lib/drawtree.js';
import { Answer, Table } from '../../ui/answer.js';
import { Line } from '../../ui/text.js';

const wide = 190, high = 58;

function Family({ family, id }) {
  const t = useMemo(() => {
    const by = new Map(family.map((r) => [r.uuid, { key: r.uuid, r, children: [] }]));
    let root = null;
    for (const n of by.values()) {
      const up = n.r.origin_uuid && by.get(n.r.origin_uuid);
      if (up && up !== n) up.children.push(n);
      else root ||= n;
    }
    return root && tree(root, wide, high);
  }, [family]);
  if (!t) return null;
  return html`<div class="scroll drawing" tabindex="0" role="region" aria-label="Forks"><svg width=${t.width} height=${t.height} viewBox=${`0 0 ${t.width} ${t.height}`}>
    ${t.lines.map((l) => html`<path class="edge" d=${path([l.from, l.to])} />`)}
    ${t.boxes.map(({ x, y, node: { r } }) => html`<a href=${href('process', { id: r.uuid })}><g transform=${`translate(${x},${y})`} class=${'box' + (r.uuid === id ? ' here' : '')}>
      <rect width=${wide} height=${high} rx="8" />
      <text x="10" y="22"><tspan class="strong">${r.pid || '–'}</tspan> ${line(r.name || r.uuid.slice(0, 8), 16)}</text>
      <text x="10" y="44" class="soft">${r.state}, step ${r.step}${r.origin_uuid ? `, from step ${r.origin_step ?? 0}` : ''}</text></g></a>`)}
  </svg></div>`;
}

export function Lineage({ id, turn }) {
  const of = useCall('lineage', { target: id }, { on: turn, every: 3000 });
  return html`<${Answer} of=${of} draw=${(d) => html`<h2>Forks</h2>
    ${d.family.length > 1 ? html`<${Family} family=${d.family} id=${id} /><p><a href=${href('compare', {}, { of: d.family.slice(0, 12).map((r) => r.uuid).join(',') })}>Side by side</a></p>` : html`<p class="empty">It was not forked, and is no fork.</p>`}
    <h2>Runs</h2>
    <${Table} label="Runs" rows=${d.runs} columns=${[
      { text: 'Run', num: true, cell: (r) => r.run }, { text: 'PID', num: true, cell: (r) => r.pid }, { text: 'How', cell: (r) => r.how }, { text: 'Began', cell: (r) => moment(r.began) },
      { text: 'Steps', cell: (r) => (r.first_step ? `${r.first_step} to ${r.last_step}` : '') }, { text: 'Worked', num: true, cell: (r) => duration(r.active_ms) },
      { text: 'End', cell: (r) => html`${r.end === 'exit' && r.exit ? outcome(r.exit) : r.end || 'it runs'} <${Line} value=${r.reason || r.exit?.reason || ''} most=${120} />` }, { text: 'Told at its beginning', cell: (r) => html`<${Line} value=${r.input || ''} most=${80} />` },
    ]} />
    ${d.damage && html`<p class="problem"><${Line} value=${d.damage} most=${1000} /></p>`}`} />`;
}
