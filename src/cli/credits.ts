import type { Command } from 'commander'
import type { AddedCredit, Credit } from '../api/credit.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import {
  type ApiList,
  amountField,
  type ConnectionOptions,
  connect,
  type Exact,
  onceKey,
  withConnection,
} from './client.ts'
import { examples, Failure, UsageError } from './command.ts'
import { createProgress } from './progress.ts'
import {
  alignAmounts,
  counted,
  left,
  outputStyle,
  print,
  printData,
  printUnread,
  renderTable,
  right,
  shownCount,
  shownInstant,
  shownText,
  type TerminalStyle,
} from './terminal.ts'

type CreditBack = Exact<AddedCredit>

interface Options extends ConnectionOptions {
  readonly reason: string
  readonly idempotencyKey?: string
  readonly json?: true
}

/** Moves prepaid credit over HTTP. */
export function register(group: Command): void {
  withConnection(group.command('list').description('list the ledger of credit, newest first'))
    .option('--limit <n>', 'at most this many, 1 to 1000 (100)')
    .option('--after <cursor>', 'the next page')
    .option('--json', "print the API's answer")
    .option('--no-color', 'no colour on a terminal')
    .addHelpText('after', examples('tollgate credits list --limit 20'))
    .action(listCredits)

  withConnection(
    group.command('add <amount>').description('add prepaid credit, in USD; a negative amount corrects it'),
  )
    .requiredOption('--reason <text>', 'the reason in the ledger')
    .option('--idempotency-key <text>', 'repeating the command with the same text adds nothing more')
    .option('--json', "print the API's answer")
    .addHelpText(
      'after',
      examples(
        'tollgate credits add 500 --reason "invoice 2026-114"',
        'tollgate credits add --reason "typo in invoice 2026-114" -- -50',
      ),
    )
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
  const [sum, balance] = [shownText(value.amount_usd), shownText(value.balance_after_usd)]
  await print(`${done} ${sum} USD as ${shownText(value.id)}. The balance is ${balance} USD.\n`)
}

async function listCredits(
  options: ConnectionOptions & { limit?: string; after?: string; json?: true; color: boolean },
): Promise<void> {
  const { limit, after, json } = options
  const client = connect(options, process.env)
  const { value, text } = await client.get<ApiList<Exact<Credit>>>('list', '/gateway/v1/credits', {
    limit,
    after,
  })
  if (json) return await printData([`${text}\n`])
  if (value.data.length === 0) process.stderr.write('The ledger has no entries.\n')
  else await print(creditTable(value.data, outputStyle(options)))
  if (value.has_more)
    process.stderr.write(`There are more entries: add --after ${value.next} or a larger --limit.\n`)
}

function creditTable(entries: readonly Exact<Credit>[], style: TerminalStyle): string {
  const amounts = alignAmounts(entries.map(({ amount_usd }) => amount_usd))
  const balances = alignAmounts(entries.map(({ balance_after_usd }) => balance_after_usd))
  const rows = entries.map((entry, at) => [
    shownInstant(entry.created_at),
    shownText(entry.id),
    shownText(entry.kind),
    amounts[at] ?? '',
    balances[at] ?? '',
    shownText(entry.actor.name ?? entry.actor.kind, 30),
    shownText(entry.reason, 60),
  ])
  const columns = [
    ...[left('at (UTC)'), left('entry'), left('kind'), right('amount (USD)'), right('balance after')],
    ...[left('by'), left('reason')],
  ]
  return renderTable(columns, rows, style, ['entry', 'by'])
}

type Outcomes = {
  readonly [Name in 'credited' | 'already_credited' | 'not_credited']: NonNullable<CreditBack[Name]>
}

async function creditBack(args: readonly string[], options: Options): Promise<void> {
  const ids = checkedIds(await readIds(args))
  const client = connect(options, process.env)
  const progress = createProgress('Crediting back')
  const entries: CreditBack[] = []
  const outcomes: Outcomes[] = []
  try {
    for (let at = 0; at < ids.length; at += limits.creditBackCallsMax) {
      progress.show(at, ids.length)
      const body = { request_ids: ids.slice(at, at + limits.creditBackCallsMax), reason: options.reason }
      try {
        const answer = await client.ask<CreditBack>('credit', 'POST', '/gateway/v1/credits', { body })
        entries.push(answer.value)
        outcomes.push(answer.value as Outcomes)
        if (options.json) await printUnread(`${answer.text}\n`)
      } catch (error) {
        // None of these calls is left to credit, as after an interrupted command.
        if (!(error instanceof Failure) || error.code !== 'conflict') throw error
        outcomes.push(error.details as Outcomes)
      }
    }
  } finally {
    progress.end()
  }
  const others = outcomes.flatMap(({ not_credited }) => not_credited)
  if (!options.json) await print(summaryOf(entries, outcomes, others))
  const complaints = [
    listed('Still in flight, repeat the command when they have ended', others, 'in_flight'),
    listed('There is no such call', others, 'not_found'),
  ].join('')
  if (complaints === '') return
  process.stderr.write(complaints)
  process.exitCode = 1
}

type NotCredited = Outcomes['not_credited'][number]

const REASONS = [
  ['nothing_to_credit', 'Without a cost'],
  ['in_flight', 'Still in flight'],
  ['not_found', 'Not found'],
] as const

function summaryOf(
  entries: readonly CreditBack[],
  outcomes: readonly Outcomes[],
  others: readonly NotCredited[],
): string {
  const nanos = entries.reduce((sum, { amount_usd }) => sum + (parseUsd(amount_usd) ?? 0n), 0n)
  const sumOf = (name: 'credited' | 'already_credited') =>
    outcomes.reduce((sum, { [name]: calls }) => sum + calls.length, 0)
  const last = entries.at(-1)
  const balance = last === undefined ? '' : ` The balance is ${shownText(last.balance_after_usd)} USD.`
  const counts = [
    ['Credited before', sumOf('already_credited')] as const,
    ...REASONS.map(([why, label]) => [label, others.filter(({ reason }) => reason === why).length] as const),
  ]
  return [
    `Credited ${formatUsd(nanos)} USD for ${counted(sumOf('credited'), 'call')}.${balance}\n`,
    ...counts
      .filter(([, count]) => count > 0)
      .map(([label, count]) => `${label}: ${counted(count, 'call')}.\n`),
  ].join('')
}

const LISTED_MAX = 20

function listed(label: string, calls: readonly NotCredited[], why: NotCredited['reason']): string {
  const matching = calls.filter(({ reason }) => reason === why)
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
