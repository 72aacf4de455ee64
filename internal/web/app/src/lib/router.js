// Addresses within the page: #/overview, #/process/<uuid>/steps?step=3. They stand behind the #, so each can be kept,
// sent and opened, and the server need not know any.
import { signal } from './html.js';

let table = [];

// route is where we are: {page, params, query}. page is null when the address leads nowhere.
export const route = signal({ page: null, params: {}, query: new URLSearchParams() });

// title is what the document is called, without what waits for an answer.
export const title = signal('Rnix');

// match returns the parameters if a path is of a pattern such as /process/:id/:tab?, else null.
export function match(pattern, path) {
  const want = pattern.split('/').filter(Boolean), have = path.split('/').filter(Boolean);
  const least = want.filter((w) => !w.endsWith('?')).length;
  if (have.length < least || have.length > want.length) return null;
  const params = new Map();
  for (const [i, w] of want.entries()) {
    if (!w.startsWith(':')) {
      if (w !== have[i]) return null;
      continue;
    }
    if (have[i] === undefined) continue;
    try {
      params.set(w.replace(/^:|\?$/g, ''), decodeURIComponent(have[i]));
    } catch {
      return null; // a % that stands for nothing
    }
  }
  return Object.fromEntries(params);
}

function read() {
  const [path, query = ''] = location.hash.replace(/^#/, '').split('?');
  for (const page of table) {
    const params = match(page.path, path || '/');
    if (params) {
      route.value = { page, params, query: new URLSearchParams(query) };
      title.value = (page.title ? page.title + ' – ' : '') + 'Rnix';
      return;
    }
  }
  route.value = { page: null, params: {}, query: new URLSearchParams() };
  title.value = 'Not found – Rnix';
}

export function startRouter(pages) {
  table = pages;
  addEventListener('hashchange', () => {
    read();
    scrollTo(0, 0);
    // Who listens to the page instead of seeing it is told where it is now.
    document.querySelector('main')?.focus({ preventScroll: true });
  });
  read();
}

// href returns the address of a page by its name, or undefined if there is none. What is undefined among params is left out.
export function href(name, params = {}, query = {}) {
  const page = table.find((p) => p.name === name);
  if (!page) return undefined;
  const path = page.path.split('/').filter(Boolean).map((w) => {
    if (!w.startsWith(':')) return w;
    const v = params[w.replace(/^:|\?$/g, '')];
    return v === undefined ? '' : encodeURIComponent(v);
  }).filter(Boolean).join('/');
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== undefined && v !== '')).toString();
  return '#/' + path + (q ? '?' + q : '');
}

// go leads to an address of href; with instead, Back does not return here.
export function go(to, instead) {
  if (!to) return;
  if (!instead) {
    location.hash = to;
    return;
  }
  history.replaceState(null, '', to);
  read();
}
