import { simulationConformance } from './conformance/simulation.ts'
import { openMortalSqlite } from './mortal-sqlite.ts'

simulationConformance('SQLite', openMortalSqlite)
