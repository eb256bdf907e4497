import { basename, delimiter, dirname, relative } from 'node:path'
import { type Certificate, dateOf } from '../config/read-certificate.ts'
import type { Config, UpstreamConfig } from '../config/read-config.ts'
import { formatUsd } from '../kernel/money.ts'
import { VERSION } from '../kernel/runtime.ts'
import { shownDatabase } from '../kernel/secret.ts'
import type { EndedCall } from '../telemetry/call-log.ts'
import { shownText, type TerminalStyle } from './terminal.ts'

export interface BannerFacts {
  readonly url: string
  readonly config: Config
  readonly isSimulated: boolean
  readonly reasonNotSimulated: string | null
  readonly firstAdminKey: string | null
  /** Whether stdout is a terminal. Otherwise it may be a log, which must not contain a key. */
  readonly isTerminal: boolean
  /** Null: the gateway serves plain HTTP. */
  readonly certificate: Certificate | null
}

export function banner(facts: BannerFacts): string {
  const { url, config, isSimulated, firstAdminKey, isTerminal, certificate } = facts
  const relativeDir = relative(process.cwd(), config.dataDir) || '.'
  const dataDir = relativeDir.startsWith('..') ? config.dataDir : relativeDir
  const lines = [`Tollgate ${VERSION} serves ${url}`, '', `  Dashboard  ${url}/dashboard`]
  if (isSimulated) {
    lines.push(
      `  Upstream   *** THE BUILT-IN SIMULATOR *** ${config.simulator === true ? 'TOLLGATE_SIMULATOR is true' : 'No provider is configured'}, so every answer is made up.`,
      `             To use real providers, ${config.simulator === true ? 'remove TOLLGATE_SIMULATOR, ' : ''}set ANTHROPIC_API_KEY, OPENAI_API_KEY or both, and start again.`,
    )
  } else {
    lines.push(
      `  Messages   ${describeUpstream(config.messages, 'TOLLGATE_MESSAGES_KEY or ANTHROPIC_API_KEY')}`,
    )
    lines.push(`  Chat       ${describeUpstream(config.chat, 'TOLLGATE_CHAT_KEY or OPENAI_API_KEY')}`)
    if (config.messages === null && config.chat === null) {
      lines.push(`  Note       The built-in simulator is off: ${facts.reasonNotSimulated}.`)
    }
    if (config.stateful === 'pass') {
      lines.push(
        '  Note       All keys share the objects stored in the upstream account (files, batches, responses).',
        '             To refuse the endpoints that show them, set "stateful": "refuse" in the configuration file.',
      )
    }
    if (config.minting === 'pass') {
      lines.push(
        '  Note       "minting" is "pass": a key can obtain upstream credentials that still work after it is revoked.',
      )
    }
  }
  if (certificate !== null) {
    const { file, names, untilMs } = certificate
    lines.push(`  TLS        ${file}, for ${names.join(', ') || 'no host name'}, until ${dateOf(untilMs)}`)
  }
  if (config.databaseUrl === null) lines.push(`  Data       ${dataDir} (SQLite)`)
  else {
    lines.push(
      `  Database   ${shownDatabase(config.databaseUrl)} (PostgreSQL)`,
      `  Data       ${dataDir} (node id and spool)`,
    )
  }
  if (firstAdminKey !== null && isTerminal) {
    lines.push(`  Admin key  ${firstAdminKey}`)
    lines.push(`             Shown only once. It is also in ${dataDir}/admin-key, which only you can read.`)
  } else if (firstAdminKey !== null) {
    lines.push(`  Admin key  in ${dataDir}/admin-key, which only this user can read`)
  }
  lines.push(...firstCall(facts, dataDir))
  return `${lines.join('\n')}\n`
}

function firstCall({ url, config, certificate }: BannerFacts, dataDir: string): string[] {
  const ca = certificate?.isSelfSigned === true ? certificate.file : null
  const surface = config.messages === null && config.chat !== null ? exampleChatCall : exampleMessagesCall
  const key = config.adminKey === null && dataDir !== 'data' ? ` --admin-key-file ${dataDir}/admin-key` : ''
  const command = commandName()
  return [
    '',
    'First call, from another terminal in this folder:',
    '',
    `  export TOLLGATE_URL=${url}`,
    ...(ca === null ? [] : [`  export NODE_EXTRA_CA_CERTS=${ca}`]),
    `  ${command} credits add 20 --reason trial${key}`,
    `  export TOLLGATE_KEY=$(${command} keys create --name first --monthly-budget 5${key})`,
    ...surface(ca === null ? 'curl' : `curl --cacert ${ca}`),
    '',
    'Your SDK needs two changes, the base URL and the key:',
    '',
    '  new Anthropic({ baseURL: process.env.TOLLGATE_URL, apiKey: process.env.TOLLGATE_KEY })',
    `  new OpenAI({ baseURL: \`\${process.env.TOLLGATE_URL}/v1\`, apiKey: process.env.TOLLGATE_KEY })`,
    '',
  ]
}

/** How another terminal runs this program: as npm or npx ran it, else by its file. */
function commandName(): string {
  const { npm_lifecycle_event: script } = process.env
  if (script === 'start') return 'npm run -s tollgate --'
  const [, file = 'tollgate'] = process.argv
  const isFound = process.env['PATH']?.split(delimiter).includes(dirname(file))
  return script === undefined && isFound && basename(file) === 'tollgate' ? 'tollgate' : `node ${file}`
}

function describeUpstream(upstream: UpstreamConfig | null, variable: string): string {
  if (upstream === null) return `not configured: calls get 503 until ${variable} is set`
  return upstream.url.href + (upstream.key === null ? ' (no key: no credential is sent)' : '')
}

const exampleMessagesCall = (curl: string): string[] => [
  `  ${curl} -i $TOLLGATE_URL/v1/messages -H "x-api-key: $TOLLGATE_KEY" -H 'anthropic-version: 2023-06-01' \\`,
  `    -d '{"model":"claude-haiku-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hello"}]}'`,
]

const exampleChatCall = (curl: string): string[] => [
  `  ${curl} -i $TOLLGATE_URL/v1/chat/completions -H "authorization: Bearer $TOLLGATE_KEY" -H 'content-type: application/json' \\`,
  `    -d '{"model":"gpt-6-luna","messages":[{"role":"user","content":"Hello"}]}'`,
]

export function callLine(call: EndedCall, style: TerminalStyle): string {
  const { endedAtMs, method, path, status, code, tokens, costNanos, ms } = call
  const model = call.modelServed ?? call.modelAsked
  const answered = `${status ?? 'no answer'}${code === null ? '' : ` ${code}`}`
  const colour = status !== null && status < 400 ? 'green' : 'red'
  return [
    style.paint('dim', new Date(endedAtMs).toISOString().slice(11, 19)),
    `${shownText(method, 20)} ${shownText(path, 60)}`,
    model === null ? '-' : shownText(model, 40),
    style.paint(colour, answered),
    ...(tokens === null ? [] : [shownTokens(tokens)]),
    `${formatUsd(costNanos)} USD`,
    `${Math.round(ms)} ms`,
  ].join('  ')
}

function shownTokens({ input, output, cacheRead, cacheWrite }: NonNullable<EndedCall['tokens']>): string {
  const cached = cacheRead === 0 ? '' : ` + ${cacheRead} cached`
  const written = cacheWrite === 0 ? '' : ` + ${cacheWrite} to cache`
  return `${input}${cached}${written} in, ${output} out`
}
