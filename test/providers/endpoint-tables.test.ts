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
