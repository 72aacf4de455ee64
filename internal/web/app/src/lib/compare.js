// Which processes can stand side by side. Pure.
import { modelOf } from './fold.js';

// sharing returns those PIDs whose directory a process works in, too, in their order: what was changed there is of them all.
// places is {pid, dir} by the UUID.
export function sharing(places, uuid) {
  const own = places.get(uuid)?.dir;
  return own ? [...places].filter(([id, p]) => id !== uuid && p.dir === own).map(([, p]) => p.pid).sort((a, b) => a - b) : [];
}

// neighbours returns the PIDs, in their order, of the agents that worked in the directory of p while it did: what they have changed there is among its changes.
export function neighbours(procs, p) {
  if (!p.work_dir) return [];
  const end = (o) => (o.state === 'running' || o.state === 'created' ? '~' : o.updated_at || o.created_at); // '~' stands behind each time
  return procs.filter((o) => o.uuid !== p.uuid && !o.kind && o.work_dir === p.work_dir && o.created_at <= end(p) && p.created_at <= end(o)).map((o) => o.pid).sort((a, b) => a - b);
}

// peers returns the agents that have the task of one, itself among them, the newest first.
export function peers(procs, uuid) {
  const { intent, kind } = procs.find((p) => p.uuid === uuid) ?? {};
  return intent && !kind ? procs.filter((p) => p.intent === intent && !p.kind).sort((a, b) => b.pid - a.pid) : [];
}

// groups returns the tasks that several agents have, the newest first: [{intent, of, models, last}].
export function groups(procs) {
  const by = new Map();
  for (const p of procs) {
    if (p.kind || !p.intent) continue;
    if (!by.has(p.intent)) by.set(p.intent, []);
    by.get(p.intent).push(p);
  }
  return [...by].filter(([, of]) => of.length > 1).map(([intent, of]) => ({
    intent, of: of.toSorted((a, b) => b.pid - a.pid), models: [...new Set(of.map(modelOf).filter(Boolean))],
    last: of.reduce((t, p) => (p.created_at > t ? p.created_at : t), ''),
  })).sort((a, b) => (a.last < b.last ? 1 : -1));
}

// together returns the overlaps of work trees with those that have the same files in one: [{paths, by: [{uuid, pid}]}].
export function together(overlaps) {
  const by = new Map();
  for (const { uuid, pid, paths } of overlaps) {
    const key = paths.join('\n');
    if (!by.has(key)) by.set(key, { paths, by: [] });
    if (!by.get(key).by.some((u) => u.uuid === uuid)) by.get(key).by.push({ uuid, pid });
  }
  return [...by.values()];
}
