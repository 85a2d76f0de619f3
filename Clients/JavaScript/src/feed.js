// SPDX-License-Identifier: Apache-2.0

/** What comes, as an asynchronous iterator. It ends by `return()`, by a signal, and with its store. */

export class Feed {
  #take;
  #ended;
  #signal;
  #isOver = false;
  /**
   * The readers that wait, the first one first.
   * @type {{resolve: (result: IteratorResult<any>) => void, reject: (error: any) => void}[]}
   */
  #readers = [];
  #stop = () => { this.return(); };

  /**
   * @param {() => [any] | null} take Takes the next element, if there is one.
   * @param {() => void} ended Called once, when nothing more comes.
   * @param {AbortSignal} [signal]
   */
  constructor(take, ended, signal = undefined) {
    this.#take = take;
    this.#ended = ended;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#stop, { once: true });
  }

  /** There may be something to take. */
  poke() {
    while (this.#readers.length) {
      let found;
      try { found = this.#take(); } catch (error) {
        this.#readers.shift()?.reject(error);
        continue;
      }
      if (!found) return;
      this.#readers.shift()?.resolve({ done: false, value: found[0] });
    }
  }

  /** Nothing more comes. What is there can still be read. */
  end() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#signal?.removeEventListener('abort', this.#stop);
    this.#ended();
    for (const reader of this.#readers.splice(0)) reader.resolve({ done: true, value: undefined });
  }

  next() {
    return new Promise((resolve, reject) => {
      this.#readers.push({ resolve, reject });
      this.poke();
      if (this.#isOver) this.#readers.shift()?.resolve({ done: true, value: undefined });
    });
  }

  async return(value = undefined) {
    this.#take = () => null;
    this.end();
    return { done: true, value };
  }

  async throw(error) {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator]() { return this; }
}
