// Every page that there is: axe finds nothing serious on it, in light and dark and on a phone, and nothing is thrown.
import { readFile, readdir } from 'node:fs/promises';
import { scenario, want, read, accessible, origin, inForms } from './browser.mjs';

const dir = new URL('../src/pages/', import.meta.url);
const params = JSON.parse(process.env.RNIX_PARAMS);
const pages = [];
for (const f of (await readdir(dir)).filter((f) => f.endsWith('.js')).sort()) {
  const found = /export default \{[^}]*?name: '([^']+)'[^}]*?path: '([^']+)'/.exec(await readFile(new URL(f, dir), 'utf8'));
  if (found) pages.push({ name: found[1], path: found[2] });
}
want(pages.length > 0 && pages.some((p) => p.path === '/'), 'no pages were found');

await scenario(async ({ page, problems }) => {
  for (const p of pages) {
    const path = p.path.split('/').filter(Boolean).map((w) => {
      if (!w.startsWith(':')) return w;
      const v = params[p.name + '.' + w.slice(1).replace('?', '')] ?? params[w.slice(1).replace('?', '')];
      want(v !== undefined || w.endsWith('?'), `the test gives no ${w} for the page ${p.name}: add it to RNIX_PARAMS`);
      return v === undefined ? '' : encodeURIComponent(v);
    }).filter(Boolean).join('/');
    await inForms(page, 'page-' + p.name, async (form) => {
      await page.goto(`${origin}/#/${path}`);
      await read(page);
      want(!(await page.textContent('main')).includes('This page has a mistake'), `${p.name} throws`);
      want(problems.length === 0, `${p.name} (${form}): ${problems.join('\n')}`);
    });
    want(problems.length === 0, `${p.name}: ${problems.join('\n')}`);
  }
  await page.goto(`${origin}/#/no/such/page`);
  await page.waitForSelector('text=Nothing is here');
  await accessible(page, 'an address that leads nowhere');
});
