// The overview, with a table that the test makes up: what is shown, in every form.
import { scenario, shot, want, until, accessible, link } from './browser.mjs';

await scenario(async ({ page, context, browser }) => {
  await page.waitForSelector('.wire.live');
  // The curves are right when they are first seen.
  await page.addInitScript(() => {
    window.firsts = new Set();
    setInterval(() => document.querySelectorAll('.chart small').forEach((el) => window.firsts.add(el.textContent)), 5);
  });
  await page.reload();
  await page.locator('.chart small', { hasText: /^[1-9]/ }).waitFor();
  const firsts = await page.evaluate(() => [...window.firsts]);
  want(!firsts.some((t) => /^\$?0 /.test(t)), 'a curve says at first: ' + firsts);
  want(!page.url().includes('key') && !page.url().includes('token'), 'a secret stays in the address: ' + page.url());
  await page.waitForSelector('[data-pid="1"]');
  await page.locator('.chart small', { hasText: /^[1-9]/ }).waitFor(); // the curves are there
  await page.locator('.traffic', { hasText: /anthropic: 4 of 4 calls run, 3 wait, the first for 1\ds/ }).waitFor();
  // A rate is a rate, and a sum is called one; what failed is counted, and a click away.
  const curves = await page.locator('.chart figcaption').allInnerTexts();
  want(/^Tokens per minute [\d.k]+ now, [\d.kM]+ in all in the last 30 minutes$/.test(curves[0]) && /^Dollars per minute \$[\d.]+ now, \$[\d.]+ in all in the last/.test(curves[1]), 'the curves say ' + curves);
  await page.locator('.totals .bad', { hasText: 'Failed3' }).waitFor();
  await page.locator('.tools', { hasText: 'ended ones too (12)' }).waitFor();
  await shot(page, 'overview-light');
  await accessible(page, 'the overview');
  await page.setViewportSize({ width: 1280, height: 560 });
  await shot(page, 'web-overview'); // the picture of README.md
  await page.setViewportSize({ width: 1280, height: 800 });

  // Keyboard alone.
  await page.locator('.grid').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('K');
  await page.waitForSelector('dialog[open]');
  await shot(page, 'dialog');
  await accessible(page, 'a question');
  await page.keyboard.press('Escape');
  await until(async () => (await page.locator('dialog').count()) === 0, 'the question goes');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open] .keys');
  await shot(page, 'keys');
  await page.keyboard.press('Escape');

  // Search and order.
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await until(async () => (await page.locator('.row[data-pid]').count()) > 0 && (await page.locator('.row[data-pid]:not(.dim)').count()) === 1, 'one row matches');
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('no such process');
  await page.getByRole('button', { name: 'Search in the 12 that have ended, too' }).waitFor();
  await shot(page, 'overview-none');
  await accessible(page, 'no process matches');
  await page.keyboard.press('Escape');
  await page.locator('.totals').getByRole('button', { name: '3', exact: true }).click();
  want(await page.getByLabel('ended ones too').isChecked() && (await page.getByRole('searchbox').inputValue()) === 'failed', 'what failed is not shown');
  await until(async () => (await page.locator('.row[data-pid]:not(.dim)').count()) === 1, 'one that failed is there');
  await page.getByLabel('ended ones too').uncheck();
  await page.getByRole('searchbox').fill('');
  await page.getByRole('button', { name: 'List' }).click();
  await page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button').click();

  await page.emulateMedia({ colorScheme: 'dark' });
  await shot(page, 'overview-dark');
  await accessible(page, 'the overview in the dark');
  await page.getByRole('button', { name: 'Tree' }).click();

  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, 'overview-phone');
  await accessible(page, 'the overview on a phone');
  want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the phone has to scroll sideways');

  // Who was not let in, and a link that is used up.
  const other = await (await browser.newContext({ viewport: { width: 800, height: 600 } })).newPage();
  await other.goto(link);
  await other.waitForSelector('h1');
  want((await other.textContent('h1')).includes('used up'), 'the link is good twice');
  await shot(other, 'used-link');
  await accessible(other, 'the used link');
  await other.goto(new URL('/', link).href);
  await other.waitForSelector('main.notice');
  await accessible(other, 'the stranger');
  await shot(other, 'stranger');
});
