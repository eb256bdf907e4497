import { after } from 'node:test'
import { stopPostgres } from '../support/postgres.ts'
import { webhookDeliveryConformance } from './conformance/webhook-deliveries.ts'
import { webhookEventConformance } from './conformance/webhook-events.ts'
import { openFreshPostgres } from './postgres-under-test.ts'

after(stopPostgres)

webhookEventConformance('PostgreSQL', openFreshPostgres)
webhookDeliveryConformance('PostgreSQL', openFreshPostgres)
