import DESCRIPTIONS from '../config/descriptions.json' with { type: 'json' }

/** The command line is wrong. `param`: the field that the API refused, if the API found the error. */
export class UsageError extends Error {
  readonly param: string | null

  constructor(message: string, param: string | null = null) {
    super(message)
    this.param = param
  }
}

export class Failure extends Error {
  readonly code: string | null
  readonly details: unknown
  readonly param = null

  constructor(message: string, code: string | null = null, details: unknown = null) {
    super(message)
    this.code = code
    this.details = details
  }
}

export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

const variables = Object.entries(DESCRIPTIONS).filter(([name]) => name.startsWith('TOLLGATE_'))

export const ENVIRONMENT_HELP = `Environment of the gateway and of local commands (docs/CONFIGURATION.md has the details):
${variables.map(([name, { meaning }]) => `  ${name.padEnd(23)} ${meaning.replaceAll('`', '')}`).join('\n')}`
