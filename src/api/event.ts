import { z } from 'zod'
import { EVENT_TYPES } from '../kernel/vocabulary.ts'
import {
  actorSchema,
  afterParameter,
  idOf,
  instant,
  optionalLimit,
  timeParameter,
  wordParameter,
} from './fields.ts'

export const eventListQuery = z
  .strictObject({
    type: wordParameter('type', EVENT_TYPES, 'Only events of this type.'),
    actor: z
      .string()
      .min(1, 'actor must be the id of a key.')
      .max(200, 'actor must be the id of a key.')
      .optional()
      .describe('Only events whose actor has this id.'),
    start: timeParameter('start', 'Events at or after this time; a date is a UTC day.'),
    end: timeParameter('end', 'Events before this time; a date includes the whole day.'),
    limit: optionalLimit(1_000, 'Maximum rows: 100 by default; without it a CSV is complete.'),
    after: afterParameter('event'),
    format: wordParameter('format', ['json', 'csv'], 'The format of the answer.'),
  })
  .refine(
    ({ start, end }) =>
      start === undefined || end === undefined || start.fromMs < end.fromMs + (end.lengthMs || 1),
    {
      error: 'start must not be after end.',
      path: ['start'],
    },
  )
export type EventListQuery = z.infer<typeof eventListQuery>

export const eventSchema = z
  .object({
    id: idOf('event'),
    object: z.literal('event'),
    type: z.enum(EVENT_TYPES),
    created_at: instant(),
    account_id: z.string(),
    actor: actorSchema,
    data: z
      .record(z.string(), z.unknown())
      .describe(
        'Depends on the type; docs/WEBHOOKS.md lists it. `changes` has the old and new values of a PATCH.',
      ),
  })
  .meta({ id: 'event', description: 'A change, or a budget or balance that crossed a threshold.' })
export type EventObject = z.infer<typeof eventSchema>
