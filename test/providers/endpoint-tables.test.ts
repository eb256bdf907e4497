import assert from 'node:assert/strict'
import type { Endpoint } from '../../src/providers/endpoint.ts'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

test('no endpoint occurs twice in the tables, whatever its parameter names', () => {
  const seen = new Set<string>()
  for (const { surface, method, template } of allEndpoints()) {
    const name = `${surface} ${method} ${anonymous(template)}`
    assert.ok(!seen.has(name), name)
    seen.add(name)
  }
})

test('templates consist of lower-case segments and whole-segment parameters', () => {
  for (const { template } of allEndpoints()) {
    assert.match(template, /^\/v1(\/([a-z0-9_]+|\{[a-z_]+\}))+$/)
  }
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
    'chat POST /v1/audio/translations: transcription, model in multipart',
    'chat WS /v1/realtime: realtime, model in query',
  ])
})

test('exactly these endpoints cost money without stating usage', () => {
  assert.deepEqual(
    billed('unmeterable'),
    listed(`
    messages POST /v1/complete, chat POST /v1/images/variations,
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

test('exactly these endpoints start work that is billed later', () => {
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

test('exactly these endpoints mint a credential that bypasses the gateway', () => {
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

test('exactly these endpoints do not read or change stored objects', () => {
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

test('a body is read only if it names the model, and uploads and configuration stream through', () => {
  for (const endpoint of allEndpoints()) {
    const inBody = ['json', 'multipart', 'batch_entries', 'batch_file'].includes(endpoint.model)
    assert.equal(endpoint.reads !== 'nothing', inBody, nameOf(endpoint))
    if (endpoint.method !== 'POST') assert.equal(endpoint.reads, 'nothing', nameOf(endpoint))
  }
  const forms = allEndpoints().filter((endpoint) => endpoint.reads === 'multipart')
  assert.deepEqual(forms.map(nameOf), [
    'chat POST /v1/images/edits',
    'chat POST /v1/images/variations',
    'chat POST /v1/audio/transcriptions',
    'chat POST /v1/audio/translations',
  ])
})

test('a template has a {model} segment only if the path names the model', () => {
  for (const endpoint of allEndpoints()) {
    assert.equal(endpoint.template.includes('{model}'), endpoint.model === 'path', nameOf(endpoint))
  }
})

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

/** The comma-separated entries of a text. */
function listed(text: string): string[] {
  return text.trim().split(/,\s+/)
}
