import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

/**
 * A provider that answers calls with the usage that the header `x-serve` names, and reports what it served. Its
 * arithmetic is its own: prices in nanodollars per thousand tokens, sums in nanodollars.
 */

/** `input` counts neither cached tokens nor cache writes. */
export interface Serve {
  readonly model: string
  readonly input?: number
  readonly output?: number
  readonly cached?: number
  /** Cache writes of 5 minutes (Messages) or 30 minutes (Chat). */
  readonly written?: number
  readonly writtenHour?: number
  readonly searches?: number
  /** A service tier or speed: `fast`, `flex`, `priority`. */
  readonly tier?: string
  readonly seconds?: number
  readonly images?: number
}

type Prices = Readonly<Record<'input' | 'output' | 'cached' | 'written' | 'writtenHour', number>>

const prices = (input: number, output: number, cached = 0, written = 0, writtenHour = 0): Prices => ({
  input,
  output,
  cached,
  written,
  writtenHour,
})

/** In nanodollars per thousand tokens. `/tier` follows the model. */
const PRICES: Readonly<Record<string, Prices>> = {
  'claude-opus-5-5': prices(4_000_000, 20_000_000, 200_000, 5_000_000, 8_000_000),
  'claude-opus-5-5/fast': prices(8_000_000, 40_000_000, 400_000, 10_000_000, 16_000_000),
  'claude-opus-5-5/batch': prices(2_000_000, 10_000_000, 100_000, 2_500_000, 4_000_000),
  'claude-haiku-5-5': prices(100_000, 500_000, 10_000, 125_000, 200_000),
  'claude-haiku-5-5/long': prices(500_000, 2_500_000, 50_000, 625_000, 1_000_000),
  'gpt-6.1-sol': prices(2_000_000, 10_000_000, 100_000, 2_500_000),
  'gpt-6.1-sol/long': prices(4_000_000, 15_000_000, 200_000, 5_000_000),
  'gpt-6.1-sol/flex': prices(1_000_000, 5_000_000, 50_000, 1_250_000),
  'gpt-6.1-sol/priority': prices(4_000_000, 20_000_000, 200_000, 5_000_000),
  'text-embedding-3-small': prices(20_000, 0),
  'gpt-image-2': prices(5_000_000, 0),
}

const LONG_ABOVE: Readonly<Record<string, number>> = { 'claude-haiku-5-5': 100_000, 'gpt-6.1-sol': 272_000 }
const SEARCH_NANOS = 10_000_000n
const IMAGE_NANOS_PER_THOUSAND = 30_000_000
const SECOND_NANOS = 100_000n

interface Booked extends Serve {
  readonly day: string
  readonly keyId: string
  readonly tokenNanos: bigint
  readonly searchNanos: bigint
}

const DAY_MS = 86_400_000

export class Provider {
  readonly booked: Booked[] = []
  /** What goes wrong in reports; a test sets it. */
  faults: {
    /** Rows of a page. */
    readonly pageRows?: number
    readonly countsCachedTwice?: boolean
    readonly expiresOnce?: boolean
    readonly limitsOnce?: boolean
    readonly repeatsCursor?: boolean
    /** Answers every report like this. */
    readonly answer?: { readonly status: number; readonly text: string; readonly retryAfter?: string }
    /** Amounts of this text. */
    readonly amount?: string
  } = {}
  /** The credentials and queries of reports that were read. */
  readonly asked: { readonly url: URL; readonly credential: string }[] = []
  readonly #nowMs: () => number
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #batches = new Map<string, readonly Serve[]>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Books a call as served. A call that did not pass a gateway has another key. */
  book(serve: Serve, keyId = 'key_gateway', atMs = this.#nowMs()): void {
    const { model, input = 0, output = 0, cached = 0, written = 0, writtenHour = 0, tier } = serve
    const isLong = input + cached + written + writtenHour > (LONG_ABOVE[model] ?? Number.POSITIVE_INFINITY)
    const table = PRICES[`${model}/${isLong ? 'long' : tier}`] ?? PRICES[model] ?? prices(0, 0)
    const perThousand =
      input * table.input +
      output * table.output +
      cached * table.cached +
      written * table.written +
      writtenHour * table.writtenHour +
      (serve.images ?? 0) * IMAGE_NANOS_PER_THOUSAND
    const tokenNanos = BigInt(perThousand) / 1_000n + BigInt(serve.seconds ?? 0) * SECOND_NANOS
    const searchNanos = BigInt(serve.searches ?? 0) * SEARCH_NANOS
    this.booked.push({ ...serve, day: dayAt(atMs), keyId, tokenNanos, searchNanos })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://provider')
    await readText(request)
    if (url.pathname.includes('/organization')) return this.#report(url, request, response)
    const send = (value: unknown) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(value))
    }
    if (url.pathname.endsWith('/models')) return send({ object: 'list', data: [], has_more: false })
    if (url.pathname.startsWith('/v1/messages/batches')) return this.#batch(url, request, response, send)
    const serve = JSON.parse(String(request.headers['x-serve'])) as Serve
    this.book(serve)
    send(replyTo(url.pathname, serve))
  }

  #batch(
    { pathname, host }: URL,
    request: IncomingMessage,
    response: ServerResponse,
    send: (value: unknown) => void,
  ): void {
    const id = pathname.split('/')[4] ?? `msgbatch_${this.#batches.size}`
    if (request.method === 'POST') {
      const served = JSON.parse(String(request.headers['x-serve'])) as Serve[]
      this.#batches.set(id, served)
      // The provider books a batch on the day on which it was processed, not on the day of the request.
      for (const serve of served)
        this.book({ ...serve, tier: 'batch' }, 'key_gateway', this.#nowMs() + DAY_MS)
    }
    const lines = this.#batches.get(id) ?? []
    if (!pathname.endsWith('/results')) {
      send({
        ...{ id, type: 'message_batch', processing_status: 'ended', results_url: `http://${host}/results` },
        request_counts: { processing: 0, succeeded: lines.length, errored: 0, canceled: 0, expired: 0 },
      })
      return
    }
    response.setHeader('content-type', 'application/x-jsonl')
    response.end(
      lines
        .map((serve, n) =>
          JSON.stringify({
            custom_id: String(n),
            result: { type: 'succeeded', message: replyTo('/v1/messages', { ...serve, tier: 'batch' }) },
          }),
        )
        .join('\n'),
    )
  }

  #report(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const credential = String(request.headers['x-api-key'] ?? request.headers.authorization)
    this.asked.push({ url, credential })
    const { answer } = this.faults
    if (answer !== undefined) {
      if (answer.retryAfter !== undefined) response.setHeader('retry-after', answer.retryAfter)
      response.statusCode = answer.status
      response.end(answer.text)
      return
    }
    if (this.faults.limitsOnce === true) {
      this.faults = { ...this.faults, limitsOnce: false }
      response.writeHead(429, { 'retry-after': '0' }).end()
      return
    }
    const page = Number(url.searchParams.get('page') ?? 0)
    if (page > 0 && this.faults.expiresOnce === true) {
      this.faults = { ...this.faults, expiresOnce: false }
      response.writeHead(410).end()
      return
    }
    const all = url.pathname.includes('/analytics/') ? this.#messagesRows(url) : this.#chatBuckets(url)
    const rows = this.faults.pageRows ?? all.length
    const has_more = (page + 1) * rows < all.length
    const next = this.faults.repeatsCursor === true ? 1 : page + 1
    const data = all.slice(page * rows, (page + 1) * rows)
    response.end(JSON.stringify({ data, has_more, next_page: has_more ? String(next) : null }))
  }

  #selected(url: URL, startDay: string, endDay: string, isMessages: boolean): readonly Booked[] {
    const keys = url.searchParams.getAll('api_key_ids[]')
    return this.booked.filter(
      ({ day, keyId, model }) =>
        day >= startDay &&
        day < endDay &&
        model.startsWith('claude-') === isMessages &&
        (keys.length === 0 || keys.includes(keyId)),
    )
  }

  #messagesRows(url: URL): readonly object[] {
    const day = (name: string) => String(url.searchParams.get(name)).slice(0, 10)
    const calls = this.#selected(url, day('starting_at'), day('ending_at'), true)
    const isCost = url.pathname.endsWith('/cost')
    const groups = Map.groupBy(calls, (call) => `${call.day} ${call.model}`)
    return [...groups.values()].flatMap((group): readonly object[] => {
      const [{ day: starting, model } = { day: '', model: '' }] = group
      const about = { starting_at: `${starting}T00:00:00Z` }
      const total = (name: 'input' | 'output' | 'cached' | 'written' | 'writtenHour' | 'searches') =>
        group.reduce((sum, call) => sum + (call[name] ?? 0), 0)
      if (!isCost) {
        const uncached = total('input') + (this.faults.countsCachedTwice === true ? total('cached') : 0)
        const cache_creation = {
          ephemeral_5m_input_tokens: total('written'),
          ephemeral_1h_input_tokens: total('writtenHour'),
        }
        const usage = {
          uncached_input_tokens: uncached,
          cache_read_input_tokens: total('cached'),
          output_tokens: total('output'),
          server_tool_use: { web_search_requests: total('searches') },
        }
        return [{ ...about, group: { model, api_key_id: null }, usage: { ...usage, cache_creation } }]
      }
      const cost = (nanos: bigint) => ({
        amount: '0',
        list_amount: this.faults.amount ?? decimal(nanos, 7),
        currency: 'USD',
      })
      const tokens = group.reduce((sum, call) => sum + call.tokenNanos, 0n)
      const searches = group.reduce((sum, call) => sum + call.searchNanos, 0n)
      const rows = [{ ...about, group: { model, cost_type: 'tokens' }, cost: cost(tokens) }]
      if (searches > 0n)
        rows.push({ ...about, group: { model, cost_type: 'web_search' }, cost: cost(searches) })
      return rows
    })
  }

  #chatBuckets(url: URL): readonly object[] {
    const seconds = (name: string) => dayAt(Number(url.searchParams.get(name)) * 1_000)
    const calls = this.#selected(url, seconds('start_time'), seconds('end_time'), false)
    const report = url.pathname.split('/').at(-1)
    const days = Map.groupBy(calls, ({ day }) => day)
    return [...days].map(([day, all]) => ({
      object: 'bucket',
      start_time: Date.parse(day) / 1_000,
      results: [...Map.groupBy(all, ({ model }) => model)].flatMap(([model, group]) =>
        report === 'costs' ? this.#costLines(model, group) : usageLines(report, model, group),
      ),
    }))
  }

  #costLines(model: string, group: readonly Booked[]): readonly object[] {
    const line = (line_item: string, nanos: bigint, n: number) => {
      const value = this.faults.amount ?? decimal(nanos, 9)
      // Some answers state the amount as text.
      return { amount: { value: n % 2 === 0 ? value : Number(value), currency: 'usd' }, line_item }
    }
    const sum = (nanos: (call: Booked) => bigint) => group.reduce((total, call) => total + nanos(call), 0n)
    const searches = sum(({ searchNanos }) => searchNanos)
    const lines = [
      line(
        `${model}, tokens`,
        sum(({ tokenNanos }) => tokenNanos),
        group.length,
      ),
    ]
    return searches === 0n ? lines : [...lines, line('web search tool calls', searches, 0)]
  }
}

function usageLines(report: string | undefined, model: string, group: readonly Booked[]): readonly object[] {
  const own = model.includes('embedding') ? 'embeddings' : model.startsWith('gpt-6') ? 'completions' : 'other'
  if (own !== report) return []
  const sum = (name: 'input' | 'output' | 'cached' | 'written') =>
    group.reduce((total, call) => total + (call[name] ?? 0), 0)
  return [
    {
      model,
      input_tokens: sum('input') + sum('cached') + sum('written'),
      input_cached_tokens: sum('cached'),
      ...(own === 'completions'
        ? { input_cache_write_tokens: sum('written'), output_tokens: sum('output') }
        : {}),
      num_model_requests: group.length,
    },
  ]
}

/** `places` digits after the point of nanodollars: 9 for dollars, 7 for cents. */
function decimal(nanos: bigint, places: number): string {
  const digits = String(nanos).padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

function dayAt(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

function replyTo(path: string, serve: Serve): object {
  const { model, input = 0, output = 0, cached = 0, written = 0, writtenHour = 0, tier, searches = 0 } = serve
  if (path === '/v1/messages')
    return {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: 'end_turn' },
      content: [{ type: 'text', text: 'Hi' }],
      usage: {
        input_tokens: input,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written + writtenHour,
        cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: writtenHour },
        output_tokens: output,
        service_tier: tier === 'batch' ? 'batch' : 'standard',
        ...(tier === 'fast' ? { speed: 'fast' } : {}),
        server_tool_use: { web_search_requests: searches },
      },
    }
  const total = { input_tokens: input + cached + written, output_tokens: output }
  if (path === '/v1/responses')
    return {
      ...{ id: `resp_${crypto.randomUUID()}`, object: 'response', status: 'completed', model },
      output: Array.from({ length: searches }, (_, n) => ({
        ...{ type: 'web_search_call', id: `ws_${n}`, status: 'completed', action: { type: 'search' } },
      })),
      service_tier: tier ?? 'default',
      usage: {
        ...total,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
      },
      ...(searches > 0 ? { tool_usage: { web_search: { num_requests: searches } } } : {}),
    }
  if (path === '/v1/embeddings') return { object: 'list', data: [], model, usage: { prompt_tokens: input } }
  if (path === '/v1/images/generations')
    return {
      data: [],
      usage: {
        ...{ input_tokens: input, output_tokens: serve.images ?? 0 },
        input_tokens_details: { text_tokens: input, image_tokens: 0 },
      },
    }
  if (path === '/v1/audio/transcriptions')
    return { text: 'Hi', usage: { type: 'duration', seconds: serve.seconds ?? 0 } }
  return {
    ...{ id: 'chatcmpl_1', object: 'chat.completion', model, service_tier: tier ?? 'default' },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }],
    usage: {
      prompt_tokens: input + cached + written,
      completion_tokens: output,
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
    },
  }
}
