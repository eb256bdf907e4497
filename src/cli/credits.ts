import type { Command } from 'commander'
import type { AddedCredit, BalanceObject, Credit } from '../api/credit.ts'
import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import {
  amountField,
  type ConnectionOptions,
  connect,
  type Exact,
  onceKey,
  type PageOptions,
  printList,
  type ShownOptions,
  withConnection,
  withJson,
  withPages,
} from './client.ts'
import { examples, Failure, UsageError } from './command.ts'
import {
  counted,
  createProgress,
  type Field,
  print,
  printData,
  printUnread,
  renderLines,
  shownCount,
  shownInstant,
  shownText,
  shownUsd,
} from './terminal.ts'

const PATH = '/gateway/v1/credits'

type CreditBack = Exact<AddedCredit>

interface Options extends ConnectionOptions {
  readonly reason: string
  readonly idempotencyKey?: string
  readonly json?: true
}

/** `tollgate balance`: the prepaid credit of the account over HTTP. */
export function registerBalance(command: Command): void {
  withJson(command).action(printBalance)
}

/** Manages prepaid credit over HTTP. */
export function register(group: Command): void {
  withPages(group.command('list').description('list the credit ledger, newest first'))
    .addHelpText('after', examples('tollgate credits list --limit 20'))
    .action((options: PageOptions) =>
      printList(options, PATH, {}, FIELDS, {
        noun: 'entries',
        empty: 'The ledger has no entries.',
        dispensable: ['entry', 'by'],
      }),
    )

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
    PATH,
    { body, idempotencyKey: onceKey(options) },
  )
  if (options.json) return await printData([`${text}\n`])
  const done = value.amount_usd.startsWith('-') ? 'Removed' : 'Added'
  const before = headers.get('idempotent-replayed') === 'true' ? ' before, and not again:' : ''
  const sum = shownUsd(value.amount_usd.replace('-', ''))
  const balance = shownUsd(value.balance_after_usd)
  await print(`${done}${before} ${sum} as ${shownText(value.id)}. The balance is ${balance}.\n`)
}

const FIELDS: readonly Field<Exact<Credit>>[] = [
  { title: 'at (UTC)', of: ({ created_at }) => shownInstant(created_at) },
  { title: 'entry', of: ({ id }) => shownText(id) },
  { title: 'kind', of: ({ kind }) => shownText(kind) },
  { title: 'amount (USD)', of: ({ amount_usd }) => amount_usd, kind: 'amount' },
  { title: 'balance after', of: ({ balance_after_usd }) => balance_after_usd, kind: 'amount' },
  { title: 'by', of: ({ actor }) => shownText(actor.name ?? actor.kind, 30) },
  { title: 'reason', of: ({ reason }) => shownText(reason, 60) },
]

async function printBalance(options: ShownOptions): Promise<void> {
  const client = connect(options, process.env)
  const { value, text } = await client.get<Exact<BalanceObject>>('balance', '/gateway/v1/balance')
  if (options.json) return await printData([`${text}\n`])
  await print(
    renderLines([
      ['balance', `${value.balance_usd} USD`],
      ['reserved', `${value.held_usd} USD by calls in flight`],
      ['credited', `${value.credited_usd} USD in all`],
      ['charged', `${value.charged_usd} USD in all`],
      ['enforced', value.enforced ? 'yes: calls are refused when the credit is used up' : 'no'],
    ]),
  )
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
        const answer = await client.ask<CreditBack>('credit', 'POST', PATH, { body })
        entries.push(answer.value)
        outcomes.push(answer.value as Outcomes)
        if (options.json) await printUnread(`${answer.text}\n`)
      } catch (error) {
        // Nothing is left to credit, for example after an interrupted command.
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
  ['nothing_to_credit', 'Never charged, so there is nothing to credit back'],
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
  const balance = last === undefined ? '' : ` The balance is ${shownUsd(last.balance_after_usd)}.`
  const counts = [
    ['Credited before', sumOf('already_credited')] as const,
    ...REASONS.map(([why, label]) => [label, others.filter(({ reason }) => reason === why).length] as const),
  ]
  return [
    `Credited ${shownUsd(formatUsd(nanos))} for ${counted(sumOf('credited'), 'call')}.${balance}\n`,
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

/** Checks all ids before sending any: a wrong list must not move money. */
function checkedIds(ids: readonly string[]): readonly string[] {
  if (ids.length === 0)
    throw new UsageError('Name calls by their request id, or - to read ids from standard input.')
  if (ids.length > IDS_MAX)
    throw new UsageError(`There are more than ${shownCount(IDS_MAX)} request ids. Send fewer at once.`)
  const known = new Set<string>()
  for (const id of ids) {
    if (!REQUEST_ID.test(id))
      throw new UsageError(`${shownText(id)} is not a request id: \`req_\` and a ULID.`)
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
