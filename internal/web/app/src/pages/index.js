// The pages, in the order of the navigation. README.md says how one is added.
import overview from './overview.js';

export default [overview];
