import { simulationConformance } from './conformance/simulation.ts'
import { openMortalSqlite } from './sqlite-under-test.ts'

simulationConformance('SQLite', openMortalSqlite)
