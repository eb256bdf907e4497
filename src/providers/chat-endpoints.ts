import { type EndpointRow, free, metered, minting, onStored, stored, unmeterable } from './endpoint.ts'

/** Chat surface: inference, and the sockets and calls that lead to it. Paths as in openai 7.53. */
export const chatEndpoints: readonly EndpointRow[] = [
  ['GET', '/v1/chat/completions', stored()],
  // Stored completions repeat their usage; only the POST that made them is paid.
  ['POST', '/v1/chat/completions', metered('chat', 'json')],
  ['GET', '/v1/chat/completions/{completion_id}', stored()],
  ['POST', '/v1/chat/completions/{completion_id}', stored()],
  ['DELETE', '/v1/chat/completions/{completion_id}', stored()],
  ['GET', '/v1/chat/completions/{completion_id}/messages', stored()],

  ['POST', '/v1/completions', metered('completions', 'json')],

  ['POST', '/v1/responses', metered('responses', 'json')],
  // One socket carries many responses, each naming its model in its own `response.create`.
  ['WS', '/v1/responses', metered('responses', 'elsewhere')],
  ['POST', '/v1/responses/compact', metered('compaction', 'json')],
  ['POST', '/v1/responses/input_tokens', free('json')],
  // Repeats the usage of the response, also when resumed as a stream: never paid again.
  ['GET', '/v1/responses/{response_id}', stored()],
  ['DELETE', '/v1/responses/{response_id}', stored()],
  ['POST', '/v1/responses/{response_id}/cancel', stored()],
  ['GET', '/v1/responses/{response_id}/input_items', stored()],

  ['POST', '/v1/embeddings', metered('embeddings', 'json')],

  ['POST', '/v1/decisions', metered('decisions', 'json')],

  ['POST', '/v1/moderations', free('json')],

  ['POST', '/v1/images/edits', metered('images', 'multipart')],
  ['POST', '/v1/images/generations', metered('images', 'json')],
  // Retired upstream; if it ever answers, nobody knows its price.
  ['POST', '/v1/images/variations', unmeterable('multipart')],

  ['POST', '/v1/audio/speech', metered('speech', 'json')],
  ['POST', '/v1/audio/transcriptions', metered('transcription', 'multipart')],
  // Paid by the minute, and the reply states no usage.
  ['POST', '/v1/audio/translations', unmeterable('multipart')],
  ['GET', '/v1/audio/voice_consents', stored()],
  ['POST', '/v1/audio/voice_consents', stored()],
  ['GET', '/v1/audio/voice_consents/{consent_id}', stored()],
  ['POST', '/v1/audio/voice_consents/{consent_id}', stored()],
  ['DELETE', '/v1/audio/voice_consents/{consent_id}', stored()],
  ['POST', '/v1/audio/voices', stored()],
  ['DELETE', '/v1/audio/voices/{voice_id}', stored()],

  ['GET', '/v1/models', free()],
  ['GET', '/v1/models/{model}', free('path')],
  // Deletes a fine-tuned model.
  ['DELETE', '/v1/models/{model}', stored('path')],

  ['POST', '/v1/content_provenance_checks', free()],

  // `?model=`, or `?call_id=` or `?intent=transcription`, where no parameter names it.
  ['WS', '/v1/realtime', metered('realtime', 'query')],
  // Sets up WebRTC; the media and its cost flow outside the gateway. The form's `session` part names
  // the model.
  ['POST', '/v1/realtime/calls', unmeterable('nested', 'multipart')],
  // Answering starts the paid session, and its transcription is paid at a model of its own; ending, moving or
  // declining a call costs nothing.
  ['POST', '/v1/realtime/calls/{call_id}/accept', onStored(unmeterable('nested'))],
  ['POST', '/v1/realtime/calls/{call_id}/hangup', stored()],
  ['POST', '/v1/realtime/calls/{call_id}/refer', stored()],
  ['POST', '/v1/realtime/calls/{call_id}/reject', stored()],
  // Ephemeral keys (`ek_…`) that a browser uses against upstream directly.
  ['POST', '/v1/realtime/client_secrets', minting('nested')],
  ['POST', '/v1/realtime/sessions', minting('json')],
  ['POST', '/v1/realtime/transcription_sessions', minting('nested')],
  // No event of this socket states usage.
  ['WS', '/v1/realtime/translations', unmeterable('query')],
  ['POST', '/v1/realtime/translations/client_secrets', minting('nested')],

  // By POST the media flows outside the gateway; by WebSocket the server states running totals of
  // seconds.
  ['POST', '/v1/live/sessions', unmeterable('nested')],
  ['WS', '/v1/live/sessions', metered('live', 'elsewhere')],
  ['POST', '/v1/live/sessions/{session_id}/accept', onStored(unmeterable('nested'))],
  ['WS', '/v1/live/sessions/{session_id}/attach', onStored(metered('live', 'elsewhere'))],
  ['GET', '/v1/live/sessions/{session_id}/content', stored()],
  ['POST', '/v1/live/sessions/{session_id}/fork', onStored(unmeterable('elsewhere'))],
  ['WS', '/v1/live/sessions/{session_id}/fork', onStored(metered('live', 'elsewhere'))],
  ['POST', '/v1/live/sessions/{session_id}/hangup', stored()],
  ['POST', '/v1/live/sessions/{session_id}/refer', stored()],
  ['POST', '/v1/live/sessions/{session_id}/reject', stored()],

  // Answers a `client_secret` for a browser that then talks to upstream directly; its workflow names
  // the model.
  ['POST', '/v1/chatkit/sessions', minting('elsewhere')],
  ['POST', '/v1/chatkit/sessions/{session_id}/cancel', stored()],
  ['GET', '/v1/chatkit/threads', stored()],
  ['GET', '/v1/chatkit/threads/{thread_id}', stored()],
  ['DELETE', '/v1/chatkit/threads/{thread_id}', stored()],
  ['GET', '/v1/chatkit/threads/{thread_id}/items', stored()],
]
