import type { Command } from 'commander'
import type { Credit, CreditBackObject } from '../api/credit.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import {
  amountField,
  type ConnectionOptions,
  connect,
  type Exact,
  onceKey,
  withConnection,
} from './client.ts'
import { examples, UsageError } from './command.ts'
import { createProgress } from './progress.ts'
import { counted, print, printData, printUnread, shownCount, shownText } from './terminal.ts'

type CreditBack = Exact<CreditBackObject>

interface Options extends ConnectionOptions {
  readonly reason: string
  readonly idempotencyKey?: string
  readonly json?: true
}

/** Moves prepaid credit over HTTP. */
export function register(group: Command): void {
  withConnection(group.command('add <amount>').description('add prepaid credit, in USD'))
    .requiredOption('--reason <text>', 'the reason in the ledger')
    .option('--idempotency-key <text>', 'repeating the command with the same text adds nothing more')
    .option('--json', "print the API's answer")
    .addHelpText('after', examples('tollgate credits add 500 --reason "invoice 2026-114"'))
    .action(addCredit)

  withConnection(group.command('back <request-id...>').description('credit calls back, each once'))
    .requiredOption('--reason <text>', 'the reason in the ledger')
    .option(
      '--json',
      `print the API's answers, one line for every ${shownCount(limits.creditBackCallsMax)} calls`,
    )
    .addHelpText(
      'after',
      '\nWith - as the id, ids are read from standard input. An interrupted command can be repeated.' +
        examples(
          'tollgate credits back req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --reason "refund, ticket 4711"',
          'tollgate credits back - --reason "leaked key" < fraud.ids',
        ),
    )
    .action(creditBack)
}

async function addCredit(amount: string, options: Options): Promise<void> {
  const body = { amount_usd: amountField(amount), reason: options.reason }
  const { value, text, headers } = await connect(options, process.env).ask<Exact<Credit>>(
    'credit',
    'POST',
    '/gateway/v1/credits',
    { body, idempotencyKey: onceKey(options) },
  )
  if (options.json) return await printData([`${text}\n`])
  const done = headers.get('idempotent-replayed') === 'true' ? 'Added before, and not again:' : 'Added'
  const [sum, balance] = [shownText(value.amount_usd), shownText(value.balance_usd)]
  await print(`${done} ${sum} USD as ${shownText(value.id)}. The balance is ${balance} USD.\n`)
}

async function creditBack(args: readonly string[], options: Options): Promise<void> {
  const ids = checkedIds(await readIds(args))
  const client = connect(options, process.env)
  const progress = createProgress('Crediting back')
  const answers: CreditBack[] = []
  try {
    for (let at = 0; at < ids.length; at += limits.creditBackCallsMax) {
      progress.show(at, ids.length)
      const body = { request_ids: ids.slice(at, at + limits.creditBackCallsMax), reason: options.reason }
      const answer = await client.ask<CreditBack>('credit_back', 'POST', '/gateway/v1/credits', { body })
      answers.push(answer.value)
      if (options.json) await printUnread(`${answer.text}\n`)
    }
  } finally {
    progress.end()
  }
  const calls = answers.flatMap(({ data }) => data)
  if (!options.json) await print(summaryOf(answers, calls))
  const complaints = [
    listed('Still in flight, repeat the command when they have ended', calls, 'in_flight'),
    listed('There is no such call', calls, 'not_found'),
  ].join('')
  if (complaints === '') return
  process.stderr.write(complaints)
  process.exitCode = 1
}

type CreditedCall = CreditBack['data'][number]

const OUTCOMES: readonly (readonly [outcome: string, label: string])[] = [
  ['already_credited', 'Credited before'],
  ['nothing_to_credit', 'Without a cost'],
  ['in_flight', 'Still in flight'],
  ['not_found', 'Not found'],
]

function summaryOf(answers: readonly CreditBack[], calls: readonly CreditedCall[]): string {
  const nanos = answers.reduce((sum, { credited_usd }) => sum + (parseUsd(credited_usd) ?? 0n), 0n)
  const countOf = (outcome: string) => calls.filter((call) => call.outcome === outcome).length
  const balance = shownText(answers.at(-1)?.balance_usd ?? '')
  const others = OUTCOMES.filter(([outcome]) => countOf(outcome) > 0)
  return [
    `Credited ${formatUsd(nanos)} USD for ${counted(countOf('credited'), 'call')}. The balance is ${balance} USD.\n`,
    ...others.map(([outcome, label]) => `${label}: ${counted(countOf(outcome), 'call')}.\n`),
  ].join('')
}

const LISTED_MAX = 20

function listed(label: string, calls: readonly CreditedCall[], outcome: string): string {
  const matching = calls.filter((call) => call.outcome === outcome)
  if (matching.length === 0) return ''
  const lines = matching.slice(0, LISTED_MAX).map(({ request_id }) => `  ${shownText(request_id)}\n`)
  const more = matching.length > LISTED_MAX ? `  and ${matching.length - LISTED_MAX} more\n` : ''
  return `${label}:\n${lines.join('')}${more}`
}

const IDS_MAX = 1_000_000
const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/

/** All ids are checked before any is sent: a wrong list must not move any money. */
function checkedIds(ids: readonly string[]): readonly string[] {
  if (ids.length === 0)
    throw new UsageError('Name calls by their request id, or - to read ids from standard input.')
  if (ids.length > IDS_MAX) throw new UsageError(`There are more than ${shownCount(IDS_MAX)} request ids.`)
  const known = new Set<string>()
  for (const id of ids) {
    if (!REQUEST_ID.test(id)) throw new UsageError(`${shownText(id)} is no request id: \`req_\` and a ULID.`)
    if (known.has(id)) throw new UsageError(`${id} is named twice.`)
    known.add(id)
  }
  return ids
}

const STDIN_CHARS_MAX = 64 * 1024 * 1024

async function readIds(args: readonly string[]): Promise<string[]> {
  const named = args.filter((each) => each !== '-')
  if (named.length === args.length) return named
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk
    if (text.length > STDIN_CHARS_MAX) throw new UsageError('Standard input has more than 64 MiB.')
  }
  return [...named, ...text.split(/\s+/).filter((id) => id !== '')]
}
