import { deferred, type EndpointRow, free, metered, minting, stored, unmeterable } from './endpoint.ts'

/** Messages surface: everything but the Admin API. Paths as in @anthropic-ai/sdk 1.8, and what older clients call. */
export const messagesEndpoints: readonly EndpointRow[] = [
  // Inference. `fallbacks[]` and tools may name further models.
  ['POST', '/v1/messages', metered('messages', 'json')],
  ['GET', '/v1/messages/batches', stored()],
  ['POST', '/v1/messages/batches', deferred('batch_entries')],
  ['GET', '/v1/messages/batches/{batch_id}', stored()],
  ['DELETE', '/v1/messages/batches/{batch_id}', stored()],
  ['POST', '/v1/messages/batches/{batch_id}/cancel', stored()],
  // Where a batch shows its cost. The bill belongs to whoever created it, so reading it is free.
  ['GET', '/v1/messages/batches/{batch_id}/results', stored()],
  ['POST', '/v1/messages/count_tokens', free('json')],

  // Text completions of SDKs before 1.0: the reply has no usage, so nothing on the wire says what it
  // cost.
  ['POST', '/v1/complete', unmeterable('json')],

  ['GET', '/v1/models', free()],
  ['GET', '/v1/models/{model}', free('path')],

  // Answers an access token that upstream takes directly.
  ['POST', '/v1/oauth/token', minting()],

  // Files and skills.
  ['GET', '/v1/files', stored()],
  ['POST', '/v1/files', stored()],
  ['GET', '/v1/files/{file_id}', stored()],
  ['DELETE', '/v1/files/{file_id}', stored()],
  ['GET', '/v1/files/{file_id}/content', stored()],

  ['GET', '/v1/skills', stored()],
  ['POST', '/v1/skills', stored()],
  ['GET', '/v1/skills/{skill_id}', stored()],
  ['DELETE', '/v1/skills/{skill_id}', stored()],
  ['GET', '/v1/skills/{skill_id}/versions', stored()],
  ['POST', '/v1/skills/{skill_id}/versions', stored()],
  ['GET', '/v1/skills/{skill_id}/versions/{version}', stored()],
  ['DELETE', '/v1/skills/{skill_id}/versions/{version}', stored()],
  ['GET', '/v1/skills/{skill_id}/versions/{version}/content', stored()],

  // Managed agents. Definitions are free; whatever starts or feeds a session is paid when its tokens
  // are known.
  ['GET', '/v1/agents', stored()],
  ['POST', '/v1/agents', stored('json')],
  ['GET', '/v1/agents/{agent_id}', stored()],
  ['POST', '/v1/agents/{agent_id}', stored('json')],
  ['POST', '/v1/agents/{agent_id}/archive', stored()],
  ['GET', '/v1/agents/{agent_id}/versions', stored()],

  ['GET', '/v1/sessions', stored()],
  ['POST', '/v1/sessions', deferred('elsewhere')],
  ['GET', '/v1/sessions/{session_id}', stored()],
  ['POST', '/v1/sessions/{session_id}', stored()],
  ['DELETE', '/v1/sessions/{session_id}', stored()],
  ['POST', '/v1/sessions/{session_id}/archive', stored()],
  ['GET', '/v1/sessions/{session_id}/events', stored()],
  ['POST', '/v1/sessions/{session_id}/events', deferred('elsewhere')],
  ['GET', '/v1/sessions/{session_id}/events/stream', stored()],
  ['GET', '/v1/sessions/{session_id}/resources', stored()],
  ['POST', '/v1/sessions/{session_id}/resources', stored()],
  ['GET', '/v1/sessions/{session_id}/resources/{resource_id}', stored()],
  ['POST', '/v1/sessions/{session_id}/resources/{resource_id}', stored()],
  ['DELETE', '/v1/sessions/{session_id}/resources/{resource_id}', stored()],
  ['GET', '/v1/sessions/{session_id}/threads', stored()],
  ['GET', '/v1/sessions/{session_id}/threads/{thread_id}', stored()],
  ['POST', '/v1/sessions/{session_id}/threads/{thread_id}/archive', stored()],
  ['GET', '/v1/sessions/{session_id}/threads/{thread_id}/events', stored()],
  ['GET', '/v1/sessions/{session_id}/threads/{thread_id}/stream', stored()],

  // A deployment may carry a schedule, so creating, changing or unpausing it starts sessions with no
  // request at all.
  ['GET', '/v1/deployments', stored()],
  ['POST', '/v1/deployments', deferred('elsewhere')],
  ['GET', '/v1/deployments/{deployment_id}', stored()],
  ['POST', '/v1/deployments/{deployment_id}', deferred('elsewhere')],
  ['POST', '/v1/deployments/{deployment_id}/archive', stored()],
  ['POST', '/v1/deployments/{deployment_id}/pause', stored()],
  ['POST', '/v1/deployments/{deployment_id}/run', deferred('elsewhere')],
  ['POST', '/v1/deployments/{deployment_id}/unpause', deferred('elsewhere')],

  ['GET', '/v1/deployment_runs', stored()],
  ['GET', '/v1/deployment_runs/{deployment_run_id}', stored()],

  // Memory consolidation, a job of its own.
  ['GET', '/v1/dreams', stored()],
  ['POST', '/v1/dreams', deferred('json')],
  ['GET', '/v1/dreams/{dream_id}', stored()],
  ['POST', '/v1/dreams/{dream_id}/archive', stored()],
  ['POST', '/v1/dreams/{dream_id}/cancel', stored()],

  ['GET', '/v1/environments', stored()],
  ['POST', '/v1/environments', stored()],
  ['GET', '/v1/environments/{environment_id}', stored()],
  ['POST', '/v1/environments/{environment_id}', stored()],
  ['DELETE', '/v1/environments/{environment_id}', stored()],
  ['POST', '/v1/environments/{environment_id}/archive', stored()],
  ['GET', '/v1/environments/{environment_id}/work', stored()],
  // A work item comes with a bearer credential of its own (`sessions_token`): a GET that mints.
  ['GET', '/v1/environments/{environment_id}/work/poll', minting()],
  ['GET', '/v1/environments/{environment_id}/work/stats', stored()],
  ['GET', '/v1/environments/{environment_id}/work/{work_id}', stored()],
  ['POST', '/v1/environments/{environment_id}/work/{work_id}', stored()],
  ['POST', '/v1/environments/{environment_id}/work/{work_id}/ack', stored()],
  ['POST', '/v1/environments/{environment_id}/work/{work_id}/heartbeat', stored()],
  ['POST', '/v1/environments/{environment_id}/work/{work_id}/stop', stored()],

  ['GET', '/v1/memory_stores', stored()],
  ['POST', '/v1/memory_stores', stored()],
  ['GET', '/v1/memory_stores/{memory_store_id}', stored()],
  ['POST', '/v1/memory_stores/{memory_store_id}', stored()],
  ['DELETE', '/v1/memory_stores/{memory_store_id}', stored()],
  ['POST', '/v1/memory_stores/{memory_store_id}/archive', stored()],
  ['GET', '/v1/memory_stores/{memory_store_id}/memories', stored()],
  ['POST', '/v1/memory_stores/{memory_store_id}/memories', stored()],
  ['GET', '/v1/memory_stores/{memory_store_id}/memories/{memory_id}', stored()],
  ['POST', '/v1/memory_stores/{memory_store_id}/memories/{memory_id}', stored()],
  ['DELETE', '/v1/memory_stores/{memory_store_id}/memories/{memory_id}', stored()],
  ['GET', '/v1/memory_stores/{memory_store_id}/memory_versions', stored()],
  ['GET', '/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}', stored()],
  ['POST', '/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}/redact', stored()],

  ['GET', '/v1/vaults', stored()],
  ['POST', '/v1/vaults', stored()],
  ['GET', '/v1/vaults/{vault_id}', stored()],
  ['POST', '/v1/vaults/{vault_id}', stored()],
  ['DELETE', '/v1/vaults/{vault_id}', stored()],
  ['POST', '/v1/vaults/{vault_id}/archive', stored()],
  ['GET', '/v1/vaults/{vault_id}/credentials', stored()],
  ['POST', '/v1/vaults/{vault_id}/credentials', stored()],
  ['GET', '/v1/vaults/{vault_id}/credentials/{credential_id}', stored()],
  ['POST', '/v1/vaults/{vault_id}/credentials/{credential_id}', stored()],
  ['DELETE', '/v1/vaults/{vault_id}/credentials/{credential_id}', stored()],
  ['POST', '/v1/vaults/{vault_id}/credentials/{credential_id}/archive', stored()],
  ['POST', '/v1/vaults/{vault_id}/credentials/{credential_id}/mcp_oauth_validate', stored()],

  ['GET', '/v1/tunnels', stored()],
  ['POST', '/v1/tunnels', stored()],
  ['GET', '/v1/tunnels/{tunnel_id}', stored()],
  ['POST', '/v1/tunnels/{tunnel_id}/archive', stored()],
  ['GET', '/v1/tunnels/{tunnel_id}/certificates', stored()],
  ['POST', '/v1/tunnels/{tunnel_id}/certificates', stored()],
  ['GET', '/v1/tunnels/{tunnel_id}/certificates/{certificate_id}', stored()],
  ['POST', '/v1/tunnels/{tunnel_id}/certificates/{certificate_id}/archive', stored()],
  // The connector token of the tunnel.
  ['POST', '/v1/tunnels/{tunnel_id}/reveal_token', minting()],
  ['POST', '/v1/tunnels/{tunnel_id}/rotate_token', minting()],

  ['GET', '/v1/user_profiles', stored()],
  ['POST', '/v1/user_profiles', stored()],
  ['GET', '/v1/user_profiles/{user_profile_id}', stored()],
  ['POST', '/v1/user_profiles/{user_profile_id}', stored()],
  ['DELETE', '/v1/user_profiles/{user_profile_id}', stored()],
  ['POST', '/v1/user_profiles/{user_profile_id}/action_urls', stored()],
  ['POST', '/v1/user_profiles/{user_profile_id}/enrollment_url', stored()],
]
