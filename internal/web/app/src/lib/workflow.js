// A run of a workflow as a graph. Pure.

// order of states, the gravest first: a node that runs for each item is as the gravest of its instances.
const gravest = ['failed', 'retrying', 'running', 'paused', 'suspended', 'stopped', 'waiting', 'skipped', 'succeeded', 'expanded'];

// workflow joins the plan of a run with how its nodes are: {nodes: [{key, node, state, instances, tokens, cost, critical}], edges: [{from, to, on}]}.
// critical is a Set of UUIDs of processes on the critical path.
export function workflow(plan, run, critical = new Set()) {
  const by = new Map();
  for (const i of run.nodes || []) {
    const name = i.name.replace(/\[\d+\]$/, '');
    if (!by.has(name)) by.set(name, []);
    by.get(name).push(i);
  }
  const names = Object.keys(plan.file?.nodes || {});
  const known = new Set(names), nodes = [], edges = [];
  for (const name of names) {
    const node = plan.file.nodes[name];
    const all = by.get(name) || [], instances = all.length > 1 ? all.filter((i) => i.name !== name) : all;
    const state = instances.map((i) => i.state).sort((a, b) => gravest.indexOf(a) - gravest.indexOf(b))[0] || plan.states?.[name] || 'waiting';
    nodes.push({
      key: name, node, state, instances, tokens: instances.reduce((n, i) => n + (i.tokens_used || 0), 0), cost: instances.reduce((n, i) => n + (i.cost_usd || 0), 0),
      ms: Math.max(0, ...instances.map((i) => i.elapsed_ms || 0)), done: instances.filter((i) => i.state === 'succeeded').length,
      critical: instances.some((i) => i.uuid && critical.has(i.uuid)),
    });
    for (const [from, on] of Object.entries(node.depends_on?.on || {})) if (known.has(from)) edges.push({ from, to: name, on });
  }
  return { nodes, edges };
}
