CREATE TABLE schema_version (version integer NOT NULL, oldest_version integer NOT NULL);
    INSERT INTO schema_version (version, oldest_version) VALUES (1, 1);
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;
CREATE FUNCTION must_match(matches boolean) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT matches THEN
      RAISE EXCEPTION 'the terms of an account have changed' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN true;
  END $$;
CREATE TABLE setting (
  name text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE account (
  id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL DEFAULT 'default',
  name_upper text COLLATE "C" NOT NULL DEFAULT 'DEFAULT',
  created_at_ms bigint NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'active',
  has_others boolean NOT NULL DEFAULT false,
  discount_billionths bigint,
  metadata jsonb,
  messages_url text COLLATE "C",
  messages_key text COLLATE "C",
  chat_url text COLLATE "C",
  chat_key text COLLATE "C",
  credited_nanos bigint NOT NULL DEFAULT 0,
  charged_nanos bigint NOT NULL DEFAULT 0,
  held_nanos bigint NOT NULL DEFAULT 0,
  short_nanos bigint NOT NULL DEFAULT 0,
  terms_version bigint NOT NULL DEFAULT 0,
  credit_enforced boolean NOT NULL DEFAULT false,
  monthly_budget_nanos bigint,
  month text COLLATE "C" NOT NULL DEFAULT '',
  spent_nanos bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO account (id, created_at_ms) VALUES ('default', now_ms());
CREATE TABLE budget (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  monthly_budget_nanos bigint,
  daily_budget_nanos bigint,
  requests_per_minute bigint,
  budget_mode text COLLATE "C",
  month text COLLATE "C" NOT NULL DEFAULT '',
  spent_nanos bigint NOT NULL DEFAULT 0,
  held_nanos bigint NOT NULL DEFAULT 0,
  lost_nanos bigint NOT NULL DEFAULT 0,
  overrun_nanos bigint NOT NULL DEFAULT 0,
  day text COLLATE "C" NOT NULL DEFAULT '',
  day_spent_nanos bigint NOT NULL DEFAULT 0,
  minute bigint NOT NULL DEFAULT 0,
  minute_requests bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  CHECK (monthly_budget_nanos >= 0),
  CHECK (daily_budget_nanos >= 0),
  CHECK (requests_per_minute > 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX budget_capped ON budget (account_id, id) WHERE monthly_budget_nanos > 0;
CREATE INDEX budget_day_capped ON budget (account_id, id) WHERE daily_budget_nanos > 0;
CREATE TABLE person (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  budget_id text COLLATE "C" NOT NULL REFERENCES budget (id),
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  search_upper text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'active',
  created_at_ms bigint NOT NULL,
  last_seen_at_ms bigint NOT NULL,
  refresh_token bytea,
  checked_at_ms bigint NOT NULL,
  check_due_ms bigint NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX person_by_subject ON person (issuer, subject);
CREATE INDEX person_by_account ON person (account_id, id);
CREATE INDEX person_by_check ON person (check_due_ms, id) WHERE refresh_token IS NOT NULL AND status = 'active';
CREATE TABLE members (
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  keys_max bigint NOT NULL,
  key_days_max bigint NOT NULL,
  monthly_budget_nanos bigint,
  daily_budget_nanos bigint,
  requests_per_minute bigint,
  allowed_models jsonb,
  log_requests boolean NOT NULL,
  PRIMARY KEY (account_id)
);
CREATE TABLE api_key (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  budget_id text COLLATE "C" NOT NULL REFERENCES budget (id),
  person_id text COLLATE "C" REFERENCES person (id),
  device_until_ms bigint,
  name text COLLATE "C" NOT NULL,
  name_upper text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  last4 text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  last_used_at_ms bigint,
  allowed_models jsonb,
  log_requests boolean NOT NULL DEFAULT false,
  metadata jsonb NOT NULL DEFAULT '{}',
  rotated_from text COLLATE "C",
  PRIMARY KEY (id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX api_key_by_digest ON api_key (digest);
CREATE INDEX api_key_by_account ON api_key (account_id, id);
CREATE INDEX api_key_by_budget ON api_key (budget_id);
CREATE INDEX api_key_by_person ON api_key (person_id, id) WHERE person_id IS NOT NULL;
CREATE INDEX api_key_expiring ON api_key (account_id, expires_at_ms) WHERE expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL;
CREATE INDEX api_key_by_expiry ON api_key (expires_at_ms, id) WHERE expires_at_ms IS NOT NULL;
CREATE TABLE admin_key (
  id text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" REFERENCES account (id),
  name text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  prefix text COLLATE "C" NOT NULL,
  last4 text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  revoked_at_ms bigint,
  last_used_at_ms bigint,
  bootstrap boolean NOT NULL,
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX admin_key_by_digest ON admin_key (digest);
CREATE INDEX admin_key_by_account ON admin_key (account_id, id);
CREATE UNIQUE INDEX admin_key_bootstrap ON admin_key (bootstrap) WHERE bootstrap AND revoked_at_ms IS NULL;
CREATE TABLE session (
  digest bytea NOT NULL,
  key_id text COLLATE "C",
  person_id text COLLATE "C",
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (digest)
);
CREATE INDEX session_by_key ON session (key_id, expires_at_ms);
CREATE INDEX session_by_person ON session (person_id, expires_at_ms) WHERE person_id IS NOT NULL;
CREATE INDEX session_by_expiry ON session (expires_at_ms);
CREATE TABLE device_code (
  digest bytea NOT NULL,
  user_code text COLLATE "C" NOT NULL,
  client text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'pending',
  person_id text COLLATE "C" REFERENCES person (id),
  polled_at_ms bigint,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (digest)
);
CREATE UNIQUE INDEX device_code_by_user_code ON device_code (user_code);
CREATE INDEX device_code_by_person ON device_code (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX device_code_by_expiry ON device_code (expires_at_ms);
CREATE TABLE price_version (
  id text COLLATE "C" NOT NULL,
  json text COLLATE "C" NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE node (
  id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL DEFAULT 1,
  schema_version bigint NOT NULL DEFAULT 1,
  started_at_ms bigint NOT NULL,
  seen_at_ms bigint NOT NULL,
  fenced_at_ms bigint,
  PRIMARY KEY (id)
) WITH (fillfactor = 50);
CREATE TABLE hold (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  budget_id text COLLATE "C" NOT NULL,
  person_id text COLLATE "C",
  node_id text COLLATE "C" NOT NULL DEFAULT '',
  state text COLLATE "C" NOT NULL DEFAULT 'in_flight',
  started_at_ms bigint NOT NULL,
  month text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL,
  hold_nanos bigint NOT NULL,
  hold_list_nanos bigint NOT NULL,
  account_hold_nanos bigint NOT NULL DEFAULT 0,
  short_nanos bigint NOT NULL DEFAULT 0,
  bound_nanos bigint NOT NULL DEFAULT 0,
  method text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  surface text COLLATE "C" NOT NULL,
  model_asked text COLLATE "C",
  price_version text COLLATE "C" NOT NULL,
  rating text COLLATE "C" NOT NULL,
  client_ip text COLLATE "C" NOT NULL,
  user_agent text COLLATE "C",
  socket_id text COLLATE "C",
  session_id text COLLATE "C",
  requests bigint NOT NULL DEFAULT 1,
  status bigint,
  streamed boolean NOT NULL DEFAULT false,
  upstream_ms bigint,
  overhead_ms bigint,
  upstream_request_id text COLLATE "C",
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  kind text COLLATE "C",
  scope text COLLATE "C",
  object_id text COLLATE "C",
  due_at_ms bigint,
  claimed_until_ms bigint,
  parent_id text COLLATE "C",
  children bigint,
  children_nanos bigint,
  PRIMARY KEY (id),
  CHECK (hold_nanos >= 0),
  CHECK (hold_list_nanos >= 0),
  CHECK (account_hold_nanos >= 0),
  CHECK (requests >= 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE UNIQUE INDEX hold_by_object ON hold (surface, scope, object_id) WHERE due_at_ms IS NOT NULL;
CREATE INDEX hold_by_node ON hold (node_id, id);
CREATE TABLE call (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  person_id text COLLATE "C",
  state text COLLATE "C" NOT NULL,
  started_at_ms bigint NOT NULL,
  ended_at_ms bigint NOT NULL,
  month text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL,
  method text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  surface text COLLATE "C" NOT NULL,
  model_asked text COLLATE "C",
  model_served text COLLATE "C",
  status bigint,
  stop_reason text COLLATE "C",
  streamed boolean NOT NULL DEFAULT false,
  estimated boolean NOT NULL DEFAULT false,
  unpriced boolean NOT NULL DEFAULT false,
  overrun boolean NOT NULL DEFAULT false,
  priced_as_requested boolean NOT NULL DEFAULT false,
  usage text COLLATE "C",
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  hold_nanos bigint NOT NULL,
  hold_list_nanos bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  list_nanos bigint NOT NULL,
  lost_list_nanos bigint NOT NULL DEFAULT 0,
  balance_nanos bigint NOT NULL,
  upstream_ms bigint,
  overhead_ms bigint NOT NULL,
  price_version text COLLATE "C" NOT NULL,
  rating text COLLATE "C" NOT NULL,
  upstream_request_id text COLLATE "C",
  client_ip text COLLATE "C" NOT NULL,
  user_agent text COLLATE "C",
  bytes_in bigint NOT NULL DEFAULT 0,
  bytes_out bigint NOT NULL DEFAULT 0,
  credited boolean NOT NULL DEFAULT false,
  object_id text COLLATE "C",
  parent_id text COLLATE "C",
  children bigint,
  children_nanos bigint,
  socket_id text COLLATE "C",
  session_id text COLLATE "C",
  requests bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (id),
  CHECK (state = 'settled' OR state = 'released' OR state = 'interrupted'),
  CHECK (hold_nanos >= 0),
  CHECK (hold_list_nanos >= 0),
  CHECK (cost_nanos >= 0),
  CHECK (list_nanos >= 0),
  CHECK (requests >= 0)
);
CREATE INDEX call_by_key ON call (key_id, id);
CREATE INDEX call_by_account ON call (account_id, id);
CREATE INDEX call_by_person ON call (person_id, id) WHERE person_id IS NOT NULL;
CREATE INDEX call_by_socket ON call (socket_id, id) WHERE socket_id IS NOT NULL;
CREATE INDEX call_by_object ON call (object_id) WHERE object_id IS NOT NULL;
CREATE TABLE rollup (
  account_id text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL DEFAULT 0,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  cost_nanos bigint NOT NULL DEFAULT 0,
  list_nanos bigint NOT NULL DEFAULT 0,
  credited_nanos bigint NOT NULL DEFAULT 0,
  unpriced_requests bigint NOT NULL DEFAULT 0,
  estimated_requests bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, model, key_id)
) WITH (fillfactor = 50);
CREATE INDEX rollup_by_key ON rollup (key_id, day);
CREATE TABLE removed_total (
  account_id text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL DEFAULT 0,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  cost_nanos bigint NOT NULL DEFAULT 0,
  list_nanos bigint NOT NULL DEFAULT 0,
  lost_list_nanos bigint NOT NULL DEFAULT 0,
  credited_nanos bigint NOT NULL DEFAULT 0,
  unpriced_requests bigint NOT NULL DEFAULT 0,
  estimated_requests bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, model, key_id)
) WITH (fillfactor = 50);
CREATE TABLE credit (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  kind text COLLATE "C" NOT NULL,
  amount_nanos bigint NOT NULL,
  reason text COLLATE "C" NOT NULL,
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C",
  actor_name text COLLATE "C",
  balance_after_nanos bigint NOT NULL,
  at_ms bigint NOT NULL,
  removed_nanos bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
);
CREATE INDEX credit_by_account ON credit (account_id, id);
CREATE TABLE credit_call (
  call_id text COLLATE "C" NOT NULL,
  once text COLLATE "C" NOT NULL,
  credit_id text COLLATE "C" NOT NULL,
  amount_nanos bigint NOT NULL,
  PRIMARY KEY (call_id, once)
);
CREATE INDEX credit_call_by_credit ON credit_call (credit_id, call_id);
CREATE TABLE idempotency (
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  name text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  subject text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (account_id, name)
);
CREATE INDEX idempotency_by_age ON idempotency (at_ms);
CREATE TABLE batch_file (
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  key_id text COLLATE "C" NOT NULL REFERENCES api_key (id),
  file_id text COLLATE "C" NOT NULL,
  models jsonb,
  bound text COLLATE "C",
  at_ms bigint NOT NULL,
  PRIMARY KEY (account_id, file_id)
);
CREATE INDEX batch_file_by_file ON batch_file (file_id);
CREATE INDEX batch_file_by_age ON batch_file (at_ms);
CREATE TABLE container_fee (
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  call_id text COLLATE "C" NOT NULL,
  paid_at_ms bigint NOT NULL,
  PRIMARY KEY (scope, id)
) WITH (fillfactor = 50);
CREATE TABLE refused_call (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  person_id text COLLATE "C",
  started_at_ms bigint NOT NULL,
  ended_at_ms bigint NOT NULL,
  method text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  surface text COLLATE "C" NOT NULL,
  model_asked text COLLATE "C",
  status bigint NOT NULL,
  code text COLLATE "C" NOT NULL,
  client_ip text COLLATE "C" NOT NULL,
  user_agent text COLLATE "C",
  socket_id text COLLATE "C",
  session_id text COLLATE "C",
  PRIMARY KEY (id)
);
CREATE INDEX refused_call_by_account ON refused_call (account_id, id);
CREATE INDEX refused_call_by_key ON refused_call (key_id, id);
CREATE INDEX refused_call_by_person ON refused_call (person_id, id) WHERE person_id IS NOT NULL;
CREATE TABLE refused_total (
  account_id text COLLATE "C" NOT NULL,
  calls bigint NOT NULL,
  PRIMARY KEY (account_id)
) WITH (fillfactor = 50);
CREATE TABLE call_body (
  call_id text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL,
  request bytea,
  request_type text COLLATE "C",
  request_bytes bigint,
  request_truncated boolean,
  response bytea,
  response_type text COLLATE "C",
  response_bytes bigint,
  response_truncated boolean,
  PRIMARY KEY (call_id)
);
ALTER TABLE call_body ALTER COLUMN request SET STORAGE EXTERNAL;
ALTER TABLE call_body ALTER COLUMN response SET STORAGE EXTERNAL;
CREATE INDEX call_body_by_age ON call_body (at_ms);
CREATE TABLE body_total (
  id bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (id)
) WITH (fillfactor = 50);
INSERT INTO body_total (id, bytes) VALUES (1, 0);
CREATE TABLE webhook (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL REFERENCES account (id),
  url text COLLATE "C" NOT NULL,
  events jsonb NOT NULL,
  description text COLLATE "C" NOT NULL,
  format text COLLATE "C" NOT NULL,
  enabled boolean NOT NULL DEFAULT true,
  disabled_reason text COLLATE "C",
  created_at_ms bigint NOT NULL,
  failing_since_ms bigint,
  last_delivery_at_ms bigint,
  last_status bigint,
  secret bytea NOT NULL,
  former_secret bytea,
  former_until_ms bigint,
  PRIMARY KEY (id)
);
CREATE INDEX webhook_enabled ON webhook (account_id) WHERE enabled;
CREATE TABLE event (
  id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  created_at_ms bigint NOT NULL,
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C",
  actor_name text COLLATE "C",
  data text COLLATE "C" NOT NULL,
  once text COLLATE "C",
  PRIMARY KEY (id)
);
CREATE INDEX event_by_account ON event (account_id, id);
CREATE UNIQUE INDEX event_once ON event (account_id, once) WHERE once IS NOT NULL;
CREATE TABLE webhook_delivery (
  id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL DEFAULT 0,
  response_status bigint,
  response_body text COLLATE "C",
  error text COLLATE "C",
  last_attempt_at_ms bigint,
  next_attempt_at_ms bigint,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (id),
  CHECK (status IN ('pending', 'succeeded', 'failed'))
) WITH (fillfactor = 50);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, next_attempt_at_ms, id) WHERE status = 'pending';
CREATE INDEX webhook_delivery_by_webhook ON webhook_delivery (webhook_id, id);
CREATE UNIQUE INDEX webhook_delivery_once ON webhook_delivery (event_id, webhook_id);
CREATE TABLE price_list (
  revision bigint NOT NULL,
  json text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (revision)
);
CREATE TABLE set_price (
  model text COLLATE "C" NOT NULL,
  effective_from_ms bigint NOT NULL,
  entry text COLLATE "C",
  PRIMARY KEY (model, effective_from_ms)
);
DELETE FROM account;
DELETE FROM body_total;
INSERT INTO account (id, name, name_upper, created_at_ms, status, has_others, discount_billionths, metadata, messages_url, messages_key, chat_url, chat_key, credited_nanos, charged_nanos, held_nanos, short_nanos, terms_version, credit_enforced, monthly_budget_nanos, month, spent_nanos) VALUES ('default', 'default', 'DEFAULT', 1795125479525, 'active', false, NULL, NULL, NULL, NULL, NULL, NULL, 0, 800, 0, 0, 0, false, NULL, '2026-11', 800);
INSERT INTO budget (id, account_id, monthly_budget_nanos, daily_budget_nanos, requests_per_minute, budget_mode, month, spent_nanos, held_nanos, lost_nanos, overrun_nanos, day, day_spent_nanos, minute, minute_requests) VALUES ('bud_a', 'default', NULL, NULL, NULL, NULL, '2026-11', 800, 0, 0, 0, '2026-11-15', 800, 29912400, 1);
INSERT INTO api_key (id, account_id, budget_id, person_id, device_until_ms, name, name_upper, digest, prefix, last4, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, allowed_models, log_requests, metadata, rotated_from) VALUES ('key_a', 'default', 'bud_a', NULL, NULL, 'a', 'A', '\xca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb', 'svc_live_xxxxxxx', 'xxxx', 1794743999000, NULL, NULL, NULL, NULL, false, '{}', NULL);
INSERT INTO call (id, account_id, key_id, person_id, state, started_at_ms, ended_at_ms, month, day, method, path, surface, model_asked, model_served, status, stop_reason, streamed, estimated, unpriced, overrun, priced_as_requested, usage, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, hold_nanos, hold_list_nanos, cost_nanos, list_nanos, lost_list_nanos, balance_nanos, upstream_ms, overhead_ms, price_version, rating, upstream_request_id, client_ip, user_agent, bytes_in, bytes_out, credited, object_id, parent_id, children, children_nanos, socket_id, session_id, requests) VALUES ('req_0', 'default', 'key_a', NULL, 'settled', 1794744000000, 1794744000500, '2026-11', '2026-11-15', 'POST', '/v1/messages', 'messages', 'claude-haiku-5-5', 'claude-haiku-5-5', 200, 'end_turn', false, false, false, false, false, '{"parts":[]}', 10, 5, 3, 2, 1000, 1250, 800, 1000, 0, -800, 450, 3, 'test', '{}', 'req_up', '127.0.0.1', NULL, 100, 200, false, NULL, NULL, NULL, NULL, NULL, NULL, 1);
INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nanos, list_nanos, credited_nanos, unpriced_requests, estimated_requests) VALUES ('default', '2026-11-15', 'claude-haiku-5-5', 'key_a', 1, 10, 5, 3, 2, 800, 1000, 0, 0, 0);
INSERT INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated, response, response_type, response_bytes, response_truncated) VALUES ('req_0', 1794744000000, '\x01', NULL, 1, false, NULL, NULL, NULL, NULL);
INSERT INTO body_total (id, bytes) VALUES (1, 257);
INSERT INTO event (id, account_id, type, created_at_ms, actor_kind, actor_id, actor_name, data, once) VALUES ('evt_01M7FH86GRAM6N8GMBY65G0WW8', 'default', 'key.created', 1794743999000, 'system', NULL, NULL, '{"key":{"id":"key_a","object":"key","account_id":"default","budget_id":"bud_a","person_id":null,"name":"a","prefix":"svc_live_xxxxxxx","last4":"xxxx","status":"usable","monthly_budget_usd":null,"daily_budget_usd":null,"requests_per_minute":null,"budget_mode":null,"allowed_models":null,"log_requests":false,"expires_at":null,"metadata":{},"month_spend_usd":0,"month_held_usd":0,"month_lost_usd":0,"day_spend_usd":0,"budget_resets_at":"2026-12-01T00:00:00.000Z","created_at":"2026-11-15T11:59:59.000Z","revoked_at":null,"last_used_at":null,"rotated_from":null}}', NULL);
