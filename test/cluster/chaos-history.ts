import assert from 'node:assert/strict'
import { runOn } from '../support/postgres.ts'
import type { Cluster } from './cluster.ts'

/** Admissions and key ends hold the lock of the key when they take a number: numbers follow commits. */
const HISTORY = `
  CREATE TABLE history (
    n       bigserial PRIMARY KEY,
    what    text NOT NULL,
    key_id  text NOT NULL,
    call_id text,
    former  text
  );

  CREATE FUNCTION note_call() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      INSERT INTO history (what, key_id, call_id) VALUES (NEW.state, NEW.key_id, NEW.id);
    ELSIF OLD.state <> NEW.state THEN
      INSERT INTO history (what, key_id, call_id, former) VALUES (NEW.state, NEW.key_id, NEW.id, OLD.state);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_call AFTER INSERT OR UPDATE ON call FOR EACH ROW EXECUTE FUNCTION note_call();
  CREATE TRIGGER note_hold AFTER INSERT ON hold FOR EACH ROW WHEN (NEW.state = 'in_flight') EXECUTE FUNCTION note_call();

  CREATE FUNCTION note_key() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.revoked_at_ms IS NOT NULL AND OLD.revoked_at_ms IS NULL THEN
      INSERT INTO history (what, key_id) VALUES ('ended', NEW.id);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_key AFTER UPDATE ON api_key FOR EACH ROW EXECUTE FUNCTION note_key();

  CREATE FUNCTION note_budget() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.monthly_budget_nanos = 0 AND OLD.monthly_budget_nanos IS DISTINCT FROM 0 THEN
      INSERT INTO history (what, key_id) VALUES ('ended', replace(NEW.id, 'bud_', 'key_'));
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_budget AFTER UPDATE ON budget FOR EACH ROW EXECUTE FUNCTION note_budget();
`

export function keepHistory(databaseUrl: string): Promise<void> {
  return runOn(databaseUrl, HISTORY)
}

/** The possible states of a call: closed once, unless it settled after an interruption. */
const WAYS: ReadonlySet<string> = new Set([
  'in_flight settled',
  'in_flight released',
  'in_flight interrupted',
  'in_flight interrupted settled',
  'in_flight interrupted released',
])

export async function checkHistory({ database }: Cluster): Promise<ReadonlySet<string>> {
  const wrong = await database.query(`
    SELECT h.key_id, h.call_id FROM history h JOIN history e ON e.key_id = h.key_id AND e.what = 'ended'
    WHERE h.what = 'in_flight' AND h.n > e.n`)
  assert.deepEqual(wrong, [], 'calls were admitted with a revoked or expired key')

  const ways = await database.query(`
    SELECT call_id, string_agg(what, ' ' ORDER BY n) AS way FROM history WHERE call_id IS NOT NULL GROUP BY call_id`)
  const late = new Set<string>()
  for (const row of ways) {
    const way = String(row['way'])
    assert.ok(WAYS.has(way), `${row['call_id']} went ${way}`)
    if (way === 'in_flight interrupted settled') late.add(String(row['call_id']))
  }
  return late
}
