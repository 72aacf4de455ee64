import '../style/app.css';
import { html, render, effect } from './lib/html.js';
import { takeKey, inside } from './lib/session.js';
import { startRouter } from './lib/router.js';
import { startStore, stopStore } from './lib/store.js';
import { startAsks } from './lib/asks.js';
import { startNotices } from './lib/notices.js';
import { startKeys } from './lib/keys.js';
import { App, always } from './ui/shell.js';
import pages from './pages/index.js';

takeKey();
startRouter(pages);
startKeys(always);
effect(() => { if (inside.value) startStore(); else stopStore(); });
startAsks();
startNotices();
render(html`<${App} pages=${pages} />`, document.getElementById('app'));
