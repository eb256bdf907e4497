import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { bodyLimitConformance } from './conformance/body-limit.ts'
import { capConformance } from './conformance/caps.ts'
import { ceilingConformance } from './conformance/ceilings.ts'
import { creditBackConformance } from './conformance/credit-back.ts'
import { deferredConformance } from './conformance/deferred.ts'
import { holdFloorConformance } from './conformance/hold-floors.ts'
import { onceConformance } from './conformance/idempotency.ts'
import { keyListConformance } from './conformance/key-list.ts'
import { keyConformance } from './conformance/keys.ts'
import { ledgerConformance } from './conformance/ledger.ts'
import { refusedCallConformance } from './conformance/refused-calls.ts'
import { requestLogConformance } from './conformance/request-log.ts'
import { sessionConformance } from './conformance/sessions.ts'
import { socketConformance } from './conformance/sockets.ts'
import { usageConformance } from './conformance/usage.ts'
import { openFreshPostgres } from './postgres-under-test.ts'

after(stopPostgres)

ledgerConformance('PostgreSQL', openFreshPostgres)
capConformance('PostgreSQL', openFreshPostgres)
ceilingConformance('PostgreSQL', openFreshPostgres)
holdFloorConformance('PostgreSQL', openFreshPostgres)
deferredConformance('PostgreSQL', openFreshPostgres)
keyConformance('PostgreSQL', openFreshPostgres)
keyListConformance('PostgreSQL', openFreshPostgres)
onceConformance('PostgreSQL', openFreshPostgres)
requestLogConformance('PostgreSQL', openFreshPostgres)
sessionConformance('PostgreSQL', openFreshPostgres)
socketConformance('PostgreSQL', openFreshPostgres)
usageConformance('PostgreSQL', openFreshPostgres)
creditBackConformance('PostgreSQL', openFreshPostgres)
refusedCallConformance('PostgreSQL', openFreshPostgres)
bodyLimitConformance('PostgreSQL', openFreshPostgres)
