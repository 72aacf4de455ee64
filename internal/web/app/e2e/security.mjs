// What a page of another site can do to a person who is let in: nothing.
import http from 'node:http';
import { scenario, shot, want, until, link, origin } from './browser.mjs';

const port = new URL(origin).port;
const heard = []; // cookies that the other server was sent
const evil = http.createServer((req, res) => {
  if (req.headers.cookie) heard.push(req.headers.cookie);
  res.setHeader('Content-Type', 'text/html');
  res.end('<!doctype html><title>evil</title><body>');
});
await new Promise((r) => evil.listen(0, '127.0.0.1', r));
const there = evil.address().port;

await scenario(async ({ context, problems }) => {
  for (const home of [`http://evil.example:${there}/`, `http://127.0.0.1:${there}/`, `http://localhost:${there}/`]) {
    const page = await context.newPage();
    await page.goto(home);
    const got = await page.evaluate(async (target) => {
      const out = {};
      const attempt = async (name, f, ms = 60000) => {
        try { out[name] = await Promise.race([f(), new Promise((r) => setTimeout(r, ms, 'silence'))]); } catch (e) { out[name] = 'refused'; }
      };
      const api = target + '/api/v1/ping';
      await attempt('json', async () => (await fetch(api, { method: 'POST', credentials: 'include', headers: { 'Content-Type': 'application/json' }, body: '{}' })).status);
      await attempt('key', async () => (await fetch(api, { method: 'POST', credentials: 'include', headers: { 'Rnix-Key': 'x' }, body: '{}' })).status);
      await attempt('plain', async () => (await fetch(api, { method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'Content-Type': 'text/plain' }, body: '{}' })).type);
      await attempt('read', async () => (await fetch(target + '/', { credentials: 'include' })).text());
      await attempt('beacon', async () => String(navigator.sendBeacon(api, '{}')));
      await attempt('form', () => new Promise((done) => {
        const frame = document.body.appendChild(document.createElement('iframe'));
        frame.name = 'sink';
        const form = document.body.appendChild(document.createElement('form'));
        Object.assign(form, { method: 'post', action: api, enctype: 'text/plain', target: 'sink' });
        frame.onload = () => done('sent');
        form.submit();
      }), 4000); // it may well hear nothing
      await attempt('frame', () => new Promise((done) => {
        const frame = document.body.appendChild(document.createElement('iframe'));
        frame.onload = () => { try { done(frame.contentDocument?.querySelector('#app') ? 'framed' : 'refused'); } catch { done('refused'); } };
        frame.src = target + '/';
      }));
      await attempt('script', () => new Promise((done) => {
        const s = document.body.appendChild(document.createElement('script'));
        s.onload = () => done('loaded');
        s.onerror = () => done('refused');
        s.src = target + '/app.js';
      }));
      await attempt('events', () => new Promise((done) => {
        const es = new EventSource(target + '/api/v1/events', { withCredentials: true });
        es.onmessage = es.onopen = () => done('open');
        es.onerror = () => { es.close(); done('refused'); };
      }));
      await attempt('socket', () => new Promise((done) => {
        const ws = new WebSocket(target.replace('http', 'ws') + '/api/v1/events');
        ws.onopen = () => done('open');
        ws.onerror = () => done('refused');
      }));
      return out;
    }, origin);
    for (const [name, what] of Object.entries(got)) {
      // An opaque answer, a beacon and a form are sent and tell their page nothing; that the daemon was not asked, the test looks at.
      const fine = { plain: ['opaque', 'refused'], form: ['sent', 'refused', 'silence'], beacon: ['true', 'false'] }[name] || ['refused'];
      want(fine.includes(what), `${home}: ${name} gives ${JSON.stringify(what).slice(0, 200)}`);
    }
    // A window that it opens it cannot look into, nor the other way round.
    const [popup] = await Promise.all([context.waitForEvent('page'), page.evaluate((t) => { window.w = open(t + '/'); }, origin)]);
    await popup.waitForLoadState();
    const seen = await page.evaluate(() => { try { return window.w.closed ? 'cut off' : String(window.w.document.body.textContent); } catch { return 'refused'; } });
    want(['cut off', 'refused'].includes(seen), `${home}: it sees ${seen.slice(0, 80)}`);
    want(await popup.evaluate(() => window.opener === null), 'the dashboard keeps its opener');
    await popup.close();
    await page.close();
  }

  // A name that leads here.
  const rebound = await context.newPage();
  const res = await rebound.goto(`http://evil.example:${port}/`);
  want(res.status() === 403 && !(await rebound.content()).includes('app.js'), 'a rebound name gets the page');

  // Cookies know no ports: the server beside us got ours, and can do nothing with it.
  want(heard.some((c) => c.includes('rnix_' + port)), 'the cookie was not sent to the other port: is this test still about something?');
  const stolen = heard.find((c) => c.includes('rnix_' + port));
  const reply = await fetch(origin + '/api/v1/ping', { method: 'POST', headers: { Cookie: stolen, 'Content-Type': 'application/json' }, body: '{}' });
  want(reply.status === 401, 'the cookie alone lets in: ' + reply.status);

  // No script can read it, and nothing else stays behind.
  const own = await context.newPage();
  await own.goto(origin + '/');
  await own.waitForSelector('header');
  want((await own.evaluate(() => document.cookie)) === '', 'a script reads the cookie');
  const inline = await own.evaluate(() => new Promise((done) => {
    document.addEventListener('securitypolicyviolation', () => done('refused'));
    const s = document.createElement('script');
    try { s.textContent = 'window.ran = 1'; document.body.append(s); } catch { return done('refused'); }
    setTimeout(() => done(window.ran ? 'ran' : 'refused'), 1000);
  }));
  want(inline === 'refused', 'an inline script runs');
  const markup = await own.evaluate(() => { try { document.createElement('p').innerHTML = '<b>x</b>'; return 'taken'; } catch { return 'refused'; } });
  want(markup === 'refused', 'text can become markup');
  problems.length = 0; // all of this is told on the console, as it should be
});
evil.close();
evil.closeAllConnections();
