import { ConfigError } from '../config.ts'
import { InstallationError } from '../installation.ts'
import { StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { didYouMean } from './did-you-mean.ts'
import { OutputFailed, ReaderGone } from './print.ts'

/** The command line is wrong. The message names the option. */
export class UsageError extends Error {}

/** It could not be done. The message says why, and what to do. */
export class Failure extends Error {}

export interface Command {
  /** As it is typed, such as `keys create`. */
  readonly name: string
  /** Begins with the lines of usage; what follows behind an empty line is shown only when it is asked for. */
  readonly help: string
  run(args: string[]): Promise<void>
}

/** Runs a command and turns its failures into messages and exit codes: 1 failed, 2 the command line is wrong. */
export async function runCommand({ name, help, run }: Command, args: readonly string[]): Promise<void> {
  // Whoever reads the output may go away; print() tells the command.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const complain = (message: string, exitCode: number): void => {
    process.stderr.write(`tollgate ${message}`)
    process.exitCode = exitCode
  }
  if (asksForHelp(args)) {
    process.stdout.write(help)
    return
  }
  try {
    await run([...args])
  } catch (error) {
    if (error instanceof ReaderGone) return
    if (error instanceof UsageError || isParseError(error)) {
      const usage = help.slice(0, help.indexOf('\n\n') + 1)
      complain(
        `${name}: ${error.message}${meantOption(error, help)}\n\n${usage}\nMore: tollgate ${name} --help\n`,
        2,
      )
    } else if (error instanceof ConfigError) complain(`${name}: ${error.message}\n`, 2)
    else if (isExpected(error)) complain(`${name}: ${error.message}\n`, 1)
    else if (error instanceof StoreUnavailable) {
      complain(`${name}: The store does not answer: ${error.message}. Try again.\n`, 1)
    } else if (error instanceof StoreRefused) complain(`${name}: The store refused: ${error.message}.\n`, 1)
    else throw error
  }
}

/** A command that has commands of its own. */
export async function runGroup(
  name: string,
  help: string,
  commands: readonly Command[],
  args: readonly string[],
): Promise<void> {
  const [action, ...rest] = args
  const command = commands.find((each) => each.name === `${name} ${action}`)
  if (command !== undefined) return await runCommand(command, rest)
  await runCommand(
    {
      name,
      help,
      run: async () => {
        const actions = commands.map((each) => each.name.slice(name.length + 1))
        if (action !== undefined)
          throw new UsageError(`there is no action "${action}".${didYouMean(action, actions)}`)
        process.stdout.write(help)
      },
    },
    args,
  )
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

function isExpected(error: unknown): error is Error {
  return error instanceof Failure || error instanceof InstallationError || error instanceof OutputFailed
}

function isParseError(error: unknown): error is TypeError {
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}
