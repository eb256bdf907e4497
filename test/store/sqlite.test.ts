import { storeConformance } from './conformance/every.ts'
import { openFreshSqlite } from './sqlite-under-test.ts'

storeConformance('SQLite', openFreshSqlite)
