import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { SEEDS_OF_RULES, simulationConformance } from './conformance/simulation.ts'
import { openMortalPostgres } from './postgres-under-test.ts'

after(stopPostgres)

/** Fewer runs than on SQLite, since a run takes some eight seconds. The long simulation plays more of them. */
simulationConformance('PostgreSQL', openMortalPostgres, { seeds: SEEDS_OF_RULES, newRuns: 1 })
