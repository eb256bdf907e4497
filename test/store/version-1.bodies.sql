CREATE TABLE schema_version (version integer NOT NULL, oldest_version integer NOT NULL);
    INSERT INTO schema_version (version, oldest_version) VALUES (1, 1);
CREATE TABLE call_body (
  call_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  request BLOB,
  request_type TEXT,
  request_bytes INTEGER,
  request_truncated INTEGER,
  response BLOB,
  response_type TEXT,
  response_bytes INTEGER,
  response_truncated INTEGER,
  PRIMARY KEY (call_id)
) STRICT;
CREATE INDEX call_body_by_age ON call_body (at_ms);
CREATE TABLE body_total (
  id INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
INSERT INTO body_total (id, bytes) VALUES (1, 0);
DELETE FROM body_total;
INSERT INTO call_body (call_id, at_ms, request, request_type, request_bytes, request_truncated, response, response_type, response_bytes, response_truncated) VALUES ('req_0', 1794744000000, X'01', NULL, 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO body_total (id, bytes) VALUES (1, 257);
