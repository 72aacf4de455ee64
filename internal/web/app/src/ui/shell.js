// What stands around every page: navigation, how it stands with the daemon, and who may come in.
import { html, signal } from '../lib/html.js';
import { route, href, go } from '../lib/router.js';
import { inside, leave } from '../lib/session.js';
import { wire, startStore } from '../lib/store.js';
import { theme, nextTheme } from '../lib/theme.js';
import { open } from '../lib/asks.js';
import { noticing, toggleNotices } from '../lib/notices.js';
import { shown } from '../lib/keys.js';
import { Dialogs, tell } from './dialog.js';
import { Toasts } from './toast.js';
import { Line } from './text.js';
import { Safe } from './safe.js';

// wide says whether there is room for a table.
const room = matchMedia('(min-width: 760px)');
export const wide = signal(room.matches);
room.addEventListener('change', (e) => { wide.value = e.matches; });

// always is the keys of every page.
export const always = [
  { key: '?', text: 'these keys', run: help },
  { key: 'a', text: 'what waits for your answer', run: () => go(href('asks')) },
  { key: 'd', text: 'light, dark, or as the system', run: nextTheme },
];

function help() {
  const rows = (keys) => keys.map((k) => html`<tr><td><kbd>${k.key}</kbd></td><td>${k.text}</td></tr>`);
  tell('Keys', html`<table class="keys"><tbody>${rows(shown.value)}${rows(always)}</tbody></table>`);
}

function Wire() {
  const { word } = wire.value;
  if (word === 'live') return html`<span class="wire live" role="status">live</span>`;
  if (word === 'connecting' || word === 'asleep') return html`<span class="wire" role="status">connecting …</span>`;
  return html`<span class="wire down" role="status">not connected</span>`;
}

// Away says that nobody answers, and what a person can do. It goes by itself.
function Away() {
  const { word, error } = wire.value;
  if (word !== 'down' && !(word === 'ended' && error)) return null;
  const gone = error?.code === 'DOWN'
    ? html`<b>The dashboard's server is gone.</b> Start it again in a terminal: <code>rnix web</code>`
    : error?.code === 'SERVICE_UNAVAILABLE' || error?.code === 'DEVICE_DISCONNECTED'
      ? html`<b>The daemon does not run.</b> Its agents are suspended, not lost. Start it in a terminal: <code>rnix daemon start</code>`
      : html`<b>The daemon refuses.</b> <${Line} value=${error?.message} />`;
  return html`<div class="away" role="alert">${gone} <span>What you see is how it was.</span>
    ${word === 'down' ? html` <span>This page keeps trying.</span>` : html` <button type="button" onClick=${startStore}>Try again</button>`}</div>`;
}

// Open is how many calls wait for an answer.
function Open() {
  return open.value > 0 && html` <b class="open">${open.value}</b>`;
}

function Stranger() {
  return html`<main class="notice" tabindex="-1"><h1>This browser was not let in</h1>
    <p>Or the dashboard was started anew since.</p>
    <ul><li>In the terminal where <code>rnix web</code> runs, press Enter: it shows a link, which lets one browser in, once.</li>
    <li>A browser that was let in makes such a link, too: on its page System.</li>
    <li>If it does not run: <code>rnix web</code> starts it.</li></ul>
    <p>When this browser is let in, in whatever tab, this page opens here.</p></main>`;
}

function NotFound() {
  return html`<h1>Nothing is here</h1><p>No page has this address. <a href="#/">To the overview</a></p>`;
}

const Bell = ({ on }) => html`<svg width="16" height="16" viewBox="0 0 16 16" fill=${on ? 'currentColor' : 'none'} stroke="currentColor" stroke-width="1.3" aria-hidden="true"><path d="M8 1.8c-2.6 0-4.2 1.9-4.2 4.4v3L2.5 11.6h11L12.2 9.2v-3C12.200 3.700 10.600 1.800 8 1.800z" /><path d="M6.600 13.300a1.500 1.500 0 0 0 2.800 0" />${on ? '' : html`<path d="M2 14 14 2" />`}</svg>`;

export function App({ pages }) {
  if (!inside.value) return html`<${Stranger} /><${Toasts} />`;
  const { page, params, query } = route.value;
  const themes = { auto: '◐', light: '☀', dark: '☾' };
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.querySelector('main').focus(); }}>To the content</a>
    <header>
      <a class="brand" href="#/">rnix</a>
      <nav aria-label="Pages">${pages.filter((p) => p.nav).map((p) => html`<a href=${href(p.name)} aria-current=${p === page ? 'page' : undefined}>${p.nav}${p.name === 'asks' && html`<${Open} />`}</a>`)}</nav>
      <span class="sr" role="status">${open.value ? `${open.value} ${open.value === 1 ? 'call waits' : 'calls wait'} for your answer` : ''}</span>
      <${Wire} />
      <button type="button" class="quiet" aria-label=${`Colours: ${theme.value}; change`} title=${'Colours: ' + theme.value} onClick=${nextTheme}>${themes[theme.value]}</button>
      ${noticing.value !== null && html`<button type="button" class="quiet bell" aria-pressed=${noticing.value} aria-label="Notifications" title=${`Notifications of what asks, fails or is done: ${noticing.value ? 'on' : 'off'}`} onClick=${toggleNotices}><${Bell} on=${noticing.value} /></button>`}
      <button type="button" class="quiet" aria-label="Keys" onClick=${help}>?</button>
      <button type="button" class="quiet" onClick=${leave}>Log out</button>
    </header>
    <${Away} />
    <main id="main" tabindex="-1" class=${page ? 'page-' + page.name : ''}>
      <${Safe} key=${page?.name}>${page ? html`<${page.Page} params=${params} query=${query} />` : html`<${NotFound} />`}<//>
    </main>
    <${Dialogs} /><${Toasts} />`;
}
