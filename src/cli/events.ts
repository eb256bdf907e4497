import type { Command } from 'commander'
import { type FieldOption, type Listing, PERIOD, registerAll } from './api-command.ts'

const EVENTS: Listing = {
  noun: 'events',
  columns: {
    at: 'created_at',
    event: 'type',
    about:
      'data.key.name|data.account.name|data.person.email|data.webhook.url|data.admin_key.name|data.model',
    by: 'actor.name|actor.kind',
    id: 'id',
  },
  dispensable: ['id'],
}

const FILTERS: readonly FieldOption[] = [
  ['--type <type>', 'type', 'only events of this type, such as key.revoked'],
  ['--actor <id>', 'actor', 'only what this key or person did'],
  ...PERIOD,
]

export function register(command: Command): void {
  registerAll(command, 'event', [
    [
      '',
      '',
      'GET',
      '/gateway/v1/events',
      {
        listing: EVENTS,
        options: FILTERS,
        formats: ['csv'],
        examples: [
          'tollgate events --type key.revoked --start 2026-11-01',
          'tollgate events --format csv > events.csv',
        ],
      },
    ],
  ])
}
