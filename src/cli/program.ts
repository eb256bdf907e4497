import { Command, CommanderError } from 'commander'
import { ConfigError, InstallationError, StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { VERSION } from '../kernel/runtime.ts'
import { ENVIRONMENT_HELP, Failure, UsageError } from './command.ts'
import { OutputFailed, ReaderGone, shownLines } from './terminal.ts'

const CREDITS = 'prepaid credit: list the ledger, add, correct, credit calls back'
const ACCOUNTS = 'customers or teams: budgets, credit, discounts, suspension'
const RECONCILE = "compare recorded usage with the provider's own report (local)"
const BACKUP = 'copy database, pepper and configuration, also while the gateway runs (local)'
const EXPORT = 'write all tables to a file; the gateway must be stopped (local)'

const database = () => import('./database-commands.ts')
const signIn = () => import('./login.ts')

/** A module that has several commands switches on the name. */
type Load = () => Promise<{ register(command: Command, load: typeof createProgram): void }>

/** The commands in the order of the help. A module is loaded only when its command is called. */
const COMMANDS: readonly (readonly [name: string, summary: string, load: Load])[] = [
  ['serve', 'run the gateway', () => import('./serve.ts')],
  ['keys', 'API keys and their limits', () => import('./keys.ts')],
  ['usage', 'usage and cost by day, model or key', () => import('./usage.ts')],
  ['requests', 'the request log', () => import('./requests.ts')],
  ['credits', CREDITS, () => import('./credits.ts')],
  ['accounts', ACCOUNTS, () => import('./accounts.ts')],
  ['people', 'people who sign in: limits, blocking, what new people get', () => import('./people.ts')],
  ['login', 'sign this terminal in as a person', signIn],
  ['token', 'print a token for agents and scripts, valid for at least five minutes', signIn],
  ['logout', 'sign this terminal out', signIn],
  ['balance', 'the prepaid credit of the account', () => import('./credits.ts')],
  ['webhooks', 'webhooks, their deliveries and secrets', () => import('./webhooks.ts')],
  ['events', 'the activity log', () => import('./events.ts')],
  ['status', 'this month at a glance, and what needs attention', () => import('./status.ts')],
  [
    'admin-key',
    'the keys that manage the gateway (local; with --url of a running gateway)',
    () => import('./admin-key.ts'),
  ],
  ['prices', 'the prices in effect; check a price overlay', () => import('./prices.ts')],
  ['audit', 'recompute every balance and bill, and report differences (local)', database],
  ['rerate', 'price calls again after a price was corrected (local)', () => import('./rerate.ts')],
  ['reconcile', RECONCILE, () => import('./reconcile.ts')],
  ['backup', BACKUP, database],
  ['export', EXPORT, database],
  ['import', 'fill an empty database from an export (local)', database],
  ['doctor', 'check the installation and say how to fix it (local)', () => import('./doctor.ts')],
  [
    'completion',
    'print the completion script of a shell: bash, zsh or fish',
    () => import('./completion.ts'),
  ],
]

export const COMMAND_NAMES: readonly string[] = COMMANDS.map(([name]) => name)

const GROUPS: ReadonlySet<string> = new Set([
  'keys',
  'accounts',
  'people',
  'credits',
  'admin-key',
  'prices',
  'webhooks',
])

const HELP_TAIL = `
Commands marked (local) open the database themselves. The others call a running gateway:
  --url, else TOLLGATE_URL, else TOLLGATE_HOST and TOLLGATE_PORT
  --admin-key-file, else TOLLGATE_ADMIN_KEY, else <data dir>/admin-key

${ENVIRONMENT_HELP}

Exit codes: 0 success, 1 failure, 2 wrong command line or configuration.`

/** Exit code 1: failure; 2: wrong command line or configuration. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  // A reader that goes away must not crash the process: print() reports it to the command.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const isIncomplete = args.length === 0 || (args.length === 1 && GROUPS.has(args[0] ?? ''))
  try {
    const program = await createProgram(args)
    await program.parseAsync(isIncomplete ? [...args, '--help'] : args, { from: 'user' })
  } catch (error) {
    const { message, exitCode } = explainError(error)
    if (message !== '') process.stderr.write(`tollgate: ${shownLines(message)}\n`)
    if (exitCode > 0) process.exitCode = exitCode
  }
}

async function createProgram(args: readonly string[]): Promise<Command> {
  const [typed, next] = args
  const program = new Command('tollgate')
    .description('A transparent billing gateway for model APIs.')
    .version(`tollgate ${VERSION}`, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .configureOutput({
      outputError(text, write) {
        write(`tollgate: ${shownLines(asSentences(text))}\n`)
      },
    })
    .exitOverride()
    .addHelpText('after', HELP_TAIL)
  for (const [name, summary, load] of COMMANDS) {
    const command = program.command(name).description(summary)
    if (name === (typed === 'help' ? next : typed)) (await load()).register(command, createProgram)
  }
  return program
}

/** Commander's `error: unknown option '--x'`, with a hint on a second line, as sentences. */
function asSentences(text: string): string {
  const [what = '', hint = ''] = text.replace(/^error: /, '').split('\n')
  const suggestion = hint.replace(/^\((.*)\)$/, ' $1')
  return `${what.charAt(0).toUpperCase()}${what.slice(1).replace(/\.$/, '')}.${suggestion} ${USAGE_HINT}`
}

const USAGE_HINT = 'Add --help for usage.'

function explainError(error: unknown): { readonly message: string; readonly exitCode: number } {
  // commander has printed its message or the help.
  if (error instanceof CommanderError) return { message: '', exitCode: error.exitCode === 0 ? 0 : 2 }
  if (error instanceof ReaderGone) return { message: '', exitCode: 0 }
  if (error instanceof UsageError) return { message: `${error.message} ${USAGE_HINT}`, exitCode: 2 }
  if (error instanceof ConfigError) return { message: error.message, exitCode: 2 }
  if (error instanceof Failure || error instanceof InstallationError || error instanceof OutputFailed)
    return { message: error.message, exitCode: 1 }
  if (error instanceof StoreUnavailable)
    return { message: `The database does not answer: ${error.message}. Try again.`, exitCode: 1 }
  if (error instanceof StoreRefused)
    return { message: `The database rejected the command: ${error.message}.`, exitCode: 1 }
  throw error
}
