// Safe keeps a mistake in one page from taking the others with it.
import { Component } from 'preact';
import { html } from '../lib/html.js';
import { Text } from './text.js';

export class Safe extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }

  static getDerivedStateFromError(error) {
    return { error };
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<h1>This page has a mistake</h1><p>The others work. Reload it, and tell us of it if it stays:</p>
      <${Text} value=${error.stack || error.message} class="mono" />`;
  }
}
