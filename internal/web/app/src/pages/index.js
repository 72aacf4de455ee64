// The pages, in the order of the navigation. README.md says how one is added.
import overview from './overview.js';
import process from './process.js';
import start from './start.js';
import compare from './compare.js';
import asks from './asks.js';
import compose from './compose.js';
import history from './history.js';
import cost from './cost.js';
import system from './system.js';

export default [overview, start, asks, compare, compose, history, cost, system, process];
