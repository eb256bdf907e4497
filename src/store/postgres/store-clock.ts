export type { StoreClock } from '../operations/sql.ts'
