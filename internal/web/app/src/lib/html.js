// What components are written with: html`<div>...</div>` in place of JSX, so that no step stands between a source and a browser.
import { h, render } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback, useId } from 'preact/hooks';
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from '@preact/signals';
