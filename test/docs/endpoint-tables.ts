import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SURFACE_NAMES, type Surface } from '../../src/kernel/vocabulary.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'

/** `node test/docs/endpoint-tables.ts` writes the end of docs/COMPATIBILITY.md; a test compares it. */

export const PAGE_FILE = fileURLToPath(new URL('../../docs/COMPATIBILITY.md', import.meta.url))

const MARKER = '<!-- endpoints: '

const SURFACE_TITLES: Readonly<Record<Surface, string>> = {
  messages: 'Messages (Anthropic)',
  chat: 'Chat and Responses (OpenAI)',
}

const KINDS: readonly (readonly [title: string, about: string, has: (endpoint: Endpoint) => boolean])[] = [
  [
    'Metered',
    'These calls cost what the usage in the reply costs ([details](BILLING.md#every-paid-endpoint)).',
    ({ billing, method }) => billing === 'metered' && method !== 'WS',
  ],
  [
    'Metered later',
    'These calls create a batch, which is charged when it has ended ([costs that come later](BILLING.md#costs-that-come-later)). With ' +
      '`"deferred": {"poll": false}`, batches are not metered. A limited key can create a Chat batch only from a file that it ' +
      'uploaded through this gateway in one request; otherwise it gets 404 `batch_file_unknown`.',
    ({ makes }) => makes !== undefined,
  ],
  [
    'Not metered',
    'The replies of these endpoints do not state their cost. Limited keys get 404 `endpoint_not_metered`. Calls with other keys ' +
      'cost 0, and are flagged `unpriced`. To refuse these calls to every key, or to no key, set ' +
      '[`pricing.unpriced`](CONFIGURATION.md#the-configuration-file). Upstream shut down videos on 2026-09-24 and Assistants on ' +
      '2026-08-26.',
    ({ billing, method, makes }) =>
      makes === undefined && (billing === 'deferred' || billing === 'unmeterable') && method !== 'WS',
  ],
  [
    'Refused to every key',
    'These endpoints issue upstream credentials. Every key gets 404 `minting_refused`, unless you set `"minting": "pass"`.',
    ({ billing }) => billing === 'mints_credential',
  ],
  [
    'Sockets',
    'These paths accept [WebSockets](TRANSPARENCY.md#websockets). `/v1/realtime` is metered with `?model=` and without `call_id` and `intent`.',
    ({ method }) => method === 'WS',
  ],
  [
    'Free',
    'These calls cost nothing, and work with an exhausted budget. *Stored* means that the endpoint shows or changes objects under the ' +
      'upstream credential.',
    ({ billing }) => billing === 'free',
  ],
]

export function pageWithEndpoints(): string {
  const page = readFileSync(PAGE_FILE, 'utf8')
  const generated = page.indexOf('\n', page.indexOf(MARKER)) + 1
  return `${page.slice(0, generated)}\n${endpointTables()}`
}

export function endpointTables(): string {
  const endpoints = allEndpoints()
  const templates = new Set(endpoints.map(({ surface, template }) => `${surface} ${template}`))
  const lines = [
    '## Every endpoint',
    '',
    `These are the ${templates.size} paths that the official SDKs call. Some paths exist in both APIs: such a request goes to Messages if it`,
    'has `anthropic-version` or `x-api-key`, else to Chat. Keys without limits can also call paths that are in no table. Limited keys',
    'get 404 `endpoint_not_metered` for these paths, unless the method is GET, HEAD or OPTIONS.',
    '',
  ]
  for (const [title, about, has] of KINDS) {
    lines.push(`### ${title}`, '', about, '')
    for (const surface of SURFACE_NAMES) {
      const rows = rowsOf(endpoints.filter((endpoint) => endpoint.surface === surface && has(endpoint)))
      if (rows.length === 0) continue
      lines.push(`| ${SURFACE_TITLES[surface]} | | |`, '|---|---|---|', ...rows, '')
    }
  }
  return `${lines.join('\n').trimEnd()}\n`
}

/** One row per template and note: its methods, and whether the endpoint concerns stored objects. */
function rowsOf(endpoints: readonly Endpoint[]): string[] {
  const rows = Map.groupBy(endpoints, (endpoint) => `\`${endpoint.template}\` | ${noteOf(endpoint)}`)
  return [...rows].map(([said, among]) => `| ${among.map(({ method }) => method).join(' ')} | ${said} |`)
}

function noteOf({ billing, stateful, method }: Endpoint): string {
  if (method === 'WS') return billing === 'metered' ? '' : 'not metered'
  return billing === 'free' && stateful ? 'stored' : ''
}

if (import.meta.main) writeFileSync(PAGE_FILE, pageWithEndpoints())
