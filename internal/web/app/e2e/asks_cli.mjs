// A person allows and denies on the page what a real agent CLI is about to do with a tool of its own.
import { scenario, want, until, ask, origin } from './browser.mjs';

await scenario(async ({ page }) => {
  const card = (text) => page.locator('.card', { hasText: text });
  await page.goto(origin + '/#/asks');
  await page.waitForSelector('.wire.live');
  want((await ask('run')) === 'done', 'it has not begun');
  await card('echo allowed').waitFor();
  await until(async () => (await page.title()) === '(1) Asks – Rnix', 'the title counts what is asked');
  want((await ask('read made')) === '', 'it ran without an answer');
  await card('echo allowed').getByRole('button', { name: /^Allow ask/ }).click();
  await card('echo refused').waitFor(); // it has gone on
  want((await ask('read made')) === 'allowed', 'it did not run once: ' + (await ask('read made')));
  await card('echo refused').getByRole('button', { name: /^Deny ask/ }).click();
  await page.locator('dialog').getByRole('textbox', { name: 'Why' }).fill('not on a Friday');
  await page.locator('dialog').getByRole('button', { name: /^Deny/ }).click();
  await until(async () => (await card('echo refused').count()) === 0, 'the card goes');
  want((await ask('wait')) === 'the end', 'it has not come to its end');
  want((await ask('read made')) === 'allowed', 'what was denied ran');
  want((await ask('told')) === 'yes', 'the model was not told why');
});
