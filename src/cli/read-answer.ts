import { z } from 'zod'
import type { Answer, ManagementClient } from './management-client.ts'
import { Failure, UsageError } from './run-command.ts'

/** How each parameter of the API is called on the command line. */
export type OptionNames = Readonly<Record<string, string>>

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** JSON whose numbers stay the texts that they are, because a double cannot hold every nanodollar. */
export function parseExact(text: string): unknown {
  const revive: Reviver = (_, value, { source }) =>
    typeof value === 'number' ? (source ?? String(value)) : value
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}

const errorSchema = z.object({
  error: z.object({ message: z.string(), code: z.string().nullable(), param: z.string().nullable() }),
})

/** Throws if the API refused. What is wrong with a parameter is wrong with the option that it came from. */
export function expectDone(
  { place }: ManagementClient,
  answer: Omit<Answer, 'headers'>,
  options: OptionNames,
): void {
  if (answer.status >= 200 && answer.status < 300) return
  const parsed = errorSchema.safeParse(jsonOrNull(answer.text))
  if (!parsed.success) throw strange(place, answer.status)
  const { message, code, param } = parsed.data.error
  const option = param === null ? undefined : options[param.split('.')[0] ?? '']
  if (answer.status === 400 && option !== undefined) throw new UsageError(`${option}: ${message}`)
  if (code === 'invalid_api_key' || code === 'admin_key_required') {
    throw new Failure(`${place} refused the key: ${message} Check --admin-key-file or TOLLGATE_ADMIN_KEY.`)
  }
  throw new Failure(message)
}

/** What the answer says, in the members that are needed here. Numbers are texts. */
export function readAnswer<T>(
  client: ManagementClient,
  answer: Answer,
  schema: z.ZodType<T>,
  options: OptionNames = {},
): T {
  expectDone(client, answer, options)
  const parsed = schema.safeParse(jsonOrNull(answer.text))
  if (!parsed.success) throw strange(client.place, answer.status)
  return parsed.data
}

function strange(place: string, status: number): Failure {
  return new Failure(
    `${place} answers ${status}, but not as a Tollgate of this version does. Is --url right?`,
  )
}

function jsonOrNull(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return null
  }
}
