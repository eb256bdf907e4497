CREATE TABLE schema_version (version integer NOT NULL, oldest_version integer NOT NULL);
    INSERT INTO schema_version (version, oldest_version) VALUES (1, 1);
CREATE TABLE setting (
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE TABLE account (
  id TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT 'default',
  name_upper TEXT NOT NULL DEFAULT 'DEFAULT',
  created_at_ms INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'active',
  has_others INTEGER NOT NULL DEFAULT false,
  discount_billionths INTEGER,
  metadata TEXT,
  messages_url TEXT,
  messages_key TEXT,
  chat_url TEXT,
  chat_key TEXT,
  credited_nanos INTEGER NOT NULL DEFAULT 0,
  charged_nanos INTEGER NOT NULL DEFAULT 0,
  held_nanos INTEGER NOT NULL DEFAULT 0,
  short_nanos INTEGER NOT NULL DEFAULT 0,
  terms_version INTEGER NOT NULL DEFAULT 0,
  credit_enforced INTEGER NOT NULL DEFAULT false,
  monthly_budget_nanos INTEGER,
  month TEXT NOT NULL DEFAULT '',
  spent_nanos INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
INSERT INTO account (id, created_at_ms) VALUES ('default', CAST(unixepoch('subsec') * 1000 AS INTEGER));
CREATE TABLE budget (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  monthly_budget_nanos INTEGER,
  daily_budget_nanos INTEGER,
  requests_per_minute INTEGER,
  budget_mode TEXT,
  month TEXT NOT NULL DEFAULT '',
  spent_nanos INTEGER NOT NULL DEFAULT 0,
  held_nanos INTEGER NOT NULL DEFAULT 0,
  lost_nanos INTEGER NOT NULL DEFAULT 0,
  overrun_nanos INTEGER NOT NULL DEFAULT 0,
  day TEXT NOT NULL DEFAULT '',
  day_spent_nanos INTEGER NOT NULL DEFAULT 0,
  minute INTEGER NOT NULL DEFAULT 0,
  minute_requests INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  CHECK (monthly_budget_nanos >= 0),
  CHECK (daily_budget_nanos >= 0),
  CHECK (requests_per_minute > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX budget_capped ON budget (account_id, id) WHERE monthly_budget_nanos > 0;
CREATE INDEX budget_day_capped ON budget (account_id, id) WHERE daily_budget_nanos > 0;
CREATE TABLE person (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  budget_id TEXT NOT NULL REFERENCES budget (id),
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  search_upper TEXT NOT NULL,
  role TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'active',
  created_at_ms INTEGER NOT NULL,
  last_seen_at_ms INTEGER NOT NULL,
  refresh_token BLOB,
  checked_at_ms INTEGER NOT NULL,
  check_due_ms INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX person_by_subject ON person (issuer, subject);
CREATE INDEX person_by_account ON person (account_id, id);
CREATE INDEX person_by_check ON person (check_due_ms, id) WHERE refresh_token IS NOT NULL AND status = 'active';
CREATE TABLE members (
  account_id TEXT NOT NULL REFERENCES account (id),
  keys_max INTEGER NOT NULL,
  key_days_max INTEGER NOT NULL,
  monthly_budget_nanos INTEGER,
  daily_budget_nanos INTEGER,
  requests_per_minute INTEGER,
  allowed_models TEXT,
  log_requests INTEGER NOT NULL,
  PRIMARY KEY (account_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE api_key (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  budget_id TEXT NOT NULL REFERENCES budget (id),
  person_id TEXT REFERENCES person (id),
  device_until_ms INTEGER,
  name TEXT NOT NULL,
  name_upper TEXT NOT NULL,
  digest BLOB NOT NULL,
  prefix TEXT NOT NULL,
  last4 TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  revoked_at_ms INTEGER,
  last_used_at_ms INTEGER,
  allowed_models TEXT,
  log_requests INTEGER NOT NULL DEFAULT false,
  metadata TEXT NOT NULL DEFAULT '{}',
  rotated_from TEXT,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_key_by_digest ON api_key (digest);
CREATE INDEX api_key_by_account ON api_key (account_id, id);
CREATE INDEX api_key_by_budget ON api_key (budget_id);
CREATE INDEX api_key_by_person ON api_key (person_id, id) WHERE person_id IS NOT NULL;
CREATE INDEX api_key_expiring ON api_key (account_id, expires_at_ms) WHERE expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL;
CREATE INDEX api_key_by_expiry ON api_key (expires_at_ms, id) WHERE expires_at_ms IS NOT NULL;
CREATE TABLE admin_key (
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  account_id TEXT REFERENCES account (id),
  name TEXT NOT NULL,
  digest BLOB NOT NULL,
  prefix TEXT NOT NULL,
  last4 TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  revoked_at_ms INTEGER,
  last_used_at_ms INTEGER,
  bootstrap INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX admin_key_by_digest ON admin_key (digest);
CREATE INDEX admin_key_by_account ON admin_key (account_id, id);
CREATE UNIQUE INDEX admin_key_bootstrap ON admin_key (bootstrap) WHERE bootstrap AND revoked_at_ms IS NULL;
CREATE TABLE session (
  digest BLOB NOT NULL,
  key_id TEXT,
  person_id TEXT,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_key ON session (key_id, expires_at_ms);
CREATE INDEX session_by_person ON session (person_id, expires_at_ms) WHERE person_id IS NOT NULL;
CREATE INDEX session_by_expiry ON session (expires_at_ms);
CREATE TABLE device_code (
  digest BLOB NOT NULL,
  user_code TEXT NOT NULL,
  client TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending',
  person_id TEXT REFERENCES person (id),
  polled_at_ms INTEGER,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (digest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX device_code_by_user_code ON device_code (user_code);
CREATE INDEX device_code_by_person ON device_code (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX device_code_by_expiry ON device_code (expires_at_ms);
CREATE TABLE price_version (
  id TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (id)
) STRICT;
CREATE TABLE hold (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  budget_id TEXT NOT NULL,
  person_id TEXT,
  node_id TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'in_flight',
  started_at_ms INTEGER NOT NULL,
  month TEXT NOT NULL,
  day TEXT NOT NULL,
  hold_nanos INTEGER NOT NULL,
  hold_list_nanos INTEGER NOT NULL,
  account_hold_nanos INTEGER NOT NULL DEFAULT 0,
  short_nanos INTEGER NOT NULL DEFAULT 0,
  bound_nanos INTEGER NOT NULL DEFAULT 0,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  surface TEXT NOT NULL,
  model_asked TEXT,
  price_version TEXT NOT NULL,
  rating TEXT NOT NULL,
  client_ip TEXT NOT NULL,
  user_agent TEXT,
  socket_id TEXT,
  session_id TEXT,
  requests INTEGER NOT NULL DEFAULT 1,
  status INTEGER,
  streamed INTEGER NOT NULL DEFAULT false,
  upstream_ms INTEGER,
  overhead_ms INTEGER,
  upstream_request_id TEXT,
  bytes_in INTEGER NOT NULL DEFAULT 0,
  bytes_out INTEGER NOT NULL DEFAULT 0,
  kind TEXT,
  scope TEXT,
  object_id TEXT,
  due_at_ms INTEGER,
  claimed_until_ms INTEGER,
  parent_id TEXT,
  children INTEGER,
  children_nanos INTEGER,
  PRIMARY KEY (id),
  CHECK (hold_nanos >= 0),
  CHECK (hold_list_nanos >= 0),
  CHECK (account_hold_nanos >= 0),
  CHECK (requests >= 0)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX hold_by_object ON hold (surface, scope, object_id) WHERE due_at_ms IS NOT NULL;
CREATE TABLE call (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  person_id TEXT,
  state TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL,
  month TEXT NOT NULL,
  day TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  surface TEXT NOT NULL,
  model_asked TEXT,
  model_served TEXT,
  status INTEGER,
  stop_reason TEXT,
  streamed INTEGER NOT NULL DEFAULT false,
  estimated INTEGER NOT NULL DEFAULT false,
  unpriced INTEGER NOT NULL DEFAULT false,
  overrun INTEGER NOT NULL DEFAULT false,
  priced_as_requested INTEGER NOT NULL DEFAULT false,
  usage TEXT,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  hold_nanos INTEGER NOT NULL,
  hold_list_nanos INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  list_nanos INTEGER NOT NULL,
  lost_list_nanos INTEGER NOT NULL DEFAULT 0,
  balance_nanos INTEGER NOT NULL,
  upstream_ms INTEGER,
  overhead_ms INTEGER NOT NULL,
  price_version TEXT NOT NULL,
  rating TEXT NOT NULL,
  upstream_request_id TEXT,
  client_ip TEXT NOT NULL,
  user_agent TEXT,
  bytes_in INTEGER NOT NULL DEFAULT 0,
  bytes_out INTEGER NOT NULL DEFAULT 0,
  credited INTEGER NOT NULL DEFAULT false,
  object_id TEXT,
  parent_id TEXT,
  children INTEGER,
  children_nanos INTEGER,
  socket_id TEXT,
  session_id TEXT,
  requests INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (id),
  CHECK (state = 'settled' OR state = 'released' OR state = 'interrupted'),
  CHECK (hold_nanos >= 0),
  CHECK (hold_list_nanos >= 0),
  CHECK (cost_nanos >= 0),
  CHECK (list_nanos >= 0),
  CHECK (requests >= 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_by_key ON call (key_id, id);
CREATE INDEX call_by_account ON call (account_id, id);
CREATE INDEX call_by_person ON call (person_id, id) WHERE person_id IS NOT NULL;
CREATE INDEX call_by_socket ON call (socket_id, id) WHERE socket_id IS NOT NULL;
CREATE INDEX call_by_object ON call (object_id) WHERE object_id IS NOT NULL;
CREATE TABLE rollup (
  account_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key_id TEXT NOT NULL,
  requests INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  cost_nanos INTEGER NOT NULL DEFAULT 0,
  list_nanos INTEGER NOT NULL DEFAULT 0,
  credited_nanos INTEGER NOT NULL DEFAULT 0,
  unpriced_requests INTEGER NOT NULL DEFAULT 0,
  estimated_requests INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, model, key_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_by_key ON rollup (key_id, day);
CREATE TABLE removed_total (
  account_id TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  key_id TEXT NOT NULL,
  requests INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  cost_nanos INTEGER NOT NULL DEFAULT 0,
  list_nanos INTEGER NOT NULL DEFAULT 0,
  lost_list_nanos INTEGER NOT NULL DEFAULT 0,
  credited_nanos INTEGER NOT NULL DEFAULT 0,
  unpriced_requests INTEGER NOT NULL DEFAULT 0,
  estimated_requests INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, model, key_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE credit (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  kind TEXT NOT NULL,
  amount_nanos INTEGER NOT NULL,
  reason TEXT NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT,
  actor_name TEXT,
  balance_after_nanos INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  removed_nanos INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX credit_by_account ON credit (account_id, id);
CREATE TABLE credit_call (
  call_id TEXT NOT NULL,
  once TEXT NOT NULL,
  credit_id TEXT NOT NULL,
  amount_nanos INTEGER NOT NULL,
  PRIMARY KEY (call_id, once)
) STRICT, WITHOUT ROWID;
CREATE INDEX credit_call_by_credit ON credit_call (credit_id, call_id);
CREATE TABLE idempotency (
  account_id TEXT NOT NULL REFERENCES account (id),
  name TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  subject TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (at_ms);
CREATE TABLE batch_file (
  account_id TEXT NOT NULL REFERENCES account (id),
  key_id TEXT NOT NULL REFERENCES api_key (id),
  file_id TEXT NOT NULL,
  models TEXT,
  bound TEXT,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (account_id, file_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_file_by_file ON batch_file (file_id);
CREATE INDEX batch_file_by_age ON batch_file (at_ms);
CREATE TABLE container_fee (
  scope TEXT NOT NULL,
  id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  paid_at_ms INTEGER NOT NULL,
  PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE refused_call (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  person_id TEXT,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  surface TEXT NOT NULL,
  model_asked TEXT,
  status INTEGER NOT NULL,
  code TEXT NOT NULL,
  client_ip TEXT NOT NULL,
  user_agent TEXT,
  socket_id TEXT,
  session_id TEXT,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_call_by_account ON refused_call (account_id, id);
CREATE INDEX refused_call_by_key ON refused_call (key_id, id);
CREATE INDEX refused_call_by_person ON refused_call (person_id, id) WHERE person_id IS NOT NULL;
CREATE TABLE refused_total (
  account_id TEXT NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY (account_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES account (id),
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  description TEXT NOT NULL,
  format TEXT NOT NULL,
  enabled INTEGER NOT NULL DEFAULT true,
  disabled_reason TEXT,
  created_at_ms INTEGER NOT NULL,
  failing_since_ms INTEGER,
  last_delivery_at_ms INTEGER,
  last_status INTEGER,
  secret BLOB NOT NULL,
  former_secret BLOB,
  former_until_ms INTEGER,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_enabled ON webhook (account_id) WHERE enabled;
CREATE TABLE event (
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  type TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT,
  actor_name TEXT,
  data TEXT NOT NULL,
  once TEXT,
  PRIMARY KEY (id)
) STRICT;
CREATE INDEX event_by_account ON event (account_id, id);
CREATE UNIQUE INDEX event_once ON event (account_id, once) WHERE once IS NOT NULL;
CREATE TABLE webhook_delivery (
  id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  response_status INTEGER,
  response_body TEXT,
  error TEXT,
  last_attempt_at_ms INTEGER,
  next_attempt_at_ms INTEGER,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (id),
  CHECK (status IN ('pending', 'succeeded', 'failed'))
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, next_attempt_at_ms, id) WHERE status = 'pending';
CREATE INDEX webhook_delivery_by_webhook ON webhook_delivery (webhook_id, id);
CREATE UNIQUE INDEX webhook_delivery_once ON webhook_delivery (event_id, webhook_id);
CREATE TABLE price_list (
  revision INTEGER NOT NULL,
  json TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (revision)
) STRICT;
CREATE TABLE set_price (
  model TEXT NOT NULL,
  effective_from_ms INTEGER NOT NULL,
  entry TEXT,
  PRIMARY KEY (model, effective_from_ms)
) STRICT, WITHOUT ROWID;
DELETE FROM account;
INSERT INTO account (id, name, name_upper, created_at_ms, status, has_others, discount_billionths, metadata, messages_url, messages_key, chat_url, chat_key, credited_nanos, charged_nanos, held_nanos, short_nanos, terms_version, credit_enforced, monthly_budget_nanos, month, spent_nanos) VALUES ('default', 'default', 'DEFAULT', 1795125480099, 'active', 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 800, 1000, 0, 0, 0, NULL, '2026-11', 800);
INSERT INTO budget (id, account_id, monthly_budget_nanos, daily_budget_nanos, requests_per_minute, budget_mode, month, spent_nanos, held_nanos, lost_nanos, overrun_nanos, day, day_spent_nanos, minute, minute_requests) VALUES ('bud_a', 'default', NULL, NULL, NULL, NULL, '2026-11', 800, 1000, 0, 0, '2026-11-15', 800, 29912400, 2);
INSERT INTO api_key (id, account_id, budget_id, person_id, device_until_ms, name, name_upper, digest, prefix, last4, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, allowed_models, log_requests, metadata, rotated_from) VALUES ('key_a', 'default', 'bud_a', NULL, NULL, 'a', 'A', X'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'svc_live_xxxxxxx', 'xxxx', 1794743999000, NULL, NULL, NULL, NULL, 0, '{}', NULL);
INSERT INTO hold (id, account_id, key_id, budget_id, person_id, node_id, state, started_at_ms, month, day, hold_nanos, hold_list_nanos, account_hold_nanos, short_nanos, bound_nanos, method, path, surface, model_asked, price_version, rating, client_ip, user_agent, socket_id, session_id, requests, status, streamed, upstream_ms, overhead_ms, upstream_request_id, bytes_in, bytes_out, kind, scope, object_id, due_at_ms, claimed_until_ms, parent_id, children, children_nanos) VALUES ('req_1', 'default', 'key_a', 'bud_a', NULL, 'local', 'in_flight', 1794744000000, '2026-11', '2026-11-15', 1000, 1250, 1000, 0, 1000, 'POST', '/v1/messages', 'messages', 'claude-haiku-5-5', 'test', '{}', '127.0.0.1', NULL, NULL, NULL, 1, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO call (id, account_id, key_id, person_id, state, started_at_ms, ended_at_ms, month, day, method, path, surface, model_asked, model_served, status, stop_reason, streamed, estimated, unpriced, overrun, priced_as_requested, usage, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, hold_nanos, hold_list_nanos, cost_nanos, list_nanos, lost_list_nanos, balance_nanos, upstream_ms, overhead_ms, price_version, rating, upstream_request_id, client_ip, user_agent, bytes_in, bytes_out, credited, object_id, parent_id, children, children_nanos, socket_id, session_id, requests) VALUES ('req_0', 'default', 'key_a', NULL, 'settled', 1794744000000, 1794744000500, '2026-11', '2026-11-15', 'POST', '/v1/messages', 'messages', 'claude-haiku-5-5', 'claude-haiku-5-5', 200, 'end_turn', 0, 0, 0, 0, 0, '{"parts":[]}', 10, 5, 3, 2, 1000, 1250, 800, 1000, 0, -800, 450, 3, 'test', '{}', 'req_up', '127.0.0.1', NULL, 100, 200, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1);
INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanos, list_nanos, credited_nanos, unpriced_requests, estimated_requests) VALUES ('default', '2026-11-15', 'claude-haiku-5-5', 'key_a', 1, 10, 5, 3, 2, 800, 1000, 0, 0, 0);
INSERT INTO event (id, account_id, type, created_at_ms, actor_kind, actor_id, actor_name, data, once) VALUES ('evt_01M7FH86GR975AQC1QQE8XMK37', 'default', 'key.created', 1794743999000, 'system', NULL, NULL, '{"key":{"id":"key_a","object":"key","account_id":"default","budget_id":"bud_a","person_id":null,"name":"a","prefix":"svc_live_xxxxxxx","last4":"xxxx","status":"usable","monthly_budget_usd":null,"daily_budget_usd":null,"requests_per_minute":null,"budget_mode":null,"allowed_models":null,"log_requests":false,"expires_at":null,"metadata":{},"month_spend_usd":0,"month_held_usd":0,"month_lost_usd":0,"day_spend_usd":0,"budget_resets_at":"2026-12-01T00:00:00.000Z","created_at":"2026-11-15T11:59:59.000Z","revoked_at":null,"last_used_at":null,"rotated_from":null}}', NULL);
