import type { z } from 'zod'
import type { JsonPath } from './json-with-lines.ts'

/** More than this says nothing new about a file that is wrong throughout. */
const PROBLEMS_MAX = 50

/** Collects what is wrong with a price file, each with its line and its path, so that all of it can be mended at once. */
export class PriceProblems {
  readonly #lineOf: (path: JsonPath) => number
  readonly #found: string[] = []
  #left = 0

  constructor(lineOf: (path: JsonPath) => number) {
    this.#lineOf = lineOf
  }

  get any(): boolean {
    return this.#found.length > 0
  }

  get list(): readonly string[] {
    return this.#left === 0 ? this.#found : [...this.#found, `and ${this.#left} more`]
  }

  add(path: JsonPath, message: string): void {
    if (this.#found.length >= PROBLEMS_MAX) {
      this.#left++
      return
    }
    const where = pathText(path)
    const line = `line ${this.#lineOf(path)}`
    this.#found.push(where === '' ? `${line}: the document ${message}` : `${line}, ${where}: ${message}`)
  }

  addIssues(error: z.ZodError): void {
    for (const issue of error.issues) {
      if (issue.code === 'unrecognized_keys') {
        for (const key of issue.keys) this.add([...issue.path, key], 'is not a member of price files')
      } else if (issue.code === 'invalid_key') {
        this.add(issue.path, issue.issues.map((inner) => inner.message).join('; '))
      } else if (issue.code === 'invalid_type') {
        this.add(issue.path, typeProblem(issue))
      } else this.add(issue.path, lowered(issue.message))
    }
  }
}

function typeProblem(issue: Extract<z.core.$ZodIssue, { code: 'invalid_type' }>): string {
  if (issue.input === undefined) return 'is missing'
  return issue.message.startsWith('Invalid input') ? `must be of type ${issue.expected}` : issue.message
}

/** Zod's own sentences begin with a capital; ours go on after the path. */
function lowered(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1)
}

function pathText(path: JsonPath): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? String(step) : `.${String(step)}`
  }
  return text
}
