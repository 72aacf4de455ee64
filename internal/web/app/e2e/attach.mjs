// A person attaches images and PDFs: with the task, to an agent that works, and to one that has ended; chosen, dropped and pasted. What cannot go along is said
// before anything is sent.
import { scenario, shot, want, until, accessible, ask, origin } from './browser.mjs';

const picture = async (w, h = 2) => Buffer.from(await ask(`picture ${w} ${h}`), 'base64');

await scenario(async ({ page, problems }) => {
  const forms = async (name) => {
    for (const [form, width, scheme] of [['light', 1280, 'light'], ['dark', 1280, 'dark'], ['phone', 390, 'light']]) {
      await page.setViewportSize({ width, height: width < 760 ? 844 : 800 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.waitForTimeout(100);
      await shot(page, `${name}-${form}`);
      await accessible(page, `${name} (${form})`);
      want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} (${form}) has to be scrolled sideways`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
  };
  const chip = (words) => page.locator('.attached .chip', { hasText: words });
  const wrong = page.locator('.attached .error');
  const file = (name, buffer, mimeType = 'image/png') => ({ name, mimeType, buffer });
  const give = (how, sel, name, buffer) => page.locator(sel).evaluate((el, { how, name, data }) => { // as the desktop does
    const dt = new DataTransfer();
    dt.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type: 'image/png' }));
    el.dispatchEvent(how === 'drop' ? new DragEvent('drop', { dataTransfer: dt, bubbles: true, cancelable: true }) : new ClipboardEvent('paste', { clipboardData: dt, bubbles: true, cancelable: true }));
  }, { how, name, data: buffer.toString('base64') });
  const talk = () => page.locator('.talk').innerText();

  // With the task. What models do not take is refused here, and said why.
  const [a, b, c, d] = [await picture(31), await picture(32), await picture(33), await picture(34)];
  await page.goto(`${origin}/#/start`);
  const choose = page.locator('#start-files');
  await page.getByText('20 files and 5.2 MB together').waitFor();
  await choose.setInputFiles([file('fake.png', Buffer.from('text')), file('wide.png', await picture(8001, 1)), file('large.png', Buffer.concat([a, Buffer.alloc(3932160)])), file('empty.png', Buffer.alloc(0))]);
  for (const words of ['fake.png is not attached: its content is no PNG', 'wide.png is not attached: the PNG image has 8001×1 pixels', 'large.png is not attached: the PNG image has 3.9 MB', 'empty.png is not attached: the file is empty']) await wrong.filter({ hasText: words }).waitFor();
  want((await page.locator('.attached .chip').count()) === 0, 'what cannot be shown is attached');
  await forms('attach-refused');
  await choose.setInputFiles([file('a.png', a), file('other.png', d)]);
  await chip('image a.png 31×2').waitFor();
  await page.getByRole('button', { name: 'Do not attach other.png' }).click();
  await until(async () => (await page.locator('.attached .chip').count()) === 1, 'it is taken away');
  await page.locator('[data-field=intent] textarea').fill('work on <b>this</b>');
  await forms('attach-start');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.locator('.message.user', { hasText: '[image a.png 31×2' }).waitFor();

  // To one that works: dropped and pasted. What the daemon refuses is not lost.
  const field = page.getByRole('textbox', { name: 'Your message to it' });
  await page.locator('.act', { hasText: 'sleep' }).waitFor();
  await give('drop', 'form.say', 'cut.png', b.subarray(0, b.length - 4));
  await give('paste', '#say', 'b.png', b);
  await chip('image b.png 32×2').waitFor();
  want(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled(), 'a message without words can be sent');
  await field.fill('and see these');
  await field.press('Enter');
  await page.locator('.say .problem', { hasText: 'cut.png: cannot be attached: the PNG image is cut off' }).waitFor();
  want((await field.inputValue()) === 'and see these' && (await page.locator('.attached .chip').count()) === 2, 'a refusal loses what was to be sent');
  problems.length = 0; // the refusal is told on the console
  await forms('attach-say');
  await page.getByRole('button', { name: 'Do not attach cut.png' }).click();
  await field.press('Enter');
  await until(async () => (await field.inputValue()) === '' && (await page.locator('.attached .chip').count()) === 0, 'it is sent');
  await page.locator('.message.waits', { hasText: 'and see these' }).getByText('image b.png 32×2').waitFor();
  await forms('attach-waits');
  await ask('release');
  await until(async () => (await talk()).includes('shown: 31 32'), 'both are shown: ' + await talk());

  // To one that has ended: it is resumed with it.
  await page.locator('#say-files').setInputFiles([file('c.png', c), file('d.png', d)]);
  await chip('image d.png 34×2').waitFor();
  await field.fill('and these');
  await page.getByRole('button', { name: 'Send and resume' }).click();
  await until(async () => (await talk()).includes('shown: 31 32 33 34'), 'all are shown');
  await page.locator('.message.user', { hasText: '[image d.png 34×2' }).waitFor();

  // So many bytes as a message takes go through, and no more.
  const much = (n) => Buffer.concat([a.subarray(0, a.length - 12), Buffer.alloc(n), a.subarray(a.length - 12)]); // what lies before the end is not decoded
  await page.locator('#say-files').setInputFiles([file('e.png', much(3900000)), file('f.png', much(1300000)), file('g.png', much(100000))]);
  await wrong.filter({ hasText: 'g.png is not attached: the files have 5.3 MB together, and a message takes at most 5.2 MB' }).waitFor();
  await field.fill('and much');
  await field.press('Enter');
  await page.locator('.message.user', { hasText: '[image f.png 31×2, 1.3 MB]' }).waitFor();
});
