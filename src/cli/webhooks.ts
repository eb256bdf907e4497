import { array, boolean, type Infer, nullable, object, optional, string } from './answer-schema.ts'
import {
  defineApiCommand,
  idempotencyKey,
  onceKey,
  PAGE_OPTIONS,
  pageOf,
  printAnswer,
  printPage,
  printSecret,
  SHOW_OPTIONS,
  someFields,
} from './api.ts'
import { defineGroup, flag, option, UsageError, type Values } from './command.ts'
import {
  type Cell,
  left,
  outputStyle,
  print,
  renderTable,
  right,
  shownInstant,
  shownText,
  type TerminalStyle,
} from './terminal.ts'
import { deliveries, onlyId, PATH, redeliver, test } from './webhook-deliveries.ts'

/** A webhook as the API answers it. Numbers are texts. */
const webhookAnswer = object({
  id: string,
  url: string,
  events: array(string),
  description: string,
  format: string,
  enabled: boolean,
  disabled_reason: nullable(string),
  created_at: string,
  last_delivery_at: nullable(string),
  last_status: nullable(string),
  /** The secret of a webhook that was just made, or whose secret was just replaced. */
  secret: optional(string),
})

type WebhookAnswer = Infer<typeof webhookAnswer>

const EVENTS_HELP = `Events
  key.budget.threshold   a key has spent 50, 80 or 90 % of its monthly cap (webhooks.thresholds_percent)
  key.budget.exceeded    a key has reached its cap, and its calls are refused
  balance.low            the prepaid credit is below webhooks.balance_low_usd
  balance.exhausted      the prepaid credit is used up
  key.created key.updated key.rotated key.revoked key.expired
  key.expiring           seven days and one day before a key expires
  call.unpriced          a call of a model without a price; once a day for each model
  webhook.disabled       another webhook was disabled, because its receiver is gone or fails
`

const FIELD_OPTIONS = {
  event: {
    ...option('<event>', 'an event to send there; may be given several times; all unless given', 'events'),
    multiple: true,
  },
  description: option('<text>', 'for people'),
  format: option('<format>', 'standard, or slack for a sentence that Slack and others show'),
} as const

/** The fields of the API, only for options that were given. The API checks the values. */
function webhookFields({
  event,
  description,
  format,
}: Values<typeof FIELD_OPTIONS>): Record<string, unknown> {
  return {
    ...(event === undefined ? {} : { events: event }),
    ...(description === undefined ? {} : { description }),
    ...(format === undefined ? {} : { format }),
  }
}

const create = defineApiCommand({
  name: 'webhooks create',
  summary: ['<endpoint>', 'send events there; prints the secret, once'],
  usage:
    'tollgate webhooks create <endpoint> [--event <event> …] [--format standard|slack] [--description <text>] ' +
    '[--idempotency-key <text>] [--json]',
  about: `Sends events to an address from now on. The secret that messages are signed with is printed to standard output, once,
and everything else to standard error. A Slack channel needs --format slack, and checks no signature: there the secret is not
needed.`,
  options: {
    ...FIELD_OPTIONS,
    'idempotency-key': idempotencyKey('repeating the command with the same text creates no second webhook'),
    json: flag("print the API's answer instead, with the secret in it"),
  },
  params: { url: '<endpoint>' },
  examples: [
    'SECRET=$(tollgate webhooks create https://example.com/hooks/tollgate)',
    'tollgate webhooks create https://hooks.slack.com/services/… --format slack --event key.budget.threshold',
  ],
  sections: [EVENTS_HELP],
  takesArguments: true,
  run(values, [endpoint, ...more]) {
    if (endpoint === undefined || more.length > 0)
      throw new UsageError('name one <endpoint>, such as https://example.com/hooks/tollgate')
    const body = { url: endpoint, events: ['*'], ...webhookFields(values) }
    return async (api) => {
      const answer = await api.ask(webhookAnswer, 'POST', PATH, { body, idempotencyKey: onceKey(values) })
      await printSecret(values, answer, ({ id, secret }) => ({
        secret,
        said: `Created ${id}. \`tollgate webhooks test ${id}\` tries it. The secret is shown this once`,
        saidBefore:
          `, and made ${id}. Its secret was shown then and is not shown again. ` +
          `\`tollgate webhooks rotate-secret ${id}\` makes another.`,
      }))
    }
  },
})

const list = defineApiCommand({
  name: 'webhooks list',
  summary: ['', 'list the webhooks, newest first, with how the last delivery went'],
  usage: 'tollgate webhooks list [--limit <n>] [--after <id>] [--json] [--no-color]',
  about: 'Lists the webhooks, newest first, with the last delivery of each and the status of its answer.',
  options: PAGE_OPTIONS,
  examples: ['tollgate webhooks list'],
  run(values) {
    const { limit, after } = values
    return async (api) => {
      const answer = await api.ask(pageOf(webhookAnswer), 'GET', PATH, { query: { limit, after } })
      const empty = 'There is no webhook. `tollgate webhooks create <endpoint>` makes one.'
      await printPage(values, answer, webhookTable, empty)
    }
  },
})

function stateCell({ enabled, disabled_reason }: WebhookAnswer): Exclude<Cell, string> {
  if (enabled) return { text: 'enabled', style: 'green' }
  return {
    text: `disabled${disabled_reason === null ? '' : `, ${shownText(disabled_reason, 20)}`}`,
    style: 'red',
  }
}

function webhookTable(webhooks: readonly WebhookAnswer[], style: TerminalStyle): string {
  const columns = [
    left('id'),
    left('state'),
    left('format'),
    left('last delivery (UTC)'),
    right('status'),
    left('url'),
  ]
  const rows = webhooks.map((webhook) => [
    shownText(webhook.id),
    stateCell(webhook),
    shownText(webhook.format),
    shownInstant(webhook.last_delivery_at),
    shownText(webhook.last_status ?? '-'),
    shownText(webhook.url, 60),
  ])
  return renderTable(columns, rows, style)
}

/** All that there is to say of a webhook, for people. */
function renderWebhook(webhook: WebhookAnswer, style: TerminalStyle): string {
  const state = stateCell(webhook)
  const last =
    webhook.last_delivery_at === null
      ? 'none yet'
      : `${shownInstant(webhook.last_delivery_at)} UTC, ${webhook.last_status === null ? 'no answer' : `status ${shownText(webhook.last_status)}`}`
  const lines: readonly (readonly [string, string])[] = [
    ['url', shownText(webhook.url, 2_048)],
    ['state', style.paint(state.style, state.text)],
    ['events', webhook.events.map((event) => shownText(event)).join(', ')],
    ['format', shownText(webhook.format)],
    ['description', shownText(webhook.description, 500)],
    ['created', `${shownInstant(webhook.created_at)} UTC`],
    ['last delivery', last],
  ]
  return [
    style.paint('bold', shownText(webhook.id)),
    ...lines
      .filter(([, value]) => value !== '')
      .map(([name, value]) => `  ${style.paint('dim', name.padEnd(13))} ${value}`),
    '',
  ].join('\n')
}

const show = defineApiCommand({
  name: 'webhooks show',
  summary: ['<id>', 'all there is to know of one'],
  usage: 'tollgate webhooks show <id> [--json] [--no-color]',
  about: 'Shows a webhook. Its secret is never shown again.',
  options: SHOW_OPTIONS,
  examples: ['tollgate webhooks show wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  takesArguments: true,
  run(values, args) {
    const id = onlyId(args)
    return async (api) => {
      const answer = await api.ask(webhookAnswer, 'GET', `${PATH}/${id}`)
      await printAnswer(values, answer, (webhook) => renderWebhook(webhook, outputStyle(values)))
    }
  },
})

const update = defineApiCommand({
  name: 'webhooks update',
  summary: ['<id>', 'change where it goes and what is sent, enable or disable it'],
  usage:
    'tollgate webhooks update <id> [--endpoint <url>] [--event <event> …] [--format standard|slack] ' +
    '[--description <text>] [--enable | --disable] [--json] [--no-color]',
  about: `Changes what is named and leaves the rest. A list of events takes the place of the one before. --enable also brings
back one that was disabled because its receiver was gone or failed for five days.`,
  options: {
    endpoint: option('<url>', 'where events are sent', 'url'),
    ...FIELD_OPTIONS,
    event: { ...FIELD_OPTIONS.event, help: 'an event to send there; may be given several times; * for all' },
    enable: flag('send events there from now on'),
    disable: flag('queue nothing for it until it is enabled'),
    ...SHOW_OPTIONS,
  },
  examples: [
    'tollgate webhooks update wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --enable',
    'tollgate webhooks update wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --event key.budget.exceeded --event balance.low',
  ],
  sections: [EVENTS_HELP],
  takesArguments: true,
  run(values, args) {
    const id = onlyId(args)
    const { endpoint, enable, disable } = values
    if (enable && disable) throw new UsageError('--enable and --disable cannot be used together')
    const fields = {
      ...(endpoint === undefined ? {} : { url: endpoint }),
      ...webhookFields(values),
      ...(enable || disable ? { enabled: enable } : {}),
    }
    const body = someFields(fields, '--enable')
    return async (api) => {
      const answer = await api.ask(webhookAnswer, 'PATCH', `${PATH}/${id}`, { body })
      await printAnswer(values, answer, (webhook) => renderWebhook(webhook, outputStyle(values)))
    }
  },
})

const remove = defineApiCommand({
  name: 'webhooks delete',
  summary: ['<id>', 'send nothing there any more, and forget its deliveries'],
  usage: 'tollgate webhooks delete <id>',
  about:
    'Deletes a webhook: what waits for it is not delivered. To pause one, there is tollgate webhooks update <id> --disable.',
  options: {},
  examples: ['tollgate webhooks delete wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  takesArguments: true,
  run(_values, args) {
    const id = onlyId(args)
    return async (api) => {
      await api.askText('DELETE', `${PATH}/${id}`)
      await print(`Deleted ${id}.\n`)
    }
  },
})

const rotateSecret = defineApiCommand({
  name: 'webhooks rotate-secret',
  summary: ['<id>', 'a new secret; the old one signs too for 24 hours'],
  usage: 'tollgate webhooks rotate-secret <id> [--idempotency-key <text>] [--json]',
  about: `Gives a webhook a new secret and prints it to standard output, once. For 24 hours messages are signed with the old one too, so
that the receiver can change over in peace. It can be done twice in that time.`,
  options: {
    'idempotency-key': idempotencyKey('repeating the command with the same text changes nothing more'),
    json: flag("print the API's answer instead, with the secret in it"),
  },
  examples: ['SECRET=$(tollgate webhooks rotate-secret wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X)'],
  takesArguments: true,
  run(values, args) {
    const id = onlyId(args)
    return async (api) => {
      const path = `${PATH}/${id}/rotate-secret`
      const answer = await api.ask(webhookAnswer, 'POST', path, { idempotencyKey: onceKey(values) })
      await printSecret(values, answer, ({ secret }) => ({
        secret,
        said: `The new secret of ${id} is shown this once; the old one signs too for 24 hours`,
        saidBefore:
          '. The secret was shown then and is not shown again; another --idempotency-key makes another.',
      }))
    }
  },
})

/** Manages webhooks, over HTTP or on the data directory. */
export const command = defineGroup(
  'webhooks',
  `Messages are signed; docs/WEBHOOKS.md shows how a receiver checks them.
Each has options of its own: tollgate webhooks create --help, and so on.`,
  [create, list, show, update, remove, rotateSecret, test, deliveries, redeliver],
)
