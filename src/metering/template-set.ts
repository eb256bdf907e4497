import type { EventTemplate } from './event-template.ts'
import { learnTemplate, type TextPlace } from './learn-template.ts'

/** Blocks and choices follow one another or come side by side; a call seldom writes more than this many at once. */
const TEMPLATES_MAX = 4
/** After so many templates in a row that fitted nothing, this stream is not of the kind that has them. */
const FRUITLESS_MAX = 8

/** The events of one stream that come again and again. */
export class TemplateSet {
  readonly #noise: ReadonlySet<string>
  readonly #templates: EventTemplate[] = []
  #last = 0
  #fruitless = 0

  constructor(noise: ReadonlySet<string>) {
    this.#noise = noise
  }

  /** The offset behind the event that begins at `from`, if it is a known one: its text is taken. Else -1. */
  take(chunk: Buffer, words: DataView, from: number): number {
    const templates = this.#templates
    for (let k = 0; k < templates.length; k++) {
      const index = (this.#last + k) % templates.length
      const behind = (templates[index] as EventTemplate).take(chunk, words, from)
      if (behind < 0) continue
      this.#last = index
      this.#fruitless = 0
      return behind
    }
    return -1
  }

  learn(raw: Buffer, place: TextPlace): void {
    if (this.#fruitless >= FRUITLESS_MAX) return
    this.#fruitless++
    const template = learnTemplate(raw, place, this.#noise)
    if (template === null) return
    this.#templates.unshift(template)
    this.#templates.length = Math.min(this.#templates.length, TEMPLATES_MAX)
    this.#last = 0
  }

  clear(): void {
    this.#templates.length = 0
  }
}
