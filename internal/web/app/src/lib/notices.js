// Notifications of the browser: what asks, has failed or is done, while no one looks. One tab of all makes them, and nothing is asked before a person wants it.
import { effect, signal } from './html.js';
import { call, stream } from './api.js';
import { notice } from './notice.js';
import { href } from './router.js';
import { inside } from './session.js';
import { failed } from '../ui/toast.js';

const key = 'rnix-notices';
const may = () => typeof Notification !== 'undefined' && Boolean(navigator.locks);

// noticing says whether a person wants them and the browser shows them; null = it cannot.
export const noticing = signal(may() ? localStorage.getItem(key) === 'on' && Notification.permission === 'granted' : null);

// toggleNotices is what a click on the button does.
export async function toggleNotices() {
  if (noticing.value) {
    localStorage.removeItem(key);
    noticing.value = false;
    return;
  }
  if ((await Notification.requestPermission()) !== 'granted') {
    failed(new Error('The browser shows no notifications of this page: allow them in its settings for this address'));
    return;
  }
  localStorage.setItem(key, 'on');
  noticing.value = true;
}

async function tell(e) {
  if (document.visibilityState === 'visible' && document.hasFocus()) return; // it is seen
  try {
    const n = notice(e, await call('get_proc_detail', { target: e.uuid }));
    if (!n) return;
    const shown = new Notification(n.title, { body: n.body, tag: n.tag, icon: '/icon.svg' });
    shown.onclick = () => {
      focus();
      location.hash = href('process', { id: e.uuid });
      shown.close();
    };
  } catch { /* it is not there any more, or the browser shows none now */ }
}

// startNotices has them made from now on, by the tab that holds the lock.
export function startNotices() {
  effect(() => {
    if (!noticing.value || !inside.value) return undefined;
    const over = new AbortController();
    navigator.locks.request(key, { signal: over.signal }, () => new Promise((done) => {
      const stop = stream('events', { follow: true, kinds: ['asked', 'exited'] }, { each: tell, awake: true });
      over.signal.addEventListener('abort', () => { stop(); done(); });
    })).catch(() => {}); // given up while it waited
    return () => over.abort();
  });
}
