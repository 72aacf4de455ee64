// Trees and graphs as boxes with places. Pure.
import { flextree } from 'd3-flextree';
import { graphlib, layout } from '@dagrejs/dagre';

// tree lays a tree out from left to right: root is {key, children}; it returns {width, height, boxes: [{key, x, y, node}], lines: [{from, to}]}.
export function tree(root, wide, high, gapX = 46, gapY = 14) {
  const lay = flextree({ nodeSize: () => [high + gapY, wide + gapX] });
  const top = lay(lay.hierarchy(root));
  let least = 0, most = 0, deep = 0;
  top.each((n) => { least = Math.min(least, n.x); most = Math.max(most, n.x); deep = Math.max(deep, n.y); });
  const boxes = [], lines = [];
  top.each((n) => {
    const b = { key: n.data.key, x: n.y + 1, y: n.x - least + 1, node: n.data };
    boxes.push(b);
    if (n.parent) lines.push({ from: [n.parent.y + 1 + wide, n.parent.x - least + 1 + high / 2], to: [b.x, b.y + high / 2] });
  });
  return { width: deep + wide + 2, height: most - least + high + 2, boxes, lines };
}

// graph lays a graph without cycles out: nodes are [{key}], edges [{from, to}] by key. It returns {width, height, boxes: [{key, x, y}], lines:
// [{from, to, points}]}.
export function graph(nodes, edges, wide, high) {
  const g = new graphlib.Graph();
  g.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 56, marginx: 2, marginy: 2 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of nodes) g.setNode(n.key, { width: wide, height: high });
  for (const e of edges) g.setEdge(e.from, e.to);
  layout(g);
  const { width = wide, height = high } = g.graph();
  return {
    width, height,
    boxes: nodes.map((n) => { const b = g.node(n.key); return { key: n.key, x: b.x - wide / 2, y: b.y - high / 2 }; }),
    lines: edges.map((e) => ({ from: e.from, to: e.to, points: g.edge(e.from, e.to).points.map((p) => [p.x, p.y]) })),
  };
}

// path returns the d of a line through points, with soft bends.
export function path(points) {
  let d = `M${points[0][0]},${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x, y] = points[i], mid = (x0 + x) / 2;
    d += `C${mid},${y0} ${mid},${y} ${x},${y}`;
  }
  return d;
}
