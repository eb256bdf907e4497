import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { APICallError, generateText, type LanguageModel } from 'ai'
import FormerAnthropic from 'anthropic-sdk-0'
import OpenAI, { APIError } from 'openai'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { readBlocks } from '../support/document-blocks.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { after, before, test } from '../support/suite.ts'
import { readToml } from './read-toml.ts'

/** Each agent's call as its source makes it: with its SDK, that base URL and that key. */

const PAGE = 'docs/CODING-AGENTS.md'
const page = readFileSync(new URL(`../../${PAGE}`, import.meta.url), 'utf8')

let simulator: Simulator
let gateway: TestGateway
before(async () => {
  simulator = await startSimulator({ messagesKey: 'm', chatKey: 'c' })
  const { messagesUrl, chatUrl } = simulator
  gateway = await startGateway({ messagesUrl, messagesKey: 'm', chatUrl, chatKey: 'c' })
})
after(async () => {
  await gateway.close()
  await simulator.close()
})

/** The files of a section, with this test's gateway URL and its key instead of the variable. */
function filesOf(agent: string, language = 'json'): string[] {
  const blocks = readBlocks(PAGE).filter((each) => each.section === agent && each.language === language)
  assert.ok(blocks.length > 0, `${PAGE} has no ${language} for ${agent}`)
  return blocks.map(({ text }) => spelled(text))
}

function spelled(text: string): string {
  return text
    .replaceAll('http://127.0.0.1:8787', gateway.url)
    .replaceAll(/svc_live_…|\{env:TOLLGATE_KEY\}|\$TOLLGATE_KEY/g, gateway.apiKey)
}

const messages = [{ role: 'user' as const, content: 'Hello' }]

async function sayMessages(client: Anthropic | FormerAnthropic, model: string): Promise<void> {
  const stream = (client as Anthropic).messages.stream({ model, max_tokens: 32, messages })
  assert.equal((await stream.finalMessage()).role, 'assistant')
}

async function sayResponses(client: OpenAI, model: string): Promise<void> {
  const types: string[] = []
  for await (const { type } of await client.responses.create({
    model,
    input: 'Hello',
    stream: true,
    store: false,
  }))
    types.push(type)
  assert.equal(types.at(-1), 'response.completed')
}

async function sayChat(client: OpenAI, model: string): Promise<void> {
  let text = ''
  for await (const chunk of await client.chat.completions.create({ model, messages, stream: true }))
    text += chunk.choices[0]?.delta.content ?? ''
  assert.notEqual(text, '')
}

interface SdkSettings {
  readonly baseURL: string
  readonly apiKey: string
}

async function sayWithAiSdk(name: string, settings: SdkSettings, model: string): Promise<void> {
  const sdks: Readonly<Record<string, (id: string) => LanguageModel>> = {
    '@ai-sdk/anthropic': createAnthropic(settings),
    '@ai-sdk/openai': createOpenAI(settings),
  }
  const modelOf = sdks[name] ?? assert.fail(`${name} is not installed`)
  assert.notEqual((await generateText({ model: modelOf(model), prompt: 'Hello', maxRetries: 0 })).text, '')
}

test('Claude Code: the settings file reaches the Messages API, including token counting and the warm-up', async () => {
  const [file = ''] = filesOf('Claude Code')
  const { env } = JSON.parse(file) as { env: { ANTHROPIC_BASE_URL: string; ANTHROPIC_AUTH_TOKEN: string } }
  const client = new Anthropic({
    baseURL: env.ANTHROPIC_BASE_URL,
    authToken: env.ANTHROPIC_AUTH_TOKEN,
    apiKey: null,
  })
  await sayMessages(client, 'claude-haiku-5-5')
  const counted = await client.messages.countTokens({ model: 'claude-haiku-5-5', messages })
  assert.ok(counted.input_tokens > 0)
  // Claude Code continues after any answer.
  const warmUp = await fetch(`${env.ANTHROPIC_BASE_URL}/api/hello`, { method: 'HEAD' })
  assert.equal(warmUp.status, 401)
})

test('Codex: the provider in config.toml reaches the Responses API', async () => {
  const [file = ''] = filesOf('Codex', 'toml')
  const config = readToml(file) as {
    model: string
    model_provider: string
    model_providers: Record<string, { base_url: string; env_key: string; wire_api: string }>
  }
  const provider = config.model_providers[config.model_provider] ?? assert.fail('there is no such provider')
  assert.deepEqual([provider.env_key, provider.wire_api], ['TOLLGATE_KEY', 'responses'])
  await sayResponses(new OpenAI({ baseURL: provider.base_url, apiKey: gateway.apiKey }), config.model)
})

test('opencode: the providers of both file formats reach their APIs', async () => {
  const [second = '', first = ''] = filesOf('opencode')
  type Models = Record<string, { package?: string }>
  const { model, providers } = JSON.parse(second) as {
    model: string
    providers: { tollgate: { package: string; settings: SdkSettings; models: Models } }
  }
  const { tollgate } = providers
  assert.ok(Object.hasOwn(tollgate.models, model.replace('tollgate/', '')))
  for (const [id, own] of Object.entries(tollgate.models)) {
    await sayWithAiSdk((own.package ?? tollgate.package).replace('aisdk:', ''), tollgate.settings, id)
  }
  const { provider } = JSON.parse(first) as {
    provider: { tollgate: { npm: string; options: SdkSettings; models: Models } }
  }
  for (const id of Object.keys(provider.tollgate.models))
    await sayWithAiSdk(provider.tollgate.npm, provider.tollgate.options, id)
})

test('Cline: both rows of its settings reach their APIs', async () => {
  const rows = page.matchAll(
    /^\| (OpenAI Compatible|Anthropic)[^|]* \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$/gm,
  )
  const kinds: string[] = []
  for (const [, kind = '', base = '', key = '', model = ''] of rows) {
    kinds.push(kind)
    const [baseURL, apiKey] = [spelled(base), spelled(key)]
    if (kind === 'Anthropic') await sayWithAiSdk('@ai-sdk/anthropic', { baseURL, apiKey }, model)
    else await sayChat(new OpenAI({ baseURL, apiKey }), model)
  }
  assert.deepEqual(kinds, ['OpenAI Compatible', 'Anthropic'])
})

test('Qwen Code: the models of both protocols reach their APIs', async () => {
  const [file = ''] = filesOf('Qwen Code')
  const { modelProviders, model } = JSON.parse(file) as {
    modelProviders: Record<'openai' | 'anthropic', [{ id: string; envKey: string; baseUrl: string }]>
    model: { name: string }
  }
  const [chat] = modelProviders.openai
  const [claude] = modelProviders.anthropic
  assert.deepEqual([chat.envKey, claude.envKey, model.name], ['TOLLGATE_KEY', 'TOLLGATE_KEY', chat.id])
  await sayChat(new OpenAI({ baseURL: chat.baseUrl, apiKey: gateway.apiKey }), chat.id)
  const client = new Anthropic({ baseURL: claude.baseUrl, authToken: gateway.apiKey, apiKey: null })
  await sayMessages(client, claude.id)
})

test('pi: both providers of models.json reach their APIs', async () => {
  const [file = ''] = filesOf('pi')
  type Provider = { baseUrl: string; api: string; apiKey: string; models: { id: string }[] }
  const { providers } = JSON.parse(file) as { providers: Record<string, Provider> }
  for (const { baseUrl: baseURL, api, apiKey, models } of Object.values(providers)) {
    for (const { id } of models) {
      if (api === 'openai-responses') await sayResponses(new OpenAI({ baseURL, apiKey }), id)
      else {
        assert.equal(api, 'anthropic-messages')
        await sayMessages(new FormerAnthropic({ baseURL, apiKey }), id)
      }
    }
  }
})

/** The sentences of the table, with every number and date masked. */
const alike = (sentence: string) =>
  sentence.replaceAll(/\d+ [A-Z][a-z]+ \(UTC\)/g, '<day>').replaceAll(/[\d.]*\d(?= )/g, '<n>')

test('the refusals quoted on the page match the gateway’s, as each SDK shows them', async () => {
  const quoted = new Map(
    Array.from(page.matchAll(/^\| (40\d) `\w+` \| `([^`]+)` \|$/gm), ([, status = '', said = '']) => [
      status,
      said,
    ]),
  )
  const spent = await gateway.createKey('spent', { monthly_budget_usd: 1e-6 })
  await sayResponses(new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: spent.key }), 'gpt-6-luna')
  const one = await gateway.createKey('one model', { allowed_models: ['claude-haiku-5-5'] })
  const gone = await gateway.createKey('gone')
  await gateway.revokeKey(gone.id)
  for (const [status, key] of Object.entries({ 401: gone.key, 402: spent.key, 403: one.key })) {
    const sentence = quoted.get(status) ?? assert.fail(`no sentence for ${status}`)
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key })
    const byOpenAi = await failureOf(openai.responses.create({ model: 'claude-opus-5-5', input: 'Hello' }))
    assert.ok(byOpenAi instanceof APIError)
    assert.equal(alike(byOpenAi.message), alike(`${status} ${sentence}`))
    // Codex shows this header as the request id.
    assert.match(byOpenAi.headers?.get('x-request-id') ?? '', /^req_/)
    assert.equal(byOpenAi.headers?.get('x-request-id'), byOpenAi.headers?.get('x-svc-request-id'))

    const model = createAnthropic({ baseURL: `${gateway.url}/v1`, apiKey: key })('claude-opus-5-5')
    const byAiSdk = await failureOf(generateText({ model, prompt: 'Hello' }))
    assert.ok(APICallError.isInstance(byAiSdk), String(byAiSdk))
    assert.equal(alike(byAiSdk.message), alike(sentence))
    assert.equal(byAiSdk.isRetryable, false)
  }
})

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  assert.fail('it was not refused')
}
