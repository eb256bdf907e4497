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
import { openFreshSqlite } from './sqlite-under-test.ts'

ledgerConformance('SQLite', openFreshSqlite)
capConformance('SQLite', openFreshSqlite)
ceilingConformance('SQLite', openFreshSqlite)
holdFloorConformance('SQLite', openFreshSqlite)
deferredConformance('SQLite', openFreshSqlite)
keyConformance('SQLite', openFreshSqlite)
keyListConformance('SQLite', openFreshSqlite)
onceConformance('SQLite', openFreshSqlite)
requestLogConformance('SQLite', openFreshSqlite)
sessionConformance('SQLite', openFreshSqlite)
socketConformance('SQLite', openFreshSqlite)
usageConformance('SQLite', openFreshSqlite)
creditBackConformance('SQLite', openFreshSqlite)
refusedCallConformance('SQLite', openFreshSqlite)
bodyLimitConformance('SQLite', openFreshSqlite)
