// One browser for all scenarios of a run, each of which has a context of its own in it. It writes where it is, and ends with its input.
import { chromium } from 'playwright-core';
import { launching } from './browser.mjs';

const server = await chromium.launchServer(launching);
process.stdout.write(server.wsEndpoint() + '\n');
process.stdin.resume();
process.stdin.once('end', () => server.close());
