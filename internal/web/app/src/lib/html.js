// What components are written with: html`<div>...</div>` in place of JSX, so that no step stands between a source and a browser.
import { h, options, render } from 'preact';
import htm from 'htm';

// Each element is made anew (this[0] = 3). Else htm would keep those in which nothing changes, and with each of them, by way of its
// parents, the whole page in which it was last shown.
export const html = htm.bind(function make(...args) { this[0] = 3; return h(...args); });
export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, useId } from 'preact/hooks';
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from '@preact/signals';

// The old vnode of a component drops its children and its parent once the new one is committed. Preact leaves both, and that can keep
// every old page: the props of the element around a page hold the first vnode of the page; a component that skips a render (a signal
// that has not changed, shouldComponentUpdate) shares its children with its old vnode; and those point to the parents of its last one.
// Preact's short names: of a vnode, __c is its component, __k its children and __ its parent; of a component, __v is its vnode; of
// options, __c is the hook of a commit.
const drawn = new WeakMap(); // component -> its vnode
let old = []; // replaced since the last commit
const { diffed, __c: commit } = options;
options.diffed = (vnode) => {
  const c = vnode.__c;
  if (typeof vnode.type === 'function' && c) {
    const before = drawn.get(c);
    if (before && before !== vnode) old.push(before);
    drawn.set(c, vnode);
  }
  diffed?.(vnode);
};
options.__c = (root, queue) => {
  for (const vnode of old) if (vnode.__c?.__v !== vnode) vnode.__k = vnode.__ = null;
  old = [];
  commit?.(root, queue);
};
