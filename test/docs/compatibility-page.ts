import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { SURFACE_NAMES, type Surface } from '../../src/kernel/vocabulary.ts'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'

/**
 * docs/COMPATIBILITY.md, from the endpoint tables. `node test/docs/compatibility-page.ts` writes the page; a test compares
 * the committed page with it.
 */

export const PAGE_FILE = fileURLToPath(new URL('../../docs/COMPATIBILITY.md', import.meta.url))

const SURFACE_TITLES: Readonly<Record<Surface, string>> = {
  messages: 'Messages (Anthropic)',
  chat: 'Chat and Responses (OpenAI)',
}

/** The ways in which calls are billed, in the order of the page. */
const KINDS: readonly (readonly [title: string, about: string, has: (endpoint: Endpoint) => boolean])[] = [
  [
    'Metered',
    'Charged by the usage in the reply. What is read, and what a cut call costs: [BILLING.md](BILLING.md#every-paid-endpoint).',
    ({ billing, method }) => billing === 'metered' && method !== 'WS',
  ],
  [
    'Metered later',
    'The call makes a batch, which is charged when it is over: [costs that come later](BILLING.md#costs-that-come-later). With ' +
      '`"deferred": {"poll": false}` it is not metered. A Chat batch of a key with a limit needs a file that this key uploaded here in one ' +
      'request, else it gets 404 `batch_file_unknown`, or 403 `model_not_allowed` where the key has a list of models.',
    ({ makes }) => makes !== undefined,
  ],
  [
    'Not metered',
    'No reply states the cost. A key with a cap, under enforced credit or with a list of models gets 404 `endpoint_not_metered`; ' +
      'for other keys the call passes at cost 0, flagged `unpriced` ([`pricing.unpriced`](BILLING.md#which-price) changes either). ' +
      'Videos and Assistants were shut down upstream on 2026-09-24 and 2026-08-26.',
    ({ billing, method, makes }) =>
      makes === undefined && (billing === 'deferred' || billing === 'unmeterable') && method !== 'WS',
  ],
  [
    'Refused to every key',
    'They hand out upstream credentials, which would go on working after the key was revoked: 404 `minting_refused`. ' +
      '`"minting": "pass"` [opens them](OPERATIONS.md).',
    ({ billing }) => billing === 'mints_credential',
  ],
  [
    'Sockets',
    'Frames pass as they are, and [each turn is a call](TRANSPARENCY.md#websockets) with a hold and a bill of its own. `/v1/realtime` is ' +
      'metered with `?model=` and without `call_id` and `intent`. Sockets that are **not metered** are refused to keys with a limit, and ' +
      'piped for others with one record flagged `unpriced`.',
    ({ method }) => method === 'WS',
  ],
  [
    'Free',
    'Pass at no cost, with a spent cap too. Those that are **stored** show or change objects under the upstream account, which all ' +
      'keys share; `"stateful": "refuse"` refuses them.',
    ({ billing }) => billing === 'free',
  ],
]

export function compatibilityPage(): string {
  const endpoints = allEndpoints()
  const templates = new Set(endpoints.map(({ surface, template }) => `${surface} ${template}`))
  const lines = [
    '# Compatibility',
    '',
    '<!-- Made by `node test/docs/compatibility-page.ts` from the endpoint tables in src/providers. Do not edit it by hand. -->',
    '',
    '```sh',
    'export TOLLGATE_URL=http://127.0.0.1:8787',
    'export TOLLGATE_KEY=svc_live_…',
    'curl "$TOLLGATE_URL/v1/models" -H "authorization: Bearer $TOLLGATE_KEY"',
    '```',
    '',
    `Every path that the official SDKs call, ${templates.size} of them, and what becomes of it here. Bytes, headers and errors are`,
    "upstream's in all cases ([what passes](TRANSPARENCY.md)). A path that both surfaces have goes to Messages if the request has",
    '`anthropic-version` or `x-api-key`, to Chat otherwise.',
    '',
    'A path that is in no table passes for keys without limits. Keys with a cap, under enforced credit or with a list of models get 404',
    '`endpoint_not_metered`, unless the method is GET, HEAD or OPTIONS. [Other spellings](TRANSPARENCY.md#refused-before-anything-is-sent) of a paid path',
    'are refused to every key.',
    '',
  ]
  for (const [title, about, has] of KINDS) {
    lines.push(`## ${title}`, '', about, '')
    for (const surface of SURFACE_NAMES) {
      const rows = rowsOf(endpoints.filter((endpoint) => endpoint.surface === surface && has(endpoint)))
      if (rows.length === 0) continue
      lines.push(`| ${SURFACE_TITLES[surface]} | | |`, '|---|---|---|', ...rows, '')
    }
  }
  return `${lines.join('\n').trimEnd()}\n`
}

/** One row for each template and its note: its methods, and whether the endpoint is about something stored. */
function rowsOf(endpoints: readonly Endpoint[]): string[] {
  const rows = Map.groupBy(endpoints, (endpoint) => `\`${endpoint.template}\` | ${noteOf(endpoint)}`)
  return [...rows].map(([said, among]) => `| ${among.map(({ method }) => method).join(' ')} | ${said} |`)
}

function noteOf({ billing, stateful, method }: Endpoint): string {
  if (method === 'WS') return billing === 'metered' ? '' : 'not metered'
  return billing === 'free' && stateful ? 'stored' : ''
}

if (import.meta.main) writeFileSync(PAGE_FILE, compatibilityPage())
