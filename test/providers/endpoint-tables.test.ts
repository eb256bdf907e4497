import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { type Endpoint, readEndpoints } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

// Endpoints of the tables that are no public resource methods of @anthropic-ai/sdk 1.8.0 and openai 7.53.0.
const messagesExtras = [
  'POST /v1/complete', // text completions of SDKs before 1.0
  'POST /v1/oauth/token', // called by the SDK's credential providers, not by a resource
  'GET /v1/organizations/cost_report',
  'GET /v1/organizations/usage_report/claude_code',
  'GET /v1/organizations/usage_report/messages',
]
const chatExtras = [
  'POST /v1/embeddings', // called from the SDK's lib folder, not from its resource
  'POST /v1/evals/{eval_id}/runs/{run_id}', // how openai 4 cancels a run
]

test('the Messages tables hold the 171 templates and 262 endpoints of the SDK, and five more', () => {
  const own = without(messagesExtras, 'messages')
  assert.equal(new Set(own.map((endpoint) => endpoint.template)).size, 171)
  assert.equal(own.length, 262)
})

test('the Chat tables hold the 241 templates and 386 endpoints of the SDK, and two more', () => {
  const own = without(chatExtras, 'chat')
  assert.equal(new Set(own.map((endpoint) => endpoint.template)).size, 241)
  assert.equal(own.length, 386)
})

test('no endpoint stands in the tables twice, whatever its parameters are called', () => {
  const seen = new Set<string>()
  for (const { surface, method, template } of allEndpoints()) {
    const name = `${surface} ${method} ${anonymous(template)}`
    assert.ok(!seen.has(name), name)
    seen.add(name)
  }
})

test('templates are lower-case segments and whole-segment parameters, nothing else', () => {
  for (const { template } of allEndpoints()) {
    assert.match(template, /^\/v1(\/([a-z0-9_]+|\{[a-z_]+\}))+$/)
  }
})

test('a row of a table that cannot be read is refused, and not guessed at', () => {
  const [first, second] = readEndpoints('chat', [
    '# A comment.',
    '',
    'GET POST /v1/things/{id} metered chat json stored',
  ])
  assert.deepEqual([first?.method, second?.method], ['GET', 'POST'])
  assert.deepEqual(second, {
    surface: 'chat',
    method: 'POST',
    template: '/v1/things/{id}',
    billing: 'metered',
    usage: 'chat',
    model: 'json',
    reads: 'json',
    stateful: true,
  })
  for (const row of ['/v1/things free', 'GET free', 'GET /v1/things fre', 'GET /v1/things free jsn'])
    assert.throws(() => readEndpoints('chat', [row]), new RegExp(row))
})

test('sixteen templates exist on both surfaces', () => {
  const messages = new Set(of('messages').map(({ template }) => anonymous(template)))
  const chat = new Set(of('chat').map(({ template }) => anonymous(template)))
  assert.deepEqual(
    [...messages].filter((template) => chat.has(template)).sort(),
    listed(`
    /v1/agents, /v1/agents/{}, /v1/files, /v1/files/{}, /v1/files/{}/content, /v1/models, /v1/models/{},
    /v1/skills, /v1/skills/{}, /v1/skills/{}/versions, /v1/skills/{}/versions/{},
    /v1/skills/{}/versions/{}/content, /v1/vaults, /v1/vaults/{}, /v1/vaults/{}/credentials,
    /v1/vaults/{}/credentials/{}`),
  )
})

test('exactly these endpoints are metered, each by its own reader', () => {
  const metered = allEndpoints().flatMap((endpoint) =>
    endpoint.billing === 'metered'
      ? [`${nameOf(endpoint)}: ${endpoint.usage}, model in ${endpoint.model}`]
      : [],
  )
  assert.deepEqual(metered, [
    'messages POST /v1/messages: messages, model in json',
    'chat POST /v1/chat/completions: chat, model in json',
    'chat POST /v1/completions: completions, model in json',
    'chat POST /v1/responses: responses, model in json',
    'chat WS /v1/responses: responses, model in elsewhere',
    'chat POST /v1/responses/compact: compaction, model in json',
    'chat POST /v1/embeddings: embeddings, model in json',
    'chat POST /v1/decisions: decisions, model in json',
    'chat POST /v1/images/edits: images, model in multipart',
    'chat POST /v1/images/generations: images, model in json',
    'chat POST /v1/audio/speech: speech, model in json',
    'chat POST /v1/audio/transcriptions: transcription, model in multipart',
    'chat WS /v1/realtime: realtime, model in query',
  ])
})

test('exactly these endpoints cost money that no reply states', () => {
  assert.deepEqual(
    billed('unmeterable'),
    listed(`
    messages POST /v1/complete, chat POST /v1/images/variations, chat POST /v1/audio/translations,
    chat POST /v1/realtime/calls, chat POST /v1/realtime/calls/{call_id}/accept,
    chat WS /v1/realtime/translations, chat POST /v1/live/sessions, chat WS /v1/live/sessions,
    chat POST /v1/live/sessions/{session_id}/accept, chat WS /v1/live/sessions/{session_id}/attach,
    chat POST /v1/live/sessions/{session_id}/fork, chat WS /v1/live/sessions/{session_id}/fork,
    chat POST /v1/containers, chat POST /v1/vector_stores,
    chat POST /v1/vector_stores/{vector_store_id}/file_batches,
    chat POST /v1/vector_stores/{vector_store_id}/files,
    chat POST /v1/vector_stores/{vector_store_id}/search, chat POST /v1/videos,
    chat POST /v1/videos/characters, chat POST /v1/videos/edits, chat POST /v1/videos/extensions,
    chat POST /v1/videos/{video_id}/remix, chat POST /v1/assistants,
    chat POST /v1/assistants/{assistant_id}, chat POST /v1/threads, chat POST /v1/threads/runs,
    chat POST /v1/threads/{thread_id}, chat POST /v1/threads/{thread_id}/messages,
    chat POST /v1/threads/{thread_id}/messages/{message_id}, chat POST /v1/threads/{thread_id}/runs,
    chat POST /v1/threads/{thread_id}/runs/{run_id}, chat POST /v1/threads/{thread_id}/runs/{run_id}/cancel,
    chat POST /v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs`),
  )
})

test('exactly these endpoints start work that is paid later', () => {
  assert.deepEqual(
    billed('deferred'),
    listed(`
    messages POST /v1/messages/batches, messages POST /v1/sessions,
    messages POST /v1/sessions/{session_id}/events, messages POST /v1/deployments,
    messages POST /v1/deployments/{deployment_id}, messages POST /v1/deployments/{deployment_id}/run,
    messages POST /v1/deployments/{deployment_id}/unpause, messages POST /v1/dreams, chat POST /v1/batches,
    chat POST /v1/fine_tuning/alpha/graders/run, chat POST /v1/fine_tuning/jobs,
    chat POST /v1/fine_tuning/jobs/{job_id}/resume, chat POST /v1/evals/{eval_id}/runs,
    chat POST /v1/agents/automations, chat POST /v1/agents/automations/{automation_id},
    chat POST /v1/agents/automations/{automation_id}/invocations,
    chat POST /v1/agents/automations/{automation_id}/resume, chat POST /v1/agents/environments,
    chat POST /v1/agents/sessions, chat POST /v1/agents/sessions/{session_id}/events`),
  )
})

test('exactly these endpoints open a way to upstream past the gateway', () => {
  assert.deepEqual(
    billed('mints_credential'),
    listed(`
    messages POST /v1/oauth/token, messages GET /v1/environments/{environment_id}/work/poll,
    messages POST /v1/tunnels/{tunnel_id}/reveal_token, messages POST /v1/tunnels/{tunnel_id}/rotate_token,
    messages POST /v1/organizations/federation_issuers,
    messages POST /v1/organizations/federation_issuers/{federation_issuer_id},
    messages POST /v1/organizations/federation_rules,
    messages POST /v1/organizations/federation_rules/{federation_rule_id},
    messages POST /v1/organizations/federation_rules/{federation_rule_id}/workspaces,
    messages POST /v1/organizations/invites, chat POST /v1/realtime/client_secrets,
    chat POST /v1/realtime/sessions, chat POST /v1/realtime/transcription_sessions,
    chat POST /v1/realtime/translations/client_secrets, chat POST /v1/chatkit/sessions,
    chat POST /v1/organization/admin_api_keys, chat POST /v1/organization/invites,
    chat POST /v1/organization/projects/{project_id}/service_accounts,
    chat POST /v1/organization/projects/{project_id}/service_accounts/{account_id}/api_keys,
    chat POST /v1/organization/workload_identity_providers,
    chat POST /v1/organization/workload_identity_providers/{id},
    chat POST /v1/organization/workload_identity_providers/{id}/federation_rules,
    chat POST /v1/organization/workload_identity_providers/{id}/federation_rules/{rule_id}`),
  )
})

test('exactly these endpoints neither show nor touch what is stored under the shared account', () => {
  const stateless = allEndpoints().filter((endpoint) => !endpoint.stateful)
  assert.deepEqual(
    stateless.map(nameOf),
    listed(`
    messages POST /v1/messages, messages POST /v1/messages/count_tokens, messages POST /v1/complete,
    messages GET /v1/models, messages GET /v1/models/{model}, chat POST /v1/chat/completions,
    chat POST /v1/completions, chat POST /v1/responses, chat WS /v1/responses,
    chat POST /v1/responses/compact, chat POST /v1/responses/input_tokens, chat POST /v1/embeddings,
    chat POST /v1/decisions, chat POST /v1/moderations, chat POST /v1/images/edits,
    chat POST /v1/images/generations, chat POST /v1/images/variations, chat POST /v1/audio/speech,
    chat POST /v1/audio/transcriptions, chat POST /v1/audio/translations, chat GET /v1/models,
    chat GET /v1/models/{model}, chat POST /v1/content_provenance_checks, chat WS /v1/realtime,
    chat POST /v1/realtime/calls, chat WS /v1/realtime/translations, chat POST /v1/live/sessions,
    chat WS /v1/live/sessions, chat POST /v1/fine_tuning/alpha/graders/validate,
    chat GET /v1/webhook_event_types`),
  )
})

test('a body is read exactly where it names the model, and uploads and configuration stream through', () => {
  for (const endpoint of allEndpoints()) {
    const inBody = ['json', 'multipart', 'batch_entries', 'batch_file', 'nested'].includes(endpoint.model)
    assert.equal(endpoint.reads !== 'nothing', inBody, nameOf(endpoint))
    if (endpoint.method !== 'POST') assert.equal(endpoint.reads, 'nothing', nameOf(endpoint))
  }
  const forms = allEndpoints().filter((endpoint) => endpoint.reads === 'multipart')
  assert.deepEqual(forms.map(nameOf), [
    'chat POST /v1/images/edits',
    'chat POST /v1/images/variations',
    'chat POST /v1/audio/transcriptions',
    'chat POST /v1/audio/translations',
    'chat POST /v1/realtime/calls',
  ])
})

test('a template has a {model} segment exactly where the path names the model', () => {
  for (const endpoint of allEndpoints()) {
    assert.equal(endpoint.template.includes('{model}'), endpoint.model === 'path', nameOf(endpoint))
  }
})

function of(surface: Surface): Endpoint[] {
  return allEndpoints().filter((endpoint) => endpoint.surface === surface)
}

/** Fails if an extra is not in the tables at all. */
function without(extras: readonly string[], surface: Surface): Endpoint[] {
  const all = of(surface)
  const rest = all.filter(({ method, template }) => !extras.includes(`${method} ${template}`))
  assert.equal(all.length - rest.length, extras.length)
  return rest
}

function billed(billing: Endpoint['billing']): string[] {
  return allEndpoints()
    .filter((endpoint) => endpoint.billing === billing)
    .map(nameOf)
}

function nameOf({ surface, method, template }: Endpoint): string {
  return `${surface} ${method} ${template}`
}

function anonymous(template: string): string {
  return template.replaceAll(/\{\w+\}/g, '{}')
}

/** The entries of a text, which are separated by commas. */
function listed(text: string): string[] {
  return text.trim().split(/,\s+/)
}
