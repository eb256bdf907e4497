import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

const packagesDir = join(import.meta.dirname, '../../node_modules')

const pathLiteral = /^(path)?['`](\/[^'`]*)['`]/

const sdks = [
  // `results_url` is an absolute URL that upstream answers: /v1/messages/batches/{id}/results.
  {
    name: '@anthropic-ai/sdk',
    surface: 'messages',
    prefix: '',
    callsMin: 250,
    unread: ['batch.results_url', 'batch.results_url'],
  },
  {
    name: 'anthropic-sdk-0',
    surface: 'messages',
    prefix: '',
    callsMin: 200,
    unread: ['batch.results_url', 'batch.results_url'],
  },
  { name: 'openai', surface: 'chat', prefix: '/v1', callsMin: 380, unread: [] },
  { name: 'openai-4', surface: 'chat', prefix: '/v1', callsMin: 100, unread: [] },
] as const

for (const { name, surface, prefix, callsMin, unread } of sdks) {
  test(`${name} calls only endpoints of the ${surface} tables`, () => {
    const calls = readSdkCalls(name, prefix)
    const known = tableOf(surface)
    assert.deepEqual(
      [...calls.endpoints].filter((endpoint) => !known.has(endpoint)),
      [],
      'add these to src/providers/*-endpoints.ts, each with what it costs',
    )
    // Both assertions guard the source reader, which must not pass by finding fewer calls.
    assert.ok(calls.endpoints.size >= callsMin, `only ${calls.endpoints.size} calls were found in ${name}`)
    assert.deepEqual(calls.unread, unread)
  })
}

test('exactly these endpoints of the Messages tables are missing from the SDKs', () => {
  assert.deepEqual(beyondSdks('messages'), [
    'GET /v1/messages/batches/{}/results',
    'GET /v1/organizations/cost_report',
    'GET /v1/organizations/usage_report/claude_code',
    'GET /v1/organizations/usage_report/messages',
  ])
})

test('every endpoint of the Chat tables is called by an SDK', () => assert.deepEqual(beyondSdks('chat'), []))

function beyondSdks(surface: Surface): string[] {
  const called = new Set<string>()
  for (const sdk of sdks) {
    if (sdk.surface !== surface) continue
    for (const endpoint of readSdkCalls(sdk.name, sdk.prefix).endpoints) called.add(endpoint)
  }
  return [...tableOf(surface)].filter((endpoint) => !called.has(endpoint)).sort()
}

function tableOf(surface: Surface): Set<string> {
  const endpoints = allEndpoints().filter((endpoint) => endpoint.surface === surface)
  return new Set(
    endpoints.map(({ method, template }) => `${method} ${template.replaceAll(/\{\w+\}/g, '{}')}`),
  )
}

interface SdkCalls {
  /** `METHOD /v1/template`, with every parameter as `{}`. */
  readonly endpoints: ReadonlySet<string>
  /** First arguments of calls that are not path literals, as written in the source. */
  readonly unread: readonly string[]
}

/** Reads the endpoints from the SDK's TypeScript source. `prefix` is the path that its base URL adds. */
function readSdkCalls(packageName: string, prefix: string): SdkCalls {
  const endpoints = new Set<string>()
  const unread: string[] = []
  const add = (method: string, path: string): void => {
    const template = path.replaceAll(/\$\{[^}]*\}/g, '{}').replace(/\?.*$/, '')
    endpoints.add(`${method.toUpperCase()} ${prefix}${template}`)
  }
  for (const source of sourcesOf(packageName)) {
    for (const call of source.matchAll(
      /client\s*\.(get|post|put|patch|delete|getAPIList)\b(<[^(]*>)?\(\s*/gi,
    )) {
      const [text, name = ''] = call
      const args = argumentsAt(source, call.index + text.length)
      const path = pathLiteral.exec(args)?.[2]
      if (path === undefined) unread.push(args.slice(0, args.indexOf(',')))
      else if (name === 'getAPIList') add(/\bmethod: '(\w+)'/.exec(args)?.[1] ?? 'get', path)
      else add(name, path)
    }
    for (const [, , path = ''] of source.matchAll(/const endpoint = (path)?['`](\/[^'`]+)['`]/g))
      add('WS', path)
    // The Realtime sockets append to the base URL instead.
    for (const [, path = ''] of source.matchAll(/url\.pathname \+= .*'(\/\w+)';/g)) add('WS', path)
    for (const [, path = ''] of source.matchAll(/TOKEN_ENDPOINT = '([^']+)'/g)) add('POST', path)
  }
  return { endpoints, unread }
}

function sourcesOf(packageName: string): string[] {
  const dir = join(packagesDir, packageName, 'src')
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  return files.map((file) => withoutComments(readFileSync(join(dir, file), 'utf8')))
}

/** Examples in the SDKs' comments look like calls. */
function withoutComments(source: string): string {
  return source.replaceAll(/^\s*(\/\*\*|\*|\/\/).*$/gm, '')
}

/** The source from `start` to the parenthesis that closes the call. */
function argumentsAt(source: string, start: number): string {
  let depth = 1
  let at = start
  for (; at < source.length && depth > 0; at += 1) {
    if (source[at] === '(') depth += 1
    if (source[at] === ')') depth -= 1
  }
  return source.slice(start, at - 1)
}
