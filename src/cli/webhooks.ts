import type { Command } from 'commander'
import { DELIVERY_STATUSES, WEBHOOK_FORMATS } from '../kernel/vocabulary.ts'
import { type FieldOption, type Listing, registerAll, yesOrNo } from './api-command.ts'
import type { ApiAnswer, ObjectOf } from './client.ts'
import { print, shownText } from './terminal.ts'

const PATH = '/gateway/v1/webhooks'

const WEBHOOKS: Listing = {
  noun: 'webhooks',
  columns: {
    id: 'id',
    enabled: 'enabled',
    disabled: 'disabled_reason',
    events: 'events',
    'last status': 'last_status',
    'last delivery': 'last_delivery_at',
    url: 'url',
  },
  dispensable: ['last delivery', 'events'],
}

const DELIVERIES: Listing = {
  noun: 'deliveries',
  columns: {
    id: 'id',
    status: 'status',
    event: 'event_type',
    attempts: 'attempts',
    answer: 'response_status',
    'last attempt': 'last_attempt_at',
    'next attempt': 'next_attempt_at',
    error: 'error',
  },
  dispensable: ['next attempt', 'last attempt'],
}

const FIELDS: readonly FieldOption[] = [
  ['--event <type>', 'events', 'an event to send; repeat for more, or `*` for all', { isList: true }],
  ['--format <format>', 'format', WEBHOOK_FORMATS.join(' or ')],
  ['--description <text>', 'description', 'for people'],
]

const CREATE = {
  options: FIELDS,
  defaults: { events: ['*'] },
  once: true,
  examples: [
    'tollgate webhooks create https://example.com/hooks/tollgate --event key.budget.exceeded',
    'tollgate webhooks create https://hooks.slack.com/services/… --format slack',
  ],
  show: printSecret,
} as const

const EDITED: readonly FieldOption[] = [
  ['--to <url>', 'url', 'another URL'],
  ...FIELDS,
  ['--enabled <yes|no>', 'enabled', '`no`: queue no events', { read: yesOrNo('--enabled') }],
]

const STATUS: FieldOption = ['--status <status>', 'status', `only ${DELIVERY_STATUSES.join(', ')} deliveries`]

export function register(group: Command): void {
  registerAll(group, 'webhook', [
    ['list', 'list webhooks, newest first', 'GET', PATH, { listing: WEBHOOKS }],
    ['create <url>', 'create a webhook and print its signing secret once', 'POST', PATH, CREATE],
    ['show <id>', 'show a webhook', 'GET', `${PATH}/<id>`],
    ['update <id>', 'change a webhook', 'PATCH', `${PATH}/<id>`, { options: EDITED }],
    ['delete <id>', 'delete a webhook and its deliveries', 'DELETE', `${PATH}/<id>`],
    [
      'rotate-secret <id>',
      'replace the signing secret',
      'POST',
      `${PATH}/<id>/rotate-secret`,
      { show: printSecret },
    ],
  ])
  registerAll(group, 'webhook_delivery', [
    ['test <id>', 'send a test event', 'POST', `${PATH}/<id>/test`],
    [
      'deliveries <id>',
      'list what was sent, newest first, with the answers',
      'GET',
      `${PATH}/<id>/deliveries`,
      { listing: DELIVERIES, options: [STATUS] },
    ],
    [
      'redeliver <id> <delivery>',
      'send a delivery again',
      'POST',
      `${PATH}/<id>/deliveries/<delivery>/redeliver`,
    ],
  ])
}

/** Prints only the secret to standard output. */
async function printSecret({ value }: ApiAnswer<ObjectOf<'webhook'>>): Promise<void> {
  const { id, url, secret } = value
  process.stderr.write(
    `${id} (${shownText(url)}). ${secret === undefined ? 'An earlier run of this command created it' : 'The signing secret is shown only once:'}\n`,
  )
  if (secret !== undefined) await print(`${secret}\n`)
}
