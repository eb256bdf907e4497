import { z } from 'zod'
import * as f from './fields.ts'

/** 20 consonants, so that a code spells no word and has no letter that looks like a digit. */
export const USER_CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

const CODE = 'user_code must be the code that the device shows, such as BDWP-HQPK.'

export const deviceDecisionFields = z.strictObject({
  user_code: z
    .string(CODE)
    .max(32, CODE)
    .transform((given) => given.toUpperCase().replace(/[\s-]/g, ''))
    .describe('The code that the device shows. Case, blanks and hyphens do not matter.'),
  approve: z
    .boolean('approve must be true or false.')
    .describe('True: the device may act as you. False: it may not.'),
})

export const deviceApprovalSchema = z
  .object({
    object: z.literal('device_approval'),
    status: z.enum(['approved', 'denied']),
    client: f.string('What the device calls itself.'),
  })
  .meta({ id: 'device_approval', description: 'The decision about a device that wants to sign in.' })
