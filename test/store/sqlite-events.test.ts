import { eventConformance } from './conformance/events.ts'
import { webhookDeliveryConformance } from './conformance/webhook-deliveries.ts'
import { openFreshSqlite } from './sqlite-under-test.ts'

eventConformance('SQLite', openFreshSqlite)
webhookDeliveryConformance('SQLite', openFreshSqlite)
