import { deferred, type EndpointRow, free, metered, minting, stored, unmeterable } from '../endpoint.ts'

/** Messages surface: everything but the Admin API. Paths as in @anthropic-ai/sdk 1.8, and what older clients call. */
export const MESSAGES_ENDPOINTS: readonly EndpointRow[] = [
  // Inference. `fallbacks[]` and tools may name further models.
  metered('POST', '/v1/messages', 'messages', { model: 'json', modes: ['chat'] }),
  stored('GET', '/v1/messages/batches'),
  deferred('POST', '/v1/messages/batches', { model: 'batch_entries', makes: 'message_batch' }),
  stored('GET', '/v1/messages/batches/{batch_id}', { shows: 'batch' }),
  stored('DELETE', '/v1/messages/batches/{batch_id}'),
  stored('POST', '/v1/messages/batches/{batch_id}/cancel', { shows: 'batch' }),
  // Where a batch shows its cost. The bill belongs to the key that created it, so reading it is free.
  stored('GET', '/v1/messages/batches/{batch_id}/results', { shows: 'batch' }),
  free('POST', '/v1/messages/count_tokens', { model: 'json' }),

  // Text completions of SDKs before 1.0: the reply has no usage, so nothing on the wire says what it cost.
  unmeterable('POST', '/v1/complete', { model: 'json' }),

  free('GET', '/v1/models'),
  free('GET', '/v1/models/{model}', { model: 'path' }),

  // Answers an access token that upstream takes directly.
  minting('POST', '/v1/oauth/token'),

  // Files and skills.
  stored(['GET', 'POST'], '/v1/files'),
  stored(['GET', 'DELETE'], '/v1/files/{file_id}'),
  stored('GET', '/v1/files/{file_id}/content'),

  stored(['GET', 'POST'], '/v1/skills'),
  stored(['GET', 'DELETE'], '/v1/skills/{skill_id}'),
  stored(['GET', 'POST'], '/v1/skills/{skill_id}/versions'),
  stored(['GET', 'DELETE'], '/v1/skills/{skill_id}/versions/{version}'),
  stored('GET', '/v1/skills/{skill_id}/versions/{version}/content'),

  // Managed agents. Definitions are free; a call that starts or feeds a session is paid when its tokens are known.
  stored('GET', '/v1/agents'),
  stored('POST', '/v1/agents', { model: 'json' }),
  stored('GET', '/v1/agents/{agent_id}'),
  stored('POST', '/v1/agents/{agent_id}', { model: 'json' }),
  stored('POST', '/v1/agents/{agent_id}/archive'),
  stored('GET', '/v1/agents/{agent_id}/versions'),

  stored('GET', '/v1/sessions'),
  deferred('POST', '/v1/sessions', { model: 'elsewhere' }),
  stored(['GET', 'POST', 'DELETE'], '/v1/sessions/{session_id}'),
  stored('POST', '/v1/sessions/{session_id}/archive'),
  stored('GET', '/v1/sessions/{session_id}/events'),
  deferred('POST', '/v1/sessions/{session_id}/events', { model: 'elsewhere' }),
  stored('GET', '/v1/sessions/{session_id}/events/stream'),
  stored(['GET', 'POST'], '/v1/sessions/{session_id}/resources'),
  stored(['GET', 'POST', 'DELETE'], '/v1/sessions/{session_id}/resources/{resource_id}'),
  stored('GET', '/v1/sessions/{session_id}/threads'),
  stored('GET', '/v1/sessions/{session_id}/threads/{thread_id}'),
  stored('POST', '/v1/sessions/{session_id}/threads/{thread_id}/archive'),
  stored('GET', '/v1/sessions/{session_id}/threads/{thread_id}/events'),
  stored('GET', '/v1/sessions/{session_id}/threads/{thread_id}/stream'),

  // A deployment may carry a schedule, so creating, changing or unpausing it starts sessions with no request at all.
  stored('GET', '/v1/deployments'),
  deferred('POST', '/v1/deployments', { model: 'elsewhere' }),
  stored('GET', '/v1/deployments/{deployment_id}'),
  deferred('POST', '/v1/deployments/{deployment_id}', { model: 'elsewhere' }),
  stored('POST', '/v1/deployments/{deployment_id}/archive'),
  stored('POST', '/v1/deployments/{deployment_id}/pause'),
  deferred('POST', '/v1/deployments/{deployment_id}/run', { model: 'elsewhere' }),
  deferred('POST', '/v1/deployments/{deployment_id}/unpause', { model: 'elsewhere' }),

  stored('GET', '/v1/deployment_runs'),
  stored('GET', '/v1/deployment_runs/{deployment_run_id}'),

  // Memory consolidation, a job of its own.
  stored('GET', '/v1/dreams'),
  deferred('POST', '/v1/dreams', { model: 'json' }),
  stored('GET', '/v1/dreams/{dream_id}'),
  stored('POST', '/v1/dreams/{dream_id}/archive'),
  stored('POST', '/v1/dreams/{dream_id}/cancel'),

  stored(['GET', 'POST'], '/v1/environments'),
  stored(['GET', 'POST', 'DELETE'], '/v1/environments/{environment_id}'),
  stored('POST', '/v1/environments/{environment_id}/archive'),
  stored('GET', '/v1/environments/{environment_id}/work'),
  // A work item comes with a bearer credential of its own (`sessions_token`): a GET that mints.
  minting('GET', '/v1/environments/{environment_id}/work/poll'),
  stored('GET', '/v1/environments/{environment_id}/work/stats'),
  stored(['GET', 'POST'], '/v1/environments/{environment_id}/work/{work_id}'),
  stored('POST', '/v1/environments/{environment_id}/work/{work_id}/ack'),
  stored('POST', '/v1/environments/{environment_id}/work/{work_id}/heartbeat'),
  stored('POST', '/v1/environments/{environment_id}/work/{work_id}/stop'),

  stored(['GET', 'POST'], '/v1/memory_stores'),
  stored(['GET', 'POST', 'DELETE'], '/v1/memory_stores/{memory_store_id}'),
  stored('POST', '/v1/memory_stores/{memory_store_id}/archive'),
  stored(['GET', 'POST'], '/v1/memory_stores/{memory_store_id}/memories'),
  stored(['GET', 'POST', 'DELETE'], '/v1/memory_stores/{memory_store_id}/memories/{memory_id}'),
  stored('GET', '/v1/memory_stores/{memory_store_id}/memory_versions'),
  stored('GET', '/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}'),
  stored('POST', '/v1/memory_stores/{memory_store_id}/memory_versions/{memory_version_id}/redact'),

  stored(['GET', 'POST'], '/v1/vaults'),
  stored(['GET', 'POST', 'DELETE'], '/v1/vaults/{vault_id}'),
  stored('POST', '/v1/vaults/{vault_id}/archive'),
  stored(['GET', 'POST'], '/v1/vaults/{vault_id}/credentials'),
  stored(['GET', 'POST', 'DELETE'], '/v1/vaults/{vault_id}/credentials/{credential_id}'),
  stored('POST', '/v1/vaults/{vault_id}/credentials/{credential_id}/archive'),
  stored('POST', '/v1/vaults/{vault_id}/credentials/{credential_id}/mcp_oauth_validate'),

  stored(['GET', 'POST'], '/v1/tunnels'),
  stored('GET', '/v1/tunnels/{tunnel_id}'),
  stored('POST', '/v1/tunnels/{tunnel_id}/archive'),
  stored(['GET', 'POST'], '/v1/tunnels/{tunnel_id}/certificates'),
  stored('GET', '/v1/tunnels/{tunnel_id}/certificates/{certificate_id}'),
  stored('POST', '/v1/tunnels/{tunnel_id}/certificates/{certificate_id}/archive'),
  // The connector token of the tunnel.
  minting('POST', '/v1/tunnels/{tunnel_id}/reveal_token'),
  minting('POST', '/v1/tunnels/{tunnel_id}/rotate_token'),

  stored(['GET', 'POST'], '/v1/user_profiles'),
  stored(['GET', 'POST', 'DELETE'], '/v1/user_profiles/{user_profile_id}'),
  stored('POST', '/v1/user_profiles/{user_profile_id}/action_urls'),
  stored('POST', '/v1/user_profiles/{user_profile_id}/enrollment_url'),

  // Messages surface: the Admin API. Every call shows or changes the account behind the gateway.
  stored('GET', '/v1/organizations/analytics/apps/chat/projects'),
  stored('GET', '/v1/organizations/analytics/artifacts'),
  stored('GET', '/v1/organizations/analytics/connectors'),
  stored('GET', '/v1/organizations/analytics/cost'),
  stored('GET', '/v1/organizations/analytics/cost_report'),
  stored('GET', '/v1/organizations/analytics/plugins'),
  stored('GET', '/v1/organizations/analytics/skills'),
  stored('GET', '/v1/organizations/analytics/summaries'),
  stored('GET', '/v1/organizations/analytics/usage'),
  stored('GET', '/v1/organizations/analytics/usage_report'),
  stored('GET', '/v1/organizations/analytics/user_cost_report'),
  stored('GET', '/v1/organizations/analytics/user_usage_report'),
  stored('GET', '/v1/organizations/analytics/users'),

  stored('GET', '/v1/organizations/api_keys'),
  stored(['GET', 'POST'], '/v1/organizations/api_keys/{api_key_id}'),

  stored('GET', '/v1/organizations/claude_tag/bundles'),
  stored('GET', '/v1/organizations/claude_tag/bundles/{bundle_id}'),
  stored(['GET', 'POST'], '/v1/organizations/claude_tag/bundles/{bundle_id}/targets'),
  stored(['GET', 'DELETE'], '/v1/organizations/claude_tag/bundles/{bundle_id}/targets/{target_id}'),
  stored(['GET', 'POST'], '/v1/organizations/claude_tag/slack_channels'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/claude_tag/slack_channels/{id}'),
  stored('GET', '/v1/organizations/claude_tag/slack_workspaces'),
  stored(['GET', 'POST'], '/v1/organizations/claude_tag/slack_workspaces/{id}'),

  stored(['GET', 'POST'], '/v1/organizations/compliance_settings'),

  // Reports that no SDK has, but that the Admin API documents.
  stored('GET', '/v1/organizations/cost_report'),

  stored(['GET', 'POST'], '/v1/organizations/external_keys'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/external_keys/{external_key_id}'),
  stored('POST', '/v1/organizations/external_keys/{external_key_id}/validate'),

  stored('GET', '/v1/organizations/federation_issuers'),
  // Trusting an issuer, or a rule of it, lets its tokens be exchanged for upstream ones from anywhere.
  minting('POST', '/v1/organizations/federation_issuers'),
  stored('GET', '/v1/organizations/federation_issuers/{federation_issuer_id}'),
  minting('POST', '/v1/organizations/federation_issuers/{federation_issuer_id}'),
  stored('POST', '/v1/organizations/federation_issuers/{federation_issuer_id}/archive'),

  stored('GET', '/v1/organizations/federation_rules'),
  minting('POST', '/v1/organizations/federation_rules'),
  stored('GET', '/v1/organizations/federation_rules/{federation_rule_id}'),
  minting('POST', '/v1/organizations/federation_rules/{federation_rule_id}'),
  stored('POST', '/v1/organizations/federation_rules/{federation_rule_id}/archive'),
  stored('GET', '/v1/organizations/federation_rules/{federation_rule_id}/workspaces'),
  minting('POST', '/v1/organizations/federation_rules/{federation_rule_id}/workspaces'),
  stored('DELETE', '/v1/organizations/federation_rules/{federation_rule_id}/workspaces/{workspace_id}'),

  stored('GET', '/v1/organizations/invites'),
  // An invited member makes keys of their own.
  minting('POST', '/v1/organizations/invites'),
  stored(['GET', 'DELETE'], '/v1/organizations/invites/{invite_id}'),

  stored('GET', '/v1/organizations/me'),

  stored('GET', '/v1/organizations/plugin_marketplaces'),
  stored('POST', '/v1/organizations/plugin_marketplaces/validate_archive'),
  stored('POST', '/v1/organizations/plugin_marketplaces/validate_repository'),
  stored(['GET', 'POST'], '/v1/organizations/plugin_marketplaces/{marketplace_id}'),

  stored(['GET', 'POST'], '/v1/organizations/plugins'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/plugins/{plugin_id}'),
  stored('GET', '/v1/organizations/plugins/{plugin_id}/installation_settings'),
  stored(['POST', 'DELETE'], '/v1/organizations/plugins/{plugin_id}/installation_settings/{target}'),
  stored('GET', '/v1/organizations/plugins/{plugin_id}/shares'),
  stored(['GET', 'POST'], '/v1/organizations/plugins/{plugin_id}/versions'),
  stored('GET', '/v1/organizations/plugins/{plugin_id}/versions/{version}'),
  stored('GET', '/v1/organizations/plugins/{plugin_id}/versions/{version}/content'),

  stored('GET', '/v1/organizations/rate_limits'),

  stored(['GET', 'POST'], '/v1/organizations/rbac_groups'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/rbac_groups/{rbac_group_id}'),
  stored(['GET', 'POST'], '/v1/organizations/rbac_groups/{rbac_group_id}/members'),
  stored('DELETE', '/v1/organizations/rbac_groups/{rbac_group_id}/members/{user_id}'),

  stored('GET', '/v1/organizations/rbac_roles'),
  stored('GET', '/v1/organizations/rbac_roles/{rbac_role_id}'),
  stored('GET', '/v1/organizations/rbac_roles/{rbac_role_id}/permissions'),

  stored(['GET', 'POST'], '/v1/organizations/service_accounts'),
  stored(['GET', 'POST'], '/v1/organizations/service_accounts/{service_account_id}'),
  stored('POST', '/v1/organizations/service_accounts/{service_account_id}/archive'),
  stored(['GET', 'POST'], '/v1/organizations/service_accounts/{service_account_id}/workspaces'),
  stored('DELETE', '/v1/organizations/service_accounts/{service_account_id}/workspaces/{workspace_id}'),

  stored('GET', '/v1/organizations/spend_limit_increase_requests'),
  stored('GET', '/v1/organizations/spend_limit_increase_requests/{request_id}'),
  stored('POST', '/v1/organizations/spend_limit_increase_requests/{request_id}/approve'),
  stored('POST', '/v1/organizations/spend_limit_increase_requests/{request_id}/deny'),

  stored(['GET', 'POST'], '/v1/organizations/spend_limits'),
  stored('GET', '/v1/organizations/spend_limits/effective'),
  stored(['GET', 'DELETE'], '/v1/organizations/spend_limits/{spend_limit_id}'),

  stored(['GET', 'POST'], '/v1/organizations/telemetry_destinations'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/telemetry_destinations/{destination_id}'),
  stored('POST', '/v1/organizations/telemetry_destinations/{destination_id}/test'),
  stored('GET', '/v1/organizations/telemetry_destinations/{destination_id}/workspaces'),
  stored(
    ['POST', 'DELETE'],
    '/v1/organizations/telemetry_destinations/{destination_id}/workspaces/{workspace_id}',
  ),

  stored('GET', '/v1/organizations/usage_report/claude_code'),
  stored('GET', '/v1/organizations/usage_report/messages'),

  stored('GET', '/v1/organizations/users'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/users/{user_id}'),
  stored('POST', '/v1/organizations/users/{user_id}/sign_out'),

  stored(['GET', 'POST'], '/v1/organizations/webhooks'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/webhooks/{webhook_endpoint_id}'),
  // The secret signs what upstream sends out. It opens nothing upstream, so it is not a minted credential.
  stored('POST', '/v1/organizations/webhooks/{webhook_endpoint_id}/regenerate_signing_secret'),

  stored(['GET', 'POST'], '/v1/organizations/workspaces'),
  stored(['GET', 'POST'], '/v1/organizations/workspaces/{workspace_id}'),
  stored('POST', '/v1/organizations/workspaces/{workspace_id}/archive'),
  stored(['GET', 'POST'], '/v1/organizations/workspaces/{workspace_id}/members'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organizations/workspaces/{workspace_id}/members/{user_id}'),
  stored('GET', '/v1/organizations/workspaces/{workspace_id}/rate_limits'),
  stored('POST', '/v1/organizations/workspaces/{workspace_id}/rate_limits/{rate_limit_id}'),
  stored(['GET', 'POST'], '/v1/organizations/workspaces/{workspace_id}/service_accounts'),
  stored(
    ['GET', 'POST', 'DELETE'],
    '/v1/organizations/workspaces/{workspace_id}/service_accounts/{service_account_id}',
  ),
]
