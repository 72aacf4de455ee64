// Old renders are collected. The document here has only what Preact uses.
import assert from 'node:assert/strict';
import test from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { html, render, signal } from '../src/lib/html.js';
import { Component } from 'preact';

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

class FakeNode {
  constructor(document, name) {
    Object.assign(this, { ownerDocument: document, localName: name, nodeType: name === '#text' ? 3 : 1, namespaceURI: 'http://www.w3.org/1999/xhtml', childNodes: [], parentNode: null, attributes: [] });
  }

  get firstChild() { return this.childNodes[0] || null; }

  get nextSibling() { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] || null; }

  get text() { return this.nodeType === 3 ? String(this.data) : this.childNodes.map((n) => n.text).join(''); }

  setAttribute() {}

  removeAttribute() {}

  insertBefore(node, before) {
    node.remove();
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, node);
    node.parentNode = this;
  }

  removeChild(node) { node.remove(); }

  remove() {
    if (this.parentNode) this.parentNode.childNodes = this.parentNode.childNodes.filter((n) => n !== this);
    this.parentNode = null;
  }
}

const document = {
  createElementNS: (_, name) => new FakeNode(document, name),
  createElement: (name) => new FakeNode(document, name),
  createTextNode: (data) => Object.assign(new FakeNode(document, '#text'), { data }),
};

const turn = () => new Promise((done) => { setTimeout(done); });

test('no old render of a page stays in memory', async (t) => {
  globalThis.document = document;
  t.after(() => { delete globalThis.document; });
  const fast = signal(0), slow = signal(0), around = signal(0);
  const drawings = [];
  const made = (vnode) => {
    drawings.push(new WeakRef(vnode));
    return vnode;
  };
  // Each is drawn while the other skips a render, both with the page: so the chain of old pages grows.
  const Fast = () => html`<i>${fast.value} </i>`;
  const Slow = () => html`<b>${slow.value} </b>`;
  class Still extends Component {
    shouldComponentUpdate() { return false; }

    render() { return html`<u>still</u>`; }
  }
  const Page = () => made(html`<div title=${fast.value + slow.value}><p><${Fast} /><${Slow} /></p><${Still} /></div>`);
  const Frame = ({ children }) => children;
  const App = () => html`<main title=${around.value}><${Frame}><${Page} /><//></main>`;
  const root = new FakeNode(document, 'body');
  render(html`<${App} />`, root);
  for (let n = 1; n <= 60; n++) {
    fast.value = n;
    await turn();
    if (n % 3 === 0) slow.value = n;
    if (n === 10) around.value = n;
    await turn();
  }
  assert.equal(root.text, '60 60 still');
  assert.ok(drawings.length >= 80, `${drawings.length} drawings`);
  await turn();
  collect();
  const kept = drawings.filter((d) => d.deref()).length;
  assert.ok(kept <= 3, `${kept} of ${drawings.length} drawings are kept`);
  render(null, root);
});
