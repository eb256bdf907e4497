import { after } from 'node:test'
import { stopPostgres } from '../support/postgres.ts'
import { simulationConformance } from './conformance/simulation.ts'
import { openMortalPostgres } from './postgres-under-test.ts'

after(stopPostgres)

simulationConformance('PostgreSQL', openMortalPostgres)
