import { parseArgs } from 'node:util'
import { ConfigError } from '../config.ts'
import { InstallationError, StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { nearestName } from '../kernel/settings.ts'
import { OutputFailed, ReaderGone } from './terminal.ts'

/** The command line is wrong. The message names the option. */
export class UsageError extends Error {}

/** The command could not be done. The message says why, and what to do. */
export class Failure extends Error {}

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly multiple?: true
  /** The placeholder of the value in the help, such as `<usd>`. Empty for an option without a value. */
  readonly value: string
  /** Empty where the option is explained elsewhere. */
  readonly help: string
  /** The parameter of the management API that the option fills, where the two names differ. */
  readonly param?: string
}

export type Options = Readonly<Record<string, Option>>

/** The options as they were typed. An option without a value is true or false. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K]['type'] extends 'boolean'
    ? boolean
    : O[K] extends { readonly multiple: true }
      ? readonly string[] | undefined
      : string | undefined
}

export const option = (value: string, help: string, param?: string) =>
  ({ type: 'string', value, help, ...(param === undefined ? {} : { param }) }) as const

export const flag = (help: string) => ({ type: 'boolean', value: '', help }) as const

export const NO_COLOR = flag('no colour on a terminal either; the variable NO_COLOR says the same')

export interface Declaration<O extends Options> {
  /** The name as it is typed, such as `keys create`. */
  readonly name: string
  /** The line in the help of the group: the arguments, and in a few words what the command does. */
  readonly summary?: readonly [args: string, does: string]
  /** The whole command line, with `tollgate`; several where there are several ways to use the command. */
  readonly usage: string | readonly string[]
  readonly about: string
  readonly options: O
  /** Paragraphs behind the options. */
  readonly notes?: string
  readonly examples: readonly string[]
  /** Sections behind the examples, each with its title. */
  readonly sections?: readonly string[]
  readonly exitCodes?: string
  /** Whether the command takes arguments that are no options, as `args`; otherwise arguments are refused. */
  readonly takesArguments?: boolean
  run(values: Values<O>, args: readonly string[]): Promise<void>
}

export interface Command {
  readonly name: string
  readonly summary: readonly [args: string, does: string]
  /** Turns failures into messages and exit codes: 1 failed, 2 the command line or the configuration is wrong. */
  run(args: readonly string[]): Promise<void>
}

const EXIT_CODES = '0 done   1 failed or refused   2 the command line or the configuration is wrong'
export const EXIT_HELP = `Exit codes\n  ${EXIT_CODES}`

/** A command of one declaration: the same options make its help, read its command line and type its values. */
export function defineCommand<const O extends Options>(declaration: Declaration<O>): Command {
  const { name, options, summary = ['', ''], takesArguments = false } = declaration
  const flags = Object.keys(options).filter((key) => options[key]?.type === 'boolean')
  const unset = Object.fromEntries(flags.map((key) => [key, false]))
  const run = async (args: readonly string[]): Promise<void> => {
    const config = { args: [...args], options: options as Options, allowPositionals: takesArguments }
    const { values, positionals } = parseArgs(config)
    const given: Readonly<Record<string, unknown>> = { ...unset, ...values }
    await declaration.run(given as Values<O>, positionals)
  }
  return { name, summary, run: (args) => runWithHelp(name, () => helpOf(declaration), run, args) }
}

/** A command that has commands of its own. */
export function defineGroup(name: string, about: string, commands: readonly Command[]): Command {
  const help = () => {
    const rows = commands.map(
      (each): Row => [`tollgate ${each.name} ${each.summary[0]}`.trimEnd(), each.summary[1]],
    )
    return `Usage\n${twoColumns(rows)}\n${about}\n`
  }
  const run = async ([action]: readonly string[]): Promise<void> => {
    const actions = commands.map((each) => each.name.slice(name.length + 1))
    if (action !== undefined) {
      throw new UsageError(`there is no action "${action}".${didYouMean(action, actions)}`)
    }
    process.stdout.write(help())
  }
  return {
    name,
    summary: ['', ''],
    async run(args) {
      const [action, ...rest] = args
      const chosen = commands.find((each) => each.name === `${name} ${action}`)
      await (chosen === undefined ? runWithHelp(name, help, run, args) : chosen.run(rest))
    },
  }
}

async function runWithHelp(
  name: string,
  help: () => string,
  run: (args: readonly string[]) => Promise<void>,
  args: readonly string[],
): Promise<void> {
  // The reader of the output may go away: print() tells the command, and a gateway serves on.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  if (asksForHelp(args)) {
    process.stdout.write(help())
    return
  }
  try {
    await run(args)
  } catch (error) {
    const told = explain(error, name, help)
    if (told === null) throw error
    process.stderr.write(told.message === '' ? '' : `tollgate ${name}: ${told.message}\n`)
    if (told.exitCode > 0) process.exitCode = told.exitCode
  }
}

/** Null for an error that is a fault of the program. */
function explain(
  error: unknown,
  name: string,
  help: () => string,
): { readonly message: string; readonly exitCode: number } | null {
  if (error instanceof ReaderGone) return { message: '', exitCode: 0 }
  if (error instanceof UsageError || isParseError(error)) {
    const text = help()
    const usage = text.slice(0, text.indexOf('\n\n') + 1)
    const message = `${error.message}${meantOption(error, text)}\n\n${usage}\nMore: tollgate ${name} --help`
    return { message, exitCode: 2 }
  }
  if (error instanceof ConfigError) return { message: error.message, exitCode: 2 }
  if (error instanceof Failure || error instanceof InstallationError || error instanceof OutputFailed)
    return { message: error.message, exitCode: 1 }
  if (error instanceof StoreUnavailable)
    return { message: `The store does not answer: ${error.message}. Try again.`, exitCode: 1 }
  if (error instanceof StoreRefused) return { message: `The store refused: ${error.message}.`, exitCode: 1 }
  return null
}

function isParseError(error: unknown): error is TypeError {
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}

/** The option that was probably meant, of those that the help of the command names. */
function meantOption(error: Error, help: string): string {
  const [, typed] = /^Unknown option '(--[^']+)'/.exec(error.message) ?? []
  return typed === undefined ? '' : didYouMean(typed, [...new Set(help.match(/--[a-z][a-z-]*/g))])
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

/** A sentence with the name that was probably meant, or an empty text. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const meant = known.filter((name) => typed.length > 1 && name.startsWith(typed))
  const letters = typed.replace(/^-+/, '').length
  // A short word is only a few changes away from nearly every other word.
  const changesMax = letters <= 3 ? 1 : letters <= 7 ? 2 : 3
  const near = meant.length === 1 ? (meant[0] ?? null) : nearestName(typed, known, changesMax)
  return near === null ? '' : ` Did you mean ${near}?`
}

const HELP_COLUMNS = 120

function helpOf<O extends Options>(declaration: Declaration<O>): string {
  const { name, usage, about, options, notes, examples, sections = [] } = declaration
  const usages = typeof usage === 'string' ? [usage] : usage
  // A part in brackets is not broken between lines.
  const usageLines = usages.map((line) => wrap(`  ${line}`, `  tollgate ${name} `.length, /\[[^\]]*\]+|\S+/g))
  const rows = Object.entries<Option>(options)
    .filter(([, { help }]) => help !== '')
    .map(([key, { value, help }]): Row => [`--${key} ${value}`.trimEnd(), help])
  return [
    `Usage\n${usageLines.join('')}`,
    `${about}\n${twoColumns(rows)}`,
    ...(notes === undefined ? [] : [`${notes}\n`]),
    `${examples.length === 1 ? 'Example' : 'Examples'}\n${examples.map((example) => `  ${example}\n`).join('')}`,
    ...sections,
    `Exit codes\n  ${declaration.exitCodes ?? EXIT_CODES}\n`,
  ].join('\n')
}

export type Row = readonly [left: string, right: string]

/** Lines whose second part begins in the same column and is broken where the line is full. */
function twoColumns(rows: readonly Row[]): string {
  const width = rows.reduce((most, [left]) => Math.max(most, left.length), 0) + 4
  return rows.map(([left, right]) => wrap(`  ${left}`.padEnd(width) + right, width)).join('')
}

/** The line if it fits, else several lines, broken between words; further lines begin in column `indent`. */
function wrap(line: string, indent: number, word = /\S+/g): string {
  if (line.length <= HELP_COLUMNS) return `${line}\n`
  let lines = ''
  let current = line.slice(0, indent)
  for (const part of line.slice(indent).match(word) ?? []) {
    const next = current.length === indent ? current + part : `${current} ${part}`
    if (next.length <= HELP_COLUMNS) current = next
    else {
      lines += `${current}\n`
      current = ' '.repeat(indent) + part
    }
  }
  return `${lines}${current}\n`
}
