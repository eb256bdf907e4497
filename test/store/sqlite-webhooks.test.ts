import { webhookDeliveryConformance } from './conformance/webhook-deliveries.ts'
import { webhookEventConformance } from './conformance/webhook-events.ts'
import { webhookSweepConformance } from './conformance/webhook-sweeps.ts'
import { openFreshSqlite } from './sqlite-under-test.ts'

webhookEventConformance('SQLite', openFreshSqlite)
webhookDeliveryConformance('SQLite', openFreshSqlite)
webhookSweepConformance('SQLite', openFreshSqlite)
