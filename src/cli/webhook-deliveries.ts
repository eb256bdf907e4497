import { type Infer, nullable, object, string } from './answer-schema.ts'
import { defineApiCommand, PAGE_OPTIONS, pageOf, printAnswer, printPage } from './api.ts'
import { flag, option, UsageError } from './command.ts'
import { left, renderTable, right, shownInstant, shownText, type TerminalStyle } from './terminal.ts'

export const PATH = '/gateway/v1/webhooks'

const WEBHOOK_ID = /^wh_[0-9A-HJKMNP-TV-Z]{26}$/
const DELIVERY_ID = /^whd_[0-9A-HJKMNP-TV-Z]{26}$/

/** The only argument of a command that is about one webhook. */
export function onlyId(args: readonly string[]): string {
  const [id, ...more] = args
  if (id === undefined || more.length > 0)
    throw new UsageError('name one webhook by its <id>; `tollgate webhooks list` shows them')
  if (!WEBHOOK_ID.test(id))
    throw new UsageError(`<id>: ${shownText(id)} is none; it is wh_ and 26 characters`)
  return id
}

const deliveryAnswer = object({
  id: string,
  event_type: string,
  status: string,
  attempts: string,
  response_status: nullable(string),
  error: nullable(string),
  last_attempt_at: nullable(string),
  next_attempt_at: nullable(string),
  created_at: string,
})

type DeliveryAnswer = Infer<typeof deliveryAnswer>

export const test = defineApiCommand({
  name: 'webhooks test',
  summary: ['<id>', 'send the event webhook.test there'],
  usage: 'tollgate webhooks test <id> [--json]',
  about:
    'Sends the event webhook.test to this webhook alone. tollgate webhooks deliveries <id> shows what came of it.',
  options: { json: flag("print the API's answer instead") },
  examples: ['tollgate webhooks test wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  takesArguments: true,
  run(values, args) {
    const id = onlyId(args)
    return async (api) => {
      const answer = await api.ask(deliveryAnswer, 'POST', `${PATH}/${id}/test`)
      await printAnswer(values, answer, (delivery) => queuedLine(delivery, id))
    }
  },
})

/** A running gateway sends the delivery; until a gateway runs, the delivery waits. */
function queuedLine(delivery: DeliveryAnswer, id: string): string {
  return `Queued ${shownText(delivery.id)}. \`tollgate webhooks deliveries ${id}\` shows what came of it.\n`
}

export const deliveries = defineApiCommand({
  name: 'webhooks deliveries',
  summary: ['<id>', 'what was sent there in the last 30 days, and what came of it'],
  usage:
    'tollgate webhooks deliveries <id> [--status pending|succeeded|failed] [--limit <n>] [--after <id>] [--json] ' +
    '[--no-color]',
  about: 'Lists the deliveries of a webhook, newest first. They are kept for 30 days.',
  options: {
    status: option('<status>', 'only deliveries in this state'),
    ...PAGE_OPTIONS,
  },
  examples: ['tollgate webhooks deliveries wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --status failed'],
  takesArguments: true,
  run(values, args) {
    const id = onlyId(args)
    const { status, limit, after } = values
    return async (api) => {
      const query = { status, limit, after }
      const answer = await api.ask(pageOf(deliveryAnswer), 'GET', `${PATH}/${id}/deliveries`, { query })
      const empty = `There is no such delivery. \`tollgate webhooks test ${id}\` makes one.`
      await printPage(values, answer, deliveryTable, empty)
    }
  },
})

const STATUS_STYLES = { succeeded: 'green', failed: 'red', pending: 'yellow' } as const

function deliveryTable(rows: readonly DeliveryAnswer[], style: TerminalStyle): string {
  const columns = [
    left('id'),
    left('event'),
    left('status'),
    right('attempts'),
    right('answer'),
    left('last attempt (UTC)'),
    left('next attempt (UTC)'),
    left('error'),
  ]
  const cells = rows.map((delivery) => [
    shownText(delivery.id),
    shownText(delivery.event_type),
    {
      text: shownText(delivery.status),
      style: STATUS_STYLES[delivery.status as keyof typeof STATUS_STYLES] ?? 'dim',
    },
    shownText(delivery.attempts),
    shownText(delivery.response_status ?? '-'),
    shownInstant(delivery.last_attempt_at),
    shownInstant(delivery.next_attempt_at),
    shownText(delivery.error ?? '-', 200),
  ])
  return renderTable(columns, cells, style)
}

export const redeliver = defineApiCommand({
  name: 'webhooks redeliver',
  summary: ['<id> <delivery-id>', 'send the event of a delivery again, now'],
  usage: 'tollgate webhooks redeliver <id> <delivery-id> [--json]',
  about:
    'Sends the event of a delivery again: one that is pending is tried at once, of any other a new delivery is made.',
  options: { json: flag("print the API's answer instead") },
  examples: ['tollgate webhooks redeliver wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X whd_01JCN2A7X0P5M8S6R4V1B9C2DE'],
  takesArguments: true,
  run(values, [webhook, delivery = '', ...more]) {
    const id = onlyId(webhook === undefined ? [] : [webhook, ...more])
    if (!DELIVERY_ID.test(delivery))
      throw new UsageError('name the <delivery-id>; `tollgate webhooks deliveries <id>` shows them')
    return async (api) => {
      const path = `${PATH}/${id}/deliveries/${delivery}/redeliver`
      const answer = await api.ask(deliveryAnswer, 'POST', path)
      await printAnswer(values, answer, (queued) => queuedLine(queued, id))
    }
  },
})
