import type { UpstreamConfig } from '../config/read-config.ts'
import type { EgressRules } from '../http/egress.ts'
import { requestWhole } from '../http/request-whole.ts'
import { VERSION } from '../kernel/runtime.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { providerCredential } from '../providers/credentials.ts'
import { SURFACES, upstreamTarget } from '../providers/surfaces.ts'

const ANSWER_MS = 10_000
const PAGE_BYTES_MAX = 4 * 1024 ** 2

/** Hosts of many models list some thousands. More are not read: a name that is not listed would look invented. */
const MODELS_MAX = 20_000

interface ModelList {
  readonly status: number
  /** Null: the answer is not a list of models, or not the whole list. */
  readonly models: readonly string[] | null
}

/** Asks an upstream for its models, page after page. It connects exactly as calls do. Rejects if there is no answer. */
export async function readModelList(
  surface: Surface,
  upstream: UpstreamConfig,
  egress: EgressRules,
  stop?: AbortSignal,
): Promise<ModelList> {
  const deadline = performance.now() + ANSWER_MS
  const models = new Set<string>()
  for (let after: string | null = null; ; ) {
    const answerMs = Math.max(1, deadline - performance.now())
    const request = pageRequest(surface, upstream, after)
    const { status, body } = await requestWhole(request, egress, { answerMs, bytesMax: PAGE_BYTES_MAX }, stop)
    if (status !== 200) return { status, models: null }
    const page = readPage(body)
    const known = models.size
    for (const id of page?.ids ?? []) models.add(id)
    if (page === null || models.size > MODELS_MAX) return { status, models: null }
    // A stand-in may list nothing, and answer any model.
    if (page.last === null) return { status, models: models.size === 0 ? null : [...models] }
    // A page without a new model would be asked for again and again.
    if (models.size === known) return { status, models: null }
    after = page.last
  }
}

function pageRequest(
  surface: Surface,
  { url, key, fixedHeaders = [] }: UpstreamConfig,
  after: string | null,
) {
  const { ownHeaders, modelListQuery } = SURFACES[surface].upstream
  const target = upstreamTarget(surface, url, { path: '/v1/models', query: modelListQuery(after) })
  const headers = [
    ...['accept', 'application/json', 'user-agent', `tollgate/${VERSION}`],
    ...Object.entries(ownHeaders).flat(),
    ...(key === null ? [] : providerCredential(surface, key)),
    ...fixedHeaders,
  ]
  return { url: new URL(target, url), method: 'GET', headers }
}

/** `last`: the id after which the next page begins. Null if there is none. */
function readPage(body: Buffer): { readonly ids: readonly string[]; readonly last: string | null } | null {
  let page: unknown
  try {
    page = JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
  const { data, has_more } = (page ?? {}) as { readonly data?: unknown; readonly has_more?: unknown }
  if (!Array.isArray(data)) return null
  const ids = data
    .map((model: { readonly id?: unknown } | null) => model?.id)
    .filter((id) => typeof id === 'string')
  return { ids, last: has_more === true ? (ids.at(-1) ?? null) : null }
}
