import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { SEEDS_OF_RULES, simulationConformance } from './conformance/simulation.ts'
import { openMortalPostgres } from './postgres-under-test.ts'

after(stopPostgres)

/** Fewer runs than on SQLite, because each takes eight seconds. The long simulation runs more. */
simulationConformance('PostgreSQL', openMortalPostgres, { seeds: SEEDS_OF_RULES, newRuns: 1 })
