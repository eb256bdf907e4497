/** A question to the management API. */
export interface Asked {
  /** What is undefined is not sent. */
  readonly query?: Readonly<Record<string, string | undefined>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** The same command under the same name is done once. */
  readonly idempotencyKey?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface AnswerStream {
  readonly status: number
  readonly chunks: AsyncIterable<Uint8Array>
}

/**
 * The management API as the commands see it, over HTTP or in this process on the data directory. It is the same API:
 * each rule and each message is the gateway's own.
 */
export interface ManagementClient {
  /** What is asked, for messages. */
  readonly place: string
  ask(method: 'GET' | 'POST' | 'PATCH', path: string, asked?: Asked): Promise<Answer>
  /** For what may be too large to be held. Whoever stops reading ends it. */
  stream(path: string, query: NonNullable<Asked['query']>, signal?: AbortSignal): Promise<AnswerStream>
  close(): Promise<void>
}

/** With its `?`, or empty. */
export function queryText(query: Asked['query'] = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
