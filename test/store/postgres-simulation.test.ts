import { after } from 'node:test'
import { stopPostgres } from '../support/postgres.ts'
import { simulationConformance } from './conformance/simulation.ts'
import { openMortalPostgres } from './postgres-under-test.ts'

after(stopPostgres)

/** One with other rules each time: they take some eight seconds each, and the long run plays them all. */
simulationConformance('PostgreSQL', openMortalPostgres, 1)
