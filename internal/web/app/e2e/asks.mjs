// A person answers what agents ask: from cards, by mouse and by keys, while others answer too, processes end, and the daemon is killed.
import { scenario, shot, want, until, accessible, ask, origin, inForms, toasts } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  const cards = page.locator('.card');
  const card = (text) => page.locator('.card', { hasText: text });
  const press = (where, name) => where.getByRole('button', { name: new RegExp('^' + name) }).click();
  const dialog = page.locator('dialog');
  const toast = (text) => page.locator('.toast', { hasText: text }).first();
  const number = async (c) => Number(await c.getAttribute('data-ask'));
  const ok = async (word) => { const r = await ask(word); want(r === 'done', `${word}: ${r}`); };
  const gone = (c, text) => until(async () => (await c.count()) === 0, text);

  // It comes by itself: into the title, the header, the row, the process's page and the list.
  await page.waitForSelector('.wire.live');
  want((await page.title()) === 'Overview – Rnix', 'the title is ' + await page.title());
  const first = await ask('spawn night run echo made >>made');
  await until(async () => (await page.title()) === '(1) Overview – Rnix', 'the title says that something is asked');
  want((await page.locator('nav .open').textContent()) === '1', 'the header does not say how many wait');
  const row = page.locator(`.row[data-pid="${first}"]`);
  await until(async () => (await row.locator('.badge').textContent()).includes('asks you'), 'the row says that it asks');
  want((await row.locator('.doing').textContent()).startsWith('ask: shell echo made'), 'the row does not say what it asks');
  await inForms(page, 'asks-overview');
  await row.getByRole('link', { name: /^Answer/ }).click();
  await card('echo made >>made').waitFor();
  await inForms(page, 'asks-process');
  const worked = await ask('worked ' + first); // the time of who waits for a person does not run
  await until(async () => (await page.locator('.glance').first().innerText()).split('\n').join(' ').includes(` ${worked} `), async () => `the page has the time ${worked}: ${await page.locator('.glance').first().innerText()}`);
  await page.locator('.act .badge.ask', { hasText: 'waits for you' }).waitFor();
  want((await ask('read made')) === '', 'it ran without an answer');
  await page.keyboard.press('a');
  await page.locator('h1', { hasText: '1 call waits for your answer' }).waitFor();
  await press(card('echo made'), 'Allow ask');
  await toast('allowed').waitFor();
  await gone(cards, 'the card goes');
  await ok('wait ' + first);
  want((await ask('read made')) === 'made', 'it did not run once');
  want((await page.title()) === 'Asks – Rnix', 'the title is ' + await page.title());
  await inForms(page, 'asks-none');
  await page.goBack(); // the conversation tells of it
  await page.locator('.act .answered', { hasText: 'a person has allowed it' }).waitFor();
  await shot(page, 'asks-answered');
  await page.goto(origin + '/#/asks');

  // What is asked is text, however long and whatever is in it; a refusal has a reason.
  const long = await ask('spawn mallory long');
  const hostile = card('window.pwned=1').first();
  await hostile.waitFor();
  const begins = await hostile.locator('.runs').first().textContent();
  for (const sign of ['<script>', '<img src=x', '␛[31m', '‹U+202E›']) want(begins.includes(sign), `${sign} is not seen in ${begins}`);
  want(!begins.includes('the end'), 'a command of 200 kB is shown at once');
  await inForms(page, 'asks-hostile');
  await press(hostile, 'Show all');
  await until(async () => /Show 100k of/.test(await hostile.textContent()), 'the rest of it can be had');
  for (let more = true; more;) {
    const b = hostile.locator('.box').getByRole('button', { name: /^Show/ });
    more = (await b.count()) > 0;
    if (more) await b.first().click();
  }
  want((await hostile.locator('.box').textContent()).includes('the end'), 'the end of the command is not shown');
  want((await page.evaluate(() => window.pwned)) === undefined, 'it ran');
  want((await page.locator('#app script, #app img, #app iframe').count()) === 0, 'it became markup');
  await press(hostile, 'Deny');
  await dialog.getByRole('textbox', { name: 'Why' }).fill('not on a Friday');
  await shot(page, 'asks-deny');
  await accessible(page, 'a refusal');
  await dialog.getByRole('button', { name: 'Deny' }).click();
  await toast('refused').waitFor();
  await ok('wait ' + long);

  // Somebody else answers while a person is about to: the question and the card go, and the page says so.
  await ask('spawn both both');
  await until(async () => (await cards.count()) === 2, 'both calls of a step are asked about');
  const two = await number(card('second'));
  await press(card('second'), 'Deny');
  await dialog.waitFor();
  await ok(`answer ${two} allow`);
  await toast('was allowed elsewhere').waitFor();
  want((await dialog.count()) === 0, 'the question stays');
  want((await cards.count()) === 1, 'the other card went, too');
  await ok(`answer ${await number(card('first'))} deny`);
  await toast('was refused elsewhere').waitFor();
  await gone(cards, 'the card goes');

  // What stands above it is said.
  await ask('spawn lead lead');
  await card('echo below').locator('.line-of', { hasText: 'lead' }).waitFor();
  await shot(page, 'asks-below');
  await press(card('echo below'), 'Allow ask');
  await until(async () => (await ask('read below')) === 'below', 'what is below runs');

  // The process ends.
  const ends = await ask('spawn brief run echo brief >>brief');
  await card('echo brief').waitFor();
  await ok('end ' + ends);
  await toast('its process has ended').waitFor();
  await gone(cards, 'the card of what has ended goes');

  // A question is answered with what the agent proposes, or with something else.
  const asking = await ask('spawn curious which');
  const question = card('Which database?');
  await question.locator('h2', { hasText: 'asks you' }).waitFor();
  await page.goto(origin + '/#/asks');
  await page.locator('h1', { hasText: '1 question waits for your answer' }).waitFor();
  await inForms(page, 'asks-question');
  want((await question.getByRole('button', { name: /^Allow ask/ }).count()) === 0, 'a question can be allowed');
  want((await question.textContent()).includes('Without an answer it would take SQLite'), 'the default is not said');
  want((await page.evaluate(() => window.pwned)) === undefined, 'it ran');
  const asked1 = await number(question);
  await question.getByRole('button', { name: `Answer ask ${asked1} with Postgres` }).click();
  await toast('answered').waitFor();
  await until(async () => (await question.count()) === 1 && (await number(question)) !== asked1, 'the next question comes');
  await until(async () => (await ask('told ' + asking)).endsWith('Postgres'), 'the agent is told the choice');
  const field = question.getByRole('textbox', { name: /^Your answer/ });
  want(await question.getByRole('button', { name: /^Answer ask \d+, / }).isDisabled(), 'an empty answer can be given');
  await page.waitForTimeout(600); // the cards have moved
  await field.fill('Neither\nof them');
  await field.press('Enter');
  await gone(cards, 'the card goes');
  await ok('wait ' + asking);
  want((await ask('told ' + asking)).endsWith('Neither of them'), 'the agent is not told the text');

  // Something else runs instead.
  const edits = await ask('spawn edit run echo one >edited');
  await press(card('echo one'), 'Edit');
  const command = dialog.getByRole('textbox', { name: 'Command' });
  want((await command.inputValue()) === 'echo one >edited', 'the command is ' + await command.inputValue());
  await command.fill(' ');
  await dialog.getByRole('button', { name: 'Allow this' }).click();
  await dialog.locator('.problem', { hasText: 'It is empty' }).waitFor();
  await command.fill('echo another >edited');
  await shot(page, 'asks-edit');
  await accessible(page, 'a change');
  await dialog.getByRole('button', { name: 'Allow this' }).click();
  await ok('wait ' + edits);
  want((await ask('read edited')) === 'another', 'what was changed did not run');
  const writes = await ask('spawn write write');
  await card('note.txt').getByText('Whole input').click();
  await card('note.txt').getByText('as the agent says').waitFor();
  await press(card('note.txt'), 'Edit');
  const input = dialog.getByRole('textbox', { name: 'Input' });
  await input.fill('{"path":');
  await dialog.getByRole('button', { name: 'Allow this' }).click();
  await dialog.locator('.problem', { hasText: 'not JSON' }).waitFor();
  want((await input.inputValue()) === '{"path":', 'what was typed is lost');
  await input.fill('{"path":"note.txt","content":"as a person says"}');
  await dialog.getByRole('button', { name: 'Allow this' }).click();
  await ok('wait ' + writes);
  want((await ask('read note.txt')) === 'as a person says', 'the file has ' + await ask('read note.txt'));

  // For more than the call: a pattern that does not fit is refused, one that does counts, and can be taken back.
  const again = await ask('spawn again again');
  await press(card('echo again 0'), 'Allow … for');
  await dialog.getByRole('combobox', { name: 'For' }).selectOption('family');
  await dialog.getByRole('textbox', { name: 'Which calls' }).fill('git *');
  await shot(page, 'asks-for');
  await accessible(page, 'for what an answer counts');
  await dialog.getByRole('button', { name: 'Allow' }).click();
  await page.locator('.toast.bad', { hasText: 'does not cover' }).getByRole('button').click();
  await press(card('echo again 0'), 'Allow … for');
  await dialog.getByRole('combobox', { name: 'For' }).selectOption('1h');
  await dialog.getByRole('textbox', { name: 'Which calls' }).fill('echo *');
  await dialog.getByRole('button', { name: 'Allow' }).click();
  await toast('passes without asking for the family').waitFor();
  await ok('wait ' + again);
  want((await cards.count()) === 0, 'what was granted is asked about');
  const more = await ask('spawn more again');
  await press(card('echo again 0'), 'Allow … for');
  await dialog.getByRole('button', { name: 'Allow' }).click();
  await toast('passes without asking for PID').waitFor();
  await card('echo again 1').waitFor(); // another call
  await page.getByRole('region', { name: 'Grants' }).getByText('echo again 0').waitFor();
  await shot(page, 'asks-grants');
  await accessible(page, 'what is granted');
  const grants = page.getByRole('button', { name: /^Take back/ });
  await until(async () => (await grants.count()) === 2, 'what a process was granted that has ended is listed, too: it counts when it is resumed');
  await grants.last().click();
  await toast('is asked about again').waitFor();
  await until(async () => (await grants.count()) === 1, 'it is taken back');
  await grants.click();
  await page.getByText('Nothing now.').waitFor();
  await ok('end ' + more);
  await gone(cards, 'the card goes with its process');
  problems.length = 0; // the refusal is told on the console

  // The daemon is killed while a card is open: the card stays, cannot be answered, and can again when a daemon runs.
  const keeps = await ask('spawn keeps run echo kept >>kept');
  await card('echo kept').waitFor();
  const kept = await number(card('echo kept'));
  await ok('kill');
  await page.locator('.away').waitFor();
  want(await card('echo kept').getByRole('button', { name: /^Allow ask/ }).isDisabled(), 'it can be answered without a daemon');
  await shot(page, 'asks-away');
  await accessible(page, 'asks without a daemon');
  await ok('start');
  await page.locator('.wire.live').waitFor();
  await until(async () => (await ask('open')) === '1', 'it is asked again');
  await until(async () => (await cards.count()) === 1 && await card('echo kept').getByRole('button', { name: /^Allow ask/ }).isEnabled(), 'it can be answered again');
  want((await number(card('echo kept'))) === kept, 'it has another number');
  await press(card('echo kept'), 'Allow ask');
  await ok('wait ' + keeps);
  want((await ask('read kept')) === 'kept', 'it ran not once');
  problems.length = 0; // that nobody answered for a while is told on the console

  // Fifty at once, by the keyboard: the focus goes on to the next one.
  await ok('storm');
  await until(async () => (await cards.count()) === 50, 'fifty cards');
  want((await page.title()).startsWith('(50)'), 'the title is ' + await page.title());
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const at = await page.evaluate(() => Number(document.activeElement.dataset.ask));
  await shot(page, 'asks-fifty');
  await accessible(page, 'fifty asks');
  await page.keyboard.press('Tab'); // its process
  for (let n = 0; !(await page.evaluate(() => document.activeElement.textContent === 'Allow')); n++) {
    want(n < 10, 'Tab does not lead to Allow');
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  await until(async () => (await cards.count()) === 49, 'one is answered');
  await until(async () => (await page.evaluate(() => Number(document.activeElement.dataset.ask))) > at, 'the focus goes to the next card');
  const told = await toasts(page);
  await ok('deny-all');
  await gone(cards, 'all go');
  await told('were answered elsewhere');
  want((await page.title()) === 'Asks – Rnix', 'the title is ' + await page.title());
  await page.goto(origin + '/#/');
});
