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
    'The cost of these calls is computed from the usage in the reply ([details](METERING.md#every-paid-endpoint)).',
    ({ billing, method }) => billing === 'metered' && method !== 'WS',
  ],
  [
    'Metered later',
    'These calls create a batch. The gateway charges the batch when it has ended ([details](METERING.md#costs-that-come-later)). If you ' +
      'set `"deferred": {"poll": false}`, batches are not metered. To create a Chat batch with a limited key, upload its file ' +
      'through this gateway, with the same key and in one request. Otherwise the call gets 404 `batch_file_unknown`.',
    ({ makes }) => makes !== undefined,
  ],
  [
    'Not metered',
    'The replies of these endpoints do not report the usage. Limited keys get 404 `endpoint_not_metered`. Calls with other keys ' +
      'cost 0, and are flagged `unpriced`. With the setting [`pricing.unpriced`](CONFIGURATION.md#the-configuration-file), you can ' +
      'refuse these calls to all keys, or allow them to all keys. OpenAI shut down videos on 2026-09-24 and Assistants on ' +
      '2026-08-26.',
    ({ billing, method, makes }) =>
      makes === undefined && (billing === 'deferred' || billing === 'unmeterable') && method !== 'WS',
  ],
  [
    'Refused to every key',
    'These endpoints issue credentials of the provider. Every key gets 404 `minting_refused`, unless you set `"minting": "pass"`.',
    ({ billing }) => billing === 'mints_credential',
  ],
  [
    'Sockets',
    'These paths accept [WebSockets](TRANSPARENCY.md#websockets). `/v1/realtime` is metered if the query contains `model`, but neither ' +
      '`call_id` nor `intent`.',
    ({ method }) => method === 'WS',
  ],
  [
    'Free',
    'These calls cost nothing. They also work if the budget is exhausted. *Stored* means that the endpoint shows or changes objects ' +
      'that the provider stores for the gateway’s provider key.',
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
    `These are the ${templates.size} paths that the official SDKs call. Some paths exist in both APIs. A request to such a path goes to`,
    'Messages if it has the header `anthropic-version` or `x-api-key`, and otherwise to Chat.',
    '',
    'A *limited key* has a budget or an allowlist, or its account has a budget or enforced credit. Keys without limits can also call',
    'paths that are in no table. For limited keys, these paths answer 404 `endpoint_not_metered`, unless the method is GET, HEAD or',
    'OPTIONS.',
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
