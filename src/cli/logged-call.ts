import { z } from 'zod'
import type { ManagementClient } from './management-client.ts'
import { expectDone, type OptionNames, parseExact } from './read-answer.ts'
import { Failure } from './run-command.ts'

/** A call of the log as the API answers it. Numbers are texts. */
const callAnswer = z.object({
  id: z.string(),
  key_id: z.string(),
  state: z.string(),
  path: z.string(),
  code: z.string().nullable(),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  model: z.string().nullable(),
  model_served: z.string().nullable(),
  status: z.string().nullable(),
  usage: z
    .object({ input_tokens: z.string(), output_tokens: z.string(), cache_read_tokens: z.string() })
    .nullable(),
  cost_usd: z.string().nullable(),
  streamed: z.boolean(),
  estimated: z.boolean(),
  unpriced: z.boolean(),
  overrun: z.boolean(),
  priced_as_requested: z.boolean(),
  credited: z.boolean(),
})

export interface LoggedCall extends Readonly<z.infer<typeof callAnswer>> {
  /** The answer as it came. */
  readonly json: string
}

export type LogQuery = Readonly<Record<string, string | undefined>>

/** The calls that match, newest first, one at a time however many there are. */
export async function* readCalls(
  client: ManagementClient,
  path: string,
  query: LogQuery,
  options: OptionNames,
  signal?: AbortSignal,
): AsyncGenerator<LoggedCall> {
  const { status, chunks } = await client.stream(path, { ...query, format: 'ndjson' }, signal)
  if (status !== 200) expectDone(client, { status, text: await textOf(chunks) }, options)
  for await (const json of linesOf(chunks)) {
    const parsed = callAnswer.safeParse(parseExact(json))
    if (!parsed.success)
      throw new Failure(`${client.place} lists calls, but not as a Tollgate of this version does.`)
    yield { ...parsed.data, json }
  }
}

const REFUSAL_CHARS_MAX = 1024 * 1024

export async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > REFUSAL_CHARS_MAX) break
  }
  return text
}

/** A record has a few texts of a thousand characters. */
const LINE_CHARS_MAX = 1024 * 1024

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > LINE_CHARS_MAX) throw new Failure('A line of the answer has no end.')
  }
  if (rest !== '') yield rest
}
