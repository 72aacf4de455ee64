// Whether this browser was let in. The key came behind the # of the link's last address and is kept for this origin alone;
// without it the cookie is worth nothing.
import { signal } from './html.js';

const name = 'rnix-key';

// inside is false when the server does not know us; the page then says how to come in.
export const inside = signal(true);

// takeKey takes the key out of the address, where it must not stay.
export function takeKey() {
  const found = /^#key=([A-Z2-7]+)$/.exec(location.hash);
  if (found) {
    localStorage.setItem(name, found[1]);
    history.replaceState(null, '', location.pathname + '#/');
  }
  inside.value = key() !== '';
  // Another tab was let in: so are we, and go on where we are.
  addEventListener('storage', (e) => {
    if (e.key === name && e.newValue) inside.value = true;
  });
}

export function key() {
  return localStorage.getItem(name) || '';
}

// expelled notes that the server refused the key k. A newer one, which another tab may have got, stays.
export function expelled(k) {
  if (key() === k) inside.value = false;
}

// leave ends the session of this browser.
export async function leave() {
  try {
    await fetch('/logout', { method: 'POST', headers: { 'Rnix-Key': key() } });
  } finally {
    localStorage.removeItem(name);
    inside.value = false;
  }
}
