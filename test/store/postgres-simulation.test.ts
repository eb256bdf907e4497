import { stopPostgres } from '../support/postgres.ts'
import { after } from '../support/suite.ts'
import { simulationConformance } from './conformance/simulation.ts'
import { openMortalPostgres } from './postgres-under-test.ts'

after(stopPostgres)

/** One new run, with other rules each time: a run takes some eight seconds, and the long simulation plays all rules. */
simulationConformance('PostgreSQL', openMortalPostgres, 1)
