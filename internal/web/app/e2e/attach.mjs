// A person attaches images and PDFs: with the task, to an agent that works, and to one that has ended; chosen, dropped and pasted. What cannot go along is said
// before anything is sent.
import { scenario, shot, want, until, accessible, ask, origin, inForms } from './browser.mjs';

const picture = async (w, h = 2) => Buffer.from(await ask(`picture ${w} ${h}`), 'base64');

await scenario(async ({ page, problems }) => {
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
  await shot(page, 'attach-refused');
  await accessible(page, 'files that are refused');
  await choose.setInputFiles([file('a.png', a), file('other.png', d)]);
  await chip('image a.png 31×2').waitFor();
  await page.getByRole('button', { name: 'Do not attach other.png' }).click();
  await until(async () => (await page.locator('.attached .chip').count()) === 1, 'it is taken away');
  await page.locator('[data-field=intent] textarea').fill('work on <b>this</b>');
  await choose.setInputFiles([file('a.png', await picture(35))]); // another one of the same name
  await chip('image a-2.png 35×2').waitFor();
  await page.getByRole('button', { name: 'Do not attach a-2.png' }).press('Enter');
  want(await page.evaluate(() => document.activeElement.textContent === 'Attach…'), 'the focus is lost with the file');
  // It is drawn, and larger at a click; nothing of it has an address. It stays when a person looks elsewhere meanwhile, and is said to be gone when the page is loaded again.
  const drawn = (sel) => page.locator(sel).evaluate((c) => c.width > 1 && c.getContext('2d').getImageData(0, 0, 1, 1).data[3] === 255);
  await until(() => drawn('.chip canvas'), 'it is drawn');
  await page.getByRole('button', { name: 'Show image a.png 31×2' }).click();
  await until(() => drawn('.larger canvas'), 'it is drawn larger');
  await inForms(page, 'attach-larger');
  await page.keyboard.press('Escape');
  await until(async () => (await page.locator('dialog').count()) === 0, 'it goes');
  want(await page.evaluate(() => document.activeElement.className === 'preview'), 'the focus is lost with the picture');
  await page.evaluate(() => { location.hash = '#/history'; });
  await page.getByRole('heading', { name: 'History' }).waitFor();
  await page.goto(`${origin}/#/start`);
  await chip('image a.png 31×2').waitFor();
  await page.reload();
  await wrong.filter({ hasText: 'a.png was attached before this page was loaded again: attach it again' }).waitFor();
  await choose.setInputFiles([file('a.png', a)]);
  await chip('image a.png 31×2').waitFor();
  want((await wrong.count()) === 0, 'it is still said to be gone');
  // So many as a message takes, and a sum of what is too much; a folder and a file that misses its place do nothing.
  await choose.setInputFiles(Array.from({ length: 30 }, (_, i) => file(`many${i}.png`, d)));
  await wrong.filter({ hasText: '11 more files are not attached: a message takes at most 20' }).waitFor();
  want((await page.locator('.attached .chip').count()) === 20, 'so many are attached: ' + await page.locator('.attached .chip').count());
  while ((await page.locator('.attached .chip').count()) > 1) await page.locator('.attached .chip', { hasText: 'many' }).first().getByRole('button', { name: /^Do not/ }).click();
  want(await page.evaluate(() => {
    const dt = new DataTransfer();
    dt.items.add(new File(['x'], 'x.html', { type: 'text/html' }));
    return ['dragover', 'drop'].every((name) => !document.querySelector('h1').dispatchEvent(new DragEvent(name, { dataTransfer: dt, bubbles: true, cancelable: true })));
  }), 'a file that misses its place takes that of the page');
  await inForms(page, 'attach-start');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.locator('.message.user', { hasText: '[image a.png 31×2' }).waitFor();

  // To one that works: dropped and pasted. What the daemon refuses is not lost.
  const field = page.getByRole('textbox', { name: 'Your message to it' });
  await page.locator('.act', { hasText: 'sleep' }).waitFor();
  await give('drop', 'form.say', 'cut.png', b.subarray(0, b.length - 4));
  await give('paste', '#say', 'b.png', b);
  await chip('image b.png 32×2').waitFor();
  want(await page.locator('#say').evaluate((el) => { // a table from an office program: its text counts
    const dt = new DataTransfer();
    dt.items.add(new File(['x'], 'image.png', { type: 'image/png' }));
    dt.setData('text/plain', 'a\tb');
    dt.setData('text/html', '<table></table>');
    return el.dispatchEvent(new ClipboardEvent('paste', { clipboardData: dt, bubbles: true, cancelable: true }));
  }), 'a table is pasted as a picture');
  want(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled(), 'a message without words can be sent');
  await field.fill('and see these');
  await field.press('Enter');
  await page.locator('.say .problem', { hasText: 'cut.png: cannot be attached: the PNG image is cut off' }).waitFor();
  want((await field.inputValue()) === 'and see these' && (await page.locator('.attached .chip').count()) === 2, 'a refusal loses what was to be sent');
  problems.length = 0; // the refusal is told on the console
  await inForms(page, 'attach-say');
  await page.getByRole('button', { name: 'Do not attach cut.png' }).click();
  // What comes while it is sent is not sent, and stays; also when a person looks elsewhere meanwhile.
  let pass;
  const held = new Promise((r) => { pass = r; });
  await page.route('**/api/v1/steer', async (route) => { await held; await route.continue(); });
  await field.press('Enter');
  await page.getByRole('button', { name: 'Sending …' }).waitFor();
  await give('paste', '#say', 'late.png', c);
  await chip('image late.png 33×2').waitFor();
  await field.press('End');
  await field.pressSequentially(' and more');
  await page.getByRole('link', { name: 'Log', exact: true }).click();
  await page.getByRole('link', { name: 'Conversation', exact: true }).click();
  await page.getByRole('button', { name: 'Sending …' }).waitFor();
  pass();
  await until(async () => (await field.inputValue()) === 'and more' && (await page.locator('.attached .chip').count()) === 1, 'what came meanwhile stays: ' + await field.inputValue());
  await page.unroute('**/api/v1/steer');
  await page.getByRole('button', { name: 'Do not attach late.png' }).click();
  await field.fill('');
  await until(async () => (await field.inputValue()) === '' && (await page.locator('.attached .chip').count()) === 0, 'it is sent');
  await page.locator('.message.waits', { hasText: 'and see these' }).getByText('image b.png 32×2').first().waitFor();
  await until(() => drawn('.message.waits .previews canvas'), 'what waits is drawn');
  await page.setViewportSize({ width: 390, height: 844 });
  want(await page.locator('#say').evaluate((el) => {
    const on = document.createElement('canvas').getContext('2d'), style = getComputedStyle(el);
    on.font = style.font;
    return on.measureText(el.placeholder).width <= el.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  }), 'the placeholder is cut on a phone');
  // The question of the overview takes them, too, and loses nothing when it is refused.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${origin}/#/`);
  await page.getByRole('button', { name: /^Steer / }).click();
  await page.locator('#field-files').setInputFiles([file('cut.png', b.subarray(0, b.length - 4)), file('e.pdf', Buffer.from('%PDF-1.4\n%%EOF'))]);
  await page.locator('dialog .chip', { hasText: 'PDF e.pdf' }).waitFor();
  await page.getByRole('textbox', { name: 'What it should know' }).fill('one more');
  await page.locator('dialog').getByRole('button', { name: 'Send' }).click();
  await page.locator('dialog .problem', { hasText: 'cut.png: cannot be attached' }).waitFor();
  problems.length = 0; // the refusal is told on the console
  await inForms(page, 'attach-steer');
  await page.getByRole('button', { name: 'Do not attach cut.png' }).click();
  await page.getByRole('button', { name: 'Do not attach e.pdf' }).click();
  await page.locator('#field-files').setInputFiles([file('<img src=x onerror=pwned=1>.png', c)]);
  await page.locator('dialog .chip', { hasText: 'image <img src=x onerror=pwned=1>.png 33×2' }).waitFor();
  await page.locator('dialog').getByRole('button', { name: 'Send' }).click();
  await page.locator('.toast', { hasText: 'Sent' }).waitFor();
  await page.goBack();
  await page.locator('.message.waits', { hasText: 'one more' }).getByRole('button', { name: 'Show image <img src=x onerror=pwned=1>.png' }).waitFor();
  want((await page.locator('main img').count()) === 0 && (await page.evaluate(() => window.pwned)) === undefined, 'a name became markup');
  await inForms(page, 'attach-waits');
  await ask('release');
  await until(async () => (await talk()).includes('shown: 31 32 33.'), 'all are shown: ' + await talk());

  // To one that has ended: it is resumed with it.
  await page.locator('#say-files').setInputFiles([file('c.png', c), file('d.png', d)]);
  await chip('image d.png 34×2').waitFor();
  await field.fill('and these');
  await page.getByRole('button', { name: 'Send and resume' }).click();
  await until(async () => (await talk()).includes('shown: 31 32 33 34'), async () => 'all are shown: ' + await page.locator('main').innerText());
  await page.locator('.message.user', { hasText: '[image d.png 34×2' }).waitFor();

  // A run that begins and ends between two looks at the table of processes is seen, too: each of these takes a few hundredths of a second.
  for (const word of ['once more', 'and once more', 'and again', 'and for the last time']) {
    await field.fill(word);
    await page.getByRole('button', { name: 'Send and resume' }).click();
    await page.locator('.message.user', { hasText: word }).waitFor();
    await until(async () => (await page.locator('.message.assistant').last().innerText()).includes('shown: 31 32 33 34') && (await page.getByRole('button', { name: 'Send and resume' }).count()) === 1, 'it has ended again');
  }

  // A fork is shown another one, and what its origin was; it is saved as what it is.
  const [saving] = await Promise.all([page.waitForEvent('download'), (async () => {
    await page.locator('.message.user', { hasText: '[image d.png' }).getByRole('button', { name: 'Show image d.png 34×2' }).click();
    await page.locator('.larger').getByRole('button', { name: 'Save' }).click();
  })()]);
  want(saving.suggestedFilename() === 'd.png', 'it is saved as ' + saving.suggestedFilename());
  await page.locator('.larger').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Fork', exact: true }).click();
  await page.locator('#field-files').setInputFiles([file('g.png', await picture(30))]);
  await page.locator('dialog').getByRole('button', { name: 'Fork', exact: true }).click();
  await page.locator('dialog .problem', { hasText: 'Say what it should do with what is attached.' }).waitFor();
  await page.getByRole('textbox', { name: 'What to tell it first' }).fill('look again');
  await page.locator('dialog').getByRole('button', { name: 'Fork', exact: true }).click();
  await until(async () => (await talk()).includes('shown: 30 31 32 33 34'), 'the fork is shown all');
  await page.locator('.notice-of', { hasText: 'This process is a fork' }).waitFor();
  await until(() => drawn('.message.user:has-text("g.png") .previews canvas'), 'it is drawn for the fork');
  await shot(page, 'attach-fork');
  await page.goBack();

  // So many bytes as a message takes go through, and no more.
  const much = (n) => Buffer.concat([a.subarray(0, a.length - 12), Buffer.alloc(n), a.subarray(a.length - 12)]); // what lies before the end is not decoded
  await page.locator('#say-files').setInputFiles([file('e.png', much(3900000)), file('f.png', much(1300000)), file('g.png', much(100000))]);
  await wrong.filter({ hasText: 'g.png is not attached: the files have 5.3 MB together, and a message takes at most 5.2 MB' }).waitFor();
  await field.fill('and much');
  await page.getByRole('button', { name: 'Send and resume' }).click(); // a page that does not know yet that it has ended says so to it, and is refused
  await page.locator('.message.user', { hasText: '[image f.png 31×2, 1.3 MB]' }).waitFor();

  // When no agent runs, the overview says how many have ended, and shows them at a click.
  await until(async () => (await page.locator('.head .badge').textContent()).includes('done'), 'it has ended');
  await page.goto(`${origin}/#/`);
  const ended = page.getByRole('button', { name: 'Show the 2 that have ended' });
  await ended.waitFor();
  await shot(page, 'overview-ended');
  await accessible(page, 'the overview when no agent runs');
  await ended.click();
  await until(async () => (await page.locator('.row[data-pid]').count()) === 2, 'both are shown');
});
