import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { storeConformance } from './conformance/every.ts'
import { openFreshPostgres } from './postgres-under-test.ts'

after(stopPostgres)

storeConformance('PostgreSQL', openFreshPostgres)
