import { z } from 'zod'
import { EVENT_TYPES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

export const eventListQuery = z
  .strictObject({
    type: f.choiceParameter('type', EVENT_TYPES, 'Only events of this type.'),
    actor: z
      .string()
      .min(1, 'actor must be the id of a key.')
      .max(200, 'actor must be the id of a key.')
      .optional()
      .describe('Only events whose actor has this id.'),
    start: f.timeParameter(
      'start',
      'Only events at this time or later. A date means the start of this UTC day.',
    ),
    end: f.timeParameter('end', 'Only events before this time. A date includes the whole day.'),
    limit: f.optionalLimit(1_000, 'Maximum rows: 100 by default; without it a CSV is complete.'),
    after: f.afterParameter('event'),
    format: f.choiceParameter('format', ['json', 'csv'], 'The format of the answer.'),
  })
  .refine(...f.ORDERED)

export const eventSchema = z
  .object({
    id: f.idOf('event'),
    object: z.literal('event'),
    type: z.enum(EVENT_TYPES),
    created_at: f.instant(),
    account_id: z.string(),
    actor: f.actorSchema,
    data: z
      .record(z.string(), z.unknown())
      .describe(
        'Depends on the type; docs/WEBHOOKS.md lists it. `changes` has the old and new values of a PATCH.',
      ),
  })
  .meta({ id: 'event', description: 'A change, or a budget or balance that crossed a threshold.' })
export type EventObject = z.infer<typeof eventSchema>
