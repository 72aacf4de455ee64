// What a suspended process asks is shown as such; the answer counts when it is resumed.
import { scenario, shot, want, until, accessible, ask, origin } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  const card = page.locator('.card', { hasText: 'echo late' });
  await page.goto(origin + '/#/asks');
  await card.waitFor();
  await ask('restart');
  await until(async () => (await card.count()) === 1 && /suspended: the answer counts/.test(await card.textContent()), 'the card says that its process is suspended');
  problems.length = 0; // that nobody answered for a while is told on the console
  await shot(page, 'asks-suspended');
  await accessible(page, 'an ask of what is suspended');
  await page.goto(origin + '/#/');
  const row = page.locator('.row[data-pid]');
  await until(async () => (await row.locator('.badge').textContent()).includes('asks you'), 'the row says that it asks');
  for (const width of [1280, 1000]) {
    await page.setViewportSize({ width, height: 800 });
    await shot(page, 'asks-suspended-row-' + width);
    want(await row.evaluate((r) => r.querySelector('.acts > :last-child').getBoundingClientRect().right <= r.getBoundingClientRect().right), `not all that can be done fits at a width of ${width}`);
  }
  await row.getByRole('link', { name: /^Answer/ }).click();
  await card.getByRole('button', { name: /^Allow ask/ }).click();
  await page.locator('.toast', { hasText: 'the answer counts when it is resumed' }).waitFor();
  await until(async () => (await card.count()) === 0, 'the card goes');
  want((await ask('made')) === '', 'it ran before it was resumed');
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await until(async () => (await ask('made')) === 'late', 'it runs when it is resumed');
});
