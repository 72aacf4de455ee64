// What components are written with: html`<div>...</div>` in place of JSX, so that no step stands between a source and a browser.
import { h, render } from 'preact';
import htm from 'htm';

// Each element is made anew (this[0] = 3). Else htm would keep those in which nothing changes, and with each of them, by way of its
// parents, the whole page in which it was last shown.
export const html = htm.bind(function make(...args) { this[0] = 3; return h(...args); });
export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, useId } from 'preact/hooks';
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from '@preact/signals';
