import { deferred, type EndpointRow, free, metered, minting, stored, unmeterable } from '../endpoint.ts'

/** Chat surface: inference, and the sockets and calls that lead to it. Paths as in openai 7.53. */
export const CHAT_ENDPOINTS: readonly EndpointRow[] = [
  stored('GET', '/v1/chat/completions'),
  // Stored completions repeat their usage; only the POST that made them is paid.
  metered('POST', '/v1/chat/completions', 'chat', { model: 'json', modes: ['chat'], hasSearchFee: true }),
  stored(['GET', 'POST', 'DELETE'], '/v1/chat/completions/{completion_id}'),
  stored('GET', '/v1/chat/completions/{completion_id}/messages'),

  metered('POST', '/v1/completions', 'completions', { model: 'json', modes: ['completion'] }),

  metered('POST', '/v1/responses', 'responses', { model: 'json', modes: ['chat', 'responses'] }),
  // One socket carries many responses, each naming its model in its own `response.create`.
  metered('WS', '/v1/responses', 'responses', {
    socket: 'responses',
    model: 'elsewhere',
    modes: ['chat', 'responses'],
  }),
  metered('POST', '/v1/responses/compact', 'compaction', {
    model: 'json',
    modes: ['chat', 'responses'],
    statesTier: false,
  }),
  free('POST', '/v1/responses/input_tokens', { model: 'json' }),
  // Repeats the usage of the response, also when resumed as a stream: never paid again.
  stored('GET', '/v1/responses/{response_id}', { shows: 'responses' }),
  stored('DELETE', '/v1/responses/{response_id}'),
  stored('POST', '/v1/responses/{response_id}/cancel', { shows: 'responses' }),
  stored('GET', '/v1/responses/{response_id}/input_items'),

  metered('POST', '/v1/embeddings', 'embeddings', {
    model: 'json',
    modes: ['embedding'],
    inputTokensMax: 3_00000,
  }),

  metered('POST', '/v1/decisions', 'decisions', { model: 'json', modes: ['chat', 'responses'] }),

  free('POST', '/v1/moderations', { model: 'json' }),

  metered('POST', '/v1/images/edits', 'images', { model: 'multipart', modes: ['image'] }),
  metered('POST', '/v1/images/generations', 'images', { model: 'json', modes: ['image'] }),
  // Retired upstream; if it ever answers, its price is not known.
  unmeterable('POST', '/v1/images/variations', { model: 'multipart' }),

  metered('POST', '/v1/audio/speech', 'speech', { model: 'json', modes: ['audio_speech'] }),
  metered('POST', '/v1/audio/transcriptions', 'transcription', {
    model: 'multipart',
    modes: ['audio_transcription'],
  }),
  metered('POST', '/v1/audio/translations', 'transcription', {
    model: 'multipart',
    modes: ['audio_transcription'],
  }),
  stored(['GET', 'POST'], '/v1/audio/voice_consents'),
  stored(['GET', 'POST', 'DELETE'], '/v1/audio/voice_consents/{consent_id}'),
  stored('POST', '/v1/audio/voices'),
  stored('DELETE', '/v1/audio/voices/{voice_id}'),

  free('GET', '/v1/models'),
  free('GET', '/v1/models/{model}', { model: 'path' }),
  // Deletes a fine-tuned model.
  stored('DELETE', '/v1/models/{model}', { model: 'path' }),

  free('POST', '/v1/content_provenance_checks'),

  // Metered with `?model=` alone; with `?call_id=` or `?intent=transcription` an unmetered socket.
  metered('WS', '/v1/realtime', 'realtime', {
    socket: 'realtime',
    model: 'query',
    modes: ['realtime', 'audio_transcription'],
  }),
  // Sets up WebRTC; the media and its cost flow outside the gateway. The form's `session` part names the model.
  unmeterable('POST', '/v1/realtime/calls', { model: 'elsewhere' }),
  // Answering starts the paid session, and its transcription is paid at a model of its own; ending, moving or declining a call costs nothing.
  unmeterable('POST', '/v1/realtime/calls/{call_id}/accept', { model: 'elsewhere', stateful: true }),
  stored('POST', '/v1/realtime/calls/{call_id}/hangup'),
  stored('POST', '/v1/realtime/calls/{call_id}/refer'),
  stored('POST', '/v1/realtime/calls/{call_id}/reject'),
  // Ephemeral keys (`ek_…`) that a browser uses against upstream directly.
  minting('POST', '/v1/realtime/client_secrets', { model: 'elsewhere' }),
  minting('POST', '/v1/realtime/sessions', { model: 'json' }),
  minting('POST', '/v1/realtime/transcription_sessions', { model: 'elsewhere' }),
  unmeterable('WS', '/v1/realtime/translations'),
  minting('POST', '/v1/realtime/translations/client_secrets', { model: 'elsewhere' }),

  // Media and cost flow outside the gateway, or over a socket that is not metered.
  unmeterable('POST', '/v1/live/sessions', { model: 'elsewhere' }),
  unmeterable('WS', '/v1/live/sessions'),
  unmeterable('POST', '/v1/live/sessions/{session_id}/accept', { model: 'elsewhere', stateful: true }),
  unmeterable('WS', '/v1/live/sessions/{session_id}/attach', { stateful: true }),
  stored('GET', '/v1/live/sessions/{session_id}/content'),
  unmeterable('POST', '/v1/live/sessions/{session_id}/fork', { model: 'elsewhere', stateful: true }),
  unmeterable('WS', '/v1/live/sessions/{session_id}/fork', { stateful: true }),
  stored('POST', '/v1/live/sessions/{session_id}/hangup'),
  stored('POST', '/v1/live/sessions/{session_id}/refer'),
  stored('POST', '/v1/live/sessions/{session_id}/reject'),

  // Answers a `client_secret` for a browser that then talks to upstream directly; its workflow names the model.
  minting('POST', '/v1/chatkit/sessions', { model: 'elsewhere' }),
  stored('POST', '/v1/chatkit/sessions/{session_id}/cancel'),
  stored('GET', '/v1/chatkit/threads'),
  stored(['GET', 'DELETE'], '/v1/chatkit/threads/{thread_id}'),
  stored('GET', '/v1/chatkit/threads/{thread_id}/items'),

  // Chat surface: objects stored under the account, and the jobs, runs and sessions that are paid later.
  stored(['GET', 'POST'], '/v1/files'),
  stored(['GET', 'DELETE'], '/v1/files/{file_id}'),
  stored('GET', '/v1/files/{file_id}/content'),

  stored('POST', '/v1/uploads'),
  stored('POST', '/v1/uploads/{upload_id}/cancel'),
  stored('POST', '/v1/uploads/{upload_id}/complete'),
  stored('POST', '/v1/uploads/{upload_id}/parts'),

  stored('GET', '/v1/batches'),
  // Models and requests are in an uploaded file, which this body only refers to.
  deferred('POST', '/v1/batches', { model: 'batch_file', makes: 'batch' }),
  stored('GET', '/v1/batches/{batch_id}', { shows: 'batch' }),
  stored('POST', '/v1/batches/{batch_id}/cancel', { shows: 'batch' }),

  // Items may bring tools that name models of their own, for every response that refers to the conversation.
  stored('POST', '/v1/conversations', { model: 'json' }),
  stored(['GET', 'POST', 'DELETE'], '/v1/conversations/{conversation_id}'),
  stored('GET', '/v1/conversations/{conversation_id}/items'),
  stored('POST', '/v1/conversations/{conversation_id}/items', { model: 'json' }),
  stored(['GET', 'DELETE'], '/v1/conversations/{conversation_id}/items/{item_id}'),

  stored('GET', '/v1/containers'),
  // Paid per container session; nothing on the wire says so.
  unmeterable('POST', '/v1/containers', { stateful: true }),
  stored(['GET', 'DELETE'], '/v1/containers/{container_id}'),
  stored(['GET', 'POST'], '/v1/containers/{container_id}/files'),
  stored(['GET', 'DELETE'], '/v1/containers/{container_id}/files/{file_id}'),
  stored('GET', '/v1/containers/{container_id}/files/{file_id}/content'),

  stored('GET', '/v1/vector_stores'),
  // What fills or searches a store is paid by GB-day and by call; nothing on the wire says so.
  unmeterable('POST', '/v1/vector_stores', { stateful: true }),
  stored(['GET', 'POST', 'DELETE'], '/v1/vector_stores/{vector_store_id}'),
  unmeterable('POST', '/v1/vector_stores/{vector_store_id}/file_batches', { stateful: true }),
  stored('GET', '/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}'),
  stored('POST', '/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel'),
  stored('GET', '/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files'),
  stored('GET', '/v1/vector_stores/{vector_store_id}/files'),
  unmeterable('POST', '/v1/vector_stores/{vector_store_id}/files', { stateful: true }),
  stored(['GET', 'POST', 'DELETE'], '/v1/vector_stores/{vector_store_id}/files/{file_id}'),
  stored('GET', '/v1/vector_stores/{vector_store_id}/files/{file_id}/content'),
  unmeterable('POST', '/v1/vector_stores/{vector_store_id}/search', { stateful: true }),

  // Shut down upstream: videos on 2026-09-24, Assistants on 2026-08-26. Nothing here reads what they cost.
  stored('GET', '/v1/videos'),
  unmeterable('POST', '/v1/videos', { stateful: true }),
  unmeterable('POST', '/v1/videos/characters', { stateful: true }),
  stored('GET', '/v1/videos/characters/{character_id}'),
  unmeterable('POST', '/v1/videos/edits', { stateful: true }),
  unmeterable('POST', '/v1/videos/extensions', { stateful: true }),
  stored(['GET', 'DELETE'], '/v1/videos/{video_id}'),
  stored('GET', '/v1/videos/{video_id}/content'),
  unmeterable('POST', '/v1/videos/{video_id}/remix', { stateful: true }),
  stored('GET', '/v1/assistants'),
  unmeterable('POST', '/v1/assistants', { stateful: true }),
  stored(['GET', 'DELETE'], '/v1/assistants/{assistant_id}'),
  unmeterable('POST', '/v1/assistants/{assistant_id}', { stateful: true }),
  unmeterable('POST', '/v1/threads', { stateful: true }),
  unmeterable('POST', '/v1/threads/runs', { stateful: true }),
  stored(['GET', 'DELETE'], '/v1/threads/{thread_id}'),
  unmeterable('POST', '/v1/threads/{thread_id}', { stateful: true }),
  stored('GET', '/v1/threads/{thread_id}/messages'),
  unmeterable('POST', '/v1/threads/{thread_id}/messages', { stateful: true }),
  stored(['GET', 'DELETE'], '/v1/threads/{thread_id}/messages/{message_id}'),
  unmeterable('POST', '/v1/threads/{thread_id}/messages/{message_id}', { stateful: true }),
  stored('GET', '/v1/threads/{thread_id}/runs'),
  unmeterable('POST', '/v1/threads/{thread_id}/runs', { stateful: true }),
  stored('GET', '/v1/threads/{thread_id}/runs/{run_id}'),
  unmeterable('POST', '/v1/threads/{thread_id}/runs/{run_id}', { stateful: true }),
  unmeterable('POST', '/v1/threads/{thread_id}/runs/{run_id}/cancel', { stateful: true }),
  stored('GET', '/v1/threads/{thread_id}/runs/{run_id}/steps'),
  stored('GET', '/v1/threads/{thread_id}/runs/{run_id}/steps/{step_id}'),
  unmeterable('POST', '/v1/threads/{thread_id}/runs/{run_id}/submit_tool_outputs', { stateful: true }),

  // Runs model graders at once, but reports their tokens in the shape of an eval run.
  deferred('POST', '/v1/fine_tuning/alpha/graders/run', { model: 'elsewhere' }),
  free('POST', '/v1/fine_tuning/alpha/graders/validate', { model: 'elsewhere' }),
  stored(['GET', 'POST'], '/v1/fine_tuning/checkpoints/{model}/permissions', { model: 'path' }),
  stored('DELETE', '/v1/fine_tuning/checkpoints/{model}/permissions/{permission_id}', { model: 'path' }),
  stored('GET', '/v1/fine_tuning/jobs'),
  deferred('POST', '/v1/fine_tuning/jobs', { model: 'json' }),
  stored('GET', '/v1/fine_tuning/jobs/{job_id}'),
  stored('POST', '/v1/fine_tuning/jobs/{job_id}/cancel'),
  stored('GET', '/v1/fine_tuning/jobs/{job_id}/checkpoints'),
  stored('GET', '/v1/fine_tuning/jobs/{job_id}/events'),
  stored('POST', '/v1/fine_tuning/jobs/{job_id}/pause'),
  deferred('POST', '/v1/fine_tuning/jobs/{job_id}/resume', { model: 'elsewhere' }),

  stored('GET', '/v1/evals'),
  stored('POST', '/v1/evals', { model: 'elsewhere' }),
  stored(['GET', 'POST', 'DELETE'], '/v1/evals/{eval_id}'),
  stored('GET', '/v1/evals/{eval_id}/runs'),
  deferred('POST', '/v1/evals/{eval_id}/runs', { model: 'elsewhere' }),
  stored('GET', '/v1/evals/{eval_id}/runs/{run_id}'),
  // How openai 4 spells cancelling a run.
  stored(['POST', 'DELETE'], '/v1/evals/{eval_id}/runs/{run_id}'),
  stored('POST', '/v1/evals/{eval_id}/runs/{run_id}/cancel'),
  stored('GET', '/v1/evals/{eval_id}/runs/{run_id}/output_items'),
  stored('GET', '/v1/evals/{eval_id}/runs/{run_id}/output_items/{output_item_id}'),

  stored('GET', '/v1/agents'),
  stored('POST', '/v1/agents', { model: 'json' }),
  // Automations start sessions on a schedule, with no request at all.
  stored('GET', '/v1/agents/automations'),
  deferred('POST', '/v1/agents/automations', { model: 'elsewhere' }),
  stored('GET', '/v1/agents/automations/{automation_id}'),
  deferred('POST', '/v1/agents/automations/{automation_id}', { model: 'elsewhere' }),
  stored('DELETE', '/v1/agents/automations/{automation_id}'),
  stored('GET', '/v1/agents/automations/{automation_id}/invocations'),
  deferred('POST', '/v1/agents/automations/{automation_id}/invocations', { model: 'elsewhere' }),
  stored('GET', '/v1/agents/automations/{automation_id}/invocations/{invocation_id}'),
  stored('POST', '/v1/agents/automations/{automation_id}/pause'),
  deferred('POST', '/v1/agents/automations/{automation_id}/resume', { model: 'elsewhere' }),
  stored('GET', '/v1/agents/environments'),
  // Starts a hosted sandbox ahead of any session.
  deferred('POST', '/v1/agents/environments'),
  stored(['GET', 'POST'], '/v1/agents/environments/templates'),
  stored(['GET', 'POST', 'DELETE'], '/v1/agents/environments/templates/{template_id}'),
  stored('GET', '/v1/agents/environments/{environment_id}'),
  stored(['GET', 'POST'], '/v1/agents/environments/{environment_id}/files'),
  stored('GET', '/v1/agents/sessions'),
  deferred('POST', '/v1/agents/sessions', { model: 'elsewhere' }),
  stored('GET', '/v1/agents/sessions/{session_id}'),
  // May change the model of later turns (`agent.model`).
  stored('POST', '/v1/agents/sessions/{session_id}', { model: 'elsewhere' }),
  stored('DELETE', '/v1/agents/sessions/{session_id}'),
  stored('GET', '/v1/agents/sessions/{session_id}/artifacts'),
  stored(['GET', 'DELETE'], '/v1/agents/sessions/{session_id}/artifacts/{artifact_id}'),
  stored('GET', '/v1/agents/sessions/{session_id}/artifacts/{artifact_id}/content'),
  stored('GET', '/v1/agents/sessions/{session_id}/events'),
  deferred('POST', '/v1/agents/sessions/{session_id}/events', { model: 'elsewhere' }),
  stored('GET', '/v1/agents/sessions/{session_id}/items'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents/{subagent_id}'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents/{subagent_id}/items'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents/{subagent_id}/turns'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents/{subagent_id}/turns/{turn_id}'),
  stored('GET', '/v1/agents/sessions/{session_id}/subagents/{subagent_id}/turns/{turn_id}/items'),
  stored('GET', '/v1/agents/sessions/{session_id}/traces'),
  stored('GET', '/v1/agents/sessions/{session_id}/turns'),
  stored('GET', '/v1/agents/sessions/{session_id}/turns/{turn_id}'),
  stored('GET', '/v1/agents/sessions/{session_id}/turns/{turn_id}/items'),
  stored('GET', '/v1/agents/{agent_id}'),
  stored('POST', '/v1/agents/{agent_id}', { model: 'json' }),
  stored('DELETE', '/v1/agents/{agent_id}'),

  stored(['GET', 'POST'], '/v1/skills'),
  stored(['GET', 'POST', 'DELETE'], '/v1/skills/{skill_id}'),
  stored('GET', '/v1/skills/{skill_id}/content'),
  stored(['GET', 'POST'], '/v1/skills/{skill_id}/versions'),
  stored(['GET', 'DELETE'], '/v1/skills/{skill_id}/versions/{version}'),
  stored('GET', '/v1/skills/{skill_id}/versions/{version}/content'),

  stored(['GET', 'POST'], '/v1/vaults'),
  stored(['GET', 'POST', 'DELETE'], '/v1/vaults/{vault_id}'),
  stored(['GET', 'POST'], '/v1/vaults/{vault_id}/credentials'),
  stored(['GET', 'POST', 'DELETE'], '/v1/vaults/{vault_id}/credentials/{credential_id}'),

  stored('GET', '/v1/safety/alerts/{id}'),
  stored('GET', '/v1/safety/cases/{id}'),

  // Signing secrets verify what upstream sends out; they open nothing upstream, so they are not minted credentials.
  stored(['GET', 'POST'], '/v1/webhook_endpoints'),
  stored(['GET', 'POST', 'DELETE'], '/v1/webhook_endpoints/{webhook_endpoint_id}'),
  stored('POST', '/v1/webhook_endpoints/{webhook_endpoint_id}/rotate_secret'),
  stored('POST', '/v1/webhook_endpoints/{webhook_endpoint_id}/test'),

  free('GET', '/v1/webhook_event_types'),

  // Chat surface: the Admin API. Every call shows or changes the account behind the gateway.
  stored('GET', '/v1/organization/admin_api_keys'),
  // A key for the whole organization.
  minting('POST', '/v1/organization/admin_api_keys'),
  stored(['GET', 'DELETE'], '/v1/organization/admin_api_keys/{key_id}'),

  stored('GET', '/v1/organization/audit_logs'),

  stored(['GET', 'POST'], '/v1/organization/certificates'),
  stored('POST', '/v1/organization/certificates/activate'),
  stored('POST', '/v1/organization/certificates/deactivate'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/certificates/{certificate_id}'),

  stored('GET', '/v1/organization/costs'),

  stored(['GET', 'POST'], '/v1/organization/data_retention'),

  stored(['GET', 'POST'], '/v1/organization/external_keys'),
  stored(['GET', 'DELETE'], '/v1/organization/external_keys/{external_key_id}'),
  stored('POST', '/v1/organization/external_keys/{external_key_id}/validate'),

  stored(['GET', 'POST'], '/v1/organization/external_storage'),
  stored(['GET', 'DELETE'], '/v1/organization/external_storage/{external_storage_id}'),
  stored('POST', '/v1/organization/external_storage/{external_storage_id}/validate'),

  stored(['GET', 'POST'], '/v1/organization/groups'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/groups/{group_id}'),
  stored(['GET', 'POST'], '/v1/organization/groups/{group_id}/roles'),
  stored(['GET', 'DELETE'], '/v1/organization/groups/{group_id}/roles/{role_id}'),
  stored(['GET', 'POST'], '/v1/organization/groups/{group_id}/users'),
  stored(['GET', 'DELETE'], '/v1/organization/groups/{group_id}/users/{user_id}'),

  stored('GET', '/v1/organization/invites'),
  // An invited member makes keys of their own.
  minting('POST', '/v1/organization/invites'),
  stored(['GET', 'DELETE'], '/v1/organization/invites/{invite_id}'),

  stored(['GET', 'POST'], '/v1/organization/projects'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}'),
  stored('GET', '/v1/organization/projects/{project_id}/api_keys'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/api_keys/{api_key_id}'),
  stored('POST', '/v1/organization/projects/{project_id}/archive'),
  stored('GET', '/v1/organization/projects/{project_id}/certificates'),
  stored('POST', '/v1/organization/projects/{project_id}/certificates/activate'),
  stored('POST', '/v1/organization/projects/{project_id}/certificates/deactivate'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/data_retention'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/groups'),
  stored(['GET', 'DELETE'], '/v1/organization/projects/{project_id}/groups/{group_id}'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/hosted_tool_permissions'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/model_permissions'),
  stored('GET', '/v1/organization/projects/{project_id}/rate_limits'),
  stored('POST', '/v1/organization/projects/{project_id}/rate_limits/{rate_limit_id}'),
  stored('GET', '/v1/organization/projects/{project_id}/service_accounts'),
  // The reply has the API key of the new service account.
  minting('POST', '/v1/organization/projects/{project_id}/service_accounts'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/service_accounts/{account_id}'),
  minting('POST', '/v1/organization/projects/{project_id}/service_accounts/{account_id}/api_keys'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/service_tier_settings'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/spend_alerts'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/spend_alerts/{alert_id}'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/spend_limit'),
  stored(['GET', 'POST'], '/v1/organization/projects/{project_id}/users'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/projects/{project_id}/users/{user_id}'),

  stored(['GET', 'POST'], '/v1/organization/roles'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/roles/{role_id}'),

  stored(['GET', 'POST'], '/v1/organization/spend_alerts'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/spend_alerts/{alert_id}'),

  stored(['GET', 'POST', 'DELETE'], '/v1/organization/spend_limit'),

  stored('GET', '/v1/organization/usage/audio_speeches'),
  stored('GET', '/v1/organization/usage/audio_transcriptions'),
  stored('GET', '/v1/organization/usage/code_interpreter_sessions'),
  stored('GET', '/v1/organization/usage/completions'),
  stored('GET', '/v1/organization/usage/decisions'),
  stored('GET', '/v1/organization/usage/embeddings'),
  stored('GET', '/v1/organization/usage/file_search_calls'),
  stored('GET', '/v1/organization/usage/images'),
  stored('GET', '/v1/organization/usage/moderations'),
  stored('GET', '/v1/organization/usage/vector_stores'),
  stored('GET', '/v1/organization/usage/web_search_calls'),

  stored('GET', '/v1/organization/users'),
  stored(['GET', 'POST', 'DELETE'], '/v1/organization/users/{user_id}'),
  stored(['GET', 'POST'], '/v1/organization/users/{user_id}/roles'),
  stored(['GET', 'DELETE'], '/v1/organization/users/{user_id}/roles/{role_id}'),

  stored('GET', '/v1/organization/workload_identity_providers'),
  // Trusting a provider, or a rule of it, lets its tokens be exchanged for upstream ones from anywhere.
  minting('POST', '/v1/organization/workload_identity_providers'),
  stored('GET', '/v1/organization/workload_identity_providers/{id}'),
  minting('POST', '/v1/organization/workload_identity_providers/{id}'),
  stored('DELETE', '/v1/organization/workload_identity_providers/{id}'),
  stored('GET', '/v1/organization/workload_identity_providers/{id}/federation_rules'),
  minting('POST', '/v1/organization/workload_identity_providers/{id}/federation_rules'),
  stored('GET', '/v1/organization/workload_identity_providers/{id}/federation_rules/{rule_id}'),
  minting('POST', '/v1/organization/workload_identity_providers/{id}/federation_rules/{rule_id}'),
  stored('DELETE', '/v1/organization/workload_identity_providers/{id}/federation_rules/{rule_id}'),

  stored(['GET', 'POST'], '/v1/projects/{project_id}/groups/{group_id}/roles'),
  stored(['GET', 'DELETE'], '/v1/projects/{project_id}/groups/{group_id}/roles/{role_id}'),
  stored(['GET', 'POST'], '/v1/projects/{project_id}/roles'),
  stored(['GET', 'POST', 'DELETE'], '/v1/projects/{project_id}/roles/{role_id}'),
  stored(['GET', 'POST'], '/v1/projects/{project_id}/users/{user_id}/roles'),
  stored(['GET', 'DELETE'], '/v1/projects/{project_id}/users/{user_id}/roles/{role_id}'),
]
